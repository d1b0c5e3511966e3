//! [`Search`]: finds the elements of a set that may hold a key.

use std::collections::HashMap;

use super::boxes::Boxes;
use super::spans::Spans;
use super::{Entry, Span};
use crate::lower::test::Test;
use crate::lower::word::{Loaded, Word};
use rules::Outcome;
use smallvec::{SmallVec, smallvec};

/// Elements of sets that are smaller are looked at one by one for a key of which something is not known.
const SMALL: usize = 64;
/// Keys that an expression may come to; of more, nothing is known.
const MANY: usize = 32;

/// How elements are found.
#[derive(Debug)]
enum Index {
    /// Keys of numbers that have at most 128 bits together.
    Short(HashMap<u128, u32>),
    /// Longer keys.
    Long(HashMap<SmallVec<[u128; 2]>, u32>),
    /// Intervals of one number.
    Spans(Spans),
    /// Intervals of several.
    Boxes(Boxes),
}

/// The elements of a set.
#[derive(Debug)]
pub(crate) struct Search {
    /// Width of each number of a key.
    bits: Box<[u32]>,
    index: Index,
    /// The element of all other keys (`*`).
    other: Option<u32>,
    /// Elements that may have expired by now; empty if none may.
    doubtful: Box<[bool]>,
    /// The elements, of a set that is small.
    entries: Box<[(u32, Entry)]>,
    is_small: bool,
}

/// What may come of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Possible {
    /// Elements that may hold the key.
    pub hits: SmallVec<[u32; 1]>,
    /// None may hold it.
    pub misses: bool,
    /// Every element may hold it.
    pub anything: bool,
}

impl Possible {
    fn none() -> Self {
        Self { hits: SmallVec::new(), misses: true, anything: false }
    }

    fn anything() -> Self {
        Self { hits: SmallVec::new(), misses: true, anything: true }
    }

    fn or(mut self, other: Self) -> Self {
        for hit in other.hits {
            if !self.hits.contains(&hit) {
                self.hits.push(hit);
            }
        }
        self.misses |= other.misses;
        self.anything |= other.anything;
        self
    }

    /// Whether the key is in the set.
    pub(crate) fn outcome(&self) -> Outcome {
        match (self.hits.is_empty() && !self.anything, self.misses) {
            (true, _) => Outcome::NO,
            (false, false) => Outcome::YES,
            (false, true) => Outcome::MAYBE,
        }
    }
}

impl Search {
    /// Prepares a search among elements whose keys have numbers of these widths; `other` is the element of every other key.
    pub(crate) fn new(bits: &[u32], entries: Vec<(u32, Entry)>, other: Option<u32>) -> Self {
        let count = entries.iter().map(|(element, _)| element + 1).max().unwrap_or(0);
        let mut doubtful = vec![false; count as usize];
        for (element, entry) in &entries {
            doubtful[*element as usize] = entry.doubtful;
        }
        if !doubtful.contains(&true) {
            doubtful = Vec::new();
        }
        let exact = entries.iter().all(|(_, entry)| entry.key.iter().all(|span| span.is_one()));
        let short = bits.iter().sum::<u32>() <= 128;
        let numbers = |entry: &Entry| entry.key.iter().map(|span| span.low).collect::<Numbers>();
        let index = match (exact, short, bits.len()) {
            (true, true, _) => {
                let keys = entries.iter().rev();
                Index::Short(keys.map(|(at, entry)| (packed(bits, &numbers(entry)), *at)).collect())
            }
            (true, false, _) => {
                Index::Long(entries.iter().rev().map(|(at, entry)| (numbers(entry), *at)).collect())
            }
            (false, _, 1) => {
                let first = |entry: &Entry| entry.key.first().copied().unwrap_or(Span::one(0));
                Index::Spans(Spans::new(entries.iter().map(|(at, e)| (first(e), *at)).collect()))
            }
            (false, ..) => {
                // Boxes name elements by their place.
                Index::Boxes(Boxes::new(
                    entries.iter().map(|(_, entry)| entry.key.clone()).collect(),
                ))
            }
        };
        let is_small = entries.len() <= SMALL;
        let keeps = is_small || matches!(index, Index::Boxes(_));
        let entries = if keeps { entries.into() } else { Box::default() };
        Self { bits: bits.into(), index, other, doubtful: doubtful.into(), entries, is_small }
    }

    /// The keys of a set that is small and holds none that may have expired.
    pub(crate) fn spans(&self) -> Option<Vec<&[Span]>> {
        let sure = self.is_small && self.doubtful.is_empty() && self.other.is_none();
        sure.then(|| self.entries.iter().map(|(_, entry)| &entry.key[..]).collect())
    }

    /// The element of a key that is known.
    fn exactly(&self, numbers: &[u128]) -> Possible {
        let found = match &self.index {
            Index::Short(keys) => keys.get(&packed(&self.bits, numbers)).copied(),
            Index::Long(keys) => keys.get(numbers).copied(),
            Index::Spans(spans) => spans.find(numbers.first().copied().unwrap_or(0)),
            Index::Boxes(boxes) => {
                let place = boxes.find(numbers);
                place.and_then(|place| self.entries.get(place as usize)).map(|(at, _)| *at)
            }
        };
        self.possible(found)
    }

    fn possible(&self, found: Option<u32>) -> Possible {
        let doubts = |at: u32| self.doubtful.get(at as usize).copied().unwrap_or(false);
        match (found, self.other) {
            (Some(at), other) if doubts(at) => {
                let rest = other.map_or_else(Possible::none, hit);
                rest.or(hit(at))
            }
            (Some(at), _) | (None, Some(at)) => hit(at),
            (None, None) => Possible::none(),
        }
    }

    /// What may come of a key of which something is not known.
    fn scan(&self, key: &[Word]) -> Possible {
        if !self.is_small {
            return Possible::anything();
        }
        let mut possible = Possible { misses: false, ..Possible::none() };
        let mut sure = false;
        for (at, entry) in &self.entries {
            let says = entry.key.iter().zip(key).fold(Outcome::YES, |all, (span, word)| {
                all.and_then(|| Test::Within(span.low, span.high).of(*word))
            });
            if says.may_match() {
                possible.hits.push(*at);
            }
            sure |= says == Outcome::YES && !entry.doubtful;
        }
        match (sure, self.other) {
            (true, _) => possible,
            (false, Some(other)) => possible.or(hit(other)),
            (false, None) => possible.or(Possible::none()),
        }
    }

    /// What may come of what the parts of a key were read as, if the rule does not end there.
    pub(crate) fn find(&self, parts: &[Loaded]) -> Possible {
        let mut numbers = Numbers::new();
        for part in parts {
            match part.only() {
                Some(number) => numbers.push(number),
                None => return self.find_each(parts),
            }
        }
        self.exactly(&numbers)
    }

    fn find_each(&self, parts: &[Loaded]) -> Possible {
        let ends = parts.iter().any(|part| part.words.is_empty());
        if ends {
            return Possible::none();
        }
        if parts.iter().map(|part| part.words.len()).product::<usize>() > MANY {
            return Possible::anything();
        }
        let mut keys: Vec<SmallVec<[Word; 4]>> = vec![SmallVec::new()];
        for part in parts {
            let longer = |key: &SmallVec<[Word; 4]>| {
                let with = |word: &Word| key.iter().copied().chain([*word]).collect();
                part.words.iter().map(with).collect::<Vec<_>>()
            };
            keys = keys.iter().flat_map(longer).collect();
        }
        let one = |key: &SmallVec<[Word; 4]>| {
            let numbers: Option<Numbers> = key.iter().map(|word| word.as_known()).collect();
            numbers.map_or_else(|| self.scan(key), |numbers| self.exactly(&numbers))
        };
        keys.iter().map(one).reduce(Possible::or).unwrap_or_else(Possible::none)
    }
}

type Numbers = SmallVec<[u128; 2]>;

fn hit(at: u32) -> Possible {
    Possible { hits: smallvec![at], misses: false, anything: false }
}

/// The numbers of a key in one.
fn packed(bits: &[u32], numbers: &[u128]) -> u128 {
    let add =
        |all: u128, (bits, number): (&u32, &u128)| all.checked_shl(*bits).unwrap_or(0) | number;
    bits.iter().zip(numbers).fold(0, add)
}
