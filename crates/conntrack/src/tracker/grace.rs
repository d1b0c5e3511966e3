//! The time of grace: shortly after a start, what begins in its middle may be a flow of before.
//!
//! Contract: only under [`Config::grace`](crate::Config::grace). A flow that is picked up is established for the rules,
//! while what renews its timeout, and what protects it from early drop, wait for an answer, as in any flow: a sender of
//! many packets gains no more during that time than short-lived flows.
//!
//! Source: Linux 6.18 `nf_conntrack_proto_tcp.c` (`nf_conntrack_tcp_loose`), which picks up flows, but as new ones.

use super::flows::Tracker;
use crate::index::Handle;
use crate::protocol::Upper;
use crate::status::Status;

impl Tracker {
    /// A flow begins with this packet, or goes on.
    pub(super) fn pick_up(&mut self, handle: Handle, upper: &Upper<'_>, now: u64) {
        let since = self.began.unwrap_or(now);
        if now.saturating_sub(since) >= self.config.grace {
            return;
        }
        let Some(flow) = self.table.flow_mut(handle) else { return };
        let is_datagram = flow.original.protocol() == packet::udp::PROTOCOL;
        let is_expected = flow.status.contains(Status::EXPECTED);
        flow.picked_up = (upper.is_midstream() || is_datagram) && !is_expected;
    }
}
