//! The receive ring: blocks of frames that the kernel fills and this process gives back, and the reader that takes
//! frames out of them in order.
//!
//! Contract: a block belongs to the kernel or to this process, as its status word says. The kernel fills blocks in
//! turn, and waits, losing frames, at a block that it has not got back yet. The reader opens a block that is filled,
//! and cuts its bytes up into frames; each is lent with the block as its [`Region`], and the block goes back when the
//! reader has read it up and the last frame lent from it is dropped, on whatever thread. The mapping ends with the last
//! block, so memory outlives port and reader. Nothing is allocated after the ring is made.
//!
//! # Who may touch a block
//! - The kernel writes a filled block's bytes before its status (a write barrier), and the reader loads the status
//!   with `Acquire` before them: it sees all of the block.
//! - `held` counts the reader and each frame. Each holder lets go of the block with `Release`, and the last one with
//!   `Acquire` too, so that all that was done to the block's bytes comes before the last one's store of the status,
//!   itself a `Release`, after which the kernel writes them again.
//! - While a block is out, its status still reads "filled". So the reader looks at `is_out` first, which the last one
//!   clears with `Release` after the status: an `Acquire` load that finds it clear comes before a load of the status
//!   that finds the kernel's turn, or what the kernel made of it since. No block is opened twice.
//!
//! Source: `Documentation/networking/packet_mmap.rst`; Linux `net/packet/af_packet.c` (`prb_close_block`,
//! `prb_dispatch_next_block`).
#![allow(unsafe_code)]

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::mapping::Mapping;
use crate::memory::{FrameBuf, Memory, Region};

/// Where a block has its status word (`struct tpacket_block_desc`).
const STATUS: usize = 8;
/// What follows that: number of frames, where the first one begins.
const AFTER_STATUS: usize = 12;
const FRAMES: usize = 12;
const FIRST_FRAME: usize = 16;

/// What blocks have in common.
#[derive(Debug)]
struct Blocks {
    mapping: Mapping,
    /// How many are out.
    out: AtomicUsize,
}

#[derive(Debug)]
struct Block {
    all: Arc<Blocks>,
    /// The block's bytes within the mapping.
    start: usize,
    length: usize,
    /// Whether the reader has the block open, or a frame of it is in flight.
    is_out: AtomicBool,
    /// By how many: the reader, and each frame.
    held: AtomicU32,
}

impl Block {
    fn status(&self) -> &AtomicU32 {
        self.all.mapping.word(self.start + STATUS)
    }

    /// The bytes of a filled block from [`AFTER_STATUS`] on, for the reader alone. `None` until it is filled.
    fn open(&self) -> Option<&'static mut [u8]> {
        if self.is_out.load(Ordering::Acquire)
            || self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0
        {
            return None;
        }
        self.held.store(1, Ordering::Relaxed);
        self.is_out.store(true, Ordering::Relaxed);
        self.all.out.fetch_add(1, Ordering::Relaxed);
        let range = self.start + AFTER_STATUS..self.start + self.length;
        // SAFETY: the block is filled, so the kernel leaves it alone until `release`, and it was not out, so nobody
        // here has any of it, as the module's text argues. There is one reader, which this is. The status word is not
        // in the range. Each holder of a part counts in `held` and keeps the block, and so the mapping.
        Some(unsafe { self.all.mapping.lend(range) })
    }

    /// Lets go of it, `count` times; with the last time it is the kernel's again.
    fn release(&self, count: u32) {
        if count > 0 && self.held.fetch_sub(count, Ordering::AcqRel) == count {
            self.all.out.fetch_sub(1, Ordering::Relaxed);
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.is_out.store(false, Ordering::Release);
        }
    }
}

impl Region for Block {
    fn take_back(&self, chunks: &mut dyn Iterator<Item = Memory>) {
        // Counting drops them: nothing of the block is borrowed any more when it is let go of.
        self.release(chunks.count() as u32);
    }
}

/// Takes frames out of blocks.
#[derive(Debug)]
pub(super) struct Ring {
    /// Dropped before the blocks that it has bytes of.
    open: Option<Open>,
    blocks: Vec<Arc<Block>>,
    /// The block that is open, or is to be opened next.
    at: usize,
}

/// What is left of an open block.
#[derive(Debug)]
struct Open {
    /// From the header of the next frame on.
    rest: &'static mut [u8],
    frames: u32,
}

impl Ring {
    /// The ring in a mapping of `blocks` blocks of `block_bytes` each.
    pub(super) fn new(mapping: Mapping, blocks: usize, block_bytes: usize) -> Self {
        let all = Arc::new(Blocks { mapping, out: AtomicUsize::new(0) });
        let block = |number| Block {
            all: Arc::clone(&all),
            start: number * block_bytes,
            length: block_bytes,
            is_out: AtomicBool::new(false),
            held: AtomicU32::new(0),
        };
        let blocks = (0..blocks).map(|number| Arc::new(block(number))).collect();
        Self { open: None, blocks, at: 0 }
    }

    /// Counts the blocks that the kernel waits for: the open one, and blocks with frames in flight.
    pub(super) fn out(&self) -> usize {
        self.blocks[self.at].all.out.load(Ordering::Relaxed)
    }

    /// Whether there is a frame to take; opens the next block if it must. The kernel may hand over empty ones.
    pub(super) fn has_frame(&mut self) -> bool {
        loop {
            self.close();
            if self.open.is_some() {
                return true;
            }
            self.open = self.blocks[self.at].open().map(Open::new);
            if self.open.is_none() {
                return false;
            }
        }
    }

    /// The next frame of the open block with its header, and all bytes up to the next one's. It may be read until the
    /// next call of [`Ring::has_frame`] or [`Ring::close`], or longer if it is lent.
    pub(super) fn take(&mut self) -> Option<Slot<'_>> {
        let bytes = self.open.as_mut()?.split_off();
        Some(Slot { bytes, block: &self.blocks[self.at] })
    }

    /// Lets go of the open block if it is read up.
    pub(super) fn close(&mut self) {
        if self.open.take_if(|open| open.frames == 0).is_some() {
            self.blocks[self.at].release(1);
            self.at = (self.at + 1) % self.blocks.len();
        }
    }
}

impl Open {
    fn new(block: &'static mut [u8]) -> Self {
        let frames = number(block, FRAMES - AFTER_STATUS);
        let first =
            (number(block, FIRST_FRAME - AFTER_STATUS) as usize).saturating_sub(AFTER_STATUS);
        let rest = block.get_mut(first..).unwrap_or_default();
        Self { rest, frames }
    }

    /// A frame begins with the distance to the next one; the last one has the rest of its block.
    fn split_off(&mut self) -> &'static mut [u8] {
        let rest = mem::take(&mut self.rest);
        self.frames = self.frames.saturating_sub(1);
        let length = if self.frames == 0 { rest.len() } else { number(rest, 0) as usize };
        let (frame, rest) = rest.split_at_mut(length.min(rest.len()));
        self.rest = rest;
        frame
    }
}

/// The number at this place, as the kernel of this machine writes it; 0 beyond the end.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |field| u32::from_ne_bytes(*field))
}

/// A frame with its header, in its block.
pub(super) struct Slot<'r> {
    bytes: &'static mut [u8],
    block: &'r Arc<Block>,
}

impl Slot<'_> {
    /// From its header on.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The frame in its memory, `length` bytes from `start`. Its block stays out until it is dropped.
    pub(super) fn lend(self, start: usize, length: usize) -> FrameBuf {
        // The reader has the block, so it cannot go back now.
        self.block.held.fetch_add(1, Ordering::Relaxed);
        let region: Arc<dyn Region> = Arc::<Block>::clone(self.block);
        let mut frame = FrameBuf::new(Memory::lent(self.bytes, 0), region, start);
        frame.length = length.min(frame.tailroom());
        frame
    }
}
