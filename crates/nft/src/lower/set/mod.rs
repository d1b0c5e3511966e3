//! Sets and maps as lookups: a key of one or several numbers, and the elements that hold it.
//!
//! Keys without intervals are found by their hash, intervals of one number by bisection, and concatenations with intervals
//! as [`boxes`] says: what a lookup costs does not grow with the set. A key of which something is not known is looked for in
//! small sets one element after the other, and may be any element of a large one.

mod boxes;
mod search;
mod spans;

pub(crate) use search::{Possible, Search};

use smallvec::SmallVec;

/// A number between two others, both within.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub low: u128,
    pub high: u128,
}

impl Span {
    /// One number.
    pub(crate) fn one(number: u128) -> Self {
        Self { low: number, high: number }
    }

    pub(crate) fn holds(self, number: u128) -> bool {
        (self.low..=self.high).contains(&number)
    }

    fn is_one(self) -> bool {
        self.low == self.high
    }
}

/// The key of an element: a span for each number of a concatenation.
pub(crate) type Key = SmallVec<[Span; 2]>;

/// An element's key, and whether the element may have expired by now.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub key: Key,
    pub doubtful: bool,
}

#[cfg(test)]
mod tests;
