//! [`SharedMemories`]: the states of matches that the kernel has once, for all workers.
//!
//! A state is found by its place and by the name of its rule, and made by whoever gets there first. Names are never
//! given again, so a place whose rule has another name is that of a rule that is gone, and of nobody who still walks:
//! places are given again once all revisions are that had them.
//!
//! Contract: the lock on all of them is taken where a worker meets a match for the first time, and where a walk is
//! given up. To look and to make is one turn of that lock, so two who come at once find one state. After that a worker
//! has the state at hand, and takes its lock alone, while one match is evaluated. Order: all of them, then one.
//! Bounded by the places of rules that are not reclaimed, as every worker's own.

use std::sync::{Arc, Mutex};

use crate::ext::{Memory, SharedLists};
use crate::one::lock;

/// What the kernel has once of one family's rules.
#[derive(Debug, Default)]
pub struct SharedMemories {
    states: Mutex<States>,
    lists: Arc<SharedLists>,
}

#[derive(Debug, Default)]
struct States {
    /// With the names of their rules.
    by_place: Vec<Option<(u64, Arc<Mutex<State>>)>>,
    /// A walk was given up when rules whose names are below this were there: nothing is known of their states.
    doubted: u64,
}

/// What a match remembers.
#[derive(Debug)]
pub(super) struct State {
    pub(super) memory: Box<dyn Memory>,
    /// A packet may or may not have reached it: nothing is known of it any more.
    pub(super) indeterminate: bool,
}

impl SharedMemories {
    /// Nothing remembered yet, with lists that are among these.
    #[must_use]
    pub fn among(lists: Arc<SharedLists>) -> Self {
        Self { lists, ..Self::default() }
    }

    pub(super) fn lists(&self) -> Arc<SharedLists> {
        Arc::clone(&self.lists)
    }

    /// The state of a match of a rule, which is this one if it has none.
    pub(super) fn state(&self, at: u32, rule: u64, fresh: State) -> Arc<Mutex<State>> {
        let (at, mut states) = (at as usize, lock(&self.states));
        let doubted = states.doubted;
        if states.by_place.len() <= at {
            states.by_place.resize_with(at + 1, || None);
        }
        match &mut states.by_place[at] {
            Some((of, state)) if *of == rule => Arc::clone(state),
            other => {
                let indeterminate = fresh.indeterminate || rule < doubted;
                let state = Arc::new(Mutex::new(State { indeterminate, ..fresh }));
                *other = Some((rule, Arc::clone(&state)));
                state
            }
        }
    }

    /// Nothing is known any more of the states of rules whose names are below this.
    pub(super) fn make_indeterminate(&self, ids: u64) {
        let mut states = lock(&self.states);
        states.doubted = states.doubted.max(ids);
        for (_, state) in states.by_place.iter().flatten() {
            lock(state).indeterminate = true;
        }
    }
}
