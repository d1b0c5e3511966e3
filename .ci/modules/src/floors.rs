//! `floors.txt`: the order of a crate's top modules, each of which uses those before it and none after it.

use anyhow::{Context, Result};

use crate::resolve::Edge;
use crate::source::Module;

/// The floors of a crate: the names of its top modules, the lowest first.
#[derive(Debug)]
pub(crate) struct Floors<'t> {
    of: &'t str,
    names: Vec<&'t str>,
}

/// Reads lines `crate: floor floor …`; empty ones and those that begin with # are skipped.
pub(crate) fn read(text: &str) -> Result<Vec<Floors<'_>>> {
    let lines =
        text.lines().enumerate().filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
    let floors = lines.map(|(line, text)| {
        let expected = || format!("floors.txt:{}: expected `crate: floor floor …`", line + 1);
        let (of, names) = text.split_once(": ").with_context(expected)?;
        Ok(Floors { of, names: names.split(' ').collect() })
    });
    floors.collect()
}

impl Floors<'_> {
    /// Whether an edge leads to a higher floor of this crate, or comes from a top module that has none.
    pub(crate) fn refuses(&self, modules: &[Module], edge: &Edge) -> bool {
        let floor = |place: usize| {
            let mut names = modules[place].path.split("::");
            let name = names.next().filter(|name| *name == self.of).and_then(|_| names.next())?;
            Some(self.names.iter().position(|floor| *floor == name))
        };
        match (floor(edge.from), floor(edge.to)) {
            (Some(from), Some(to)) => from.is_none() || from < to,
            _ => false,
        }
    }
}
