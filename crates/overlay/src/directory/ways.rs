//! The ways between nodes as their owner sees them: what each node says of how it reaches others.
//!
//! Contract: a node is asked for nothing, and nothing depends on what it says; what it says of pairs that have no path is dropped.

use super::state::Directory;
use crate::effect::Now;
use crate::limits;
use crate::name::Name;
use crate::paths::{Pair, Said};
use crate::reached::Reached;

/// The path between two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The two nodes.
    pub pair: Pair,
    /// Whether each of them reaches the other one without the relay, and the round trip in microseconds, by its own word of the
    /// last minute.
    pub said: [Option<(bool, Option<u32>)>; 2],
    /// Nanoseconds since somebody asked for it; nothing where this directory has restarted since.
    pub asked: Option<u64>,
}

impl Directory {
    /// A node says how it reaches others.
    pub(super) fn reaches(&mut self, name: &Name, peers: Vec<Reached>, now: Now) {
        for Reached { name: other, is_direct, micros } in peers {
            let pair = Pair::of(name, &other);
            self.paths.says(name, &pair, Said { at: now.nanos, is_direct, micros });
        }
    }

    /// All paths.
    pub fn ways(&self, now: u64) -> impl Iterator<Item = Way> {
        self.paths.pairs().filter_map(move |pair| {
            let (touched, said) = self.paths.said(pair)?;
            let is_new = |said: &Said| now.saturating_sub(said.at) < limits::REACHES;
            let said = said.map(|it| it.filter(is_new).map(|it| (it.is_direct, it.micros)));
            let asked = (touched != 0).then(|| now.saturating_sub(touched));
            Some(Way { pair: pair.clone(), said, asked })
        })
    }
}
