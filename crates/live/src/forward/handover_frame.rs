//! [`HandoverFrame`]: a frame on its way from one worker to another, with its wire and its end of arrival.

use pktio::FrameBuf;

/// A frame for another worker.
#[derive(Debug)]
pub(crate) struct HandoverFrame {
    /// The wire that the frame crosses, and its end of arrival.
    pub(crate) wire: u16,
    pub(crate) from: u8,
    /// Whether the receiver owns the frame; otherwise it is the keeper that steers the packet's fragments.
    pub(crate) is_placed: bool,
    pub(crate) frame: FrameBuf,
}

impl HandoverFrame {
    /// The frame's length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.frame.bytes().len()
    }
}
