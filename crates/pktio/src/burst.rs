//! A burst: one buffer of bytes and the frames found in it.
//!
//! Contract: a port fills a burst, everyone else borrows frames from it. A frame is a range of the buffer,
//! so receiving copies no frame and allocates nothing once buffer and record list have reached their
//! size. Frames stand in the buffer in ascending order without overlap: that is what lets
//! [`Burst::iter_mut`] lend them all at once. A burst belongs to one thread at a time and may move between
//! threads; it holds nothing of the port that filled it.

use std::mem;
use std::ops::Range;

use crate::frame::{Frame, FrameMeta, FrameMut};

/// One frame: where its bytes stand in the buffer, and what is known about it.
#[derive(Clone, Copy, Debug)]
struct Record {
    start: usize,
    length: usize,
    meta: FrameMeta,
}

/// Frames on their way between ports, and the bytes that they are.
#[derive(Debug, Default)]
pub struct Burst {
    /// Bytes beyond the last frame may be in use by the port that fills the burst.
    buffer: Vec<u8>,
    records: Vec<Record>,
}

impl Burst {
    /// Buffer size of [`Burst::new`], in bytes.
    pub const DEFAULT_BYTES: usize = 256 * 1024;

    /// An empty burst with the usual buffer.
    pub fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_BYTES)
    }

    /// An empty burst whose buffer holds `bytes`. A port may grow it, for one frame larger than that.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { buffer: vec![0; bytes], records: Vec::new() }
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Size of the buffer in bytes.
    pub fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// Forgets the frames and keeps the memory.
    pub fn clear(&mut self) {
        self.records.clear();
    }

    /// The frames in order of arrival.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<'_>> {
        self.records.iter().map(|record| Frame {
            bytes: &self.buffer[record.start..record.start + record.length],
            meta: &record.meta,
        })
    }

    /// The frames in order of arrival, to be rewritten in place.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = FrameMut<'_>> {
        self.range_mut(0..self.records.len())
    }

    /// The frames of a range, counting from 0, as far as there are any.
    pub fn range_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = FrameMut<'_>> {
        let mut rest: &mut [u8] = &mut self.buffer;
        let mut consumed = 0;
        let end = range.end.min(self.records.len());
        let records = self.records.get(range.start.min(end)..end).unwrap_or_default();
        records.iter().map_while(move |record| {
            let (_, from_frame) =
                mem::take(&mut rest).split_at_mut_checked(record.start - consumed)?;
            let (bytes, after) = from_frame.split_at_mut_checked(record.length)?;
            rest = after;
            consumed = record.start + record.length;
            Some(FrameMut { bytes, meta: &record.meta })
        })
    }

    /// Frame `index` of the burst, counting from 0.
    pub fn get(&self, index: usize) -> Option<Frame<'_>> {
        let record = self.records.get(index)?;
        let bytes = self.buffer.get(record.start..record.start + record.length)?;
        Some(Frame { bytes, meta: &record.meta })
    }

    /// Frame `index` of the burst, counting from 0, to be rewritten in place.
    pub fn get_mut(&mut self, index: usize) -> Option<FrameMut<'_>> {
        let record = self.records.get(index)?;
        let bytes = self.buffer.get_mut(record.start..record.start + record.length)?;
        Some(FrameMut { bytes, meta: &record.meta })
    }

    /// What is known about each frame, in order of arrival.
    pub fn metas_mut(&mut self) -> impl ExactSizeIterator<Item = &mut FrameMeta> {
        self.records.iter_mut().map(|record| &mut record.meta)
    }

    /// Keeps only the frames that `keep` accepts; bytes do not move.
    pub fn retain(&mut self, mut keep: impl FnMut(Frame<'_>) -> bool) {
        let buffer = &self.buffer;
        self.records.retain(|record| {
            let bytes = &buffer[record.start..record.start + record.length];
            keep(Frame { bytes, meta: &record.meta })
        });
    }

    /// Appends a copy of a frame, growing the buffer if it must: for ports without memory of their own.
    pub fn push(&mut self, bytes: &[u8], meta: FrameMeta) {
        let start = self.records.last().map_or(0, |last| last.start + last.length);
        let end = start + bytes.len();
        self.reserve(end);
        self.buffer[start..end].copy_from_slice(bytes);
        self.push_in_place(start, bytes.len(), meta);
    }

    /// Declares `length` bytes of the buffer from `start` to be a frame. They must follow the last frame.
    pub(crate) fn push_in_place(&mut self, start: usize, length: usize, meta: FrameMeta) {
        debug_assert!(self.records.last().is_none_or(|last| last.start + last.length <= start));
        debug_assert!(start + length <= self.buffer.len());
        self.records.push(Record { start, length, meta });
    }

    /// Grows the buffer to at least `bytes`, keeping what it holds.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
    }

    /// The whole buffer, for a port to fill.
    pub(crate) fn buffer_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// The whole buffer, for a port to parse.
    pub(crate) fn buffer(&self) -> &[u8] {
        &self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: u64) -> FrameMeta {
        FrameMeta { number, ..FrameMeta::default() }
    }

    fn burst_of(frames: &[&[u8]]) -> Burst {
        let mut burst = Burst::with_capacity(4);
        for (frame, number) in frames.iter().zip(1..) {
            burst.push(frame, numbered(number));
        }
        burst
    }

    #[test]
    fn frames_are_lent_in_order_and_rewritten_in_place() {
        let mut burst = burst_of(&[b"one", b"", b"three"]);
        for frame in burst.iter_mut() {
            frame.bytes.make_ascii_uppercase();
        }
        let frames: Vec<_> = burst.iter().map(|f| (f.meta.number, f.bytes)).collect();
        assert_eq!(frames, [(1, &b"ONE"[..]), (2, b""), (3, b"THREE")]);
        assert_eq!(burst.get_mut(2).map(|f| f.meta.number), Some(3));
        assert!(burst.get_mut(3).is_none());
    }

    #[test]
    fn a_range_of_frames_is_lent() {
        let mut burst = burst_of(&[b"one", b"", b"three", b"four"]);
        let mut numbers = |range| burst.range_mut(range).map(|f| f.meta.number).collect::<Vec<_>>();
        assert_eq!(numbers(1..3), [2, 3]);
        assert_eq!(numbers(3..9), [4]);
        assert_eq!(numbers(7..9), [0; 0]);
    }

    #[test]
    fn retained_frames_keep_their_bytes() {
        let mut burst = burst_of(&[b"one", b"two", b"three"]);
        burst.retain(|frame| frame.meta.number != 2);
        let lent: Vec<_> = burst.iter_mut().map(|f| f.bytes.to_vec()).collect();
        assert_eq!(lent, [b"one".to_vec(), b"three".to_vec()]);
    }

    #[test]
    fn a_cleared_burst_keeps_its_memory() {
        let mut burst = burst_of(&[b"a long enough frame"]);
        let capacity = burst.capacity();
        burst.clear();
        assert!(burst.is_empty());
        assert_eq!(burst.capacity(), capacity);
    }
}
