//! A worker's desk: what it works with lies there between bursts, and is taken off it for the length of one.
//!
//! Whoever posts puts something newer on the desk, whether the worker is there or not. What a resting worker
//! had lain down comes off with it; what a busy one has in hand it drops when it comes back and finds the
//! newer one.
//!
//! Contract: one worker takes and leaves, one poster at a time posts, with rising numbers. Neither waits for
//! the other: taking is one swap, leaving is one and two more for what was posted meanwhile. A worker that takes
//! after a post has what was posted or something newer.

use std::fmt;

use super::sync::AtomicCell;

/// What lies on a desk. One with a higher number is newer.
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

    /// The worker takes what is there; `None` if it has not left the last one.
    #[inline]
    pub(crate) fn take(&self) -> Option<Box<Seat<T>>> {
        self.0.swap(None)
    }

    /// The worker leaves it, or the newer one that it finds.
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

    /// Puts something newer there.
    pub(crate) fn post(&self, seat: Seat<T>) {
        drop(self.0.swap(Some(Box::new(seat))));
    }
}
