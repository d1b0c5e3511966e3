//! [`Packet`]: one frame's bytes with the headers found in it, and reads that tell "was never on the
//! wire" from "was on the wire, but we do not know it".
//!
//! Contract: offsets count from the first byte of the frame. A read is answered from three facts: how
//! many bytes were captured, where the packet ends on the wire ([`Headers::end`]), and which bytes a
//! target may have rewritten ([`Packet::forget`]).

use crate::headers::{Headers, Upper};
use std::ops::Range;

/// The outcome of reading bytes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read<T> {
    /// The bytes, all of them known.
    Known(T),
    /// At least one byte was on the wire but is not known: cut off by the capture length, or rewritten
    /// by a target whose outcome is not known.
    Unknown,
    /// The packet ends before the last byte asked for.
    Absent,
}

impl<T> Read<T> {
    /// The bytes if they are known.
    #[inline]
    pub fn known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown | Self::Absent => None,
        }
    }

    /// Applies `f` to known bytes.
    #[inline]
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Read<U> {
        match self {
            Self::Known(value) => Read::Known(f(value)),
            Self::Unknown => Read::Unknown,
            Self::Absent => Read::Absent,
        }
    }
}

/// Something that bytes can be read from by their offset in the frame: a whole [`Packet`], or a
/// [`Snap`] of which no header is known yet.
pub trait ReadAt {
    /// `len` bytes from `offset`.
    fn slice_at(&self, offset: usize, len: usize) -> Read<&[u8]>;

    /// `N` bytes from `offset`.
    #[inline]
    fn read_at<const N: usize>(&self, offset: usize) -> Read<[u8; N]> {
        match self.slice_at(offset, N) {
            Read::Known(bytes) => bytes.first_chunk().map_or(Read::Absent, |b| Read::Known(*b)),
            Read::Unknown => Read::Unknown,
            Read::Absent => Read::Absent,
        }
    }
}

/// The captured bytes of a frame that ends at `end` on the wire.
#[derive(Debug, Clone, Copy)]
pub struct Snap<'a> {
    bytes: &'a [u8],
    end: usize,
}

impl<'a> Snap<'a> {
    /// Bytes captured of a frame; those from `end` on (link-layer padding) are never read.
    #[must_use]
    pub fn new(bytes: &'a [u8], end: usize) -> Self {
        Self { bytes: bytes.get(..end).unwrap_or(bytes), end }
    }

    /// The same bytes of a packet that ends at `end`, not beyond where it ended before.
    #[inline]
    #[must_use]
    pub fn trim(self, end: usize) -> Self {
        Self::new(self.bytes, end.min(self.end))
    }

    /// The captured bytes.
    #[must_use]
    pub fn captured(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where the frame, or the packet in it, ends on the wire.
    #[inline]
    #[must_use]
    pub fn end(&self) -> usize {
        self.end
    }

    /// `len` bytes from `offset`, for as long as the frame's bytes live.
    #[inline]
    #[must_use]
    pub fn slice(&self, offset: usize, len: usize) -> Read<&'a [u8]> {
        // A sum that wraps is smaller than `offset`, and `get` refuses such a range.
        let stop = offset.wrapping_add(len);
        match self.bytes.get(offset..stop) {
            Some(bytes) => Read::Known(bytes),
            None if stop > self.end || stop < offset => Read::Absent,
            None => Read::Unknown,
        }
    }
}

impl ReadAt for Snap<'_> {
    #[inline]
    fn slice_at(&self, offset: usize, len: usize) -> Read<&[u8]> {
        self.slice(offset, len)
    }
}

/// How many separate byte ranges a packet can have forgotten; more are merged.
const FORGOTTEN: usize = 4;

/// What was known of a packet at some moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    bytes: Vec<u8>,
    headers: Headers,
    clear: usize,
    forgotten: [(usize, usize); FORGOTTEN],
}

impl Snapshot {
    /// The packet, as it was.
    #[must_use]
    pub fn packet(&mut self) -> Packet<'_> {
        let Self { bytes, headers, clear, forgotten } = self;
        Packet { bytes, headers: *headers, clear: *clear, forgotten: *forgotten, room: None }
    }
}

/// Which bytes of a packet are known.
#[derive(Debug, Clone, Copy)]
pub struct KnownBytes {
    clear: usize,
    forgotten: [(usize, usize); FORGOTTEN],
}

/// One frame and its headers.
#[derive(Debug)]
pub struct Packet<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) headers: Headers,
    /// Every byte before this offset is known: the one comparison of the usual read.
    pub(crate) clear: usize,
    /// Ranges that no longer hold what `bytes` says; empty ranges are unused places.
    pub(crate) forgotten: [(usize, usize); FORGOTTEN],
    /// Where it moves when its length changes.
    pub(crate) room: Option<&'a mut Vec<u8>>,
}

impl<'a> Packet<'a> {
    /// A packet whose headers were found before, by [`crate::parse()`] on the same bytes.
    #[inline]
    #[must_use]
    pub fn with_headers(bytes: &'a mut [u8], headers: Headers) -> Self {
        let clear = bytes.len().min(headers.end);
        Self { bytes, headers, clear, forgotten: [(0, 0); FORGOTTEN], room: None }
    }

    /// Has its headers found, where they are to stay: they are not copied.
    #[inline]
    pub fn find(&mut self, find: impl FnOnce(&mut Headers, &[u8])) {
        find(&mut self.headers, self.bytes);
        self.clear = self.bytes.len().min(self.headers.end);
    }

    /// A copy of the packet as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let Self { headers, clear, forgotten, .. } = *self;
        Snapshot { bytes: self.bytes.to_vec(), headers, clear, forgotten }
    }

    /// Where the headers lie and what is wrong with them.
    #[inline]
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// From here on these headers, found in the same bytes, are the packet's: those that it had.
    pub fn read_as(&mut self, headers: Headers) -> Headers {
        std::mem::replace(&mut self.headers, headers)
    }

    /// The captured bytes of the frame, link header and padding included, as rewritten so far.
    #[inline]
    #[must_use]
    pub fn frame(&self) -> &[u8] {
        self.bytes
    }

    /// Length of the packet from its network header on, in bytes: the kernel's `skb->len` at the IP
    /// hooks (IPv4 total length, IPv6 payload length + 40).
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.headers.end - self.headers.network
    }

    /// Whether the frame ends with its link header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Offset of the network header in the frame.
    #[inline]
    #[must_use]
    pub fn network_offset(&self) -> usize {
        self.headers.network
    }

    /// `N` bytes from `offset`, link-layer bytes included.
    #[inline]
    #[must_use]
    pub fn read<const N: usize>(&self, offset: usize) -> Read<[u8; N]> {
        let stop = offset.wrapping_add(N);
        if stop <= self.clear
            && let Some(bytes) = self.bytes.get(offset..stop).and_then(|b| b.first_chunk())
        {
            return Read::Known(*bytes);
        }
        self.read_late(offset, N).map(|bytes| bytes.first_chunk().copied().unwrap_or([0; N]))
    }

    /// `len` bytes from `offset`, link-layer bytes included.
    #[inline]
    #[must_use]
    pub fn read_slice(&self, offset: usize, len: usize) -> Read<&[u8]> {
        let stop = offset.wrapping_add(len);
        if stop <= self.clear
            && let Some(bytes) = self.bytes.get(offset..stop)
        {
            return Read::Known(bytes);
        }
        self.read_late(offset, len)
    }

    /// `N` bytes from `offset` in the network header.
    #[inline]
    #[must_use]
    pub fn net<const N: usize>(&self, offset: usize) -> Read<[u8; N]> {
        self.read(self.headers.network.saturating_add(offset))
    }

    /// `N` bytes from `offset` in the upper-layer header.
    #[inline]
    #[must_use]
    pub fn upper<const N: usize>(&self, upper: &Upper, offset: usize) -> Read<[u8; N]> {
        self.read(upper.offset.saturating_add(offset))
    }

    /// The sender's Ethernet address; absent where the device was not Ethernet.
    #[must_use]
    pub fn source_mac(&self) -> Read<[u8; 6]> {
        self.headers.link.source_mac.map_or(Read::Absent, |offset| {
            // Link-layer bytes lie before the packet: they are captured or unknown, never forgotten.
            self.read(offset)
        })
    }

    /// The read that crosses the end of the known bytes, or begins past it.
    #[cold]
    fn read_late(&self, offset: usize, len: usize) -> Read<&[u8]> {
        match Snap::new(self.bytes, self.headers.end).slice(offset, len) {
            Read::Known(_) if self.is_forgotten(offset..offset + len) => Read::Unknown,
            read => read,
        }
    }

    /// Marks bytes as unknown: a target that may or may not have run (DNAT, TTL) would have rewritten
    /// them. At most four ranges are kept; more are merged, which only ever forgets more.
    pub fn forget(&mut self, range: Range<usize>) {
        let mut new = (range.start, range.end.min(self.headers.end));
        if new.0 >= new.1 {
            return;
        }
        for old in &mut self.forgotten {
            if old.0 < old.1 && old.0 <= new.1 && new.0 <= old.1 {
                new = (old.0.min(new.0), old.1.max(new.1));
                *old = (0, 0);
            }
        }
        match self.forgotten.iter_mut().find(|old| old.0 == old.1) {
            Some(place) => *place = new,
            None => self.merge_nearest(new),
        }
        self.clear = self.clear.min(new.0);
    }

    /// Where the last unknown bytes in a range end, inside it or after it; `None` if all of it is known.
    #[must_use]
    pub fn unknown_until(&self, range: Range<usize>) -> Option<usize> {
        if range.end > self.bytes.len().min(self.headers.end) {
            return Some(range.end.max(self.headers.end));
        }
        let met = self.forgotten.iter().filter(|old| old.0 < range.end && range.start < old.1);
        met.map(|old| old.1).max()
    }

    /// Which bytes are known now, for [`Packet::knows`].
    #[must_use]
    pub fn known(&self) -> KnownBytes {
        KnownBytes { clear: self.clear, forgotten: self.forgotten }
    }

    /// Knows again what it knew then: nothing was written since.
    pub fn knows(&mut self, known: KnownBytes) {
        let KnownBytes { clear, forgotten } = known;
        (self.clear, self.forgotten) = (clear, forgotten);
    }

    /// Joins a range with the kept one that grows least, for want of a free place.
    fn merge_nearest(&mut self, new: (usize, usize)) {
        let joined = |old: &(usize, usize)| (old.0.min(new.0), old.1.max(new.1));
        let growth = |old: &(usize, usize)| {
            let join = joined(old);
            (join.1 - join.0) - (old.1 - old.0)
        };
        if let Some(place) = self.forgotten.iter_mut().min_by_key(|old| growth(old)) {
            *place = joined(place);
        }
    }

    pub(crate) fn is_forgotten(&self, range: Range<usize>) -> bool {
        self.forgotten.iter().any(|old| old.0 < range.end && range.start < old.1)
    }
}

impl ReadAt for Packet<'_> {
    #[inline]
    fn slice_at(&self, offset: usize, len: usize) -> Read<&[u8]> {
        self.read_slice(offset, len)
    }

    #[inline]
    fn read_at<const N: usize>(&self, offset: usize) -> Read<[u8; N]> {
        self.read(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checksums, Link, parse};

    /// 20 bytes captured of a 30-byte frame whose 26-byte packet starts at 4.
    fn packet(bytes: &mut [u8]) -> Packet<'_> {
        let mut headers = parse(Link::Null, bytes, 30, Checksums::Ignore);
        headers.end = 26;
        Packet::with_headers(bytes, headers)
    }

    fn bytes() -> [u8; 20] {
        std::array::from_fn(|i| i as u8)
    }

    #[test]
    fn absent_is_beyond_the_end_and_unknown_beyond_the_capture() {
        let mut bytes = bytes();
        let packet = packet(&mut bytes);
        assert_eq!(packet.read::<2>(18), Read::Known([18, 19]));
        assert_eq!(packet.read::<2>(19), Read::Unknown);
        assert_eq!(packet.read::<2>(24), Read::Unknown);
        assert_eq!(packet.read::<2>(25), Read::Absent);
        assert_eq!(packet.read::<2>(usize::MAX), Read::Absent);
        assert_eq!(packet.read_slice(usize::MAX, usize::MAX), Read::Absent);
        assert_eq!(packet.net::<1>(usize::MAX), Read::Absent);
    }

    #[test]
    fn padding_that_was_captured_is_absent() {
        let mut bytes = bytes();
        let mut headers = parse(Link::Null, &bytes, 20, Checksums::Ignore);
        headers.end = 10;
        let packet = Packet::with_headers(&mut bytes, headers);
        assert_eq!(packet.read::<1>(9), Read::Known([9]));
        assert_eq!(packet.read::<1>(10), Read::Absent);
    }

    #[test]
    fn forgotten_bytes_are_unknown_and_the_rest_stays_known() {
        let mut bytes = bytes();
        let mut packet = packet(&mut bytes);
        packet.forget(8..10);
        assert_eq!(packet.read::<1>(7), Read::Known([7]));
        assert_eq!(packet.read::<1>(8), Read::Unknown);
        assert_eq!(packet.read::<4>(6), Read::Unknown);
        assert_eq!(packet.read::<2>(10), Read::Known([10, 11]));
        assert_eq!(packet.read::<8>(24), Read::Absent);
    }

    #[test]
    fn a_fifth_range_is_merged_with_its_nearest() {
        let mut bytes = bytes();
        let mut packet = packet(&mut bytes);
        for start in [0, 4, 8, 12] {
            packet.forget(start..start + 1);
        }
        packet.forget(14..15);
        for unknown in [0, 4, 8, 12, 13, 14] {
            assert_eq!(packet.read::<1>(unknown), Read::Unknown, "{unknown}");
        }
        for known in [1, 5, 9, 11, 15] {
            assert_eq!(packet.read::<1>(known), Read::Known([known as u8]));
        }
    }

    #[test]
    fn where_unknown_bytes_end() {
        let mut bytes = bytes();
        let mut packet = packet(&mut bytes);
        packet.forget(4..6);
        packet.forget(8..10);
        assert_eq!(packet.unknown_until(0..4), None);
        assert_eq!(packet.unknown_until(5..6), Some(6));
        assert_eq!(packet.unknown_until(5..9), Some(10));
        assert_eq!(packet.unknown_until(10..20), None);
        assert_eq!(packet.unknown_until(10..21), Some(26), "not captured");
    }

    #[test]
    fn touching_ranges_become_one() {
        let mut bytes = bytes();
        let mut packet = packet(&mut bytes);
        for start in [0, 2, 4, 1, 3, 6, 8, 10] {
            packet.forget(start..start + 1);
        }
        assert_eq!(packet.read::<1>(5), Read::Known([5]));
        assert_eq!(packet.read::<1>(7), Read::Known([7]));
        assert_eq!(packet.read::<1>(3), Read::Unknown);
    }
}
