//! The states of matches that remember earlier packets, apart from the immutable rules.

use super::budget::GivenUp;
use crate::ext::{ListUse, Match, MatchUse, Memory, RecentLists};
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
    /// Rules whose names are below this are there.
    ids: u64,
    /// A walk was given up when rules whose names are below this were there: nothing is known of their states.
    doubted: u64,
    /// Which lists of its revisions it has.
    lists_changed: u64,
}

/// The state of one match.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// Name of its rule.
    of: u64,
    memory: Box<dyn Memory>,
    /// A packet may or may not have reached it: nothing is known of it any more.
    indeterminate: bool,
}

impl Remembered {
    /// Nothing remembered yet; `None` for a match that never does.
    pub(crate) fn fresh(used: &MatchUse, of: u64) -> Option<Self> {
        Some(Self { of, memory: used.body.memory()?, indeterminate: false })
    }

    /// The same for the rule that took the place of its own.
    pub(crate) fn inherited(self, of: u64) -> Self {
        Self { of, ..self }
    }
}

impl Memories {
    /// Fresh states for a ruleset.
    #[must_use]
    pub fn of(ruleset: &Ruleset) -> Self {
        let mut memories = Self::default();
        for (rule, used) in ruleset.rules().flat_map(|r| r.matches.iter().map(|used| (r.id, used)))
        {
            if let (Some(at), Some(state)) = (used.memory, Remembered::fresh(used, rule)) {
                memories.put(at, state);
            }
        }
        memories
    }

    /// Goes on where the names of all rules are below this, with these lists and the rules that declared them, if their
    /// number of changes is another one.
    pub(crate) fn go_on<'l>(
        &mut self,
        ids: u64,
        lists_changed: u64,
        lists: impl Iterator<Item = (ListUse<'l>, u64)>,
    ) {
        (self.ids, self.given_up) = (ids, GivenUp::default());
        if lists_changed != self.lists_changed {
            self.lists.declare(lists);
            self.lists_changed = lists_changed;
        }
    }

    /// Forgets all but the lists.
    pub fn forget(&mut self) {
        self.slots.clear();
        self.doubted = 0;
    }

    /// Fresh states for a ruleset, and the lists of this one as far as its rules name them.
    #[must_use]
    pub fn restored(self, ruleset: &Ruleset) -> Self {
        let mut fresh = Self::of(ruleset);
        fresh.inherit_lists(self);
        fresh
    }

    /// How many states it has room for.
    #[must_use]
    pub fn room(&self) -> usize {
        self.slots.len()
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
        self.lists.make_indeterminate();
        self.doubted = self.ids;
    }

    /// The state of a match, unless nothing is known of it.
    pub(super) fn of_match(&self, at: u32) -> Option<&dyn Memory> {
        let slot = self.slots.get(at as usize)?.as_ref().filter(|slot| !slot.indeterminate)?;
        Some(&*slot.memory)
    }

    /// Asks the state of a match of a rule about a packet that certainly, or maybe, reached it. A match without one
    /// gets it with the first packet, and so does one whose place is still another rule's.
    pub(super) fn evaluate(
        &mut self,
        at: u32,
        rule: u64,
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
            Some(slot) if slot.of == rule => slot,
            other => {
                let Some(memory) = body.memory() else { return Outcome::MAYBE };
                other.insert(Remembered { of: rule, memory, indeterminate: rule < self.doubted })
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
