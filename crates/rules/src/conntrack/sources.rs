//! [`Sources`]: which flows of a source are translated, for another flow of the same source is given the same
//! mapping where it can be.
//!
//! Contract: bounded by a multiple of the living flows; flows that are gone are left out when they are met, or
//! when the index has doubled. Source: Linux 6.18 `nf_nat_core.c` (`nf_nat_bysource`).

use super::key::Tuple;
use super::table::Handle;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Sources before the first pruning.
const FIRST_PRUNING: usize = 1024;

/// Handles of flows by source address, port, protocol and zone, the latest last.
#[derive(Debug)]
pub(super) struct Sources {
    flows: HashMap<u64, SmallVec<[Handle; 2]>>,
    prune_at: usize,
}

impl Default for Sources {
    fn default() -> Self {
        Self { flows: HashMap::new(), prune_at: FIRST_PRUNING }
    }
}

impl Sources {
    /// A flow whose original tuple this is has its source translated.
    pub(super) fn add(&mut self, original: &Tuple, flow: Handle, lives: impl Fn(Handle) -> bool) {
        if self.flows.len() >= self.prune_at {
            self.flows.retain(|_, handles| {
                handles.retain(|handle| lives(*handle));
                !handles.is_empty()
            });
            self.prune_at = FIRST_PRUNING.max(2 * self.flows.len());
        }
        let handles = self.flows.entry(key(original)).or_default();
        handles.retain(|handle| lives(*handle) && *handle != flow);
        handles.push(flow);
    }

    /// Flows that may be of the same source, the latest first.
    pub(super) fn of(&self, original: Tuple) -> impl Iterator<Item = Handle> {
        self.flows.get(&key(&original)).into_iter().flatten().rev().copied()
    }
}

/// A hash of the source, its protocol and zone: flows found by it are compared in full.
fn key(original: &Tuple) -> u64 {
    original.with_destination(original.source(), 0).hash()
}
