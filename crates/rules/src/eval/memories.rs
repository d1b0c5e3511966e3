//! The states of matches that remember earlier packets, apart from the immutable rules.

use crate::ext::Memory;
use crate::model::Ruleset;
use crate::outcome::Outcome;
use crate::transit::Transit;

/// One state for each match that remembers, by the index in [`crate::ext::MatchUse::memory`].
#[derive(Debug, Default)]
pub struct Memories(Vec<Slot>);

#[derive(Debug)]
struct Slot {
    memory: Box<dyn Memory>,
    /// A packet may or may not have reached it: nothing is known of it any more.
    lost: bool,
}

impl Memories {
    /// Fresh states for a ruleset.
    #[must_use]
    pub fn of(ruleset: &Ruleset) -> Self {
        let rules = ruleset.tables.iter().flat_map(|t| &t.chains).flat_map(|chain| &chain.rules);
        let memories = rules.flat_map(|rule| &rule.matches).filter_map(|used| used.body.memory());
        Self(memories.map(|memory| Slot { memory, lost: false }).collect())
    }

    /// Asks a state about a packet that certainly, or maybe, reached it.
    pub(super) fn evaluate(
        &mut self,
        slot: u32,
        certain: bool,
        transit: &mut Transit<'_, '_>,
    ) -> Outcome {
        let Some(slot) = self.0.get_mut(slot as usize) else { return Outcome::MAYBE };
        transit.certain = certain;
        slot.lost |= !certain && !slot.memory.outlives_doubt();
        if slot.lost { Outcome::MAYBE } else { slot.memory.evaluate(transit) }
    }
}
