//! [`Away`]: a frame on its way through a ring, from a worker to its middlebox or back.
//!
//! Contract: the frame has its memory with it; when the frame leaves, wherever that is, the memory returns to its port.

use pktio::FrameBuf;

use super::Verdict;
use super::offsets::Offsets;

/// A frame between a worker and its middlebox.
#[derive(Debug)]
pub(crate) struct Away {
    /// The wire that the frame crosses, and its end of arrival.
    pub(crate) wire: u16,
    pub(crate) from: u8,
    pub(super) verdict: Verdict,
    pub(super) offsets: Offsets,
    /// When the frame came, if it has no time of its own.
    pub(super) now: u64,
    pub(crate) frame: FrameBuf,
}
