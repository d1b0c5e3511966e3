//! [`Pool`]: a fixed number of chunks of one size, each allocated when it is first needed.
//!
//! Contract: a pool can be shared between threads, and its frames dropped on any of them. It allocates a chunk when
//! none is free and not all exist yet, so it holds as many as were ever out at once, and from then on a frame costs no
//! allocation. When all chunks are out, there are none. The free list is a stack under a lock that is taken once for a
//! burst, not once for a frame, and held for a few moves: the chunk that came back last is the most likely one in the
//! cache.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::memory::{FrameBuf, Memory, Region};

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
    free: Mutex<Free>,
}

/// Chunks that nobody has.
#[derive(Debug, Default)]
struct Free {
    chunks: Vec<Memory>,
    /// Number of chunks allocated, whether free or not.
    made: usize,
}

impl Shared {
    fn free(&self) -> MutexGuard<'_, Free> {
        // A panic between moves leaves the list whole.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A chunk that nobody has.
    fn take(&self, free: &mut Free) -> Option<Memory> {
        free.chunks.pop().or_else(|| {
            (free.made < self.chunks).then(|| {
                free.made += 1;
                Memory::owned(vec![0; self.chunk_bytes].into(), free.made as u64 - 1)
            })
        })
    }
}

impl Region for Shared {
    fn take_back(&self, chunks: &mut dyn Iterator<Item = Memory>) {
        self.free().chunks.extend(chunks);
    }
}

impl Pool {
    /// A pool of `chunks` chunks of `chunk_bytes` each, of which the first `headroom` are left free for what is put
    /// before a frame.
    pub fn new(chunks: usize, chunk_bytes: usize, headroom: usize) -> Self {
        let free = Mutex::default();
        Self { shared: Arc::new(Shared { chunks, chunk_bytes, headroom, free }) }
    }

    /// Returns the number of chunks, whether free or not.
    pub fn chunks(&self) -> usize {
        self.shared.chunks
    }

    /// Number of chunks that nobody has.
    pub fn free(&self) -> usize {
        let free = self.shared.free();
        free.chunks.len() + self.shared.chunks - free.made
    }

    /// Bytes of the longest frame that it can hold with its headroom.
    pub fn frame_bytes(&self) -> usize {
        self.shared.chunk_bytes.saturating_sub(self.shared.headroom)
    }

    /// Appends empty frames to `frames` until there are `wanted`, or no chunk is free.
    pub fn fill(&self, frames: &mut Vec<FrameBuf>, wanted: usize) {
        let missing = wanted.saturating_sub(frames.len());
        let mut free = self.shared.free();
        let chunks = (0..missing).map_while(|_| self.shared.take(&mut free));
        frames.extend(chunks.map(|memory| self.frame(memory)));
    }

    /// One empty frame, if a chunk is free.
    pub fn take(&self) -> Option<FrameBuf> {
        let memory = self.shared.take(&mut self.shared.free())?;
        Some(self.frame(memory))
    }

    fn frame(&self, memory: Memory) -> FrameBuf {
        let region: Arc<dyn Region> = Arc::<Shared>::clone(&self.shared);
        FrameBuf::new(memory, region, self.shared.headroom)
    }
}
