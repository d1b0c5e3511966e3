//! GRE headers: flags and version, and the type of what they carry.
//!
//! Source: RFC 2784, RFC 2890 (key and sequence), RFC 2637 (version 1, the PPTP tunnel).

use std::ops::Range;

/// Protocol number.
pub const PROTOCOL: u8 = 47;

/// Flags and version (low 3 bits), big endian.
pub const FLAGS_VERSION: Range<usize> = 0..2;
/// EtherType of the payload, big endian.
pub const TYPE: Range<usize> = 2..4;
/// Length of the header without its optional fields, in bytes.
pub const MIN_HEADER_LEN: usize = 4;

/// Bit of [`FLAGS_VERSION`]: a checksum follows.
pub const HAS_CHECKSUM: u16 = 0x8000;
/// Bit of [`FLAGS_VERSION`]: a key follows.
pub const HAS_KEY: u16 = 0x2000;
