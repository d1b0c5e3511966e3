//! UDP and UDP-Lite headers, which differ in the meaning of one field.
//!
//! Source: RFC 768, RFC 3828.

use crate::field::be16;
use std::ops::Range;

/// Protocol number of UDP.
pub const PROTOCOL: u8 = 17;
/// Protocol number of UDP-Lite.
pub const PROTOCOL_LITE: u8 = 136;

/// Source port, big endian.
pub const SOURCE_PORT: Range<usize> = 0..2;
/// Destination port, big endian.
pub const DESTINATION_PORT: Range<usize> = 2..4;
/// UDP: length in bytes, header included. UDP-Lite: bytes covered by the checksum. Big endian.
pub const LENGTH: Range<usize> = 4..6;
/// Checksum, big endian; 0 in UDP over IPv4 says that there is none.
pub const CHECKSUM: Range<usize> = 6..8;
/// Length of the header in bytes.
pub const HEADER_LEN: usize = 8;

/// A UDP or UDP-Lite header.
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

    /// UDP: length in bytes, header included, as the header claims it. UDP-Lite: checksum coverage.
    #[must_use]
    pub fn length(&self) -> u16 {
        be16(self.fixed, LENGTH)
    }

    /// Checksum as stored.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        be16(self.fixed, CHECKSUM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_rfc_puts_them() {
        let bytes = [0, 53, 0x0f, 0xa0, 0, 9, 0xab, 0xcd, 1];
        let header = Header::new_checked(&bytes).unwrap();
        assert_eq!((header.length(), header.checksum()), (9, 0xabcd));
        assert!(Header::new_checked(&bytes[..7]).is_none());
    }
}
