//! IPv4 headers and their options.
//!
//! Source: RFC 791.

use crate::field::{array, be16, byte};
use std::net::Ipv4Addr;
use std::ops::Range;

/// Version (high nibble) and header length in 32-bit words (low nibble).
pub const VERSION_IHL: Range<usize> = 0..1;
/// Type of service: DSCP (6 bits) and ECN (2 bits).
pub const TOS: Range<usize> = 1..2;
/// Total length in bytes, header included, big endian.
pub const TOTAL_LEN: Range<usize> = 2..4;
/// Identification, big endian.
pub const ID: Range<usize> = 4..6;
/// Flags (3 bits) and fragment offset in 8-byte units (13 bits), big endian.
pub const FRAGMENT: Range<usize> = 6..8;
/// Time to live.
pub const TTL: Range<usize> = 8..9;
/// Upper-layer protocol number.
pub const PROTOCOL: Range<usize> = 9..10;
/// Header checksum, big endian.
pub const CHECKSUM: Range<usize> = 10..12;
/// Source address.
pub const SOURCE: Range<usize> = 12..16;
/// Destination address.
pub const DESTINATION: Range<usize> = 16..20;
/// Length of the header without options, in bytes.
pub const MIN_HEADER_LEN: usize = 20;

/// Bit of [`FRAGMENT`]: do not fragment.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// Bit of [`FRAGMENT`]: more fragments follow.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// Bits of [`FRAGMENT`]: offset in 8-byte units.
pub const OFFSET_MASK: u16 = 0x1fff;

/// An IPv4 header.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; MIN_HEADER_LEN],
}

impl<'a> Header<'a> {
    /// The header at the start of `bytes`, if its version is 4 and they hold as many bytes as its header
    /// length says. Neither the total length nor the checksum is tested.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        let fixed = bytes.first_chunk::<MIN_HEADER_LEN>()?;
        let header_len = header_len(fixed[0]);
        bytes.get(MIN_HEADER_LEN..header_len)?;
        (fixed[0] >> 4 == 4).then_some(Self { fixed })
    }

    /// Identification.
    #[must_use]
    pub fn id(&self) -> u16 {
        be16(self.fixed, ID)
    }

    /// Whether the sender forbids fragmentation.
    #[must_use]
    pub fn dont_fragment(&self) -> bool {
        be16(self.fixed, FRAGMENT) & DONT_FRAGMENT != 0
    }

    /// Whether more fragments follow this one.
    #[must_use]
    pub fn more_fragments(&self) -> bool {
        be16(self.fixed, FRAGMENT) & MORE_FRAGMENTS != 0
    }

    /// Fragment offset in 8-byte units.
    #[must_use]
    pub fn fragment_offset(&self) -> u16 {
        be16(self.fixed, FRAGMENT) & OFFSET_MASK
    }

    /// Time to live.
    #[must_use]
    pub fn ttl(&self) -> u8 {
        byte(self.fixed, TTL)
    }

    /// Upper-layer protocol number.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        byte(self.fixed, PROTOCOL)
    }

    /// Source address.
    #[must_use]
    pub fn source(&self) -> Ipv4Addr {
        array::<4>(self.fixed, SOURCE).into()
    }

    /// Destination address.
    #[must_use]
    pub fn destination(&self) -> Ipv4Addr {
        array::<4>(self.fixed, DESTINATION).into()
    }
}

/// Header length in bytes that the first byte of a header says.
#[inline]
pub(crate) fn header_len(version_ihl: u8) -> usize {
    usize::from(version_ihl & 0x0f) * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: [u8; 20] =
        [0x45, 0x2e, 0, 60, 0x12, 0x34, 0x60, 0x05, 64, 17, 0xab, 0xcd, 10, 0, 0, 1, 10, 0, 0, 2];

    #[test]
    fn fields_lie_where_the_rfc_puts_them() {
        let header = Header::new_checked(&FIXED).unwrap();
        assert_eq!(header.id(), 0x1234);
        assert!(header.dont_fragment() && header.more_fragments());
        assert_eq!(header.fragment_offset(), 5);
        assert_eq!((header.ttl(), header.protocol()), (64, 17));
        assert_eq!(header.source(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(header.destination(), Ipv4Addr::new(10, 0, 0, 2));
    }

    #[test]
    fn a_header_that_does_not_fit_is_refused() {
        assert!(Header::new_checked(&FIXED[..19]).is_none());
        for first in [0x44, 0x46, 0x65] {
            let mut bytes = FIXED;
            bytes[0] = first;
            assert!(Header::new_checked(&bytes).is_none(), "{first:#x}");
        }
    }
}
