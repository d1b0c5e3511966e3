//! [`Step`]: what a protocol's tracker makes of one packet, and [`Arrival`], what the tracker gets besides the packet.

use crate::key::Direction;

/// What a protocol's tracker makes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The packet belongs to the flow, which was brought up to date.
    Accept,
    /// The packet belongs to the flow; neither timeout nor counters move.
    Ignore,
    /// The packet belongs to the flow, as far as is known; bytes that matter were not captured.
    Vague,
    /// The packet is INVALID.
    Invalid,
    /// The packet belongs to the flow, which ends with it.
    Kill,
    /// The flow is over and the packet begins another of the same tuple.
    Reopen,
}

impl Step {
    /// Whether the flow is over.
    pub(crate) fn ends_flow(self) -> bool {
        matches!(self, Self::Kill | Self::Reopen)
    }
}

/// What is known of a packet besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The packet's time in nanoseconds.
    pub(crate) now: u64,
    /// Which way of the flow it goes.
    pub(crate) direction: Direction,
    /// The packet's length in bytes from the network header on.
    pub(crate) bytes: usize,
    /// How far its acknowledgement numbers are ahead of what the other side sent, where that was rewritten.
    pub(crate) ahead: u32,
}
