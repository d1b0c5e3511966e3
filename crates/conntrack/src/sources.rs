//! [`Sources`]: which flows of a source are translated, for another flow of the same source is given the same
//! mapping where it can be.
//!
//! Contract: bounded by a multiple of the living flows; flows that have ended are removed when the index, or the flows
//! of their source, have doubled, or when they are met as the latest. An addition costs the same on average, however
//! many flows a source has. Source: Linux 6.18 `nf_nat_core.c` (`nf_nat_bysource`).

use crate::index::Handle;
use crate::key::Tuple;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Sources before the first pruning.
const FIRST_PRUNING: usize = 1024;
/// Flows of one source before the first pruning.
const FEW: usize = 4;

/// Flows by source address, port, protocol and zone.
#[derive(Debug)]
pub(crate) struct Sources {
    flows: HashMap<Tuple, Same>,
    prune_at: usize,
}

/// The flows of one source, the latest last.
#[derive(Debug, Default)]
struct Same {
    flows: SmallVec<[Handle; 2]>,
    /// Flows before the next pruning.
    prune_at: usize,
}

impl Default for Sources {
    fn default() -> Self {
        Self { flows: HashMap::new(), prune_at: FIRST_PRUNING }
    }
}

impl Sources {
    /// A flow whose original tuple this is has its source translated.
    pub(crate) fn add(&mut self, original: &Tuple, flow: Handle, lives: impl Fn(Handle) -> bool) {
        if self.flows.len() >= self.prune_at {
            self.flows.retain(|_, same| {
                same.prune(&lives);
                !same.flows.is_empty()
            });
            self.prune_at = FIRST_PRUNING.max(2 * self.flows.len());
        }
        let same = self.flows.entry(key(original)).or_default();
        if same.flows.last() == Some(&flow) {
            return;
        }
        if same.flows.len() >= same.prune_at {
            same.prune(&lives);
        }
        same.flows.push(flow);
    }

    /// Flows of the same source, the latest first, which lives.
    pub(crate) fn of<L: Fn(Handle) -> bool>(
        &mut self,
        original: &Tuple,
        lives: L,
    ) -> impl Iterator<Item = Handle> + use<'_, L> {
        let flows = match self.flows.get_mut(&key(original)) {
            Some(same) => {
                while same.flows.last().is_some_and(|latest| !lives(*latest)) {
                    same.flows.pop();
                }
                &*same.flows
            }
            None => &[],
        };
        flows.iter().rev().copied()
    }
}

impl Same {
    fn prune(&mut self, lives: impl Fn(Handle) -> bool) {
        self.flows.retain(|flow| lives(*flow));
        self.prune_at = FEW.max(2 * self.flows.len());
    }
}

/// What is the same for all flows of a source: the destination is left out.
fn key(original: &Tuple) -> Tuple {
    original.with_destination(original.source(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn tuple(destination: u16) -> Tuple {
        Tuple::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, [53, destination])
    }

    fn handle(slot: u32) -> Handle {
        Handle { slot, generation: 0 }
    }

    #[test]
    fn the_latest_of_a_source_comes_first_and_the_dead_are_left_out() {
        let mut sources = Sources::default();
        for slot in 0..4 {
            sources.add(&tuple(slot), handle(slot.into()), |_| true);
        }
        sources.add(&tuple(3), handle(3), |_| true);
        let of = |sources: &mut Sources, dead: u32| -> Vec<u32> {
            sources.of(&tuple(9), |flow| flow.slot != dead).map(|flow| flow.slot).collect()
        };
        assert_eq!(of(&mut sources, 9), [3, 2, 1, 0]);
        assert_eq!(of(&mut sources, 3), [2, 1, 0]);
        let other = Tuple::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, [54, 1]);
        assert_eq!(sources.of(&other, |_| true).count(), 0);
    }

    #[test]
    fn a_source_of_many_flows_costs_no_more_each() {
        const MANY: u32 = 20_000;
        let asked = Cell::new(0_u32);
        let lives = |_| {
            asked.set(asked.get() + 1);
            true
        };
        let mut sources = Sources::default();
        for slot in 0..MANY {
            assert!(
                sources.of(&tuple(0), lives).next().is_none_or(|latest| latest.slot + 1 == slot)
            );
            sources.add(&tuple(slot as u16), handle(slot), lives);
        }
        assert!(asked.get() < 6 * MANY, "{}", asked.get());
    }

    #[test]
    fn many_sources_cost_no_more_each() {
        const MANY: u32 = 20_000;
        let asked = Cell::new(0_u32);
        let mut sources = Sources::default();
        for slot in 0..MANY {
            let own = Tuple::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, [slot as u16, 1]);
            sources.add(&own, handle(slot), |_| {
                asked.set(asked.get() + 1);
                true
            });
        }
        assert!(asked.get() < 6 * MANY, "{}", asked.get());
    }

    #[test]
    fn the_dead_of_a_busy_source_are_let_go() {
        let mut sources = Sources::default();
        for slot in 0..20_000 {
            sources.add(&tuple(0), handle(slot), |other| other.slot + 10 > slot);
            assert!(sources.flows.values().all(|same| same.flows.len() <= 64));
        }
    }

    #[test]
    fn flows_that_died_are_passed_once() {
        const MANY: u32 = 20_000;
        let mut sources = Sources::default();
        (0..MANY).for_each(|slot| sources.add(&tuple(0), handle(slot), |_| true));
        let asked = Cell::new(0_u32);
        for _ in 0..10 {
            let dead = |_| {
                asked.set(asked.get() + 1);
                false
            };
            assert_eq!(sources.of(&tuple(0), dead).count(), 0);
        }
        assert!(asked.get() <= MANY, "{}", asked.get());
    }
}
