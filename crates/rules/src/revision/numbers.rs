//! Numbers for what walks keep apart from the rules, and names of rules. They are the writer's, who gives each out
//! once.
//!
//! Places of counters and of states of matches are given out again, once the revisions that had them have ended. A
//! state that a worker made for the rule before does not pass for the next one's: it knows its rule by name, and no
//! name is given twice.

use std::sync::Arc;

use crate::model::{Chain, Rule, Ruleset, Table};
use crate::save::numbers::number_memories;

/// Places of counters and of states of matches, and names of rules.
#[derive(Debug, Default)]
pub struct Numbers {
    slots: Places,
    memories: Places,
    next_id: u64,
    lineage: Lineage,
}

/// Whose names are names of the same rules: all revisions that are numbered by one [`Numbers`].
#[derive(Debug, Clone, Default)]
pub struct Lineage(Arc<()>);

#[derive(Debug, Default)]
struct Places {
    next: u32,
    free: Vec<u32>,
}

/// The places of rules that a revision no longer has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Places of counters: [`Rule::slot`].
    pub slots: Vec<u32>,
    /// Places of states: [`crate::ext::MatchUse::memory`].
    pub memories: Vec<u32>,
}

impl Numbers {
    /// Takes note of the numbers that loading gave out, if they are the first; rules that come later get others.
    pub(super) fn first(&mut self, ruleset: &Ruleset) -> Option<Ruleset> {
        if self.next_id > 0 {
            return Some(self.renumbered(ruleset));
        }
        let chains = ruleset.tables.iter().flat_map(|table| &table.chains);
        for rule in chains.flat_map(|chain| &chain.rules) {
            self.slots.next = self.slots.next.max(rule.slot + 1);
            self.next_id = self.next_id.max(rule.id + 1);
            for memory in rule.matches.iter().filter_map(|used| used.memory) {
                self.memories.next = self.memories.next.max(memory + 1);
            }
        }
        None
    }

    fn renumbered(&mut self, ruleset: &Ruleset) -> Ruleset {
        let mut own = |rule: &Arc<Rule>| {
            let mut rule = Rule::clone(rule);
            self.number(&mut rule);
            Arc::new(rule)
        };
        let mut chain = |chain: &Chain| Chain {
            name: chain.name.clone(),
            rules: chain.rules.iter().map(&mut own).collect(),
            ..*chain
        };
        let table = |table: &Table| Table {
            name: table.name.clone(),
            backend: table.backend,
            chains: table.chains.iter().map(&mut chain).collect(),
        };
        Ruleset { tables: ruleset.tables.iter().map(table).collect(), ..*ruleset }
    }

    /// Numbers a rule that is new.
    pub(super) fn number(&mut self, rule: &mut Rule) {
        rule.slot = self.slots.take();
        rule.id = self.next_id;
        self.next_id += 1;
        number_memories(rule, || self.memories.take());
    }

    /// What nobody uses any more may be given out again.
    pub fn free(&mut self, dropped: &Dropped) {
        self.slots.free.extend_from_slice(&dropped.slots);
        self.memories.free.extend_from_slice(&dropped.memories);
    }

    /// Counters that a worker needs room for.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.next as usize
    }

    /// States of matches that a worker may come to hold.
    #[must_use]
    pub fn memories(&self) -> usize {
        self.memories.next as usize
    }

    /// Every name that was given is below this.
    pub(super) fn ids(&self) -> u64 {
        self.next_id
    }

    pub(super) fn lineage(&self) -> &Lineage {
        &self.lineage
    }
}

impl Lineage {
    /// Whether it is the same.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Places {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

impl Dropped {
    pub(super) fn of<'r>(rules: impl IntoIterator<Item = &'r Arc<Rule>>) -> Self {
        let mut dropped = Self::default();
        for rule in rules {
            dropped.slots.push(rule.slot);
            dropped.memories.extend(rule.matches.iter().filter_map(|used| used.memory));
        }
        dropped
    }
}
