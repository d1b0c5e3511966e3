//! One array of counters as the ledger keeps it and a worker counts in it: rules by slot, policies beside.

use std::sync::atomic::{AtomicU64, Ordering};

use rules::Transit;
use rules::eval::{Alive, Memories, Verdicts};
use rules::model::Counters;
use rules::revision::Revision;

use super::tally::{Cell, Counting, Tables, Tally};

/// A worker's counters since some snapshot. Later ones have higher numbers.
#[derive(Debug)]
pub(super) struct Array<T> {
    pub(super) number: u64,
    rules: T,
    policies: T,
    /// Policies, one bit each, that were set anew after this array: what it counted for them is no more.
    void: AtomicU64,
}

impl<T: Tally> Array<T> {
    /// All zero.
    pub(super) fn new(number: u64, rules: usize, policies: usize) -> Self {
        let (rules, policies) = (T::new(rules), T::new(policies));
        Self { number, rules, policies, void: AtomicU64::new(0) }
    }

    /// Walks a table and counts.
    #[inline]
    pub(super) fn walk(
        &self,
        revision: &Revision,
        tables: Tables,
        table: usize,
        transit: &mut Transit<'_, '_>,
        entry: Alive,
        memories: &mut Memories,
    ) -> Verdicts {
        let bytes = transit.packet.len() as u64;
        let Self { rules, policies, .. } = self;
        let mut counting = Counting { rules, policies, tables, bytes };
        revision.walk(table, transit, entry, memories, &mut counting)
    }

    /// Sets a rule's counter to zero, which nobody counts in.
    pub(super) fn reset_rule(&self, slot: usize) {
        if let Some(cell) = self.rules.cell(slot) {
            cell.reset();
        }
    }

    /// What it counts for a policy, now or later, is not to be added any more.
    pub(super) fn void_policy(&self, place: usize) {
        self.void.fetch_or(1 << place, Ordering::Relaxed);
    }

    /// Adds what it has counted.
    pub(super) fn add_to(&self, rules: &mut [Counters], policies: &mut [Counters]) {
        for (slot, sum) in rules.iter_mut().enumerate() {
            let Some(cell) = self.rules.cell(slot) else { break };
            add(sum, cell);
        }
        let void = self.void.load(Ordering::Relaxed);
        for (place, sum) in policies.iter_mut().enumerate() {
            if let Some(cell) = self.policies.cell(place).filter(|_| void >> place & 1 == 0) {
                add(sum, cell);
            }
        }
    }
}

fn add(sum: &mut Counters, cell: &Cell) {
    let more = cell.get();
    sum.packets = sum.packets.wrapping_add(more.packets);
    sum.bytes = sum.bytes.wrapping_add(more.bytes);
}
