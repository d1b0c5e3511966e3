//! The fixed IPv6 header.
//!
//! Source: RFC 8200. Extension headers are in [`crate::ipv6_ext`].

use crate::field::{array, be16, be32, byte};
use std::net::Ipv6Addr;
use std::ops::Range;

/// Version (4 bits), traffic class (8), flow label (20), big endian.
pub const VERSION_CLASS_LABEL: Range<usize> = 0..4;
/// Payload length in bytes, big endian: all after the fixed header.
pub const PAYLOAD_LEN: Range<usize> = 4..6;
/// Type of the header that follows.
pub const NEXT_HEADER: Range<usize> = 6..7;
/// Hop limit.
pub const HOP_LIMIT: Range<usize> = 7..8;
/// Source address.
pub const SOURCE: Range<usize> = 8..24;
/// Destination address.
pub const DESTINATION: Range<usize> = 24..40;
/// Length of the header in bytes.
pub const HEADER_LEN: usize = 40;

/// An IPv6 header without its extension headers.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
}

impl<'a> Header<'a> {
    /// The header at the start of `bytes`, if they hold all 40 bytes of it and its version is 6.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        let fixed = bytes.first_chunk::<HEADER_LEN>()?;
        (fixed[0] >> 4 == 6).then_some(Self { fixed })
    }

    /// Traffic class: DSCP (6 bits) and ECN (2 bits).
    #[must_use]
    pub fn traffic_class(&self) -> u8 {
        (be32(self.fixed, VERSION_CLASS_LABEL) >> 20) as u8
    }

    /// Flow label (20 bits).
    #[must_use]
    pub fn flow_label(&self) -> u32 {
        be32(self.fixed, VERSION_CLASS_LABEL) & 0x000f_ffff
    }

    /// Payload length in bytes.
    #[must_use]
    pub fn payload_len(&self) -> u16 {
        be16(self.fixed, PAYLOAD_LEN)
    }

    /// Type of the header that follows.
    #[must_use]
    pub fn next_header(&self) -> u8 {
        byte(self.fixed, NEXT_HEADER)
    }

    /// Hop limit.
    #[must_use]
    pub fn hop_limit(&self) -> u8 {
        byte(self.fixed, HOP_LIMIT)
    }

    /// Source address.
    #[must_use]
    pub fn source(&self) -> Ipv6Addr {
        array::<16>(self.fixed, SOURCE).into()
    }

    /// Destination address.
    #[must_use]
    pub fn destination(&self) -> Ipv6Addr {
        array::<16>(self.fixed, DESTINATION).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_rfc_puts_them() {
        let mut bytes = [0u8; 40];
        bytes[..8].copy_from_slice(&[0x6a, 0xb1, 0x23, 0x45, 0x01, 0x02, 58, 255]);
        bytes[SOURCE].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        bytes[24] = 0xff;
        let header = Header::new_checked(&bytes).unwrap();
        assert_eq!((header.traffic_class(), header.flow_label()), (0xab, 0x12345));
        assert_eq!((header.payload_len(), header.next_header()), (0x0102, 58));
        assert_eq!(header.hop_limit(), 255);
        assert_eq!(header.source(), Ipv6Addr::LOCALHOST);
        assert!(header.destination().is_multicast());
        assert!(Header::new_checked(&bytes[..39]).is_none());
        bytes[0] = 0x4a;
        assert!(Header::new_checked(&bytes).is_none());
    }
}
