//! Ethernet II and 802.3 headers: destination, source, and a type or length.
//!
//! Source: IEEE 802.3; LLC and SNAP from IEEE 802.2 and RFC 1042.

use crate::field::array;
use std::ops::Range;

/// Destination address.
pub const DESTINATION: Range<usize> = 0..6;
/// Source address.
pub const SOURCE: Range<usize> = 6..12;
/// EtherType, or the length of an 802.3 frame, big endian.
pub const TYPE: Range<usize> = 12..14;
/// Length of the header in bytes.
pub const HEADER_LEN: usize = 14;

/// An Ethernet header.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
}

impl<'a> Header<'a> {
    /// The header at the start of `bytes`, if they hold all 14 bytes of it.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        bytes.first_chunk().map(|fixed| Self { fixed })
    }

    /// Destination address.
    #[inline]
    #[must_use]
    pub fn destination(&self) -> [u8; 6] {
        array(self.fixed, DESTINATION)
    }

    /// Source address.
    #[inline]
    #[must_use]
    pub fn source(&self) -> [u8; 6] {
        array(self.fixed, SOURCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_standard_puts_them() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x86, 0xdd, 99];
        let header = Header::new_checked(&bytes).unwrap();
        assert_eq!(header.destination(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(header.source(), [7, 8, 9, 10, 11, 12]);
        assert!(Header::new_checked(&bytes[..13]).is_none());
    }
}
