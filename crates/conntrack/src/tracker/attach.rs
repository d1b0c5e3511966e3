//! The host's own answers to packets that it does not let through: resets and ICMP errors carry the connection of
//! the packet answered, whether that was confirmed or not, and are RELATED from the first hook on.
//!
//! [`answered`] finds the tuple that an answer is about, [`Tracker::keep`] sets the connection aside when the packet is
//! dropped, [`Tracker::attach`] gives it to the answer. Tracking does not see the answer: no state moves.
//!
//! Source: Linux 6.18 `nf_conntrack_core.c` (`nf_conntrack_attach`, `nf_conntrack_in`), `nf_reject_ipv4.c`,
//! `icmp.c` (`icmp_glue_bits`).

use super::flows::Tracker;
use crate::dissect::Layer;
use crate::flow::Flow;
use crate::icmp::Message;
use crate::index::Handle;
use crate::key::{Direction, Tuple};
use crate::status::Status;
use crate::view::{CtState, CtView, States};
use crate::{dissect, icmp, protocol};
use packet::{Packet, Read, tcp};

/// Kinds of answers that the wire distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// A TCP reset.
    Reset,
    /// An ICMP error.
    Error,
}

/// The tuple of the packet that an answer is about, as its sender sent it.
#[must_use]
pub fn answered(packet: &Packet<'_>) -> Option<(AnswerKind, Tuple)> {
    let layer = dissect::layer(packet).ok()?;
    if protocol::is_icmp(layer.protocol) {
        let Ok(Message::Error { about, .. }) = icmp::read(packet, &layer, false) else {
            return None;
        };
        return Some((AnswerKind::Error, about.inverse()?));
    }
    let is_reset = is_reset(packet, &layer);
    let tuple = is_reset.then(|| dissect::tuple(packet, &layer).ok()?.inverse()).flatten()?;
    Some((AnswerKind::Reset, tuple))
}

/// The tuple of a packet that an answer may be about; `None` for what is never answered so.
#[must_use]
pub fn answerable(packet: &Packet<'_>, kind: AnswerKind) -> Option<Tuple> {
    let layer = dissect::layer(packet).ok()?;
    let tuple = dissect::tuple(packet, &layer).ok()?;
    let is_answerable = match kind {
        AnswerKind::Reset => layer.protocol == tcp::PROTOCOL && !is_reset(packet, &layer),
        AnswerKind::Error => tuple.inverse().is_some(),
    };
    is_answerable.then_some(tuple)
}

fn is_reset(packet: &Packet<'_>, layer: &Layer) -> bool {
    if layer.protocol != tcp::PROTOCOL {
        return false;
    }
    match packet.read::<1>(layer.offset + 13) {
        Read::Known([flags]) => tcp::Flags(flags).contains(tcp::Flags::RST),
        Read::Absent | Read::Unknown => false,
    }
}

/// The connection of a packet that is dropped, for its answer.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// As it was.
    flow: Flow,
    /// Where it is in the table, if it is.
    handle: Option<Handle>,
    /// Which way the answer goes.
    direction: Direction,
    /// The packet may have had no connection.
    doubtful: bool,
}

impl Attachment {
    /// Whether the connection is in no table: only the answer that carries it still shows it.
    #[must_use]
    pub fn is_stray(&self) -> bool {
        self.handle.is_none()
    }

    /// The packet's tuple as it arrived.
    #[must_use]
    pub fn sent(&self) -> Tuple {
        self.flow.tuple(self.direction.opposite()).in_zone(0)
    }

    /// The packet's tuple as its flow translates it.
    #[must_use]
    pub fn here(&self) -> Option<Tuple> {
        Some(self.flow.tuple(self.direction).inverse()?.in_zone(0))
    }
}

impl Tracker {
    /// The connection that the answer to a packet carries, before the packet is discarded.
    #[must_use]
    pub fn keep(&self, view: &CtView) -> Option<Attachment> {
        let handle = view.flow?;
        let flow = self.table.flow(handle)?;
        if matches!(view.state(), Some(CtState::Invalid | CtState::Untracked)) {
            return None;
        }
        let is_in_table = flow.is_confirmed() && !flow.status.contains(Status::DYING);
        Some(Attachment {
            doubtful: view.states.may_be(CtState::Invalid),
            direction: view.direction.opposite(),
            handle: is_in_table.then_some(handle),
            flow: flow.clone(),
        })
    }

    /// The connection that an error carries about a packet which its sender sent so, where that is known to be
    /// translated. Others are found by what the error quotes.
    pub fn translated(&mut self, sent: &Tuple, now: u64) -> Option<Attachment> {
        let (handle, direction) = self.table.find_in(sent, [0; 2], now)?;
        let flow = self.table.flow(handle).filter(|flow| flow.is_known_to_translate())?;
        Some(Attachment {
            doubtful: false,
            direction: direction.opposite(),
            handle: Some(handle),
            flow: flow.clone(),
        })
    }

    /// A flow that is in no table, for as long as the answer is under way.
    fn lodge(&mut self, flow: &Flow) -> Option<Handle> {
        let mut flow = flow.clone();
        if flow.is_confirmed() {
            flow.status.set(Status::DYING);
        }
        self.loose_end = self.table.lodge(&flow);
        self.loose_end
    }

    /// What tracking says of the answer.
    pub fn attach(&mut self, attachment: &Attachment) -> CtView {
        self.tie_up();
        self.crowded = None;
        let living = attachment.handle.filter(|handle| self.table.flow(*handle).is_some());
        let Some(handle) = living.or_else(|| self.lodge(&attachment.flow)) else {
            return CtView::UNKNOWN;
        };
        let related = States::of(CtState::Related);
        let states = match attachment.doubtful {
            false => related,
            true => related.or(CtState::Invalid.into()),
        };
        CtView {
            flow: Some(handle),
            direction: attachment.direction,
            assumed: attachment.flow.assumed,
            ..CtView::without_flow(states)
        }
    }
}
