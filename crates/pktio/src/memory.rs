//! [`FrameBuf`]: one frame in memory that belongs to a [`Region`], and goes back to it exactly once.
//!
//! Contract: a chunk of memory has one owner at a time, by type: nothing here is `Clone`, moving a frame moves its
//! memory, and dropping it (alone, or with a burst) hands the chunk to the region that it came from. A chunk keeps
//! its region alive, so memory outlives every frame in it. A frame begins some bytes into its chunk and ends before
//! the chunk does: it grows into that room, and is never moved to grow.
//!
//! Each back end is a region, and a tag says to it which chunk comes back:
//!
//! | memory | what a chunk is | given back |
//! |---|---|---|
//! | [`Pool`](crate::Pool) | a box of its own | to the pool's free list |
//! | UMEM (AF_XDP) | a slice of the mapping, tag: its address | to the fill ring, or reclaimed to transmit it |
//! | mbuf (DPDK) | its data room, tag: the mbuf | freed in bulk, or reclaimed to transmit it |
//! | block (TPACKET_V3) | a frame's slice; the region is the block | to the kernel, with the block's last frame |
//!
//! A port reclaims a frame of its own region ([`Burst::reclaim`](crate::Burst::reclaim), [`FrameBuf::reclaim`]): it
//! goes from one ring to the other.
//!
//! A region gives out memory that it maps itself as `&'static mut [u8]` ([`Memory::lent`]): it vouches for that
//! lifetime in its own `unsafe`, and may, because only the region that a chunk belongs to gets it out of its frame. So
//! this module needs none. A frame outside a burst counts its region; the frames of a burst count it together, and a
//! frame that has just left its burst borrows that count. Chunks go back in bulk, with one call (and one lock of a
//! pool) for a burst.

use std::borrow::Borrow;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::{iter, mem, ptr};

use crate::frame::{Frame, FrameMeta, LiveMeta};

/// Memory that frames come from and go back to.
pub trait Region: Debug + Send + Sync {
    /// Takes back chunks that it gave out, each once, on whatever thread dropped them.
    ///
    /// What it leaves in `chunks` is dropped. It must not drop frames of its own while it holds a lock.
    fn take_back(&self, chunks: &mut dyn Iterator<Item = Memory>);
}

/// The bytes of one chunk and what its region knows it by.
#[derive(Debug)]
pub struct Memory {
    bytes: Bytes,
    tag: u64,
}

#[derive(Debug)]
enum Bytes {
    Owned(Box<[u8]>),
    Lent(&'static mut [u8]),
    /// On its way back.
    Gone,
}

impl Memory {
    /// A chunk that is an allocation of its own.
    pub fn owned(bytes: Box<[u8]>, tag: u64) -> Self {
        Self { bytes: Bytes::Owned(bytes), tag }
    }

    /// A chunk of memory that its region owns, and does not touch before it comes back.
    #[inline]
    pub fn lent(bytes: &'static mut [u8], tag: u64) -> Self {
        Self { bytes: Bytes::Lent(bytes), tag }
    }

    /// What is left where a chunk was taken away.
    pub(crate) const fn gone() -> Self {
        Self { bytes: Bytes::Gone, tag: 0 }
    }

    /// Whether the chunk was taken away.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.bytes, Bytes::Gone)
    }

    /// What its region knows it by.
    #[inline]
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// All of its bytes, headroom and tailroom included.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Owned(bytes) => bytes,
            Bytes::Lent(bytes) => bytes,
            Bytes::Gone => &[],
        }
    }

    /// All of its bytes, headroom and tailroom included.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.bytes {
            Bytes::Owned(bytes) => bytes,
            Bytes::Lent(bytes) => bytes,
            Bytes::Gone => &mut [],
        }
    }
}

/// Whether both are the same region.
#[inline]
pub(crate) fn is_same<R: Region + ?Sized>(one: &Arc<dyn Region>, other: &Arc<R>) -> bool {
    ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

/// Memory with the region that it goes back to: counted, or borrowed.
#[derive(Debug)]
pub(crate) struct Chunk<R: Borrow<Arc<dyn Region>>> {
    pub(crate) memory: Memory,
    pub(crate) region: R,
    /// The live metadata of the frame in it.
    pub(crate) live: LiveMeta,
}

impl<R: Borrow<Arc<dyn Region>>> Chunk<R> {
    /// Takes the memory out, which the caller then has to take care of.
    #[inline]
    pub(crate) fn take(&mut self) -> Memory {
        mem::replace(&mut self.memory, Memory::gone())
    }

    /// Gives back this chunk, which is dropped alone.
    #[cold]
    fn give_back_alone(&mut self) {
        let memory = self.take();
        self.region.borrow().take_back(&mut iter::once(memory));
    }
}

impl<R: Borrow<Arc<dyn Region>>> Drop for Chunk<R> {
    #[inline]
    fn drop(&mut self) {
        if !self.memory.is_gone() {
            self.give_back_alone();
        }
    }
}

/// A frame that has its memory with it, outside of any burst: in a queue, or being made. It counts its region, unless
/// it has just left a burst ([`Taken::Moved`]).
#[derive(Debug)]
pub struct FrameBuf<R: Borrow<Arc<dyn Region>> = Arc<dyn Region>> {
    pub(crate) chunk: Chunk<R>,
    pub(crate) start: usize,
    pub(crate) length: usize,
    /// What is known about the frame. A caller that grows the frame also sets its length on the wire.
    pub meta: FrameMeta,
}

impl FrameBuf {
    /// An empty frame that begins `headroom` bytes into its memory, or at its end if that is shorter.
    #[inline]
    pub fn new(memory: Memory, region: Arc<dyn Region>, headroom: usize) -> Self {
        let start = headroom.min(memory.bytes().len());
        let chunk = Chunk { memory, region, live: LiveMeta::default() };
        Self { chunk, start, length: 0, meta: FrameMeta::default() }
    }
}

impl FrameBuf<&Arc<dyn Region>> {
    /// Returns the frame with its region counted, so that it outlives its burst.
    #[inline]
    #[must_use]
    pub fn into_buf(self) -> FrameBuf {
        let Self { mut chunk, start, length, meta } = self;
        let (memory, region, live) = (chunk.take(), Arc::clone(chunk.region), chunk.live);
        FrameBuf { chunk: Chunk { memory, region, live }, start, length, meta }
    }
}

impl<R: Borrow<Arc<dyn Region>>> FrameBuf<R> {
    /// Returns the frame's bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.chunk.memory.bytes()[self.start..self.start + self.length]
    }

    /// Returns the frame's bytes, to be rewritten in place.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.chunk.memory.bytes_mut()[self.start..self.start + self.length]
    }

    /// What its port knows of it.
    #[inline]
    pub fn live(&self) -> &LiveMeta {
        &self.chunk.live
    }

    /// What its port knows of it, to be written.
    #[inline]
    pub fn live_mut(&mut self) -> &mut LiveMeta {
        &mut self.chunk.live
    }

    /// The frame, to read.
    pub fn frame(&self) -> Frame<'_> {
        Frame { bytes: self.bytes(), meta: &self.meta }
    }

    /// Bytes before the frame that it can grow into.
    pub fn headroom(&self) -> usize {
        self.start
    }

    /// Bytes after the frame that it can grow into.
    #[inline]
    pub fn tailroom(&self) -> usize {
        self.chunk.memory.bytes().len() - self.start - self.length
    }

    /// Makes the frame begin `by` bytes earlier. The new bytes hold whatever stood there; `None` if there is no room
    /// for them, and nothing has changed.
    pub fn grow_front(&mut self, by: usize) -> Option<&mut [u8]> {
        self.start = self.start.checked_sub(by)?;
        self.length += by;
        Some(self.bytes_mut())
    }

    /// Makes the frame end `by` bytes later. As [`FrameBuf::grow_front`].
    #[inline]
    pub fn grow_back(&mut self, by: usize) -> Option<&mut [u8]> {
        if by > self.tailroom() {
            return None;
        }
        self.length += by;
        Some(self.bytes_mut())
    }

    /// Leaves these of its bytes in the frame; false, and nothing has changed, if they are not all in it.
    pub fn narrow(&mut self, range: Range<usize>) -> bool {
        let is_within = range.start <= range.end && range.end <= self.length;
        if is_within {
            self.start += range.start;
            self.length = range.len();
        }
        is_within
    }

    /// Appends a copy of `bytes`; false if there is no room for them.
    pub fn extend(&mut self, bytes: &[u8]) -> bool {
        let end = self.length;
        self.grow_back(bytes.len()).map(|all| all[end..].copy_from_slice(bytes)).is_some()
    }

    /// A copy in an allocation of its own.
    #[must_use]
    pub fn copied(&self) -> FrameBuf {
        let mut copy = Taken::Lent { bytes: self.bytes(), meta: self.meta }.into_buf();
        *copy.live_mut() = *self.live();
        copy
    }

    /// Whether its memory belongs to this region.
    #[inline]
    pub fn is_of<T: Region>(&self, region: &Arc<T>) -> bool {
        is_same(self.chunk.region.borrow(), region)
    }

    /// The memory for the region that it belongs to, and the range of the frame in it: for a port that transmits from
    /// its own region. `None` for any other region ([`FrameBuf::is_of`]): the frame is dropped.
    #[inline]
    pub fn reclaim<T: Region>(mut self, region: &Arc<T>) -> Option<(Memory, Range<usize>)> {
        let range = self.start..self.start + self.length;
        self.is_of(region).then(|| (self.chunk.take(), range))
    }
}

/// A frame that left its burst ([`Burst::drain`](crate::Burst::drain)).
#[derive(Debug)]
pub enum Taken<'b> {
    /// With its memory, whose region the burst counts.
    Moved(FrameBuf<&'b Arc<dyn Region>>),
    /// Without: it lies in the burst's own buffer, and can only be copied.
    Lent {
        /// The frame's bytes.
        bytes: &'b [u8],
        /// What is known about it.
        meta: FrameMeta,
    },
}

impl Taken<'_> {
    /// The frame with memory of its own: where it has none, an allocation.
    pub fn into_buf(self) -> FrameBuf {
        match self {
            Self::Moved(frame) => frame.into_buf(),
            Self::Lent { bytes, meta } => {
                let mut frame = FrameBuf::new(Memory::owned(bytes.into(), 0), Arc::new(Heap), 0);
                (frame.length, frame.meta) = (bytes.len(), meta);
                frame
            }
        }
    }

    /// Returns the frame with its own memory, and with `room` bytes before and after it where that is allocated.
    pub fn into_roomy_buf(self, room: usize) -> FrameBuf {
        match self {
            Self::Moved(frame) => frame.into_buf(),
            Self::Lent { bytes, meta } => {
                let memory = Memory::owned(vec![0; bytes.len() + 2 * room].into(), 0);
                let mut frame = FrameBuf::new(memory, Arc::new(Heap), room);
                frame.extend(bytes);
                frame.meta = meta;
                frame
            }
        }
    }
}

/// Memory of single frames, allocated for each.
#[derive(Debug)]
struct Heap;

impl Region for Heap {
    fn take_back(&self, _: &mut dyn Iterator<Item = Memory>) {}
}
