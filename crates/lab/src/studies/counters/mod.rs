//! Kinds of counters that the ones of tamis ([`dataplane::publish::tally::Local`]) are measured against.
//!
//! | kind | a count is |
//! |---|---|
//! | [`Uncounted`] | nothing |
//! | [`Shared`] | two atomic additions in one array for all workers |
//! | [`Elsewhere`] | as `Local`, each counter in an allocation of its own |
//! | [`locked`] | a match of its own, which counts under a lock |
//!
//! Contract: counters of `Elsewhere` have one writer at a time; anyone may read.
//!
//! Source: "Xtables2: Love for blobs" (Engelhardt, NFWS 2010).

pub mod locked;
#[cfg(test)]
mod tests;

use dataplane::publish::tally::{Cell, Tally};

/// No counters.
#[derive(Debug)]
pub struct Uncounted;

/// Everybody's.
#[derive(Debug)]
pub struct Shared(Box<[Cell]>);

/// One worker's, each allocated on its own.
#[derive(Debug)]
pub struct Elsewhere(Box<[Box<Cell>]>);

impl Tally for Uncounted {
    fn new(_: usize) -> Self {
        Self
    }

    #[inline]
    fn count(&self, _: usize, _: u64) {}

    fn cell(&self, _: usize) -> Option<&Cell> {
        None
    }
}

impl Tally for Shared {
    const IS_SHARED: bool = true;

    fn new(places: usize) -> Self {
        Self(std::iter::repeat_with(Cell::default).take(places).collect())
    }

    #[inline]
    fn count(&self, place: usize, bytes: u64) {
        if let Some(cell) = self.0.get(place) {
            cell.add_among_others(bytes);
        }
    }

    fn cell(&self, place: usize) -> Option<&Cell> {
        self.0.get(place)
    }
}

impl Tally for Elsewhere {
    fn new(places: usize) -> Self {
        Self(std::iter::repeat_with(Box::default).take(places).collect())
    }

    #[inline]
    fn count(&self, place: usize, bytes: u64) {
        if let Some(cell) = self.0.get(place) {
            cell.add(bytes);
        }
    }

    fn cell(&self, place: usize) -> Option<&Cell> {
        self.0.get(place).map(|cell| &**cell)
    }
}
