//! The clear part of encapsulating security payload headers.
//!
//! Source: RFC 4303.

use crate::field::be32;
use std::ops::Range;

/// Protocol number.
pub const PROTOCOL: u8 = 50;

/// Security parameters index, big endian.
pub const SPI: Range<usize> = 0..4;
/// Sequence number, big endian.
pub const SEQUENCE: Range<usize> = 4..8;
/// Length of the clear part in bytes.
pub const HEADER_LEN: usize = 8;

/// The clear part of an ESP packet.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
}

impl<'a> Header<'a> {
    /// The header at the start of `bytes`, if they hold all 8 bytes of it.
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
        let header = Header::new_checked(&[0, 0, 1, 2, 0, 0, 0, 7]).unwrap();
        assert_eq!(header.spi(), 0x0102);
        assert!(Header::new_checked(&[0; 7]).is_none());
    }
}
