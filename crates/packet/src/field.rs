//! Big-endian header fields by their byte range.
//!
//! A field that the bytes do not hold reads as 0. Views prove the length of their fixed part before any
//! field is read, so that case is unreachable there, and the compiler drops it.

use std::ops::Range;

#[inline]
fn chunk<const N: usize>(header: &[u8], field: Range<usize>) -> [u8; N] {
    header.get(field).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
}

/// The byte at `field`.
#[inline]
pub(crate) fn byte(header: &[u8], field: Range<usize>) -> u8 {
    let [byte] = chunk(header, field);
    byte
}

/// The 16-bit field at `field`, host byte order.
#[inline]
pub(crate) fn be16(header: &[u8], field: Range<usize>) -> u16 {
    u16::from_be_bytes(chunk(header, field))
}

/// The 32-bit field at `field`, host byte order.
#[inline]
pub(crate) fn be32(header: &[u8], field: Range<usize>) -> u32 {
    u32::from_be_bytes(chunk(header, field))
}

/// The bytes of an address, or of any other field with no number in it.
#[inline]
pub(crate) fn array<const N: usize>(header: &[u8], field: Range<usize>) -> [u8; N] {
    chunk(header, field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_big_endian_and_short_headers_read_as_zero() {
        let header = [1, 2, 3, 4, 5];
        assert_eq!(byte(&header, 4..5), 5);
        assert_eq!(be16(&header, 1..3), 0x0203);
        assert_eq!(be32(&header, 1..5), 0x0203_0405);
        assert_eq!(be32(&header, 2..6), 0);
    }
}
