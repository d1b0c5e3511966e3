//! The header that ICMP and ICMPv6 messages share; [`crate::icmpv4`] and [`crate::icmpv6`] name their types.
//!
//! Source: RFC 792, RFC 4443.

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
