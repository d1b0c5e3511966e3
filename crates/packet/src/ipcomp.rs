//! IP payload compression headers.
//!
//! Source: RFC 3173.

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
