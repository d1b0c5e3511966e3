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

    /// Returns the bytes as a packet that ends at `end`, but not beyond its previous end.
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
const FORGOTTEN: usize = 8;

/// Where a forgotten range ends that goes on beyond the end of the packet: where that is, is not known.
const OPEN: u32 = u32::MAX;

/// The bytes of a packet that somebody described and did not give. What there is of it is well formed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gaps {
    /// Ranges of the frame whose bytes are not known.
    pub ranges: Vec<Range<usize>>,
    /// Where the payload begins. Tracking takes what lies before it for what it is in the frame, given or not.
    pub payload: usize,
    /// Whether unknown bytes may follow the frame's bytes.
    pub open: bool,
}

/// What was known of a packet at some moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    bytes: Vec<u8>,
    headers: Headers,
    clear: usize,
    forgotten: [(u32, u32); FORGOTTEN],
    described: u32,
}

impl Snapshot {
    /// The packet, as it was.
    #[must_use]
    pub fn packet(&mut self) -> Packet<'_> {
        let Self { bytes, headers, clear, forgotten, described } = self;
        let (headers, clear, forgotten, described) = (*headers, *clear, *forgotten, *described);
        Packet { bytes, headers, clear, forgotten, described, room: None }
    }
}

/// Which bytes of a packet are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownBytes {
    clear: usize,
    forgotten: [(u32, u32); FORGOTTEN],
}

/// One frame and its headers.
#[derive(Debug)]
pub struct Packet<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) headers: Headers,
    /// Every byte before this offset is known: the one comparison of the usual read.
    pub(crate) clear: usize,
    /// Ranges that no longer hold what `bytes` says; empty ranges are unused places.
    pub(crate) forgotten: [(u32, u32); FORGOTTEN],
    /// Where the payload begins of a packet that somebody described; 0 of any other.
    described: u32,
    /// Where it moves when its length changes.
    pub(crate) room: Option<&'a mut Vec<u8>>,
}

impl<'a> Packet<'a> {
    /// A packet whose headers were found before, by [`crate::parse()`] on the same bytes.
    #[inline]
    #[must_use]
    pub fn with_headers(bytes: &'a mut [u8], headers: Headers) -> Self {
        let clear = bytes.len().min(headers.end);
        Self { bytes, headers, clear, forgotten: [(0, 0); FORGOTTEN], described: 0, room: None }
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
        let Self { headers, clear, forgotten, described, .. } = *self;
        Snapshot { bytes: self.bytes.to_vec(), headers, clear, forgotten, described }
    }

    /// Where the headers lie and what is wrong with them.
    #[inline]
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Replaces the packet's headers by others, found in the same bytes; returns the old ones.
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
        self.headers.link.source_mac.map_or(Read::Absent, |offset| self.read(offset))
    }

    /// The read that crosses the end of the known bytes, or begins past it.
    #[cold]
    fn read_late(&self, offset: usize, len: usize) -> Read<&[u8]> {
        match Snap::new(self.bytes, self.headers.end).slice(offset, len) {
            Read::Known(_) if len > 0 && self.is_forgotten(offset..offset + len) => Read::Unknown,
            Read::Absent if self.is_open() && offset.checked_add(len).is_some() => Read::Unknown,
            read => read,
        }
    }

    /// Marks bytes as unknown: a target that may or may not have run (DNAT, TTL) would have rewritten them, or nothing
    /// gave them (a described packet, a gap between fragments). At most eight ranges are kept; more are merged, which only ever forgets more.
    pub fn forget(&mut self, range: Range<usize>) {
        self.mark(range.start, range.end.min(self.headers.end) as u32);
    }

    /// Marks the bytes that a packet's description does not give as unknown.
    pub fn describe(&mut self, gaps: &Gaps) {
        self.described = gaps.payload as u32;
        gaps.ranges.iter().for_each(|range| self.forget(range.clone()));
        if gaps.open {
            self.open();
        }
    }

    /// Marks the length as unknown: more bytes may follow the known ones.
    pub fn open(&mut self) {
        self.mark(self.headers.end, OPEN);
    }

    /// Where its payload begins, if somebody described the packet: its headers are well formed, though not all of their
    /// bytes are known.
    #[inline]
    #[must_use]
    pub fn described(&self) -> Option<usize> {
        (self.described != 0).then_some(self.described as usize)
    }

    /// Takes the headers of a described packet for what they are in the frame, as tracking does: it is part of what its
    /// words say, whichever numbers it would have had. What was known before, for [`Packet::knows`]; `None`, and nothing
    /// changes, for any other packet.
    #[inline]
    pub fn assume(&mut self) -> Option<KnownBytes> {
        let payload = self.described()?;
        let known = self.known();
        self.know_until(payload);
        Some(known)
    }

    /// Whether more bytes may follow, so that its length is not known.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.forgotten.iter().any(|old| old.1 == OPEN)
    }

    /// Knows every byte before `end`, as it is in the frame.
    fn know_until(&mut self, end: usize) {
        let end = end as u32;
        for old in &mut self.forgotten {
            *old = if old.1 <= end { (0, 0) } else { (old.0.max(end), old.1) };
        }
        let unknown = self.forgotten.iter().filter(|old| old.0 < old.1).map(|old| old.0 as usize);
        self.clear = unknown.fold(self.bytes.len().min(self.headers.end), usize::min);
    }

    fn mark(&mut self, start: usize, end: u32) {
        let Ok(start) = u32::try_from(start) else { return };
        let mut new = (start, end);
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
        self.clear = self.clear.min(new.0 as usize);
    }

    /// Where the last unknown bytes in a range end, inside it or after it; `None` if all of it is known.
    #[must_use]
    pub fn unknown_until(&self, range: Range<usize>) -> Option<usize> {
        if range.end > self.bytes.len().min(self.headers.end) {
            return Some(range.end.max(self.headers.end));
        }
        self.met(&range).map(|old| old.1 as usize).max()
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

    /// Joins a range with the kept range that grows least, for want of a free place.
    fn merge_nearest(&mut self, new: (u32, u32)) {
        let joined = |old: &(u32, u32)| (old.0.min(new.0), old.1.max(new.1));
        let growth = |old: &(u32, u32)| {
            let join = joined(old);
            (join.1 - join.0) - (old.1 - old.0)
        };
        if let Some(place) = self.forgotten.iter_mut().min_by_key(|old| growth(old)) {
            *place = joined(place);
        }
    }

    pub(crate) fn is_forgotten(&self, range: Range<usize>) -> bool {
        self.met(&range).next().is_some()
    }

    /// The forgotten ranges that a range meets.
    fn met(&self, range: &Range<usize>) -> impl Iterator<Item = &(u32, u32)> {
        let (start, end) = (range.start, range.end);
        self.forgotten.iter().filter(move |old| (old.0 as usize) < end && start < old.1 as usize)
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
    fn a_ninth_range_is_merged_with_its_nearest() {
        let mut bytes = bytes();
        let mut packet = packet(&mut bytes);
        for start in [0, 2, 4, 6, 8, 10, 12, 15] {
            packet.forget(start..start + 1);
        }
        packet.forget(17..18);
        for unknown in [0, 2, 4, 6, 8, 10, 12, 15, 16, 17] {
            assert_eq!(packet.read::<1>(unknown), Read::Unknown, "{unknown}");
        }
        for known in [1, 5, 9, 11, 13, 14, 18] {
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
    fn bytes_that_were_not_given_are_unknown_and_may_go_on() {
        let mut bytes = bytes();
        let mut headers = parse(Link::Null, &bytes, 20, Checksums::Ignore);
        headers.end = 20;
        let mut packet = Packet::with_headers(&mut bytes, headers);
        let before = packet.known();
        packet.describe(&Gaps { ranges: vec![8..10, 12..16], payload: 18, open: true });
        assert_eq!((packet.described(), packet.is_open()), (Some(18), true));
        assert_eq!(packet.read::<2>(10), Read::Known([10, 11]));
        assert_eq!(packet.read_slice(13, 0), Read::Known(&[][..]), "no byte at all");
        for (unknown, len) in [(8, 1), (15, 2), (19, 2), (20, 1), (1000, 4)] {
            assert_eq!(packet.read_slice(unknown, len), Read::Unknown, "{unknown}");
        }
        assert_eq!(packet.unknown_until(16..18), None);
        let marks = packet.assume().unwrap();
        assert_eq!(packet.read::<2>(8), Read::Known([8, 9]));
        assert_eq!(packet.read::<1>(20), Read::Unknown);
        packet.knows(marks);
        assert_eq!(packet.read::<1>(8), Read::Unknown);
        packet.knows(before);
        assert!(!packet.is_open());
        assert_eq!(packet.read::<1>(20), Read::Absent);
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
