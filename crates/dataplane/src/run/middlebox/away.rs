//! [`Away`]: a frame on its way from a worker to its middlebox by a ring, or back.
//!
//! Contract: the frame has its memory with it; it goes back to its port's when the frame leaves, wherever that is.

use pktio::FrameBuf;

use super::Verdict;
use super::offsets::Offsets;

/// A frame between a worker and its middlebox.
#[derive(Debug)]
pub(in crate::run) struct Away {
    /// The wire that it crosses, and the end that it came in by.
    pub(in crate::run) wire: u16,
    pub(in crate::run) from: u8,
    pub(super) verdict: Verdict,
    pub(super) offsets: Offsets,
    /// When it came, if it has no time of its own.
    pub(super) now: u64,
    pub(in crate::run) frame: FrameBuf,
}
