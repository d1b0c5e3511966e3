//! The fixed IPv6 header.
//!
//! Source: RFC 8200. Extension headers are in [`crate::ipv6_ext`].

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
