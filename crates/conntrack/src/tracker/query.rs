//! What matches, targets and address translation ask of the flows, and what they set.
//!
//! Source: Linux 6.18 `nf_conntrack_core.c` (`nf_conntrack_alter_reply`, `nf_conntrack_tuple_taken`).

use super::flows::Tracker;
use crate::chance::Chance;
use crate::config::Config;
use crate::flow::{Doubt, Flow};
use crate::index::Handle;
use crate::key::{Direction, Tuple, Zone};
use crate::table::TableStats;

impl Tracker {
    /// Nothing is known of a flow any more: it may have been changed.
    pub fn make_indeterminate(&mut self, handle: Handle) {
        if let Some(flow) = self.table.flow_mut(handle) {
            flow.raise_doubt(Doubt::History);
        }
    }

    /// A flow.
    #[inline]
    #[must_use]
    pub fn flow(&self, handle: Handle) -> Option<&Flow> {
        self.table.flow(handle)
    }

    /// A flow, to set its mark or labels.
    #[inline]
    pub fn flow_mut(&mut self, handle: Handle) -> Option<&mut Flow> {
        self.table.flow_mut(handle)
    }

    /// The flow of a tuple in a zone, and which way of it the tuple goes.
    pub fn find(&mut self, tuple: &Tuple, zone: Zone, now: u64) -> Option<(Handle, Direction)> {
        self.lookup(tuple, zone, now)
    }

    /// Whether the kernel may have a flow with this tuple, that is not here because the table was full.
    #[must_use]
    pub fn may_have_evicted(&self, tuple: &Tuple, zone: Zone, now: u64) -> bool {
        let ids = [Direction::Original, Direction::Reply].map(|way| zone.id_in(way));
        ids.into_iter().any(|id| self.table.may_have(&tuple.in_zone(id), now))
    }

    /// Whether flows of this tracker may concern other shards: a flow is found by tuples of two shards, or by unknown
    /// tuples, or a mapping was looked for among the flows of all shards. Answers since the last call may then be
    /// wrong; earlier answers are right.
    #[must_use]
    pub fn crosses(&self) -> bool {
        self.config.shard.is_some()
            && (self.crosses || self.moves_ports || !self.untraceable.is_empty())
    }

    /// Whether no flow leaves from another port than its own, as far as they are known.
    #[must_use]
    pub fn keeps_ports(&self) -> bool {
        !self.moves_ports
    }

    /// What ports are drawn from; `None` where the kernel drew them.
    #[must_use]
    pub fn chance(&self) -> Option<&Chance> {
        self.chance.as_ref()
    }

    /// Settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Flows held, those included that died and were not met yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no flow is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Living flows of which not everything is known. Reads the whole table.
    #[must_use]
    pub fn doubtful(&self, now: u64) -> usize {
        self.table.doubtful(now)
    }

    /// Every living flow (`connlimit`, lists). Reads the whole table.
    pub fn living(&self, now: u64) -> impl Iterator<Item = &Flow> {
        self.table.living(now)
    }

    /// Expected flows that wait.
    #[must_use]
    pub fn expected(&self) -> usize {
        self.expectations.len()
    }

    /// What happened to the table.
    #[must_use]
    pub fn stats(&self) -> TableStats {
        self.table.stats()
    }

    /// Bytes that a full table takes, without what helpers remember.
    #[must_use]
    pub fn bytes_when_full(&self) -> usize {
        self.table.bytes_when_full()
    }
}
