//! [`Slab`]: flows by slot, in chunks, so that memory grows with the flows and a flow never moves.

use crate::flow::Flow;

/// Flows in a chunk: 256 KiB.
const CHUNK: usize = 1024;

/// Flows by slot.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    chunks: Vec<Vec<Flow>>,
    len: usize,
}

impl Slab {
    /// Slots in use or free.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<&Flow> {
        self.chunks.get(slot / CHUNK)?.get(slot % CHUNK)
    }

    /// The flows in these slots, as far as they lie side by side.
    #[inline]
    pub(crate) fn beside(&self, slot: usize, most: usize) -> &[Flow] {
        let chunk = self.chunks.get(slot / CHUNK).map_or(&[][..], Vec::as_slice);
        let flows = chunk.get(slot % CHUNK..).unwrap_or_default();
        flows.get(..most).unwrap_or(flows)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut Flow> {
        self.chunks.get_mut(slot / CHUNK)?.get_mut(slot % CHUNK)
    }

    /// A copy of a flow in the next slot.
    pub(crate) fn push(&mut self, flow: &Flow) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(flow.clone());
            self.len += 1;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.chunks.iter().flatten()
    }
}
