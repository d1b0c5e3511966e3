//! DCCP headers: ports, packet type, and where the options start.
//!
//! Source: RFC 4340 section 5.

use crate::field::{be16, byte};
use std::ops::Range;

/// Protocol number.
pub const PROTOCOL: u8 = 33;

/// Source port, big endian.
pub const SOURCE_PORT: Range<usize> = 0..2;
/// Destination port, big endian.
pub const DESTINATION_PORT: Range<usize> = 2..4;
/// Header length in 32-bit words, options included.
pub const DATA_OFFSET: Range<usize> = 4..5;
/// Reserved (3 bits), packet type (4), extended sequence numbers (1).
pub const TYPE: Range<usize> = 8..9;
/// Length of the generic header with short sequence numbers, in bytes.
pub const MIN_HEADER_LEN: usize = 12;

/// Packet types by number, as iptables' `--dccp-types` names them.
pub const TYPE_NAMES: [&str; 10] = [
    "REQUEST", "RESPONSE", "DATA", "ACK", "DATAACK", "CLOSEREQ", "CLOSE", "RESET", "SYNC",
    "SYNCACK",
];

/// A DCCP generic header.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; MIN_HEADER_LEN],
}

impl<'a> Header<'a> {
    /// The header at the start of `bytes`, if they hold the 12 bytes of its generic part.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        bytes.first_chunk().map(|fixed| Self { fixed })
    }

    /// Source port.
    #[must_use]
    pub fn source_port(&self) -> u16 {
        be16(self.fixed, SOURCE_PORT)
    }

    /// Destination port.
    #[must_use]
    pub fn destination_port(&self) -> u16 {
        be16(self.fixed, DESTINATION_PORT)
    }

    /// Header length in bytes as the data offset says it, options included.
    #[must_use]
    pub fn header_len(&self) -> usize {
        usize::from(byte(self.fixed, DATA_OFFSET)) * 4
    }

    /// Packet type (0..=15): an index of [`TYPE_NAMES`], or reserved.
    #[must_use]
    pub fn packet_type(&self) -> u8 {
        (byte(self.fixed, TYPE) >> 1) & 0x0f
    }

    /// Offset of the options from the start of the header: the generic header with the sequence numbers
    /// it has, and what its packet type adds.
    #[must_use]
    pub fn options_offset(&self) -> usize {
        let extended = byte(self.fixed, TYPE) & 1 == 1;
        let generic = if extended { 16 } else { MIN_HEADER_LEN };
        generic
            + match self.packet_type() {
                0 => 4,
                2 => 0,
                3..=6 | 8 | 9 => 8,
                _ => 12,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_lie_after_what_the_type_adds() {
        let mut bytes = [0, 1, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0];
        for (type_byte, offset) in [(0x01, 20), (0x00, 16), (0x04, 12), (0x02, 24), (0x07, 24)] {
            bytes[8] = type_byte;
            let header = Header::new_checked(&bytes).unwrap();
            assert_eq!(header.options_offset(), offset, "{type_byte:#x}");
            assert_eq!(header.packet_type(), type_byte >> 1);
        }
        let header = Header::new_checked(&bytes).unwrap();
        assert_eq!((header.source_port(), header.destination_port()), (1, 2));
        assert_eq!(header.header_len(), 28);
        assert!(Header::new_checked(&bytes[..11]).is_none());
    }
}
