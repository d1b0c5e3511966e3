//! How a capture file ended: at its end, cut off in the middle, or at bytes that make no sense.
//!
//! Contract: every place is a byte offset in the decompressed file, and every message says what was
//! expected there and what was found.

use std::fmt;

/// Captured bytes that one packet may have; a length beyond that is damage, not a packet.
pub const MAX_CAPTURED: usize = 16 * 1024 * 1024;

/// How reading a capture ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndOfFile {
    /// After a whole record.
    Clean,
    /// In the middle of something.
    Cut {
        /// Where that something begins; the file ends `found` bytes later.
        offset: u64,
        /// What begins there.
        what: &'static str,
        /// Bytes it needs, as far as the bytes found tell.
        expected: u64,
        /// Bytes of it that are there.
        found: u64,
    },
    /// At a record that cannot be right. What follows it cannot be found, and was not read.
    Corrupt {
        /// Where the record begins.
        offset: u64,
        /// What is wrong with it.
        damage: Damage,
    },
}

impl fmt::Display for EndOfFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("complete"),
            Self::Cut { offset, what, expected, found } => {
                write!(f, "byte {offset}: cut off: expected {expected} bytes of {what}, ")?;
                write!(f, "found {found}")
            }
            Self::Corrupt { offset, damage } => write!(f, "byte {offset}: {damage}"),
        }
    }
}

/// What can be wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// More captured bytes than any packet has.
    PacketTooLong {
        /// Captured length that the record states.
        captured: u32,
    },
    /// A pcapng block length that is no multiple of four, too short for its type, or beyond any packet's.
    BlockLength {
        /// Length that the block states.
        length: u32,
    },
    /// The length after a pcapng block differs from the one before it.
    BlockTrailer {
        /// Length before the block.
        length: u32,
        /// Length after the block.
        trailer: u32,
    },
    /// A pcapng packet with more captured bytes than its block has room for.
    CapturedLength {
        /// Captured length that the block states.
        captured: u32,
        /// Bytes the block has for it.
        room: usize,
    },
    /// A pcapng section without a byte-order magic.
    ByteOrderMagic {
        /// The four bytes there.
        found: [u8; 4],
    },
    /// A pcapng section of another major version than 1.
    SectionVersion {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// A packet of an interface that its section has not described.
    UnknownInterface {
        /// Interface number that the packet states.
        id: u32,
        /// Number of interfaces described so far.
        described: usize,
    },
    /// More interfaces than any capturing host has.
    TooManyInterfaces {
        /// How many are read.
        limit: usize,
    },
    /// The compressed stream cannot be decompressed any further.
    Compression {
        /// `gzip` or `zstd`.
        method: &'static str,
        /// The decompressor's error.
        what: String,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PacketTooLong { captured } => {
                write!(
                    f,
                    "expected a packet of at most {MAX_CAPTURED} bytes, found one of {captured}"
                )
            }
            Self::BlockLength { length } => {
                write!(f, "expected a block length that fits its type, found {length}")
            }
            Self::BlockTrailer { length, trailer } => {
                write!(f, "expected the block length {length} again at its end, found {trailer}")
            }
            Self::CapturedLength { captured, room } => {
                write!(f, "expected at most {room} captured bytes in this block, found {captured}")
            }
            Self::ByteOrderMagic { found: [a, b, c, d] } => {
                write!(f, "expected a byte-order magic, found {a:02x} {b:02x} {c:02x} {d:02x}")
            }
            Self::SectionVersion { major, minor } => {
                write!(f, "expected a section of version 1, found {major}.{minor}")
            }
            Self::UnknownInterface { id, described } => {
                write!(f, "expected one of {described} described interfaces, found number {id}")
            }
            Self::TooManyInterfaces { limit } => {
                write!(f, "expected at most {limit} interfaces, found more")
            }
            Self::Compression { method, what } => {
                write!(f, "expected more of the {method} stream, found damage: {what}")
            }
        }
    }
}
