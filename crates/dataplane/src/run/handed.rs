//! [`Handed`]: a frame on its way from one worker to another, with where it came in.

use pktio::FrameBuf;

/// A frame for another worker.
#[derive(Debug)]
pub(super) struct Handed {
    /// The wire that it came in by, and at which end.
    pub(super) wire: u16,
    pub(super) from: u8,
    /// Who gets it is its owner: else, whoever knows where the fragments of its packet go.
    pub(super) is_placed: bool,
    pub(super) frame: FrameBuf,
}

impl Handed {
    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.frame.bytes().len()
    }
}
