//! DCCP headers: ports, data offset and packet type.
//!
//! Source: RFC 4340 section 5.

use std::ops::Range;

/// Protocol number.
pub const PROTOCOL: u8 = 33;

/// Source port, big endian.
pub const SOURCE_PORT: Range<usize> = 0..2;
/// Destination port, big endian.
pub const DESTINATION_PORT: Range<usize> = 2..4;
/// Header length in 32-bit words, options included.
pub const DATA_OFFSET: Range<usize> = 4..5;
/// Reserved (3 bits), packet type (4), extended sequence numbers (1).
pub const TYPE: Range<usize> = 8..9;
/// Length of the generic header with short sequence numbers, in bytes.
pub const MIN_HEADER_LEN: usize = 12;

/// Packet types by number, as iptables' `--dccp-types` names them.
pub const TYPE_NAMES: [&str; 10] = [
    "REQUEST", "RESPONSE", "DATA", "ACK", "DATAACK", "CLOSEREQ", "CLOSE", "RESET", "SYNC",
    "SYNCACK",
];
