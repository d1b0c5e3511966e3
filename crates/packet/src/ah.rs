//! Authentication headers: an upper-layer protocol of IPv4, an extension header of IPv6.
//!
//! Source: RFC 4302.

use crate::field::{be16, be32, byte};
use std::ops::Range;

/// Protocol number.
pub const PROTOCOL: u8 = 51;

/// Type of the header that follows.
pub const NEXT_HEADER: Range<usize> = 0..1;
/// Length in 32-bit words less 2.
pub const LENGTH: Range<usize> = 1..2;
/// Reserved, big endian, 0 when sent.
pub const RESERVED: Range<usize> = 2..4;
/// Security parameters index, big endian.
pub const SPI: Range<usize> = 4..8;
/// Sequence number, big endian.
pub const SEQUENCE: Range<usize> = 8..12;
/// Length of the header without its check value, in bytes.
pub const HEADER_LEN: usize = 12;

/// An authentication header without its check value.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
}

impl<'a> Header<'a> {
    /// The header at the start of `bytes`, if they hold all 12 bytes of it.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        bytes.first_chunk().map(|fixed| Self { fixed })
    }

    /// Type of the header that follows.
    #[must_use]
    pub fn next_header(&self) -> u8 {
        byte(self.fixed, NEXT_HEADER)
    }

    /// Length in bytes as the header says it, check value included (8..=1028).
    #[must_use]
    pub fn header_len(&self) -> usize {
        (usize::from(byte(self.fixed, LENGTH)) + 2) * 4
    }

    /// Reserved field.
    #[must_use]
    pub fn reserved(&self) -> u16 {
        be16(self.fixed, RESERVED)
    }

    /// Security parameters index.
    #[must_use]
    pub fn spi(&self) -> u32 {
        be32(self.fixed, SPI)
    }

    /// Sequence number.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        be32(self.fixed, SEQUENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_rfc_puts_them() {
        let header = Header::new_checked(&[6, 4, 0, 9, 0, 0, 1, 2, 0, 0, 0, 7]).unwrap();
        assert_eq!((header.next_header(), header.header_len(), header.reserved()), (6, 24, 9));
        assert_eq!((header.spi(), header.sequence()), (0x0102, 7));
        assert!(Header::new_checked(&[0; 11]).is_none());
    }
}
