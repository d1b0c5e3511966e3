//! [`Tcp`]: what is remembered of a connection, and of each of its sides.

use super::segment::{Kind, Segment, flag};
use super::states::State;
use crate::key::Direction;

/// What is remembered of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tcp {
    /// The state of the connection.
    pub state: State,
    pub(super) seen: [SideState; 2],
    pub(super) last: Last,
    pub(super) retrans: u8,
}

/// The last segment of note: in window, or let through though it does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Last {
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) end: u32,
    pub(super) window: u16,
    pub(super) kind: Kind,
    pub(super) is_reply: bool,
    pub(super) scale: u8,
    pub(super) flags: u8,
}

impl Last {
    pub(super) fn is_from(&self, direction: Direction) -> bool {
        self.is_reply == (direction == Direction::Reply)
    }

    pub(super) fn note(&mut self, kind: Kind, direction: Direction) {
        self.kind = kind;
        self.is_reply = direction == Direction::Reply;
    }
}

/// What was seen of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SideState {
    /// After the last byte that it sent.
    pub(super) end: u32,
    /// How far the other side allows it to send.
    pub(super) max_end: u32,
    /// The largest window that it gave; 0 before its first segment.
    pub(super) max_window: u32,
    /// The highest acknowledgement number that it sent.
    pub(super) max_ack: u32,
    pub(super) scale: u8,
    pub(super) flags: u8,
}

impl SideState {
    /// A side that sent up to `end` and gave this window.
    pub(super) fn at(end: u32, window: u32) -> Self {
        Self { end, max_end: end, max_window: window.max(1), ..Self::default() }
    }

    /// The sender of the SYN that begins a flow.
    pub(super) fn of_syn(segment: &Segment<'_>) -> Self {
        let options = segment.syn_options();
        Self {
            scale: options.scale.unwrap_or(0),
            flags: options.flags(),
            ..Self::at(segment.end, u32::from(segment.window))
        }
    }

    /// Both sides of a flow that is picked up in its middle: how they scale is not known, so windows are
    /// not enforced.
    pub(super) fn picked_up(segment: &Segment<'_>) -> [Self; 2] {
        let flags = flag::SACK_PERMITTED | flag::LIBERAL;
        let sender = Self::at(segment.end, u32::from(segment.window));
        let max_end = sender.end.wrapping_add(sender.max_window);
        [Self { max_end, flags, ..sender }, Self { flags, ..Self::default() }]
    }

    /// This, with what else is known of the side.
    pub(super) fn with(self, scale: u8, flags: u8, max_ack: u32) -> Self {
        Self { scale, flags, max_ack, ..self }
    }

    /// As before its first segment, but for being liberal.
    pub(super) fn forget(&mut self) {
        *self = Self { flags: self.flags & flag::LIBERAL, ..Self::default() };
    }

    /// The sender of a SYN, or of the answer to one.
    pub(super) fn begin(
        &mut self,
        receiver: &mut Self,
        segment: &Segment<'_>,
        direction: Direction,
    ) {
        self.end = segment.end;
        self.max_end = segment.end;
        self.max_window = u32::from(segment.window).max(1);
        if segment.options.is_none_or(|options| !options.is_empty()) {
            let options = segment.syn_options();
            self.scale = options.scale.unwrap_or(0);
            self.flags = self.flags & flag::LIBERAL | options.flags();
        }
        // Windows are scaled only where both sides say so.
        if direction == Direction::Reply && self.flags & receiver.flags & flag::WINDOW_SCALE == 0 {
            self.scale = 0;
            receiver.scale = 0;
        }
    }

    /// The sender of a segment in the middle of a flow of which nothing was seen from it yet.
    pub(super) fn join(&mut self, receiver: &mut Self, segment: &Segment<'_>, highest: u32) {
        self.end = segment.end;
        self.max_window = (u32::from(segment.window) << self.scale).max(1);
        self.max_end = segment.end.wrapping_add(self.max_window);
        if receiver.max_window == 0 {
            receiver.end = highest;
            receiver.max_end = highest;
        } else if highest == receiver.end.wrapping_add(1) {
            // Most likely it answers a keep-alive.
            receiver.end = highest;
        }
    }
}
