//! The header that ICMP and ICMPv6 messages share; [`crate::icmpv4`] and [`crate::icmpv6`] name their types.
//!
//! Source: RFC 792, RFC 4443.

use crate::field::{be16, byte};
use std::ops::Range;

/// Message type.
pub const TYPE: Range<usize> = 0..1;
/// Message code.
pub const CODE: Range<usize> = 1..2;
/// Checksum, big endian.
pub const CHECKSUM: Range<usize> = 2..4;
/// Echo messages: identifier, big endian.
pub const ID: Range<usize> = 4..6;
/// Echo messages: sequence number, big endian.
pub const SEQUENCE: Range<usize> = 6..8;
/// Length of the header in bytes; error messages carry the packet they are about after it.
pub const HEADER_LEN: usize = 8;

/// An ICMP or ICMPv6 header.
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

    /// Message type.
    #[must_use]
    pub fn kind(&self) -> u8 {
        byte(self.fixed, TYPE)
    }

    /// Message code.
    #[must_use]
    pub fn code(&self) -> u8 {
        byte(self.fixed, CODE)
    }

    /// Checksum as stored.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        be16(self.fixed, CHECKSUM)
    }

    /// Echo identifier; of no meaning in other messages.
    #[must_use]
    pub fn id(&self) -> u16 {
        be16(self.fixed, ID)
    }

    /// Echo sequence number; of no meaning in other messages.
    #[must_use]
    pub fn sequence(&self) -> u16 {
        be16(self.fixed, SEQUENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_rfc_puts_them() {
        let header = Header::new_checked(&[8, 1, 0xab, 0xcd, 0, 7, 0, 9]).unwrap();
        assert_eq!((header.kind(), header.code()), (8, 1));
        assert_eq!((header.checksum(), header.id(), header.sequence()), (0xabcd, 7, 9));
        assert!(Header::new_checked(&[0; 7]).is_none());
    }
}
