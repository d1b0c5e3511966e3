//! The states of matches that remember earlier packets, apart from the immutable rules.
//!
//! Contract: one walker's own; where several share what the kernel has once ([`SharedMemories`]), each has its own
//! places, and behind them is one state for all.

mod shared;

pub use shared::SharedMemories;

use std::sync::Arc;

use super::budget::GivenUp;
use crate::ext::{ListUse, Match, MatchUse, Memory, NamedLists, SharedLists};
use crate::model::{Family, Ruleset};
use crate::one::One;
use crate::outcome::Outcome;
use crate::transit::Transit;
use shared::State;

/// One state for each match that remembers, by the index in [`crate::ext::MatchUse::memory`].
#[derive(Debug, Default)]
pub struct Memories {
    slots: Vec<Option<Remembered>>,
    /// What the rules share.
    lists: NamedLists,
    /// Chains that walks were given up in.
    pub(super) given_up: GivenUp,
    /// Rules whose names are below this are there.
    ids: u64,
    /// A walk was given up when rules whose names are below this were there: nothing is known of their states.
    doubted: u64,
    /// Which lists of its revisions it has.
    lists_changed: u64,
    /// Where states are, if they are those of all workers.
    shared: Option<Arc<SharedMemories>>,
}

/// The state of one match.
#[derive(Debug)]
struct Remembered {
    /// Name of its rule.
    of: u64,
    state: One<State>,
}

impl Remembered {
    /// Nothing remembered yet; `None` for a match that never does.
    fn fresh(used: &MatchUse, of: u64) -> Option<Self> {
        let state = State { memory: used.body.memory()?, indeterminate: false };
        Some(Self { of, state: One::Own(state) })
    }
}

impl Memories {
    /// None yet. What the kernel has once is that of all who share this, under revisions of the same rules.
    #[must_use]
    pub fn sharing(shared: Arc<SharedMemories>, family: Family) -> Self {
        let lists = shared.lists();
        Self { shared: Some(shared), ..Self::among(family, lists) }
    }

    /// None yet, for rules of a family whose lists are among these.
    #[must_use]
    pub fn among(family: Family, lists: Arc<SharedLists>) -> Self {
        Self { lists: NamedLists::among(family, lists), ..Self::default() }
    }

    /// Fresh states for a ruleset, whose lists nobody else has.
    #[must_use]
    pub fn of(ruleset: &Ruleset) -> Self {
        let mut memories = Self::among(ruleset.family, Arc::default());
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
            self.lists.declare(lists_changed, lists);
            self.lists_changed = lists_changed;
        }
    }

    /// How many states it has room for.
    #[must_use]
    pub fn room(&self) -> usize {
        self.slots.len()
    }

    /// Puts a state in its place, and into the lists that it shares.
    fn put(&mut self, at: u32, mut state: Remembered) {
        let at = at as usize;
        state.state.hold().memory.join(&mut self.lists);
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.slots[at] = Some(state);
    }

    /// The family has no rules any more: its lists end, unless another family names them.
    pub fn end(self) {
        self.lists.end();
    }

    /// Any of them may have changed: nothing is known of them any more.
    pub(super) fn make_indeterminate(&mut self) {
        for slot in self.slots.iter_mut().flatten() {
            slot.state.hold().indeterminate = true;
        }
        self.lists.make_indeterminate();
        self.doubted = self.ids;
        if let Some(shared) = &self.shared {
            shared.make_indeterminate(self.ids);
        }
    }

    /// Asks the state of a match of a rule about a packet that certainly, or maybe, reached it, and shows it as it is
    /// then. A match without one gets it with the first packet, and so does one whose place is still another rule's.
    #[inline]
    pub(super) fn evaluate(
        &mut self,
        at: u32,
        rule: u64,
        body: &dyn Match,
        certain: bool,
        transit: &mut Transit<'_, '_>,
        show: impl FnOnce(&dyn Memory),
    ) -> Outcome {
        if transit.ct.again {
            return body.peek(transit).unwrap_or(Outcome::MAYBE);
        }
        let Some(slot) = self.slot(at, rule, body) else { return Outcome::MAYBE };
        let Some(Remembered { state, .. }) = &mut self.slots[slot] else { return Outcome::MAYBE };
        transit.certain = certain;
        let mut state = state.hold();
        state.indeterminate |= !certain && !state.memory.outlives_doubt();
        if state.indeterminate {
            return Outcome::MAYBE;
        }
        let outcome = state.memory.evaluate(transit, &mut self.lists);
        show(&*state.memory);
        outcome
    }

    /// The place of a match of a rule, with its state in it; `None` if it has none.
    #[inline]
    fn slot(&mut self, at: u32, rule: u64, body: &dyn Match) -> Option<usize> {
        let place = at as usize;
        let is_there = self.slots.get(place).and_then(Option::as_ref).is_some_and(|s| s.of == rule);
        if !is_there {
            let state = self.state(at, rule, body.memory()?);
            if self.slots.len() <= place {
                self.slots.resize_with(place + 1, || None);
            }
            self.slots[place] = Some(Remembered { of: rule, state });
        }
        Some(place)
    }

    /// The state that a match begins with: this fresh one, or that of all workers.
    #[cold]
    fn state(&self, at: u32, rule: u64, memory: Box<dyn Memory>) -> One<State> {
        let state = State { memory, indeterminate: rule < self.doubted };
        match self.shared.as_ref().filter(|_| state.memory.is_one()) {
            Some(shared) => One::Shared(shared.state(at, rule, state)),
            None => One::Own(state),
        }
    }
}
