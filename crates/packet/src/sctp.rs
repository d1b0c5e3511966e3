//! SCTP common headers and their chunks.
//!
//! Source: RFC 9260 section 3; where a chunk walk fails: Linux `net/netfilter/xt_sctp.c`.

use crate::field::{be16, be32, byte};
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

/// An SCTP common header and the bytes after it.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
    chunks: &'a [u8],
}

impl<'a> Header<'a> {
    /// The header at the start of `bytes`, if they hold all 12 bytes of it. The rest of `bytes` are its
    /// chunks.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        let (fixed, chunks) = bytes.split_first_chunk()?;
        Some(Self { fixed, chunks })
    }

    /// Source port.
    #[must_use]
    pub fn source_port(&self) -> u16 {
        be16(self.fixed, SOURCE_PORT)
    }

    /// Destination port.
    #[must_use]
    pub fn destination_port(&self) -> u16 {
        be16(self.fixed, DESTINATION_PORT)
    }

    /// Verification tag.
    #[must_use]
    pub fn verification_tag(&self) -> u32 {
        be32(self.fixed, VERIFICATION_TAG)
    }

    /// The chunks, in order. A packet without any gives none, where the kernel's match sees a cut one.
    #[must_use]
    pub fn chunks(&self) -> Chunks<'a> {
        Chunks { rest: self.chunks }
    }
}

/// One chunk header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Chunk type.
    pub kind: u8,
    /// Chunk flags.
    pub flags: u8,
    /// Length in bytes as the header says it; the body may be cut short.
    pub len: u16,
}

/// A chunk header that is cut off or has length 0: the walk cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadChunk;

/// Iterator of [`Header::chunks`]. It ends after the last byte, or at the first [`BadChunk`].
#[derive(Debug, Clone, Copy)]
pub struct Chunks<'a> {
    rest: &'a [u8],
}

impl Iterator for Chunks<'_> {
    type Item = Result<Chunk, BadChunk>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            return None;
        }
        let len = be16(rest, CHUNK_LEN);
        if rest.len() < CHUNK_HEADER_LEN || len == 0 {
            return Some(Err(BadChunk));
        }
        self.rest = rest.get(usize::from(len).next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(Chunk { kind: byte(rest, CHUNK_TYPE), flags: byte(rest, CHUNK_FLAGS), len }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(chunks: &[u8]) -> Vec<u8> {
        [&[0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0], chunks].concat()
    }

    #[test]
    fn chunks_are_padded_to_four_bytes() {
        let bytes = packet(&[1, 0, 0, 5, 9, 0, 0, 0, 14, 1, 0, 4]);
        let header = Header::new_checked(&bytes).unwrap();
        assert_eq!((header.source_port(), header.destination_port()), (1, 2));
        assert_eq!(header.verification_tag(), 3);
        let chunks: Vec<_> = header.chunks().collect();
        let first = Chunk { kind: 1, flags: 0, len: 5 };
        assert_eq!(chunks, [Ok(first), Ok(Chunk { kind: 14, flags: 1, len: 4 })]);
    }

    #[test]
    fn a_cut_chunk_header_or_an_empty_chunk_ends_the_walk() {
        for bad in [[1, 0, 0, 0].as_slice(), &[1, 0, 0], &[1]] {
            let bytes = packet(bad);
            let chunks: Vec<_> = Header::new_checked(&bytes).unwrap().chunks().collect();
            assert_eq!(chunks, [Err(BadChunk)], "{bad:?}");
        }
        let bytes = packet(&[1, 0, 0, 200, 0]);
        assert_eq!(Header::new_checked(&bytes).unwrap().chunks().count(), 1);
        assert!(Header::new_checked(&bytes[..11]).is_none());
    }
}
