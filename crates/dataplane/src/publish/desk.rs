//! A worker's desk: its program and counters lie there between bursts, and are taken off it for the length of a burst.
//!
//! A writer posts something newer on the desk, whether the worker is there or not. This replaces what a resting worker
//! had left; a busy worker drops what it has in hand when it comes back and finds the newer one.
//!
//! Contract: one worker takes and leaves, one poster at a time posts, with rising numbers. Neither waits for the other:
//! taking is one swap, leaving is one and two more for what was posted meanwhile. A worker that takes after a post has
//! what was posted or something newer.

use std::fmt;

use super::sync::AtomicCell;

/// What lies on a desk; a higher number is newer.
#[derive(Debug)]
pub(crate) struct Seat<T> {
    pub(crate) number: u64,
    pub(crate) what: T,
}

/// A cell that holds what is newest, or nothing while its worker has it.
pub(crate) struct Desk<T>(AtomicCell<Option<Box<Seat<T>>>>);

impl<T> fmt::Debug for Desk<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl<T> Desk<T> {
    /// A desk with something on it.
    pub(crate) fn new(seat: Seat<T>) -> Self {
        Self(AtomicCell::new(Some(Box::new(seat))))
    }

    /// Takes what is there; `None` if the worker has not left the last one.
    #[inline]
    pub(crate) fn take(&self) -> Option<Box<Seat<T>>> {
        self.0.swap(None)
    }

    /// Leaves the worker's seat on the desk, or the newer seat that it finds.
    #[inline]
    pub(crate) fn leave(&self, seat: Box<Seat<T>>) {
        let mut left = seat;
        loop {
            let number = left.number;
            match self.0.swap(Some(left)) {
                Some(found) if found.number > number => left = found,
                _ => return,
            }
        }
    }

    /// Puts something newer on the desk.
    pub(crate) fn post(&self, seat: Seat<T>) {
        drop(self.0.swap(Some(Box::new(seat))));
    }
}
