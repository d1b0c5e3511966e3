//! `concurrent_map`: a maintained concurrent map (papaya) with lists of ranges, as the second study used
//! the map of its language.
//!
//! Two forms. [`AsPublished`] has one map for PNG and one for R, changes them one after the other and reads
//! them one after the other: a config packet is not atomic, and a reader may see half of one or mix two
//! moments. The checker catches it. [`Atomic`] keeps both in one entry that a writer replaces as a whole.
//!
//! Concurrency of [`Atomic`]: readers and writers take no lock; a reader starts again if one of its two
//! entries was replaced while it looked. Linearization: as for [`super::optimistic`], whose argument is
//! about the table only; what differs is the list of ranges.

use super::pause::between_steps;
use super::range_list::RangeList;
use super::sync::{AtomicU64, Ordering};
use super::table::{Index, Table};
use crate::{Address, Config, Engine};

/// PNG and R apart, as the study has them.
#[derive(Debug)]
pub struct AsPublished<A: Address> {
    default: bool,
    png: Table<A, bool>,
    accepts: Table<A, RangeList<A>>,
}

impl<A: Address> AsPublished<A> {
    /// Every address accepts all sources, or none; with room for this number of them; more may come.
    #[must_use]
    pub fn new(default: bool, addresses: usize) -> Self {
        Self { default, png: Table::with_room(addresses), accepts: Table::with_room(addresses) }
    }
}

impl<A: Address> Engine<A> for AsPublished<A> {
    fn decide(&self, source: A, destination: A) -> bool {
        if self.png.get(source, &self.png.guard()).is_some_and(|&png| png) {
            return false;
        }
        between_steps();
        let guard = self.accepts.guard();
        self.accepts.get(destination, &guard).map_or(self.default, |list| list.contains(source))
    }

    fn update(&self, config: &Config<A>) {
        self.png.replace(config.address, |_| config.persona_non_grata, &self.png.guard());
        between_steps();
        let make = |old: Option<&RangeList<A>>| after(old, config, self.default);
        self.accepts.replace(config.address, make, &self.accepts.guard());
    }

    fn bytes(&self) -> usize {
        let mut bytes = 0;
        self.png.for_each(|_| bytes += size_of::<(A, bool)>());
        self.accepts.for_each(|list| bytes += size_of::<(A, RangeList<A>)>() + list.bytes());
        bytes
    }
}

/// PNG and R in one entry.
#[derive(Debug)]
pub struct Atomic<A: Address> {
    default: bool,
    entries: Table<A, Both<A>>,
    retries: AtomicU64,
}

#[derive(Debug)]
struct Both<A> {
    persona_non_grata: bool,
    accepts: RangeList<A>,
}

impl<A: Address> Atomic<A> {
    /// Every address accepts all sources, or none; with room for this number of them; more may come.
    #[must_use]
    pub fn new(default: bool, addresses: usize) -> Self {
        Self { default, entries: Table::with_room(addresses), retries: AtomicU64::new(0) }
    }
}

impl<A: Address> Engine<A> for Atomic<A> {
    fn decide(&self, source: A, destination: A) -> bool {
        let guard = self.entries.guard();
        let place = |of| self.entries.get(of, &guard);
        loop {
            let (from, to) = (place(source), place(destination));
            let answer = !from.is_some_and(|entry| entry.persona_non_grata)
                && to.map_or(self.default, |entry| entry.accepts.contains(source));
            let same = |one: Option<&Both<A>>, other: Option<&Both<A>>| {
                one.map(std::ptr::from_ref) == other.map(std::ptr::from_ref)
            };
            if same(from, place(source)) && same(to, place(destination)) {
                return answer;
            }
            self.retries.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn update(&self, config: &Config<A>) {
        let make = |old: Option<&Both<A>>| Both {
            persona_non_grata: config.persona_non_grata,
            accepts: after(old.map(|entry| &entry.accepts), config, self.default),
        };
        self.entries.replace(config.address, make, &self.entries.guard());
    }

    fn bytes(&self) -> usize {
        let mut bytes = 0;
        self.entries.for_each(|entry| bytes += size_of::<(A, Both<A>)>() + entry.accepts.bytes());
        bytes
    }

    fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }
}

fn after<A: Address>(
    old: Option<&RangeList<A>>,
    config: &Config<A>,
    default: bool,
) -> RangeList<A> {
    let mut list = old.cloned().unwrap_or_else(|| RangeList::new(default));
    list.set(config.begin, config.end, config.accept);
    list
}
