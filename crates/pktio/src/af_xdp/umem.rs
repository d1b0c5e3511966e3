//! [`Umem`]: the memory that the kernel receives into and transmits from, in chunks; a [`Region`] of its frames.
//!
//! Contract: a chunk has one holder at a time: nobody (it is in the free list), the kernel (in a ring, or on its way),
//! or a frame. Ports of several interfaces may have one UMEM, and then a frame moves from one to the other as it lies:
//! each of their sockets registers the same memory with the kernel. Chunks can be dropped on any thread; chunks that
//! the kernel has when a port ends are out of use. The memory is freed with the last port and the last frame.
//!
//! # Why a frame has its chunk alone
//! Every chunk's holder is written down. A chunk is lent only by the swap that finds it not lent, whatever the rings
//! say; it goes to the kernel only from the free list, or out of its frame ([`FrameBuf::reclaim`]), which no longer
//! exists then, and comes back with a completion or a received frame. So a kernel that hands over what it was given,
//! once, never writes to a frame's chunk.
//!
//! The free list is a stack under a lock that is taken once for a burst, as a [`Pool`](crate::Pool)'s is.
#![allow(unsafe_code)]

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::config::{self, AfXdpConfig, LINK_HEADER};
use super::sys;
use crate::mapping::Mapping;
use crate::memory::{FrameBuf, Memory, Region};
use crate::port::PortError;

/// Bytes that the kernel leaves free before a frame that it receives (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// Chunks that the kernel takes: powers of two up to a page.
const CHUNK_BYTES: [usize; 2] = [2048, 4096];

/// Memory of AF_XDP ports.
#[derive(Clone, Debug)]
pub struct Umem {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    mapping: Mapping,
    chunk_bytes: usize,
    /// The [`Holder`] of each chunk.
    holders: Vec<AtomicU8>,
    /// Where free chunks begin.
    free: Mutex<Vec<u64>>,
}

/// The holder of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Holder {
    Nobody,
    Kernel,
    Frame,
}

impl Umem {
    /// Memory of `chunks` chunks of `chunk_bytes`, 2048 or 4096, each. [`AfXdpConfig::chunks`] says how many a port
    /// needs.
    ///
    /// [`AfXdpConfig::chunks`]: crate::AfXdpConfig::chunks
    ///
    /// # Errors
    /// When there is no such memory, or chunks of that size are not to be had.
    pub fn new(chunks: usize, chunk_bytes: usize) -> Result<Self, PortError> {
        Self::try_new(chunks, chunk_bytes).map_err(|source| PortError::Io {
            name: "UMEM".to_owned(),
            offset: 0,
            source,
        })
    }

    /// Memory for these ports to share: as many chunks as all of them need, as long as the largest MTU asks for.
    ///
    /// # Errors
    /// When an interface is not there, or no such memory.
    pub fn for_ports(ports: &[AfXdpConfig]) -> Result<Self, PortError> {
        let (mut chunks, mut longest) = (0, 0);
        for port in ports {
            let needs = config::needs(port);
            let (queues, mtu) = needs.map_err(|error| io_error(&port.interface, error))?;
            chunks += AfXdpConfig { queues, ..port.clone() }.chunks();
            longest = longest.max(mtu);
        }
        // Ports with longer frames are refused where they are opened.
        Self::new(chunks, Self::chunk_bytes_for(longest).unwrap_or(CHUNK_BYTES[1]))
    }

    fn try_new(chunks: usize, chunk_bytes: usize) -> io::Result<Self> {
        let length = chunks.checked_mul(chunk_bytes).filter(|length| *length > 0);
        let Some(length) = length.filter(|_| CHUNK_BYTES.contains(&chunk_bytes)) else {
            return Err(io::Error::new(ErrorKind::InvalidInput, "chunks have 2048 or 4096 bytes"));
        };
        let free = (0..chunks).rev().map(|number| (number * chunk_bytes) as u64).collect();
        let holders = (0..chunks).map(|_| AtomicU8::new(Holder::Nobody as u8)).collect();
        let mapping = Mapping::anonymous(length)?;
        let shared = Shared { mapping, chunk_bytes, holders, free: Mutex::new(free) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The shorter chunks that hold frames of an interface of this MTU, if any do.
    pub fn chunk_bytes_for(mtu: usize) -> Option<usize> {
        CHUNK_BYTES.into_iter().find(|bytes| mtu + LINK_HEADER <= bytes - HEADROOM)
    }

    /// Bytes of the longest frame that any chunk holds.
    pub(super) fn longest_frame() -> usize {
        CHUNK_BYTES[1] - HEADROOM
    }

    /// Returns the number of chunks, whether free or not.
    pub fn chunks(&self) -> usize {
        self.shared.holders.len()
    }

    /// Number of chunks that nobody has: neither a frame nor the kernel.
    pub fn free(&self) -> usize {
        self.shared.free().len()
    }

    /// Number of chunks that frames have.
    pub fn lent(&self) -> usize {
        let is_lent = |holder: &&AtomicU8| holder.load(Ordering::Relaxed) == Holder::Frame as u8;
        self.shared.holders.iter().filter(is_lent).count()
    }

    /// Bytes of the longest frame that a chunk holds, received or copied.
    pub fn frame_bytes(&self) -> usize {
        self.shared.chunk_bytes - HEADROOM
    }

    /// Appends empty frames to `frames` until there are `wanted`, or no chunk is free.
    pub fn fill(&self, frames: &mut Vec<FrameBuf>, wanted: usize) {
        let missing = wanted.saturating_sub(frames.len());
        if missing == 0 {
            return;
        }
        let mut free = self.shared.free();
        let kept = free.len().saturating_sub(missing);
        let empty = |start| self.frame(start + HEADROOM as u64, 0);
        frames.extend(free.drain(kept..).rev().filter_map(empty));
    }

    /// One empty frame, if a chunk is free.
    pub fn take(&self) -> Option<FrameBuf> {
        let mut one = Vec::with_capacity(1);
        self.fill(&mut one, 1);
        one.pop()
    }

    /// Makes it the UMEM of a socket.
    pub(super) fn register(&self, socket: &OwnedFd) -> io::Result<()> {
        sys::register(socket, &self.shared.mapping, self.shared.chunk_bytes)
    }

    /// A frame of `length` bytes from this address, in a chunk that was the kernel's or free. `None` if a frame has
    /// it already, there is no such chunk, or it is shorter.
    pub(super) fn frame(&self, address: u64, length: usize) -> Option<FrameBuf> {
        let (start, number) = self.shared.chunk_of(address);
        let holder = self.shared.holders.get(number)?;
        if holder.swap(Holder::Frame as u8, Ordering::Acquire) == Holder::Frame as u8 {
            return None;
        }
        // SAFETY: the swap has just made this frame the chunk's only one here; the kernel does not touch it until it
        // is given it, as the module's text argues. Its memory keeps `shared`, and so the mapping.
        let bytes = unsafe { self.shared.mapping.lend(start..start + self.shared.chunk_bytes) };
        let region: Arc<dyn Region> = Arc::<Shared>::clone(&self.shared);
        let memory = Memory::lent(bytes, start as u64);
        let mut frame = FrameBuf::new(memory, region, address as usize - start);
        frame.grow_back(length).is_some().then_some(frame)
    }
}

impl Shared {
    /// Where free chunks begin.
    pub(super) fn free(&self) -> MutexGuard<'_, Vec<u64>> {
        // A panic between moves leaves the list whole.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the chunk begins that an address lies in, and its number.
    fn chunk_of(&self, address: u64) -> (usize, usize) {
        let number = address as usize / self.chunk_bytes;
        (number * self.chunk_bytes, number)
    }

    /// Writes down that the chunk goes from the one to the other; where it begins.
    pub(super) fn pass(&self, address: u64, from: Holder, to: Holder) -> u64 {
        let (start, number) = self.chunk_of(address);
        debug_assert_eq!(self.holders[number].load(Ordering::Relaxed), from as u8, "{number}");
        self.holders[number].store(to as u8, Ordering::Release);
        start as u64
    }
}

fn io_error(name: &str, source: io::Error) -> PortError {
    PortError::Io { name: name.to_owned(), offset: 0, source }
}

impl Region for Shared {
    fn take_back(&self, chunks: &mut dyn Iterator<Item = Memory>) {
        let mut free = self.free();
        free.extend(chunks.map(|memory| self.pass(memory.tag(), Holder::Frame, Holder::Nobody)));
    }
}
