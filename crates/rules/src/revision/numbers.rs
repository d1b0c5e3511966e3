//! Numbers for what walks keep apart from the rules. They are the writer's, who gives each out once.

use crate::model::{Rule, Ruleset};
use crate::save::numbers::number_memories;

/// Places of counters and of states of matches.
#[derive(Debug, Default)]
pub struct Numbers {
    next_slot: u32,
    free_slots: Vec<u32>,
    next_memory: u32,
}

impl Numbers {
    /// Takes note of the numbers that loading gave out.
    pub(super) fn note(&mut self, ruleset: &Ruleset) {
        let chains = ruleset.tables.iter().flat_map(|table| &table.chains);
        for rule in chains.flat_map(|chain| &chain.rules) {
            self.next_slot = self.next_slot.max(rule.slot + 1);
            for memory in rule.matches.iter().filter_map(|used| used.memory) {
                self.next_memory = self.next_memory.max(memory + 1);
            }
        }
    }

    /// Numbers a rule that is new. States of matches are never given out twice: a worker makes one when a
    /// packet first gets there, and may still have the one of a rule that is gone.
    pub(super) fn number(&mut self, rule: &mut Rule) {
        rule.slot = self.free_slots.pop().unwrap_or_else(|| {
            self.next_slot += 1;
            self.next_slot - 1
        });
        number_memories(rule, &mut self.next_memory);
    }

    /// Counters that nobody counts in any more may be given out again.
    pub fn free(&mut self, slots: &[u32]) {
        self.free_slots.extend_from_slice(slots);
    }

    /// Counters that a worker needs room for.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.next_slot as usize
    }
}
