//! The states of matches that remember earlier packets, apart from the immutable rules.

use super::budget::GivenUp;
use crate::ext::{Match, Memory, RecentLists};
use crate::model::Ruleset;
use crate::outcome::Outcome;
use crate::transit::Transit;

/// One state for each match that remembers, by the index in [`crate::ext::MatchUse::memory`].
#[derive(Debug, Default)]
pub struct Memories {
    slots: Vec<Option<Slot>>,
    /// What the rules share.
    lists: RecentLists,
    /// Chains that walks were given up in.
    pub(super) given_up: GivenUp,
}

#[derive(Debug)]
struct Slot {
    memory: Box<dyn Memory>,
    /// A packet may or may not have reached it: nothing is known of it any more.
    indeterminate: bool,
}

impl Memories {
    /// Fresh states for a ruleset.
    #[must_use]
    pub fn of(ruleset: &Ruleset) -> Self {
        let rules = ruleset.tables.iter().flat_map(|table| &table.chains).flat_map(|c| &c.rules);
        let mut memories = Self::default();
        for used in rules.flat_map(|rule| &rule.matches) {
            let (Some(at), Some(mut memory)) = (used.memory, used.body.memory()) else { continue };
            memory.join(&mut memories.lists);
            memories.set(at as usize, memory);
        }
        memories
    }

    fn set(&mut self, at: usize, memory: Box<dyn Memory>) {
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.slots[at] = Some(Slot { memory, indeterminate: false });
    }

    /// Any of them may have changed: nothing is known of them any more.
    pub(super) fn make_indeterminate(&mut self) {
        for slot in self.slots.iter_mut().flatten() {
            slot.indeterminate = true;
        }
    }

    /// The state of a match, unless nothing is known of it.
    pub(super) fn of_match(&self, at: u32) -> Option<&dyn Memory> {
        let slot = self.slots.get(at as usize)?.as_ref().filter(|slot| !slot.indeterminate)?;
        Some(&*slot.memory)
    }

    /// Asks the state of a match about a packet that certainly, or maybe, reached it. A match without one gets it
    /// with the first packet.
    pub(super) fn evaluate(
        &mut self,
        at: u32,
        body: &dyn Match,
        certain: bool,
        transit: &mut Transit<'_, '_>,
    ) -> Outcome {
        if transit.ct.again {
            return body.peek(transit).unwrap_or(Outcome::MAYBE);
        }
        let at = at as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        let slot = match &mut self.slots[at] {
            Some(slot) => slot,
            none => {
                let Some(memory) = body.memory() else { return Outcome::MAYBE };
                none.insert(Slot { memory, indeterminate: false })
            }
        };
        transit.certain = certain;
        slot.indeterminate |= !certain && !slot.memory.outlives_doubt();
        if slot.indeterminate {
            Outcome::MAYBE
        } else {
            slot.memory.evaluate(transit, &mut self.lists)
        }
    }
}
