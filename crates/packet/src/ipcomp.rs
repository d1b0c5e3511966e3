//! IP payload compression headers.
//!
//! Source: RFC 3173.

use crate::field::{be16, byte};
use std::ops::Range;

/// Protocol number.
pub const PROTOCOL: u8 = 108;

/// Type of the header that was compressed.
pub const NEXT_HEADER: Range<usize> = 0..1;
/// Flags, 0 when sent.
pub const FLAGS: Range<usize> = 1..2;
/// Compression parameter index, big endian.
pub const CPI: Range<usize> = 2..4;
/// Length of the header in bytes.
pub const HEADER_LEN: usize = 4;

/// An IPComp header.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
}

impl<'a> Header<'a> {
    /// The header at the start of `bytes`, if they hold all 4 bytes of it.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        bytes.first_chunk().map(|fixed| Self { fixed })
    }

    /// Type of the header that was compressed.
    #[must_use]
    pub fn next_header(&self) -> u8 {
        byte(self.fixed, NEXT_HEADER)
    }

    /// Flags; matches that test the reserved field read them.
    #[must_use]
    pub fn flags(&self) -> u8 {
        byte(self.fixed, FLAGS)
    }

    /// Compression parameter index.
    #[must_use]
    pub fn cpi(&self) -> u16 {
        be16(self.fixed, CPI)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_rfc_puts_them() {
        let header = Header::new_checked(&[6, 1, 0x12, 0x34]).unwrap();
        assert_eq!((header.next_header(), header.flags(), header.cpi()), (6, 1, 0x1234));
        assert!(Header::new_checked(&[0; 3]).is_none());
    }
}
