//! The rings that a socket shares with the kernel: one side produces entries, the other consumes them, each in order.
//!
//! Contract: entries are `W` words of 8 bytes. What is put is the kernel's once it is submitted, what is taken is ours
//! at once, and its place is the kernel's once it is released. Each side of a ring belongs to one value here, and one
//! thread at a time.
//!
//! # Order
//! The producer stores entries before its index (`Release`), and the consumer loads that (`Acquire`) before them; the
//! consumer loads entries before it stores its own index (`Release`), which the producer loads (`Acquire`) before it
//! writes over them. Entries themselves are words whose order these two decide, so they are `Relaxed`. Indices wrap
//! at 2^32; a ring's size is a power of two.
//!
//! Source: `Documentation/networking/af_xdp.rst`; Linux `net/xdp/xsk_queue.h`.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libc::{c_int, off_t, xdp_ring_offset};

use super::sys;
use crate::mapping::Mapping;

/// Which of a socket's rings, and where the kernel has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Which {
    pub(super) option: c_int,
    pub(super) offset: off_t,
    pub(super) parts: fn(&libc::xdp_mmap_offsets) -> xdp_ring_offset,
}

/// Chunks for the kernel to receive into.
pub(super) const FILL: Which = Which {
    option: libc::XDP_UMEM_FILL_RING,
    offset: libc::XDP_UMEM_PGOFF_FILL_RING as off_t,
    parts: |offsets| offsets.fr,
};
/// Chunks that the kernel has transmitted.
pub(super) const COMPLETION: Which = Which {
    option: libc::XDP_UMEM_COMPLETION_RING,
    offset: libc::XDP_UMEM_PGOFF_COMPLETION_RING as off_t,
    parts: |offsets| offsets.cr,
};
/// Frames received.
pub(super) const RX: Which = Which {
    option: libc::XDP_RX_RING,
    offset: libc::XDP_PGOFF_RX_RING,
    parts: |offsets| offsets.rx,
};
/// Frames to transmit.
pub(super) const TX: Which = Which {
    option: libc::XDP_TX_RING,
    offset: libc::XDP_PGOFF_TX_RING,
    parts: |offsets| offsets.tx,
};

/// A ring, as both of its sides see it.
#[derive(Debug)]
struct Ring<const W: usize> {
    mapping: Mapping,
    at: xdp_ring_offset,
    size: u32,
}

impl<const W: usize> Ring<W> {
    /// Makes it, of `size` entries, a power of two.
    fn new(socket: &OwnedFd, which: Which, size: u32) -> io::Result<Self> {
        sys::set_ring(socket, which.option, size)?;
        let at = (which.parts)(&sys::offsets(socket)?);
        let length = at.desc as usize + size as usize * 8 * W;
        let mapping = Mapping::ring_at(socket, length, which.offset)?;
        Ok(Self { mapping, at, size })
    }

    fn produced(&self) -> &AtomicU32 {
        self.mapping.word(self.at.producer as usize)
    }

    fn consumed(&self) -> &AtomicU32 {
        self.mapping.word(self.at.consumer as usize)
    }

    /// The kernel does nothing about the ring before it is asked to.
    fn needs_wakeup(&self) -> bool {
        let flags = self.mapping.word(self.at.flags as usize).load(Ordering::Relaxed);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// The words of the entry that this index stands for.
    fn entry(&self, index: u32) -> &[AtomicU64] {
        let start = self.at.desc as usize + (index & (self.size - 1)) as usize * 8 * W;
        self.mapping.long_words(start, W)
    }
}

/// The side of a ring that puts entries.
#[derive(Debug)]
pub(super) struct Producer<const W: usize> {
    ring: Ring<W>,
    /// Index of the next entry, whether submitted or not.
    next: u32,
    /// The consumer's, as last seen.
    seen: u32,
}

impl<const W: usize> Producer<W> {
    pub(super) fn new(socket: &OwnedFd, which: Which, size: u32) -> io::Result<Self> {
        Ok(Self { ring: Ring::new(socket, which, size)?, next: 0, seen: 0 })
    }

    /// How many entries can be put.
    pub(super) fn room(&mut self) -> usize {
        (self.ring.size - self.pending()) as usize
    }

    /// How many the kernel has not consumed.
    pub(super) fn pending(&mut self) -> u32 {
        self.seen = self.ring.consumed().load(Ordering::Acquire);
        self.next.wrapping_sub(self.seen)
    }

    /// Puts an entry, for which there has to be room.
    pub(super) fn put(&mut self, entry: [u64; W]) {
        debug_assert!(self.next.wrapping_sub(self.seen) < self.ring.size);
        for (word, value) in self.ring.entry(self.next).iter().zip(entry) {
            word.store(value, Ordering::Relaxed);
        }
        self.next = self.next.wrapping_add(1);
    }

    /// Hands over all that was put.
    pub(super) fn submit(&mut self) {
        self.ring.produced().store(self.next, Ordering::Release);
    }

    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// The side of a ring that takes entries.
#[derive(Debug)]
pub(super) struct Consumer<const W: usize> {
    ring: Ring<W>,
    /// Index of the next entry, whether those before it are released or not.
    next: u32,
}

impl<const W: usize> Consumer<W> {
    pub(super) fn new(socket: &OwnedFd, which: Which, size: u32) -> io::Result<Self> {
        Ok(Self { ring: Ring::new(socket, which, size)?, next: 0 })
    }

    /// How many entries there are, none of them more than the ring holds.
    pub(super) fn filled(&self) -> usize {
        let produced = self.ring.produced().load(Ordering::Acquire);
        produced.wrapping_sub(self.next).min(self.ring.size) as usize
    }

    /// Takes the next one, which has to be there.
    pub(super) fn take(&mut self) -> [u64; W] {
        let mut entry = [0; W];
        for (value, word) in entry.iter_mut().zip(self.ring.entry(self.next)) {
            *value = word.load(Ordering::Relaxed);
        }
        self.next = self.next.wrapping_add(1);
        entry
    }

    /// Gives back the places of all that was taken.
    pub(super) fn release(&mut self) {
        self.ring.consumed().store(self.next, Ordering::Release);
    }
}
