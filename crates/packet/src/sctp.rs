//! SCTP common headers and chunk headers.
//!
//! Source: RFC 9260 section 3.

use std::ops::Range;

/// Protocol number.
pub const PROTOCOL: u8 = 132;

/// Source port, big endian.
pub const SOURCE_PORT: Range<usize> = 0..2;
/// Destination port, big endian.
pub const DESTINATION_PORT: Range<usize> = 2..4;
/// Verification tag, big endian.
pub const VERIFICATION_TAG: Range<usize> = 4..8;
/// Length of the common header in bytes.
pub const HEADER_LEN: usize = 12;

/// Chunk type.
pub const CHUNK_TYPE: Range<usize> = 0..1;
/// Chunk flags.
pub const CHUNK_FLAGS: Range<usize> = 1..2;
/// Chunk length in bytes, its own 4-byte header included, padding not, big endian.
pub const CHUNK_LEN: Range<usize> = 2..4;
/// Length of a chunk header in bytes.
pub const CHUNK_HEADER_LEN: usize = 4;
