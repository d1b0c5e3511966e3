//! Arrays of counters, and the observer that counts a walk in them: [`Local`], two plain additions by the one worker
//! that the array belongs to. The lab measures other kinds against it.
//!
//! Contract: counters of `Local` have one writer at a time; anyone may read.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use rules::Transit;
use rules::eval::Observer;
use rules::model::{Counters, Family, Hook};

use crate::program::Program;

/// An array of counters.
pub trait Tally: Debug + Send + Sync {
    /// Whether all workers count in one array.
    const IS_SHARED: bool = false;

    /// Makes an array of zeros.
    fn new(places: usize) -> Self;

    /// Counts a packet of N bytes; a missing place counts nothing.
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
    /// The counts so far.
    #[must_use]
    pub fn get(&self) -> Counters {
        Counters {
            packets: self.packets.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Resets the counts to zero; no other thread may count meanwhile.
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

    /// Counts a packet alongside other writers.
    #[inline]
    pub fn add_among_others(&self, bytes: u64) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// An array of one worker.
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

const FAMILIES: usize = 4;
/// At least as many as a family has tables.
const TABLES: usize = 8;
const HOOKS: usize = 6;

/// The number of places for policies.
pub(super) const POLICIES: usize = FAMILIES * TABLES * HOOKS;

/// The place of a policy, with the table's number in [`Family::tables`].
pub(super) fn policy_place(family: Family, table: usize, hook: Hook) -> usize {
    (family as usize * TABLES + table) * HOOKS + hook as usize
}

/// The numbers in [`Family::tables`] of a program's tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places([[u8; TABLES]; FAMILIES]);

impl Places {
    pub(super) fn of(program: &Program) -> Self {
        let mut places = Self([[u8::MAX; TABLES]; FAMILIES]);
        for plan in program.plans() {
            let (names, kinds) = (plan.tables.revision().tables(), plan.family().tables());
            for (index, name) in names.enumerate().take(TABLES) {
                let found = kinds.iter().position(|kind| kind.name == name);
                places.0[plan.family() as usize][index] = found.map_or(u8::MAX, |at| at as u8);
            }
        }
        places
    }

    fn policy(&self, family: Family, table: u32, hook: Hook) -> usize {
        let place = self.0[family as usize].get(table as usize).copied().unwrap_or(u8::MAX);
        match place {
            u8::MAX => usize::MAX,
            place => policy_place(family, place.into(), hook),
        }
    }
}

/// Counts packets: what they certainly hit, with their bytes from the network header on.
#[derive(Debug)]
pub(super) struct Counting<'a, T> {
    pub(super) rules: &'a T,
    pub(super) policies: &'a T,
    pub(super) places: &'a Places,
}

impl<T: Tally> crate::Observer for Counting<'_, T> {}

impl<T: Tally> Observer for Counting<'_, T> {
    const SEES_RULES: bool = false;

    #[inline]
    fn counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        if certain {
            self.rules.count(slot as usize, transit.packet.len() as u64);
        }
    }

    #[inline]
    fn policy(&mut self, table: u32, _chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        if certain {
            let place = self.places.policy(transit.family, table, transit.hook);
            self.policies.count(place, transit.packet.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_policy_counts_in_a_place_of_its_own() {
        let mut places = HashSet::new();
        for family in Family::ALL {
            for (table, kind) in family.tables().iter().enumerate() {
                for hook in kind.hooks() {
                    let place = policy_place(family, table, hook);
                    assert!(place < POLICIES && places.insert(place), "{family:?} {}", kind.name);
                }
            }
        }
    }
}
