//! One array of counters as the ledger keeps it and a worker counts in it: rules by slot, and policies.

use std::sync::atomic::{AtomicU64, Ordering};

use rules::model::Counters;

use super::tally::{Cell, Counting, POLICIES, Places, Tally};

const BITS: usize = u64::BITS as usize;
const VOID: usize = POLICIES.div_ceil(BITS);

/// A worker's counters since some snapshot. Later ones have higher numbers.
#[derive(Debug)]
pub(super) struct Array<T> {
    pub(super) number: u64,
    rules: T,
    policies: T,
    /// Policies, one bit each, that were reset after this array: its counts for them are void.
    void: [AtomicU64; VOID],
}

impl<T: Tally> Array<T> {
    /// Makes an array of zeros.
    pub(super) fn new(number: u64, rules: usize) -> Self {
        let (rules, policies) = (T::new(rules), T::new(POLICIES));
        Self { number, rules, policies, void: Default::default() }
    }

    /// The observer that counts a packet in it.
    #[inline]
    pub(super) fn counting<'a>(&'a self, places: &'a Places) -> Counting<'a, T> {
        Counting { rules: &self.rules, policies: &self.policies, places }
    }

    /// Sets a rule's counter to zero, which nobody counts in.
    pub(super) fn reset_rule(&self, slot: usize) {
        if let Some(cell) = self.rules.cell(slot) {
            cell.reset();
        }
    }

    /// Voids what the array counts for a policy, now or later.
    pub(super) fn void_policy(&self, place: usize) {
        self.void[place / BITS].fetch_or(1 << (place % BITS), Ordering::Relaxed);
    }

    /// Adds the counts to these sums.
    pub(super) fn add_to(&self, rules: &mut [Counters], policies: &mut [Counters]) {
        for (slot, sum) in rules.iter_mut().enumerate() {
            let Some(cell) = self.rules.cell(slot) else { break };
            add(sum, cell);
        }
        for (place, sum) in policies.iter_mut().enumerate() {
            let void = self.void[place / BITS].load(Ordering::Relaxed) >> (place % BITS);
            if let Some(cell) = self.policies.cell(place).filter(|_| void & 1 == 0) {
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
