//! [`Mapping`]: memory that the kernel and this process share, such as the rings of packet and AF_XDP sockets and the
//! memory of the latter.
//!
//! Contract: mapped once, unmapped when the value is dropped. Words that both sides write are atomics; the caller that
//! asks for plain bytes vouches for it that nobody else has them.
//!
//! Source: `mmap(2)`, `Documentation/networking/{packet_mmap,af_xdp}.rst`.
#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64};

use libc::{c_int, off_t};

/// Memory that is mapped into this process, shared with the kernel; it stays while this value does, whatever becomes
/// of any descriptor.
#[derive(Debug)]
pub(crate) struct Mapping {
    at: NonNull<u8>,
    length: usize,
}

// SAFETY: the value is the only owner of the mapping, which is any thread's memory.
unsafe impl Send for Mapping {}
// SAFETY: through a shared value only atomics are reached, and what `lend` is asked for, on its caller's word.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// New memory, all zero.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        Self::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// The first `length` bytes of the ring of a packet socket.
    pub(crate) fn ring(socket: &OwnedFd, length: usize) -> io::Result<Self> {
        Self::map(length, libc::MAP_SHARED, socket.as_raw_fd(), 0)
    }

    /// The ring of an AF_XDP socket that `offset` stands for (`XDP_PGOFF_RX_RING`, …).
    pub(crate) fn ring_at(socket: &OwnedFd, length: usize, offset: off_t) -> io::Result<Self> {
        Self::map(length, libc::MAP_SHARED | libc::MAP_POPULATE, socket.as_raw_fd(), offset)
    }

    /// Where it begins in this process.
    pub(crate) fn address(&self) -> u64 {
        self.at.as_ptr() as u64
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    fn map(length: usize, flags: c_int, fd: c_int, offset: off_t) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the place, so nothing else of this process is mapped over.
        let at = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, fd, offset) };
        match NonNull::new(at.cast::<u8>()) {
            Some(mapped) if at != libc::MAP_FAILED => Ok(Self { at: mapped, length }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The word at `start` of a ring, which the kernel and this process write by turns.
    ///
    /// # Panics
    /// When it is not within the mapping, or not at a multiple of 4.
    pub(crate) fn word(&self, start: usize) -> &AtomicU32 {
        assert!(start.is_multiple_of(4) && start + 4 <= self.length);
        // SAFETY: within the mapping, as just asserted.
        let at = unsafe { self.at.add(start) };
        // SAFETY: a mapping begins at a page, so `at` is aligned; its memory is there while `self` is, and
        // initialised. No slice covers it: `lend` is never asked for a range that holds such a word.
        unsafe { AtomicU32::from_ptr(at.cast().as_ptr()) }
    }

    /// `count` words of 8 bytes from `start` of a ring.
    ///
    /// # Panics
    /// When they are not within the mapping, or not at a multiple of 8.
    pub(crate) fn long_words(&self, start: usize, count: usize) -> &[AtomicU64] {
        assert!(
            start.is_multiple_of(8) && start <= self.length && count <= (self.length - start) / 8
        );
        // SAFETY: within the mapping, as just asserted.
        let at = unsafe { self.at.add(start) };
        // SAFETY: aligned, initialised and there while `self` is, as above; an atomic is laid out as its number.
        unsafe { slice::from_raw_parts(at.cast().as_ptr(), count) }
    }

    /// Bytes of it.
    ///
    /// # Safety
    /// Until they are no longer used nobody else may use any of them, the kernel included, none of them may be a
    /// [`Mapping::word`] or among [`Mapping::long_words`], and the mapping has to stay.
    ///
    /// # Panics
    /// When they are not within the mapping.
    pub(crate) unsafe fn lend(&self, range: Range<usize>) -> &'static mut [u8] {
        assert!(range.start <= range.end && range.end <= self.length);
        // SAFETY: within the mapping, as just asserted.
        let at = unsafe { self.at.add(range.start) };
        // SAFETY: the caller vouches for it that these bytes are nobody else's, and stay.
        unsafe { slice::from_raw_parts_mut(at.as_ptr(), range.len()) }
    }
}

/// Asks the system, past any allocator, whether it would map this many bytes. They are given back at once, untouched.
///
/// # Errors
/// Where it would not (`ENOMEM`).
pub fn would_map(bytes: usize) -> io::Result<()> {
    Mapping::anonymous(bytes).map(drop)
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `map` made, and every borrower of a part of it keeps the value alive. It
        // cannot fail with these arguments, and there would be nothing to do about it.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.length) };
    }
}
