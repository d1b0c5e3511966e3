//! [`Burst`]: its frames, which are lent, appended and removed.

use std::borrow::Borrow;
use std::mem;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use super::chunks::{Chunk, Chunks};
use crate::frame::{Frame, FrameMeta, FrameMut, LiveMeta};
use crate::memory::{FrameBuf, Memory, Region, Taken};

/// Where the bytes of a frame are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the burst's buffer.
    Buffer,
    /// In this one of its chunks.
    Chunk(u32),
}

/// One frame: where its bytes stand, counted from the start of its buffer or chunk, and what is known about it.
#[derive(Clone, Copy, Debug)]
struct Record {
    start: usize,
    length: usize,
    place: Place,
    meta: FrameMeta,
}

impl Record {
    #[inline]
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.length
    }
}

/// Frames on their way between ports, and the bytes that they are.
#[derive(Debug, Default)]
pub struct Burst {
    /// Bytes beyond the last frame may be in use by the port that fills the burst.
    buffer: Vec<u8>,
    records: Vec<Record>,
    /// In the order of their frames.
    chunks: Chunks,
}

impl Burst {
    /// Buffer size of [`Burst::new`], in bytes.
    pub const DEFAULT_BYTES: usize = 256 * 1024;

    /// An empty burst with the usual buffer.
    pub fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_BYTES)
    }

    /// An empty burst whose buffer holds `bytes`: none, where only frames with their own memory come. A port may grow
    /// it, for one frame larger than that.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { buffer: vec![0; bytes], records: Vec::new(), chunks: Chunks::default() }
    }

    /// Number of frames.
    #[inline]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no frame.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Size of the buffer in bytes.
    pub fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// Drops the frames and keeps the buffer.
    #[inline]
    pub fn clear(&mut self) {
        self.records.clear();
        self.chunks.give_back(0);
    }

    /// The frames in order of arrival.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<'_>> {
        self.records.iter().map(|record| lend(&self.buffer, &self.chunks, record))
    }

    /// The bytes of all frames together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.iter().map(|frame| frame.bytes.len() as u64).sum()
    }

    /// The frames of a range, counting from 0, as far as there are any.
    #[inline]
    pub fn range(&self, range: Range<usize>) -> impl Iterator<Item = Frame<'_>> + Clone {
        let Self { buffer, records, chunks } = self;
        let end = range.end.min(records.len());
        let records = records.get(range.start.min(end)..end).unwrap_or_default();
        records.iter().map(|record| lend(buffer, chunks, record))
    }

    /// The frames in order of arrival, to be rewritten in place.
    #[inline]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = FrameMut<'_>> {
        self.range_mut(0..self.records.len())
    }

    /// The frames of [`Burst::range`], to be rewritten in place.
    #[inline]
    pub fn range_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = FrameMut<'_>> {
        let end = range.end.min(self.records.len());
        let records = self.records.get(range.start.min(end)..end).unwrap_or_default();
        let mut rest = Rest {
            buffer: &mut self.buffer,
            consumed: 0,
            chunks: self.chunks.iter_mut(),
            passed: 0,
        };
        records.iter().map_while(move |record| {
            Some(FrameMut { bytes: rest.split_off(record)?, meta: &record.meta })
        })
    }

    /// Frame `index` of the burst, counting from 0.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Frame<'_>> {
        let record = self.records.get(index)?;
        Some(lend(&self.buffer, &self.chunks, record))
    }

    /// Frame `index` of the burst, counting from 0, to be rewritten in place.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<FrameMut<'_>> {
        let record = self.records.get(index)?;
        let bytes = match record.place {
            Place::Buffer => &mut *self.buffer,
            Place::Chunk(at) => self.chunks.get_mut(at as usize)?.bytes_mut(),
        };
        Some(FrameMut { bytes: bytes.get_mut(record.range())?, meta: &record.meta })
    }

    /// What its port knows of frame `index` that has its memory with it; of others none knows more than their meta.
    #[inline]
    pub fn live(&self, index: usize) -> Option<&LiveMeta> {
        match self.records.get(index)?.place {
            Place::Buffer => None,
            Place::Chunk(at) => self.chunks.get(at as usize).map(|chunk| &chunk.live),
        }
    }

    /// The live metadata of [`Burst::live`], to be written.
    #[inline]
    pub fn live_mut(&mut self, index: usize) -> Option<&mut LiveMeta> {
        match self.records.get(index)?.place {
            Place::Buffer => None,
            Place::Chunk(at) => self.chunks.live_mut(at as usize),
        }
    }

    /// Whether all frames are certainly [plain](LiveMeta::is_plain); a frame without memory of its own is.
    #[inline]
    pub fn are_plain(&self) -> bool {
        self.chunks.are_plain()
    }

    /// What is known about each frame, in order of arrival.
    #[inline]
    pub fn metas(&self) -> impl ExactSizeIterator<Item = &FrameMeta> + Clone {
        self.records.iter().map(|record| &record.meta)
    }

    /// The metadata of [`Burst::metas`], to be written.
    #[inline]
    pub fn metas_mut(&mut self) -> impl ExactSizeIterator<Item = &mut FrameMeta> {
        self.records.iter_mut().map(|record| &mut record.meta)
    }

    /// Keeps only the frames that `keep` accepts; bytes do not move.
    pub fn retain(&mut self, mut keep: impl FnMut(Frame<'_>) -> bool) {
        let Self { buffer, records, chunks } = self;
        let mut kept = 0;
        records.retain_mut(|record| {
            if !keep(lend(buffer, chunks, record)) {
                return false;
            }
            if let Place::Chunk(at) = &mut record.place {
                // Up to the first frame that goes, all stand where they did.
                if *at as usize != kept {
                    chunks.swap(kept, *at as usize);
                    *at = kept as u32;
                }
                kept += 1;
            }
            true
        });
        chunks.give_back(kept);
    }

    /// Takes the first frames out of the burst, `count` or as many as there are, with their memory where they have
    /// any. What is not taken out of the iterator is dropped with it.
    #[inline]
    pub fn drain(&mut self, count: usize) -> impl Iterator<Item = Taken<'_>> {
        let Self { buffer, records, chunks } = self;
        let buffer: &[u8] = buffer;
        let count = count.min(records.len());
        let is_held = |record: &&Record| record.place != Place::Buffer;
        let held = records[..count].iter().filter(is_held).count();
        for record in &mut records[count..] {
            if let Place::Chunk(at) = &mut record.place {
                *at -= held as u32;
            }
        }
        let mut held = chunks.drain(held);
        records.drain(..count).filter_map(move |Record { start, length, place, meta }| {
            Some(match place {
                Place::Buffer => Taken::Lent { bytes: &buffer[start..start + length], meta },
                Place::Chunk(_) => {
                    Taken::Moved(FrameBuf { chunk: held.next()?, start, length, meta })
                }
            })
        })
    }

    /// Appends a frame that left another burst: with its memory if it has any, else a copy.
    #[inline]
    pub fn append(&mut self, taken: Taken<'_>) {
        match taken {
            Taken::Moved(frame) => self.push_frame(frame),
            Taken::Lent { bytes, meta } => self.push(bytes, meta),
        }
    }

    /// Appends a frame with its memory.
    #[inline]
    pub fn push_frame<R: Borrow<Arc<dyn Region>>>(&mut self, frame: FrameBuf<R>) {
        let FrameBuf { mut chunk, start, length, meta } = frame;
        let place = Place::Chunk(self.chunks.len() as u32);
        let (memory, live) = (chunk.take(), chunk.live);
        self.chunks.push(memory, live, chunk.region.borrow(), Arc::clone);
        self.records.push(Record { start, length, place, meta });
    }

    /// Appends a frame that lies in memory of a region, from `start` on: for ports that receive many of one region.
    #[inline]
    pub fn push_memory<R: Region + 'static>(
        &mut self,
        memory: Memory,
        region: &Arc<R>,
        (start, length): (usize, usize),
        (meta, live): (FrameMeta, LiveMeta),
    ) {
        debug_assert!(start + length <= memory.bytes().len());
        let place = Place::Chunk(self.chunks.len() as u32);
        self.chunks.push(memory, live, region, |region| Arc::<R>::clone(region));
        self.records.push(Record { start, length, place, meta });
    }

    /// Appends a copy of a frame, growing the buffer if it must: for ports without memory of their own.
    pub fn push(&mut self, bytes: &[u8], meta: FrameMeta) {
        let start = self.buffered_end(self.records.len());
        let end = start + bytes.len();
        self.reserve(end);
        self.buffer[start..end].copy_from_slice(bytes);
        self.push_in_place(start, bytes.len(), meta);
    }

    /// Bytes before frame `index` that it can grow into: of its chunk, or up to the frame before it in the buffer.
    pub fn headroom(&self, index: usize) -> usize {
        self.records.get(index).map_or(0, |record| match record.place {
            Place::Buffer => record.start - self.buffered_end(index),
            Place::Chunk(_) => record.start,
        })
    }

    /// Bytes after frame `index` that it can grow into: of its chunk, or up to the frame after it in the buffer.
    pub fn tailroom(&self, index: usize) -> usize {
        self.records.get(index).map_or(0, |record| match record.place {
            Place::Buffer => {
                let mut after = self.records[index + 1..].iter();
                let next = after.find(|next| next.place == Place::Buffer);
                next.map_or(self.buffer.len(), |next| next.start) - record.range().end
            }
            Place::Chunk(at) => self.chunks.bytes(at as usize).len() - record.range().end,
        })
    }

    /// Makes frame `index` begin `by` bytes earlier, here and on the wire. The new bytes hold whatever stood there;
    /// `None` if there is no such frame, or no room before it, and nothing has changed.
    pub fn grow_front(&mut self, index: usize, by: usize) -> Option<FrameMut<'_>> {
        if by > self.headroom(index) {
            return None;
        }
        let record = self.records.get_mut(index)?;
        record.start -= by;
        self.grown(index, by)
    }

    /// Makes frame `index` end `by` bytes later. As [`Burst::grow_front`].
    pub fn grow_back(&mut self, index: usize, by: usize) -> Option<FrameMut<'_>> {
        if by > self.tailroom(index) {
            return None;
        }
        self.grown(index, by)
    }

    /// Takes the first `by` bytes off frame `index`, or all that it has, here and on the wire.
    pub fn trim_front(&mut self, index: usize, by: usize) {
        if let Some(record) = self.records.get_mut(index) {
            let by = by.min(record.length);
            record.start += by;
            record.shorten(by);
        }
    }

    /// Takes the last `by` bytes off frame `index`. As [`Burst::trim_front`].
    pub fn trim_back(&mut self, index: usize, by: usize) {
        if let Some(record) = self.records.get_mut(index) {
            record.shorten(by.min(record.length));
        }
    }

    fn grown(&mut self, index: usize, by: usize) -> Option<FrameMut<'_>> {
        let record = self.records.get_mut(index)?;
        record.length += by;
        record.meta.wire_length = record.meta.wire_length.saturating_add(by as u32);
        self.get_mut(index)
    }

    /// Takes the memory of frame `index` for the region that it belongs to, and the range of the frame in it: for a port
    /// that transmits from its own region. `None` for memory of any other. What is left is a frame without
    /// bytes, to be [drained](Burst::drain).
    #[inline]
    pub fn reclaim<R: Region>(
        &mut self,
        index: usize,
        region: &Arc<R>,
    ) -> Option<(Memory, Range<usize>)> {
        let record = self.records.get_mut(index)?;
        let Place::Chunk(at) = record.place else { return None };
        let (memory, range) = (self.chunks.reclaim(at as usize, region)?, record.range());
        (record.start, record.length) = (0, 0);
        Some((memory, range))
    }

    /// Whether frame `index` has memory of this region.
    pub(crate) fn is_of<R: Region>(&self, index: usize, region: &Arc<R>) -> bool {
        self.records.get(index).is_some_and(|record| match record.place {
            Place::Buffer => false,
            Place::Chunk(at) => self.chunks.is_of(at as usize, region),
        })
    }

    /// How many of the first `count` frames lie in the buffer.
    pub(crate) fn buffered(&self, count: usize) -> usize {
        let first = self.records.iter().take(count);
        first.filter(|record| record.place == Place::Buffer).count()
    }

    /// Number of frames before the buffered frame that `buffered` others in the buffer precede.
    pub(crate) fn up_to_buffered(&self, buffered: usize) -> usize {
        let mut places = self.records.iter().enumerate();
        let mut in_buffer = places.by_ref().filter(|(_, record)| record.place == Place::Buffer);
        in_buffer.nth(buffered).map_or(self.records.len(), |(at, _)| at)
    }

    /// Where the last frame in the buffer before `index` ends.
    fn buffered_end(&self, index: usize) -> usize {
        let mut before = self.records[..index].iter().rev();
        before.find(|record| record.place == Place::Buffer).map_or(0, |last| last.range().end)
    }

    /// Declares `length` bytes of the buffer from `start` to be a frame. They must follow the last frame.
    #[inline]
    pub(crate) fn push_in_place(&mut self, start: usize, length: usize, meta: FrameMeta) {
        debug_assert!(self.buffered_end(self.records.len()) <= start);
        debug_assert!(start + length <= self.buffer.len());
        self.records.push(Record { start, length, place: Place::Buffer, meta });
    }

    /// Grows the buffer to at least `bytes`, keeping what it holds.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
    }

    /// The whole buffer, for a port to fill.
    #[inline]
    pub(crate) fn buffer_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// The whole buffer, for a port to parse.
    #[inline]
    pub(crate) fn buffer(&self) -> &[u8] {
        &self.buffer
    }
}

impl Record {
    fn shorten(&mut self, by: usize) {
        self.length -= by;
        self.meta.wire_length = self.meta.wire_length.saturating_sub(by as u32);
    }
}

/// A frame, to read.
#[inline]
fn lend<'b>(buffer: &'b [u8], chunks: &'b Chunks, record: &'b Record) -> Frame<'b> {
    let bytes = match record.place {
        Place::Buffer => buffer,
        Place::Chunk(at) => chunks.bytes(at as usize),
    };
    Frame { bytes: &bytes[record.range()], meta: &record.meta }
}

/// Buffer and chunks from some frame on: each is lent to be rewritten once.
struct Rest<'b> {
    buffer: &'b mut [u8],
    /// Bytes of the buffer before that.
    consumed: usize,
    chunks: slice::IterMut<'b, Chunk>,
    /// Chunks before those.
    passed: usize,
}

impl<'b> Rest<'b> {
    /// The bytes of a frame that comes after those lent before.
    #[inline]
    fn split_off(&mut self, record: &Record) -> Option<&'b mut [u8]> {
        let Place::Chunk(at) = record.place else { return self.split_buffer(record) };
        let skipped = (at as usize).checked_sub(self.passed)?;
        self.passed = at as usize + 1;
        self.chunks.nth(skipped)?.bytes_mut().get_mut(record.range())
    }

    #[inline]
    fn split_buffer(&mut self, record: &Record) -> Option<&'b mut [u8]> {
        let skipped = record.start.checked_sub(self.consumed)?;
        let (_, from_frame) = mem::take(&mut self.buffer).split_at_mut_checked(skipped)?;
        let (bytes, after) = from_frame.split_at_mut_checked(record.length)?;
        self.buffer = after;
        self.consumed = record.range().end;
        Some(bytes)
    }
}
