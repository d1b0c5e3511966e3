//! [`Waiting`]: frames that wait until their peer can be reached.

use std::collections::VecDeque;

use pktio::FrameBuf;

/// Frames that wait for a peer's session, at most: later ones are lost.
pub(super) const WAITING: usize = 16;

/// Frames for one peer, in their order.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    frames: VecDeque<FrameBuf>,
}

impl Waiting {
    /// Whether there is room for one more.
    pub(super) fn has_room(&self) -> bool {
        self.frames.len() < WAITING
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn push(&mut self, frame: FrameBuf) {
        self.frames.push_back(frame);
    }

    /// Takes all frames.
    pub(super) fn take(&mut self) -> VecDeque<FrameBuf> {
        std::mem::take(&mut self.frames)
    }

    pub(super) fn clear(&mut self) {
        self.frames.clear();
    }
}
