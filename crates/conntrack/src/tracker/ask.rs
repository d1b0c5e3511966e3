//! Requests for the flows while packets pass: a part of the table at a time is listed or ended.
//!
//! Contract: a call looks at a given number of slots and no more, so a request for all flows never keeps a packet
//! waiting for long. What begins or ends between two calls is seen or not, as in the kernel's dump of its table. Ending
//! a flow also ends what depends on it, as when it dies of its timeout; the next packet of its tuple begins another. A
//! flow whose tuples are unknown is listed among all flows, but matches no description.
//!
//! Source: `ctnetlink_dump_table`, `ctnetlink_del_conntrack` of the kernel's `nf_conntrack_netlink.c`.

use std::collections::BTreeMap;

use super::flows::Tracker;
use crate::flow::{Flow, Proto};
use crate::index::Handle;
use crate::listing::{Listed, Listing, name};
use crate::status::Status;
use crate::wanted::Wanted;

/// What a part of the table holds of what is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// The flows; of a listing the counters are the only of tamis's own words, and whether it is in doubt.
    pub flows: Listing,
    /// Where the next part begins; `None` at the end.
    pub next: Option<usize>,
}

/// How many flows are in each state, by the names of the kernel's lists. Flows of protocols without states count as
/// answered or unanswered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InStates {
    /// By protocol and state.
    pub counts: BTreeMap<(&'static str, &'static str), u64>,
    /// Where the next part begins; `None` at the end.
    pub next: Option<usize>,
}

impl Tracker {
    /// Flows in the table; those are among them that died and were not met yet.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.table.len()
    }

    /// Returns the wanted living flows in `slots` slots from `from` on, as of `now` in nanoseconds.
    pub fn part(&mut self, from: usize, slots: usize, wanted: &Wanted, now: u64) -> Part {
        let found = self.found(from, slots, wanted, now);
        let listed = found.iter().filter_map(|handle| self.shown(*handle, now)).collect();
        self.part_of(listed, from, slots)
    }

    /// Counts the living flows in each state, in `slots` slots from `from` on.
    pub fn states_of_part(&mut self, from: usize, slots: usize, now: u64) -> InStates {
        self.take_up();
        let mut counts = BTreeMap::new();
        for (_, flow) in self.table.living_among(from, slots, now.max(self.latest)) {
            *counts.entry((name(flow.original.protocol()), state_name(flow))).or_insert(0) += 1;
        }
        InStates { counts, next: self.after(from, slots) }
    }

    /// Ends the wanted flows of a part, and returns what they were.
    pub fn end_part(&mut self, from: usize, slots: usize, wanted: &Wanted, now: u64) -> Part {
        let found = self.found(from, slots, wanted, now);
        let listed = found.iter().filter_map(|handle| self.shown(*handle, now)).collect();
        for handle in found {
            let original = self.table.flow(handle).map(|flow| flow.original);
            self.table.release(handle);
            if let (Some(told), Some(original)) = (&self.told, original) {
                told.tell(&original, None);
            }
        }
        self.bury();
        self.part_of(listed, from, slots)
    }

    fn found(&mut self, from: usize, slots: usize, wanted: &Wanted, now: u64) -> Vec<Handle> {
        self.take_up();
        let now = now.max(self.latest);
        let living = self.table.living_among(from, slots, now);
        let is_wanted = |flow: &Flow| wanted.is_any() || flow.has_sure_tuples() && wanted.has(flow);
        let wanted = living.filter(|(_, flow)| is_wanted(flow));
        wanted.map(|(handle, _)| handle).collect()
    }

    fn shown(&self, handle: Handle, now: u64) -> Option<Listed> {
        let flow = self.table.flow(handle)?;
        Some(flow.shown(now.max(self.latest)))
    }

    fn part_of(&self, flows: Vec<Listed>, from: usize, slots: usize) -> Part {
        Part { flows: Listing { flows, ..Listing::default() }, next: self.after(from, slots) }
    }

    /// Where the part after this one begins.
    fn after(&self, from: usize, slots: usize) -> Option<usize> {
        let next = from.saturating_add(slots);
        (next < self.table.slots()).then_some(next)
    }
}

/// The state's name in the kernel's lists, or its word on who was not answered.
fn state_name(flow: &Flow) -> &'static str {
    match &flow.proto {
        Proto::Tcp(tcp) => tcp.state.name(),
        Proto::Sctp(sctp) => sctp.state.name(),
        Proto::Generic | Proto::Udp { .. } if flow.status.contains(Status::SEEN_REPLY) => "REPLIED",
        Proto::Generic | Proto::Udp { .. } => "UNREPLIED",
    }
}
