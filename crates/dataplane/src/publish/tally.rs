//! Arrays of counters, and the observer that counts a walk in them: [`Local`], two plain additions by the one worker
//! that the array belongs to. The lab measures other kinds against it.
//!
//! Contract: counters of `Local` have one writer at a time; anyone may read.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use rules::Transit;
use rules::eval::Observer;
use rules::model::{Counters, Hook};
use rules::revision::Revision;

/// An array of counters.
pub trait Tally: Debug + Send + Sync {
    /// Whether all workers count in one array.
    const IS_SHARED: bool = false;

    /// All zero.
    fn new(places: usize) -> Self;

    /// Counts a packet of N bytes; a place that is not there counts nothing.
    fn count(&self, place: usize, bytes: u64);

    /// The counter of a place.
    fn cell(&self, place: usize) -> Option<&Cell>;
}

/// Packets and bytes.
#[derive(Debug, Default)]
pub struct Cell {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Cell {
    /// What it has counted.
    #[must_use]
    pub fn get(&self) -> Counters {
        Counters {
            packets: self.packets.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Back to zero; nobody else may count meanwhile.
    pub(super) fn reset(&self) {
        self.packets.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Counts a packet, by the cell's only writer.
    #[inline]
    pub fn add(&self, bytes: u64) {
        self.packets.store(self.packets.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    /// Counts a packet beside other writers.
    #[inline]
    pub fn add_among_others(&self, bytes: u64) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// One worker's.
#[derive(Debug)]
pub struct Local(Box<[Cell]>);

impl Tally for Local {
    fn new(places: usize) -> Self {
        Self(std::iter::repeat_with(Cell::default).take(places).collect())
    }

    #[inline]
    fn count(&self, place: usize, bytes: u64) {
        if let Some(cell) = self.0.get(place) {
            cell.add(bytes);
        }
    }

    fn cell(&self, place: usize) -> Option<&Cell> {
        self.0.get(place)
    }
}

/// Policies have the place `table * HOOKS + hook`, with tables as [`rules::model::Family::tables`] has them.
pub(super) const HOOKS: usize = 6;

/// A revision's tables by their places in [`rules::model::Family::tables`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tables([u8; 8]);

impl Tables {
    pub(super) fn of(revision: &Revision) -> Self {
        let mut places = Self::default();
        for (place, kind) in revision.family().tables().iter().enumerate() {
            let index = revision.table(kind.name);
            if let Some(found) = index.and_then(|index| places.0.get_mut(index)) {
                *found = place as u8;
            }
        }
        places
    }

    fn policy(self, table: u32, hook: Hook) -> usize {
        let place = self.0.get(table as usize).copied().unwrap_or(u8::MAX);
        usize::from(place) * HOOKS + hook as usize
    }
}

/// Counts one packet's walk: what certainly hits.
#[derive(Debug)]
pub(super) struct Counting<'a, T> {
    pub(super) rules: &'a T,
    pub(super) policies: &'a T,
    pub(super) tables: Tables,
    /// Length of the packet from its network header on.
    pub(super) bytes: u64,
}

impl<T: Tally> Observer for Counting<'_, T> {
    const SEES_RULES: bool = false;

    #[inline]
    fn counted(&mut self, slot: u32, certain: bool, _: &Transit<'_, '_>) {
        if certain {
            self.rules.count(slot as usize, self.bytes);
        }
    }

    #[inline]
    fn policy(&mut self, table: u32, _chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        if certain {
            self.policies.count(self.tables.policy(table, transit.hook), self.bytes);
        }
    }
}
