//! Arrays of counters, and the observer that counts a walk in them.
//!
//! | kind | a count is |
//! |---|---|
//! | [`Uncounted`] | nothing |
//! | [`Local`] | two plain additions by the one worker that the array belongs to; the default |
//! | [`Shared`] | two atomic additions in one array for all workers |
//! | [`Elsewhere`] | as `Local`, each counter in an allocation of its own |
//!
//! The others are there to be measured against. A fifth kind, locked counters that are matches, stands in
//! [`super::locked`].
//!
//! Contract: counters of `Local` and `Elsewhere` have one writer at a time; anyone may read.

use std::sync::atomic::{AtomicU64, Ordering};

use rules::Transit;
use rules::eval::Observer;
use rules::model::{Counters, Hook};
use rules::revision::Revision;

/// Which kind of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// [`Uncounted`].
    None,
    /// [`Local`].
    #[default]
    Local,
    /// [`Shared`].
    Shared,
    /// [`Elsewhere`].
    Elsewhere,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::None, Self::Local, Self::Shared, Self::Elsewhere];

    /// Its name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Local => "local",
            Self::Shared => "shared",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// An array of counters.
pub trait Tally {
    /// All zero.
    fn new(places: usize) -> Self;

    /// Counts a packet of so many bytes; a place that is not there counts nothing.
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

    /// By its only writer.
    #[inline]
    fn add(&self, bytes: u64) {
        self.packets.store(self.packets.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }
}

/// No counters.
#[derive(Debug)]
pub struct Uncounted;

/// One worker's.
#[derive(Debug)]
pub struct Local(Box<[Cell]>);

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

impl Tally for Shared {
    fn new(places: usize) -> Self {
        Self(std::iter::repeat_with(Cell::default).take(places).collect())
    }

    #[inline]
    fn count(&self, place: usize, bytes: u64) {
        if let Some(cell) = self.0.get(place) {
            cell.packets.fetch_add(1, Ordering::Relaxed);
            cell.bytes.fetch_add(bytes, Ordering::Relaxed);
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
