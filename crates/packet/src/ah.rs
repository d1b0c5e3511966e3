//! Authentication headers: an upper-layer protocol of IPv4, an extension header of IPv6.
//!
//! Source: RFC 4302.

use crate::field::be32;
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

    /// Security parameters index.
    #[must_use]
    pub fn spi(&self) -> u32 {
        be32(self.fixed, SPI)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_rfc_puts_them() {
        let header = Header::new_checked(&[6, 4, 0, 9, 0, 0, 1, 2, 0, 0, 0, 7]).unwrap();
        assert_eq!(header.spi(), 0x0102);
        assert!(Header::new_checked(&[0; 11]).is_none());
    }
}
