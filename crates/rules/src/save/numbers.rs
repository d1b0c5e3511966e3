//! Numbers rules, and what walks keep apart from them: the counters of each rule, and the state of each match that
//! remembers packets.

use std::mem;
use std::sync::Arc;

use crate::model::{Rule, Ruleset};

impl Ruleset {
    /// Numbers all rules from 0, in the order of the file, and what their matches remember. Parts of a rule that decide have
    /// one counter. A loader calls it, while nobody shares the rules.
    pub fn number(&mut self) {
        let (mut id, mut slot, mut memory) = (0, 0, 0);
        for chain in self.tables.iter_mut().flat_map(|table| &mut table.chains) {
            let mut last = None;
            for rule in chain.rules.iter_mut().filter_map(Arc::get_mut) {
                let part = rule.listed.as_ref().filter(|listed| !listed.is_part);
                let number = part.map(|listed| listed.number);
                if number.is_none() || number != last {
                    slot += 1;
                }
                (rule.slot, rule.id, last) = (slot - 1, id, number);
                id += 1;
                number_memories(rule, || {
                    memory += 1;
                    memory - 1
                });
            }
        }
    }

    /// Takes in the tables of another ruleset of the family that is read from the same text, this many lines further
    /// down, and is registered earlier or later. Nobody else may have the rules yet.
    pub fn join(&mut self, other: Self, lines: u32, is_earlier: bool) {
        let Self { mut tables, .. } = other;
        for chain in tables.iter_mut().flat_map(|table| &mut table.chains) {
            // What no line declares has none here either.
            chain.line += if chain.line > 0 { lines } else { 0 };
            let rules = chain.rules.iter_mut().filter_map(Arc::get_mut);
            rules.for_each(|rule| rule.line += lines);
        }
        if is_earlier {
            mem::swap(&mut self.tables, &mut tables);
        }
        self.tables.extend(tables);
        self.number();
    }
}

/// Numbers the memories of one rule.
pub(crate) fn number_memories(rule: &mut Rule, mut next: impl FnMut() -> u32) {
    for used in &mut rule.matches {
        used.memory = used.body.memory().map(|_| next());
    }
}
