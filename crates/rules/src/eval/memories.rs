//! The states of matches that remember earlier packets, apart from the immutable rules.

use super::budget::GivenUp;
use crate::ext::{Match, MatchUse, Memory, RecentLists};
use crate::model::Ruleset;
use crate::outcome::Outcome;
use crate::transit::Transit;

/// One state for each match that remembers, by the index in [`crate::ext::MatchUse::memory`].
#[derive(Debug, Default)]
pub struct Memories {
    slots: Vec<Option<Remembered>>,
    /// What the rules share.
    lists: RecentLists,
    /// Chains that walks were given up in.
    pub(super) given_up: GivenUp,
}

/// The state of one match.
#[derive(Debug)]
pub(crate) struct Remembered {
    memory: Box<dyn Memory>,
    /// A packet may or may not have reached it: nothing is known of it any more.
    indeterminate: bool,
}

impl Remembered {
    /// Nothing remembered yet; `None` for a match that never does.
    pub(crate) fn fresh(used: &MatchUse) -> Option<Self> {
        Some(Self { memory: used.body.memory()?, indeterminate: false })
    }
}

impl Memories {
    /// Fresh states for a ruleset.
    #[must_use]
    pub fn of(ruleset: &Ruleset) -> Self {
        let rules = ruleset.tables.iter().flat_map(|table| &table.chains).flat_map(|c| &c.rules);
        let mut memories = Self::default();
        for used in rules.flat_map(|rule| &rule.matches) {
            if let (Some(at), Some(state)) = (used.memory, Remembered::fresh(used)) {
                memories.put(at, state);
            }
        }
        memories
    }

    /// Puts a state in its place, and into the lists that it shares.
    pub(crate) fn put(&mut self, at: u32, mut state: Remembered) {
        let at = at as usize;
        state.memory.join(&mut self.lists);
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.slots[at] = Some(state);
    }

    /// Takes a state out.
    pub(crate) fn take(&mut self, at: u32) -> Option<Remembered> {
        self.slots.get_mut(at as usize)?.take()
    }

    /// Lists that were joined here hold what lists of the same name held there.
    pub(crate) fn inherit_lists(&mut self, from: Self) {
        self.lists.inherit(from.lists);
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
                none.insert(Remembered { memory, indeterminate: false })
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
