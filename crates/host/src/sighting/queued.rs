//! [`Queued`]: arrivals by what a program leaves alone that rules hand packets to (`-j NFQUEUE`): it may change the payload.
//!
//! Contract: only what the payload finds no arrival for is looked up here. Of those the ends and the time to live have to
//! tell more, since a request of the host's own for a client is much like the client's.

use std::collections::VecDeque;

use super::print::Print;
use super::table::Table;

/// The arrivals, by [`Print::rest`], the oldest first.
#[derive(Debug, Default)]
pub(super) struct Queued(Table<VecDeque<u64>>);

impl Queued {
    /// Enters an arrival.
    pub(super) fn add(&mut self, print: &Print, index: u64) {
        self.0.entry(print.rest).or_default().push_back(index);
    }

    /// Arrivals that this frame may show leaving, if the payload was changed.
    pub(super) fn like(&self, print: &Print) -> impl Iterator<Item = u64> {
        self.0.get(&print.rest).into_iter().flatten().copied()
    }

    /// Drops arrivals of which nothing more is to be learned from the front.
    pub(super) fn drop_while(&mut self, print: &Print, is_done: impl Fn(u64) -> bool) {
        let Some(all) = self.0.get_mut(&print.rest) else { return };
        while all.front().is_some_and(|index| is_done(*index)) {
            all.pop_front();
        }
        if all.is_empty() {
            self.0.remove(&print.rest);
        }
    }
}
