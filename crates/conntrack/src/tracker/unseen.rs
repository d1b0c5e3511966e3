//! What a capture does not hold of the connections in it: their beginnings before it, and the answers of a side that was
//! not recorded. Only under [`Mode::Midstream`].
//!
//! Contract: every state that is possible, and the one of them that the packet is taken for. A flow is early if it is
//! first seen within its timeout of the start of the capture, or in TCP with a segment that begins none; its other
//! direction ends that, for who answers got something. A SYN is NEW.
//!
//! Source: timeouts and states as in the trackers of the protocols.

use super::flows::Tracker;
use super::visit::Visit;
use crate::config::Mode;
use crate::flow::{Flow, Unseen};
use crate::key::{Direction, Tuple};
use crate::protocol::{Upper, is_icmp};
use crate::status::Status;
use crate::tcp;
use crate::view::{CtState, CtView, States, Taken};

/// A flow may have begun before the capture: it is created with this packet, and that is not its first.
pub(crate) fn begin(flow: &mut Flow) {
    if !flow.status.contains(Status::EXPECTED) {
        flow.unseen = Unseen::Beginning;
    }
}

/// A segment that follows on a SYN as if it was answered: the answer was not captured.
pub(crate) fn pick_up(flow: &mut Flow, direction: Direction, upper: &Upper<'_>) {
    let Upper::Tcp(segment) = upper else { return };
    if direction == Direction::Original && upper.is_midstream() && tcp::waits_for_answer(flow) {
        tcp::pick_up(flow, segment);
        flow.assumed = true;
        flow.unseen = Unseen::Answers;
    }
}

/// The states of a packet that its flow says is in `state`, and what it is taken for.
pub(crate) fn states(
    flow: &mut Flow,
    state: CtState,
    protocol: u8,
    direction: Direction,
    is_first: bool,
    unheard: bool,
) -> (States, Taken) {
    if direction == Direction::Reply {
        flow.unseen = Unseen::Nothing;
    }
    let is_tcp = protocol == packet::tcp::PROTOCOL;
    let fresh = States::of(CtState::New).or(CtState::Established.into());
    let taken = match (unheard, is_tcp) {
        (true, false) => Taken::ForNone,
        // What it acknowledges was sent, be it recorded or not.
        (_, true) => Taken::For(CtState::Established),
        (false, false) => Taken::For(CtState::New),
    };
    match flow.unseen {
        Unseen::Beginning => (fresh, taken),
        Unseen::Answers => (fresh.or(CtState::Invalid.into()), taken),
        Unseen::Nothing if unheard && !is_first && state == CtState::New => (fresh, taken),
        Unseen::Nothing => (state.into(), Taken::Seen),
    }
}

impl Tracker {
    /// Whether flows may have begun before the capture of which nothing is known.
    pub(super) fn may_predate(&self) -> bool {
        self.config.mode == Mode::Midstream && self.start.is_none()
    }

    /// Whether a packet ends a flow that it cannot begin, as all flows from before were listed.
    pub(super) fn is_end_of_unlisted(&self, upper: &Upper<'_>) -> bool {
        self.start.is_some()
            && matches!(upper, Upper::Tcp(segment) if segment.kind == tcp::Kind::Fin)
    }

    /// Whether a flow that is created with this packet may have begun before.
    pub(crate) fn may_be_early(&self, tuple: &Tuple, upper: &Upper<'_>, visit: &Visit) -> bool {
        let protocol = tuple.protocol();
        self.config.mode == Mode::Midstream
            && (visit.unheard || self.start.is_none())
            && !upper.begins()
            && (upper.is_midstream()
                || visit.unheard && !is_icmp(protocol)
                || self.is_within(self.config.timeouts.longest(protocol), visit))
    }

    /// Whether the capture began no longer ago than this.
    fn is_within(&self, timeout: u64, visit: &Visit) -> bool {
        self.began.is_none_or(|began| visit.now.saturating_sub(began) < timeout)
    }

    /// Returns the view of a packet that can be no flow's first. Its flow may be one that was not captured.
    pub(crate) fn stray(&self, tuple: &Tuple, upper: &Upper<'_>, visit: &Visit) -> CtView {
        if self.config.mode != Mode::Midstream {
            return CtView::INVALID;
        }
        let timeouts = &self.config.timeouts;
        let (may_be, state) = match upper {
            Upper::Tcp(segment) if segment.kind == tcp::Kind::Rst => (true, CtState::Invalid),
            Upper::Tcp(segment) if segment.kind == tcp::Kind::SynAck => {
                let waits = timeouts.tcp.get(tcp::State::SynSent as usize).copied().unwrap_or(0);
                (self.is_within(waits, visit), CtState::Established)
            }
            Upper::Tcp(_) => (false, CtState::Invalid),
            _ => (self.is_within(timeouts.longest(tuple.protocol()), visit), CtState::Established),
        };
        match may_be && self.start.is_none() || visit.unheard {
            true if matches!(upper, Upper::Tcp(_)) && visit.unheard => {
                Self::of_either(CtState::Established, Taken::For(CtState::Established))
            }
            true => Self::of_unseen(CtState::Established, state, visit),
            false => CtView::INVALID,
        }
    }

    /// An ICMP error about a flow that is not in the table.
    pub(crate) fn error_about_unseen(&self, visit: &Visit) -> CtView {
        match self.config.mode {
            Mode::Midstream if visit.unheard || self.start.is_none() => {
                Self::of_unseen(CtState::Related, CtState::Invalid, visit)
            }
            _ => CtView::INVALID,
        }
    }

    /// A packet that is INVALID, or of a flow that is not seen.
    fn of_unseen(or: CtState, taken: CtState, visit: &Visit) -> CtView {
        Self::of_either(or, if visit.unheard { Taken::ForNone } else { Taken::For(taken) })
    }

    fn of_either(or: CtState, taken: Taken) -> CtView {
        let states = States::of(CtState::Invalid).or(or.into());
        CtView { taken, ..CtView::without_flow(states) }
    }

    /// The verdict on a packet was taken by what it is taken for; whether that is the first one of its flow.
    pub fn take(&mut self, view: &CtView) -> bool {
        let flow = view.flow.and_then(|handle| self.table.flow_mut(handle));
        flow.is_some_and(|flow| !std::mem::replace(&mut flow.was_taken, true))
    }
}
