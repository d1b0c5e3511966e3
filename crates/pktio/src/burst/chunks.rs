//! [`Chunks`]: the memory of a burst's frames. Chunks of one region in a row share one count of it.
//!
//! Contract: each chunk goes back to its region exactly once: with [`Chunks::give_back`], as part of a frame that is
//! taken out, or when either is dropped. `region` of the chunks ascends, so the first chunk tells which regions are no
//! longer needed. A burst that all frames were taken out of keeps the last region until it is filled, cleared or
//! dropped: frames that are taken out borrow it from here.

use std::iter;
use std::mem;
use std::slice;
use std::sync::Arc;
use std::vec;

use crate::frame::LiveMeta;
use crate::memory::{self, Memory, Region};

/// The memory of one frame.
#[derive(Debug)]
pub(super) struct Chunk {
    memory: Memory,
    /// Where its region stands.
    region: u32,
    /// The live metadata of the frame in it.
    pub(super) live: LiveMeta,
}

impl Chunk {
    #[inline]
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}

/// Memory of frames, in their order.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    list: Vec<Chunk>,
    regions: Vec<Arc<dyn Region>>,
    /// Where each of the regions is, which an `Arc` of any kind of region tells less quickly.
    addresses: Vec<usize>,
    /// Some frame may not be [plain](LiveMeta::is_plain) that came since there was none.
    has_others: bool,
}

impl Chunks {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// All bytes of a chunk that there is.
    #[inline]
    pub(super) fn bytes(&self, at: usize) -> &[u8] {
        self.list[at].memory.bytes()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&Chunk> {
        self.list.get(at)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Chunk> {
        self.list.get_mut(at)
    }

    /// What is known of a frame, which may not be plain from now on.
    #[inline]
    pub(super) fn live_mut(&mut self, at: usize) -> Option<&mut LiveMeta> {
        self.has_others = true;
        self.list.get_mut(at).map(|chunk| &mut chunk.live)
    }

    /// Whether all frames are plain, for certain.
    #[inline]
    pub(super) fn are_plain(&self) -> bool {
        !self.has_others
    }

    #[inline]
    pub(super) fn iter_mut(&mut self) -> slice::IterMut<'_, Chunk> {
        self.list.iter_mut()
    }

    /// Swaps two chunks, of which the later one is to be given back with [`Chunks::give_back`].
    pub(super) fn swap(&mut self, one: usize, other: usize) {
        self.list.swap(one, other);
    }

    /// Whether a chunk belongs to this region.
    #[inline]
    pub(super) fn is_of<R: Region + ?Sized>(&self, at: usize, region: &Arc<R>) -> bool {
        let chunk = self.list.get(at);
        chunk.is_some_and(|chunk| self.addresses[chunk.region as usize] == address_of(region))
    }

    /// Appends a chunk of this region, which `count` counts once more.
    #[inline]
    pub(super) fn push<R: Region + ?Sized>(
        &mut self,
        memory: Memory,
        live: LiveMeta,
        region: &Arc<R>,
        count: impl FnOnce(&Arc<R>) -> Arc<dyn Region>,
    ) {
        let address = address_of(region);
        if self.addresses.last() != Some(&address) {
            self.forget_regions();
            self.regions.push(count(region));
            self.addresses.push(address);
        }
        self.has_others |= !live.is_plain();
        self.list.push(Chunk { memory, region: self.regions.len() as u32 - 1, live });
    }

    /// Takes a chunk's memory for the region that it belongs to; `None` for any other.
    #[inline]
    pub(super) fn reclaim<R: Region>(&mut self, at: usize, region: &Arc<R>) -> Option<Memory> {
        if !self.is_of(at, region) {
            return None;
        }
        let chunk = self.list.get_mut(at)?;
        Some(mem::replace(&mut chunk.memory, Memory::gone())).filter(|memory| !memory.is_gone())
    }

    /// Gives back the chunks from `first` on, consecutive chunks of one region with one call.
    pub(super) fn give_back(&mut self, first: usize) {
        let Self { list, regions, addresses, has_others } = self;
        while let Some(last) = list.get(first..).and_then(<[Chunk]>::last) {
            let at = last.region;
            let is_next =
                |list: &Vec<Chunk>| list.len() > first && list[list.len() - 1].region == at;
            let mut same = iter::from_fn(|| {
                if !is_next(list) {
                    return None;
                }
                list.pop().map(|chunk| chunk.memory)
            });
            give_back(&regions[at as usize], &mut same);
        }
        if list.is_empty() {
            regions.clear();
            addresses.clear();
            *has_others = false;
        }
    }

    /// Takes the first `count` chunks out.
    #[inline]
    pub(super) fn drain(&mut self, count: usize) -> Drain<'_> {
        self.forget_regions();
        Drain { list: self.list.drain(..count), regions: &self.regions }
    }

    /// Forgets the regions of chunks that were taken out, where others were left.
    #[inline]
    fn forget_regions(&mut self) {
        let gone = self.list.first().map_or(self.regions.len(), |first| first.region as usize);
        if gone > 0 && !self.regions.is_empty() {
            self.regions.drain(..gone);
            self.addresses.drain(..gone);
            self.list.iter_mut().for_each(|chunk| chunk.region -= gone as u32);
        }
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        self.give_back(0);
    }
}

/// Chunks on their way out of a burst. What is left is given back.
pub(super) struct Drain<'b> {
    list: vec::Drain<'b, Chunk>,
    regions: &'b [Arc<dyn Region>],
}

impl<'b> Iterator for Drain<'b> {
    type Item = memory::Chunk<&'b Arc<dyn Region>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Chunk { memory, region, live } = self.list.next()?;
        Some(memory::Chunk { memory, region: &self.regions[region as usize], live })
    }
}

impl Drop for Drain<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.list.as_slice().is_empty() {
            self.give_back();
        }
    }
}

impl Drain<'_> {
    fn give_back(&mut self) {
        let Self { list, regions } = self;
        while let Some(first) = list.as_slice().first() {
            // Most that a port takes out it has reclaimed before.
            if first.memory.is_gone() {
                list.next();
                continue;
            }
            let at = first.region;
            let mut same = iter::from_fn(|| match list.as_slice().first() {
                Some(next) if next.region == at => list.next().map(|chunk| chunk.memory),
                _ => None,
            });
            give_back(&regions[at as usize], &mut same);
        }
    }
}

/// Where a region is.
#[inline]
fn address_of<R: Region + ?Sized>(region: &Arc<R>) -> usize {
    Arc::as_ptr(region).addr()
}

/// Gives chunks back to their region, except the reclaimed ones.
fn give_back(region: &Arc<dyn Region>, chunks: &mut dyn Iterator<Item = Memory>) {
    let mut left = chunks.filter(|memory| !memory.is_gone());
    let Some(first) = left.next() else { return };
    let mut left = iter::once(first).chain(left);
    region.take_back(&mut left);
    left.for_each(drop);
}
