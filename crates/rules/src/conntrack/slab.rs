//! [`Slab`]: flows by slot, in chunks, so that memory grows with the flows and a flow never moves.

use super::flow::Flow;

/// Flows in a chunk: 256 KiB.
const CHUNK: usize = 1024;

/// Flows by slot.
#[derive(Debug, Default)]
pub(super) struct Slab {
    chunks: Vec<Vec<Flow>>,
    len: usize,
}

impl Slab {
    /// Slots in use or free.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<&Flow> {
        self.chunks.get(slot / CHUNK)?.get(slot % CHUNK)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut Flow> {
        self.chunks.get_mut(slot / CHUNK)?.get_mut(slot % CHUNK)
    }

    /// A flow in the next slot.
    pub(super) fn push(&mut self, flow: Flow) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(flow);
            self.len += 1;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.chunks.iter().flatten()
    }
}
