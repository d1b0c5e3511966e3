//! Connections that the host opens in the place of a client (`-j SYNPROXY`): the client was given a first sequence
//! number, the server chose another one, and the numbers of its packets move by the difference.
//!
//! The SYN that the host sends to the server has in its acknowledgement number, which a SYN has no use for, the number
//! that the client was given. What the host sends to the client goes out with the connection, and is not tracked.
//!
//! Source: Linux 6.18 `nf_synproxy_core.c` (`synproxy_send_server_syn`, `ipv4_synproxy_hook`, `synproxy_send_client_ack`).

use super::flows::Tracker;
use super::visit::{EntryHook, Proxy, Visit};
use crate::index::Handle;
use crate::key::Direction;
use crate::protocol::Upper;
use crate::status::Status;
use crate::tcp::{Kind, Segment};
use crate::view::{CtState, CtView};

/// Whether a packet of no known flow may belong to a connection that the host opened unseen.
pub(super) fn is_unseen(upper: &Upper<'_>, visit: &Visit) -> bool {
    let Upper::Tcp(segment) = upper else { return false };
    visit.proxy == Proxy::Unseen && segment.kind != Kind::Syn
}

impl Tracker {
    /// Learns from a segment of a connection that the host opened; returns the view for a segment that the host sends
    /// with it.
    pub(super) fn proxied(
        &mut self,
        handle: Handle,
        direction: Direction,
        segment: &Segment<'_>,
        visit: &Visit,
    ) -> Option<CtView> {
        let is_own = visit.hook == EntryHook::Output;
        match (direction, segment.kind) {
            (Direction::Original, Kind::Syn) if is_own && segment.acknowledgement != 0 => {
                self.helpers.promise(handle, segment.acknowledgement);
            }
            (Direction::Reply, Kind::SynAck) if !is_own => {
                if self.helpers.keep_promise(handle, segment.sequence)
                    && let Some(flow) = self.table.flow_mut(handle)
                {
                    flow.status.set(Status::SEQ_ADJUST);
                }
            }
            (Direction::Reply, _) if is_own && self.helpers.is_promised(handle) => {
                let view = CtView::without_flow(CtState::Established.into());
                return Some(CtView { flow: Some(handle), direction, ..view });
            }
            _ => {}
        }
        None
    }
}
