//! `exceptions.txt`: edges that may stay in a circle, each with its reason.

use anyhow::{Context, Result, ensure};

use crate::circles;
use crate::resolve::Edge;
use crate::source::Module;

/// The exceptions, and which of them something needed.
#[derive(Debug)]
pub(crate) struct Exceptions {
    list: Vec<Exception>,
}

#[derive(Debug)]
struct Exception {
    line: usize,
    from: String,
    to: String,
    needed: bool,
}

/// Reads lines `from -> to: reason`; empty ones and those that begin with # are skipped.
pub(crate) fn read(text: &str) -> Result<Exceptions> {
    let mut list = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let line = line + 1;
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let expected = || format!("exceptions.txt:{line}: expected `from -> to: reason`");
        let (edge, reason) = text.split_once(": ").with_context(expected)?;
        let (from, to) = edge.split_once(" -> ").with_context(expected)?;
        ensure!(!reason.trim().is_empty(), expected());
        list.push(Exception { line, from: from.to_owned(), to: to.to_owned(), needed: false });
    }
    Ok(Exceptions { list })
}

impl Exceptions {
    /// Whether an edge is listed.
    pub(crate) fn lists(&self, modules: &[Module], edge: &Edge) -> bool {
        self.list.iter().any(|exception| exception.is(modules, edge))
    }

    /// Marks those of the `listed` edges that would close a circle with the others.
    pub(crate) fn check(&mut self, modules: &[Module], listed: &[Edge], counted: &[Edge]) {
        let all: Vec<Edge> = listed.iter().chain(counted).cloned().collect();
        let circles = circles::find(modules.len(), &all);
        for edge in
            listed.iter().filter(|edge| circles.iter().any(|circle| circles::within(circle, edge)))
        {
            let of_edge = self.list.iter_mut().filter(|exception| exception.is(modules, edge));
            of_edge.for_each(|exception| exception.needed = true);
        }
    }

    /// The lines of exceptions that nothing needed.
    pub(crate) fn idle(&self) -> Vec<usize> {
        self.list
            .iter()
            .filter(|exception| !exception.needed)
            .map(|exception| exception.line)
            .collect()
    }
}

impl Exception {
    fn is(&self, modules: &[Module], edge: &Edge) -> bool {
        modules[edge.from].path == self.from && modules[edge.to].path == self.to
    }
}
