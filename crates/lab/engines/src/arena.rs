//! Slots that never move, so that threads may hold on to them while others take more.
//!
//! Contract: a slot is made where it is first looked at and lives as long as the arena; reading takes no
//! lock once its chunk is there.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Slots that never move, in chunks of which each is as large as all before it.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    chunks: [OnceLock<Box<[T]>>; 32],
    used: AtomicU32,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { chunks: std::array::from_fn(|_| OnceLock::new()), used: AtomicU32::new(0) }
    }
}

impl<T: Default> Arena<T> {
    /// The number of a slot that nobody has.
    pub(crate) fn reserve(&self) -> u32 {
        self.used.fetch_add(1, Ordering::Relaxed)
    }

    /// The slot of a number, made if it is not there.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> &T {
        let chunk = (at + 1).ilog2();
        let slots = self.chunks[chunk as usize]
            .get_or_init(|| (0..1usize << chunk).map(|_| T::default()).collect());
        &slots[at + 1 - (1 << chunk)]
    }
}

impl<T> Arena<T> {
    /// Bytes of the chunks that are there.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.iter().filter_map(OnceLock::get).map(|chunk| size_of_val(&**chunk)).sum()
    }
}
