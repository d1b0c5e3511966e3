//! One array of counters as the ledger keeps it and a worker counts in it: rules by slot, policies beside.

use std::sync::atomic::{AtomicU64, Ordering};

use rules::Transit;
use rules::eval::{Alive, Memories, Verdicts};
use rules::model::Counters;
use rules::revision::Revision;

use super::tally::{Cell, Counting, Elsewhere, Kind, Local, Shared, Tables, Tally, Uncounted};

/// See the module. Later ones have higher numbers.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) number: u64,
    cells: Cells,
    /// Policies, one bit each, that were set anew behind this array: what it counted for them is no more.
    void: AtomicU64,
}

#[derive(Debug)]
enum Cells {
    None(Pair<Uncounted>),
    Local(Pair<Local>),
    Shared(Pair<Shared>),
    Elsewhere(Pair<Elsewhere>),
}

#[derive(Debug)]
struct Pair<T> {
    rules: T,
    policies: T,
}

impl<T: Tally> Pair<T> {
    fn new(rules: usize, policies: usize) -> Self {
        Self { rules: T::new(rules), policies: T::new(policies) }
    }
}

/// Does the same on whichever kind it is.
macro_rules! each {
    ($cells:expr, $pair:ident => $call:expr) => {
        match $cells {
            Cells::None($pair) => $call,
            Cells::Local($pair) => $call,
            Cells::Shared($pair) => $call,
            Cells::Elsewhere($pair) => $call,
        }
    };
}

impl Array {
    /// All zero.
    pub(super) fn new(kind: Kind, number: u64, rules: usize, policies: usize) -> Self {
        let cells = match kind {
            Kind::None => Cells::None(Pair::new(rules, policies)),
            Kind::Local => Cells::Local(Pair::new(rules, policies)),
            Kind::Shared => Cells::Shared(Pair::new(rules, policies)),
            Kind::Elsewhere => Cells::Elsewhere(Pair::new(rules, policies)),
        };
        Self { number, cells, void: AtomicU64::new(0) }
    }

    /// Walks a table and counts.
    #[inline]
    pub(super) fn walk(
        &self,
        (revision, tables): (&Revision, Tables),
        table: usize,
        transit: &mut Transit<'_, '_>,
        entry: Alive,
        memories: &mut Memories,
    ) -> Verdicts {
        let bytes = transit.packet.len() as u64;
        each!(&self.cells, pair => {
            let Pair { rules, policies } = pair;
            let mut counting = Counting { rules, policies, tables, bytes };
            revision.walk(table, transit, entry, memories, &mut counting)
        })
    }

    fn rule(&self, slot: usize) -> Option<&Cell> {
        each!(&self.cells, pair => pair.rules.cell(slot))
    }

    fn policy(&self, place: usize) -> Option<&Cell> {
        each!(&self.cells, pair => pair.policies.cell(place))
    }

    /// Sets a rule's counter to zero, which nobody counts in.
    pub(super) fn reset_rule(&self, slot: usize) {
        if let Some(cell) = self.rule(slot) {
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
            let Some(cell) = self.rule(slot) else { break };
            add(sum, cell);
        }
        let void = self.void.load(Ordering::Relaxed);
        for (place, sum) in policies.iter_mut().enumerate() {
            if let Some(cell) = self.policy(place).filter(|_| void >> place & 1 == 0) {
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
