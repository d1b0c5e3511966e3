//! [`Edit`]: what the kernel writes into a packet of a connection whose helper rewrites payloads.
//!
//! The tracker says what to write; address translation writes it.

use crate::ftp::text::Text;
use crate::shift::Shift;

/// What is written, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit {
    /// The change to the payload. The TCP checksum is then recomputed over all that is written.
    pub text: Option<Replacement>,
    /// Into the header.
    pub numbers: Option<Renumbering>,
}

/// Bytes of a payload, and what they become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replacement {
    /// Offset in the frame of the first byte that is replaced.
    pub start: usize,
    /// How many are.
    pub len: usize,
    /// What stands there then.
    pub text: Text,
}

impl Replacement {
    /// What the packet grows by in bytes, modulo 2^32.
    #[must_use]
    pub fn growth(&self) -> u32 {
        (self.text.as_bytes().len() as u32).wrapping_sub(self.len as u32)
    }
}

/// What a segment's numbers move by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renumbering {
    /// The shift of its own direction: its sequence number.
    pub own: Shift,
    /// The shift of the other direction: its acknowledgement number and selective acknowledgements, which move back.
    pub other: Shift,
}

impl Renumbering {
    /// A sequence number, moved.
    #[must_use]
    pub fn sequence(&self, number: [u8; 4]) -> [u8; 4] {
        let number = u32::from_be_bytes(number);
        number.wrapping_add(self.own.of(number)).to_be_bytes()
    }

    /// A number that acknowledges, moved back.
    #[must_use]
    pub fn acknowledged(&self, number: [u8; 4]) -> [u8; 4] {
        let number = u32::from_be_bytes(number);
        number.wrapping_sub(self.other.of_acknowledged(number)).to_be_bytes()
    }
}
