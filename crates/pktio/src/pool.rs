//! [`Pool`]: a fixed number of chunks of one size, allocated once.
//!
//! Contract: a pool can be shared between threads, and its frames dropped on any of them. It never grows: when all
//! chunks are out, there are none. The free list is a stack under a lock that is taken once for a burst, not once for
//! a frame, and held for a few moves: the chunk that came back last is the one most likely in the cache.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::memory::{FrameBuf, Memory, Region};

/// Chunks that are larger, for superframes, seldom hold that much: they are made large enough for the allocator to ask the
/// kernel for pages of their own, which take no memory until they are written to. The GNU C library does so from 128 KiB
/// on, and musl.
const LARGE: usize = 32 * 1024;
const OWN_PAGES: usize = 132 * 1024;

/// Memory for frames that are copied, made or read by a system call.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    chunks: usize,
    chunk_bytes: usize,
    headroom: usize,
    free: Mutex<Vec<Memory>>,
}

impl Shared {
    fn free(&self) -> MutexGuard<'_, Vec<Memory>> {
        // A panic between moves leaves the list whole.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Region for Shared {
    fn take_back(&self, chunks: &mut dyn Iterator<Item = Memory>) {
        self.free().extend(chunks);
    }
}

impl Pool {
    /// A pool of `chunks` chunks of `chunk_bytes` each, of which the first `headroom` are left free for what is put
    /// before a frame.
    pub fn new(chunks: usize, chunk_bytes: usize, headroom: usize) -> Self {
        let bytes = if chunk_bytes > LARGE { chunk_bytes.max(OWN_PAGES) } else { chunk_bytes };
        let chunk = |tag: usize| Memory::owned(vec![0; bytes].into(), tag as u64);
        let free = Mutex::new((0..chunks).map(chunk).collect());
        Self { shared: Arc::new(Shared { chunks, chunk_bytes, headroom, free }) }
    }

    /// Number of its chunks, those that are out included.
    pub fn chunks(&self) -> usize {
        self.shared.chunks
    }

    /// Number of chunks that nobody has.
    pub fn free(&self) -> usize {
        self.shared.free().len()
    }

    /// Bytes of the longest frame that it can hold with its headroom.
    pub fn frame_bytes(&self) -> usize {
        self.shared.chunk_bytes.saturating_sub(self.shared.headroom)
    }

    /// Appends empty frames to `frames` until there are `wanted`, or no chunk is free.
    pub fn fill(&self, frames: &mut Vec<FrameBuf>, wanted: usize) {
        let missing = wanted.saturating_sub(frames.len());
        let mut free = self.shared.free();
        let kept = free.len().saturating_sub(missing);
        let Shared { headroom, .. } = *self.shared;
        frames.extend(free.drain(kept..).map(|memory| {
            let region: Arc<dyn Region> = Arc::<Shared>::clone(&self.shared);
            FrameBuf::new(memory, region, headroom)
        }));
    }

    /// One empty frame, if a chunk is free.
    pub fn take(&self) -> Option<FrameBuf> {
        let memory = self.shared.free().pop()?;
        let region: Arc<dyn Region> = Arc::<Shared>::clone(&self.shared);
        Some(FrameBuf::new(memory, region, self.shared.headroom))
    }
}
