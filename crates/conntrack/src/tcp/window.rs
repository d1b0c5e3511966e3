//! Whether a segment fits what was seen of both sides: window tracking with scaling and selective
//! acknowledgements, and what to make of segments that do not.
//!
//! Four bounds: a segment may start where the receiver's window ends at most, end where it began at
//! least, acknowledge what was sent at most, and not be older than one window.
//!
//! Source: Linux 6.18 `nf_conntrack_proto_tcp.c` (`tcp_in_window`); G. van Rooij, "Real Stateful TCP Packet
//! Filtering in IP Filter", 2000.

use super::record::{SideState, Tcp};
use super::segment::{Kind, Segment, after, before, flag};
use super::states::State;
use crate::key::Direction;
use crate::step::Arrival;
use packet::tcp::Flags;

/// An acknowledgement may be this old in bytes, whatever the window.
const MAX_ACK_WINDOW: u32 = 66_000;

/// What window tracking says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The segment fits, or windows are not enforced.
    In,
    /// The segment does not fit, but it may pass.
    Ignore,
    /// The segment does not fit.
    Out,
    /// The segment does not fit by what is known, but options that matter were not captured.
    Vague,
}

/// The numbers by which a segment is in the window or not.
struct Numbers {
    sequence: u32,
    end: u32,
    acknowledgement: u32,
    /// With selective acknowledgements.
    highest: u32,
}

impl Tcp {
    /// Checks a segment, and learns from it if it fits.
    #[inline]
    pub(super) fn fits(
        &mut self,
        segment: &Segment<'_>,
        arrival: &Arrival,
        liberal: bool,
        vague: bool,
    ) -> Fit {
        let (state, direction) = (self.state, arrival.direction);
        let [original, reply] = &mut self.seen;
        let (sender, receiver) = match direction {
            Direction::Original => (original, reply),
            Direction::Reply => (reply, original),
        };
        let has_sack = receiver.flags & flag::SACK_PERMITTED != 0;
        let highest =
            if has_sack { segment.highest_acknowledged() } else { segment.acknowledgement };
        let mut numbers = Numbers {
            sequence: segment.sequence,
            end: segment.end,
            acknowledgement: segment.acknowledgement.wrapping_sub(arrival.ahead),
            highest: highest.wrapping_sub(arrival.ahead),
        };
        let has_ack = segment.has(Flags::ACK);
        if (sender.max_window == 0 || segment.has(Flags::SYN))
            && opens(sender, receiver, segment, direction, state, numbers.highest)
        {
            return Fit::In;
        }
        if !has_ack || segment.kind == Kind::Rst {
            numbers.of_reset(sender, receiver, segment, state);
        }
        let fit = bounds(sender, receiver, &numbers);
        if fit != Fit::In {
            let lenient = liberal || sender.flags & flag::LIBERAL != 0;
            let is_vague = vague || (has_sack && segment.options.is_none());
            return match fit {
                _ if lenient => Fit::In,
                Fit::Out if is_vague => Fit::Vague,
                fit => fit,
            };
        }
        learn(sender, receiver, segment, &numbers);
        if segment.kind == Kind::Ack {
            self.count_retransmission(segment, direction, &numbers);
        }
        Fit::In
    }

    fn count_retransmission(
        &mut self,
        segment: &Segment<'_>,
        direction: Direction,
        numbers: &Numbers,
    ) {
        let last = &mut self.last;
        let is_same = last.is_from(direction)
            && last.sequence == numbers.sequence
            && last.acknowledgement == numbers.acknowledgement
            && last.end == numbers.end
            && last.window == segment.window;
        if is_same {
            self.retrans = self.retrans.wrapping_add(1);
            return;
        }
        // Whose it is notes who takes the segment.
        last.sequence = numbers.sequence;
        last.acknowledgement = numbers.acknowledgement;
        last.end = numbers.end;
        last.window = segment.window;
        self.retrans = 0;
    }
}

/// Takes a segment with which a side begins, or may begin again; returns whether there is nothing else to look at.
#[inline(never)]
fn opens(
    sender: &mut SideState,
    receiver: &mut SideState,
    segment: &Segment<'_>,
    direction: Direction,
    state: State,
    highest: u32,
) -> bool {
    let is_syn = segment.has(Flags::SYN);
    let has_ack = segment.has(Flags::ACK);
    if sender.max_window == 0 {
        if is_syn {
            sender.begin(receiver, segment, direction);
            return !has_ack;
        }
        sender.join(receiver, segment, highest);
        return false;
    }
    if is_syn && after(segment.end, sender.end) && matches!(state, State::SynSent | State::SynRecv)
    {
        // Another SYN with larger numbers: the sender began again.
        sender.begin(receiver, segment, direction);
        return direction == Direction::Reply && !has_ack;
    }
    false
}

impl Numbers {
    /// Adjusts the numbers of a reset, or of a segment that acknowledges nothing.
    fn of_reset(
        &mut self,
        sender: &SideState,
        receiver: &SideState,
        segment: &Segment<'_>,
        state: State,
    ) {
        let is_reset = segment.kind == Kind::Rst;
        if !segment.has(Flags::ACK) || is_reset && self.acknowledgement == 0 {
            self.acknowledgement = receiver.end;
            self.highest = receiver.end;
        }
        if is_reset && segment.sequence == 0 && state == State::SynSent {
            self.sequence = sender.end;
            self.end = sender.end;
        }
    }
}

/// The four bounds.
#[inline]
fn bounds(sender: &mut SideState, receiver: &SideState, numbers: &Numbers) -> Fit {
    let oldest_ack =
        receiver.end.wrapping_sub(sender.max_window.max(MAX_ACK_WINDOW)).wrapping_sub(1);
    let left_edge = sender.end.wrapping_sub(receiver.max_window).wrapping_sub(1);
    let not_too_old = after(numbers.highest, oldest_ack);
    let in_window = after(numbers.end, left_edge);
    let acknowledges_sent = before(numbers.highest, receiver.end.wrapping_add(1));
    if !before(numbers.sequence, sender.max_end.wrapping_add(1)) {
        let overshot = numbers.end.wrapping_sub(sender.max_end).wrapping_add(1);
        let is_near = overshot <= receiver.max_window && receiver.max_window != 0;
        if is_near && in_window && not_too_old && acknowledges_sent {
            // Some senders overstep the window a little: the answer to it must fit later on.
            sender.end = numbers.end;
            sender.flags |= flag::UNACKNOWLEDGED;
            return Fit::Ignore;
        }
        return Fit::Out;
    }
    if !acknowledges_sent {
        return Fit::Out;
    }
    if (receiver.max_window != 0 && !in_window) || !not_too_old {
        return Fit::Ignore;
    }
    Fit::In
}

/// Takes over what a fitting segment says.
#[inline]
fn learn(
    sender: &mut SideState,
    receiver: &mut SideState,
    segment: &Segment<'_>,
    numbers: &Numbers,
) {
    let scale = if segment.has(Flags::SYN) { 0 } else { sender.scale };
    let window = u32::from(segment.window) << scale;
    let given = window.wrapping_add(numbers.highest.wrapping_sub(numbers.acknowledgement));
    sender.max_window = sender.max_window.max(given);
    if after(numbers.end, sender.end) {
        sender.end = numbers.end;
        sender.flags |= flag::UNACKNOWLEDGED;
    }
    if segment.has(Flags::ACK) {
        let is_first = sender.flags & flag::ACKNOWLEDGED == 0;
        if is_first || after(numbers.acknowledgement, sender.max_ack) {
            sender.max_ack = numbers.acknowledgement;
            sender.flags |= flag::ACKNOWLEDGED;
        }
    }
    if receiver.max_window != 0 && after(numbers.end, sender.max_end) {
        let more = numbers.end.wrapping_sub(sender.max_end);
        receiver.max_window = receiver.max_window.wrapping_add(more);
    }
    let allowed = numbers.highest.wrapping_add(window);
    if after(allowed, receiver.max_end.wrapping_sub(1)) {
        receiver.max_end = allowed.wrapping_add(u32::from(window == 0));
    }
    if numbers.acknowledgement == receiver.end {
        receiver.flags &= !flag::UNACKNOWLEDGED;
    }
}
