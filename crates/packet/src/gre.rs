//! GRE headers: flags, version, the type of what they carry, and the key.
//!
//! Source: RFC 2784, RFC 2890 (key and sequence), RFC 2637 (version 1, the PPTP tunnel).

use crate::field::{be16, be32};
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

/// A GRE header.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; MIN_HEADER_LEN],
    rest: &'a [u8],
}

impl<'a> Header<'a> {
    /// The header at the start of `bytes`, if they hold the 4 bytes of its fixed part.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = bytes.split_first_chunk()?;
        Some(Self { fixed, rest })
    }

    /// Version: 0, or 1 for PPTP.
    #[must_use]
    pub fn version(&self) -> u8 {
        (be16(self.fixed, FLAGS_VERSION) & 0x0007) as u8
    }

    /// EtherType of the payload (0x880b, PPP, in version 1).
    #[must_use]
    pub fn ethertype(&self) -> u16 {
        be16(self.fixed, TYPE)
    }

    /// The key, if the header has one and the bytes hold it. In version 1 its high half is the payload
    /// length and its low half the call id.
    #[must_use]
    pub fn key(&self) -> Option<u32> {
        let flags = be16(self.fixed, FLAGS_VERSION);
        let at = if flags & HAS_CHECKSUM != 0 { 4 } else { 0 };
        (flags & HAS_KEY != 0 && self.rest.len() >= at + 4).then(|| be32(self.rest, at..at + 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_lies_after_the_checksum_if_there_is_one() {
        let plain = Header::new_checked(&[0x20, 0x01, 0x88, 0x0b, 0, 0, 0, 7]).unwrap();
        assert_eq!((plain.version(), plain.ethertype(), plain.key()), (1, 0x880b, Some(7)));
        let summed = [0xa0, 0x00, 0x08, 0x00, 9, 9, 9, 9, 0, 0, 0, 7];
        assert_eq!(Header::new_checked(&summed).unwrap().key(), Some(7));
        assert_eq!(Header::new_checked(&summed[..11]).unwrap().key(), None);
        assert_eq!(Header::new_checked(&[0, 0, 8, 0, 0, 0, 0, 7]).unwrap().key(), None);
        assert!(Header::new_checked(&[0; 3]).is_none());
    }
}
