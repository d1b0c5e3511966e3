//! The search for an order.

use std::collections::HashSet;

use super::{Act, Operation, State};

/// The most operations of a history.
pub const MOST: usize = 64;

/// Whether some order of the operations, in which none comes before one that had ended when it began, gives
/// every answer. `None`: there are more than [`MOST`].
#[must_use]
pub fn is_linearizable(history: &[Operation], start: State) -> Option<bool> {
    (history.len() <= MOST).then(|| Search { history, tried: HashSet::new() }.goes_on(0, start))
}

struct Search<'h> {
    history: &'h [Operation],
    /// Sets of operations done, with the state that they left: how they were ordered no longer matters.
    tried: HashSet<(u64, State)>,
}

impl Search<'_> {
    fn goes_on(&mut self, done: u64, state: State) -> bool {
        if done.count_ones() as usize == self.history.len() {
            return true;
        }
        if !self.tried.insert((done, state)) {
            return false;
        }
        let open = |at: &usize| done >> at & 1 == 0;
        let left = || (0..self.history.len()).filter(open);
        // Whatever began after another one's end has to wait for it.
        let first_end = left().map(|at| self.history[at].ended).min().unwrap_or(u64::MAX);
        let candidates: Vec<usize> =
            left().filter(|&at| self.history[at].began <= first_end).collect();
        candidates.into_iter().any(|at| match self.history[at].act {
            Act::Update(config) => self.goes_on(done | 1 << at, state.after(&config)),
            Act::Decide { source, destination, permitted } => {
                state.permits(source, destination) == permitted
                    && self.goes_on(done | 1 << at, state)
            }
        })
    }
}
