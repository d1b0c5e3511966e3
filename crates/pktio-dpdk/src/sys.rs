//! The shim's functions, and what makes calling them safe: types that stand for what DPDK has started, made or handed
//! over. The only file of the crate with `unsafe`.
//!
//! Contract: an [`Mbuf`] is owned: it is not `Clone`, and its owner is the only one with its memory. It goes to a
//! device, back to its pool, or into a frame and out of it again as a number ([`Mbuf::into_frame`],
//! [`Mbuf::from_frame`]). Everything here but [`init`] expects that the EAL has started, and runs until nothing that it
//! made is used any more; `eal.rs` sees to both.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::{self, NonNull};

use pktio::Memory;

/// Bytes of a device's name with its zero byte (`RTE_ETH_NAME_MAX_LEN`).
const NAME_BYTES: usize = 64;
/// Mbufs that go back with one call, at most.
const FREED: usize = 64;

/// `struct tamis_frame`.
#[repr(C)]
#[derive(Debug)]
struct RawFrame {
    mbuf: *mut c_void,
    room: *mut u8,
    room_bytes: u32,
    start: u32,
    length: u32,
    tci: u16,
    flags: u16,
}

const IS_STRIPPED: u16 = 1;
const IS_VERIFIED: u16 = 2;

/// `struct tamis_received`: frames that never reached the caller, or only as copies.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) lost: u64,
    pub(crate) copied: u64,
}

/// `struct tamis_device`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    /// As asked for, then as they are.
    pub(crate) queues: u16,
    /// Bytes of the longest packet, without its Ethernet header.
    pub(crate) mtu: u16,
    /// NUMA node.
    pub(crate) socket: c_int,
}

// SAFETY: as `shim.c` defines them.
unsafe extern "C" {
    fn tamis_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    fn tamis_cleanup();
    fn tamis_errno() -> c_int;
    fn tamis_thread_register() -> c_int;
    fn tamis_thread_unregister();
    fn tamis_pool(
        name: *const c_char,
        mbufs: c_uint,
        cache: c_uint,
        room: u16,
        socket: c_int,
    ) -> *mut c_void;
    fn tamis_pool_free(pool: *const c_void) -> c_uint;
    fn tamis_pool_mbufs(pool: *const c_void) -> c_uint;
    fn tamis_device_name(at: c_uint, name: *mut c_char) -> c_int;
    fn tamis_device_socket(port: u16) -> c_int;
    fn tamis_device_start(port: u16, device: *mut Opened, pool: *mut c_void) -> c_int;
    fn tamis_device_close(port: u16);
    fn tamis_device_lost(port: u16) -> u64;
    fn tamis_rx_burst(
        port: u16,
        queue: u16,
        pool: *mut c_void,
        frames: *mut RawFrame,
        most: u16,
        received: *mut Received,
    ) -> u16;
    fn tamis_copy(
        pool: *mut c_void,
        bytes: *const u8,
        length: u16,
        copy: *mut MaybeUninit<Leaving>,
    ) -> c_int;
    fn tamis_tx_burst(
        port: u16,
        queue: u16,
        leaving: *const Leaving,
        count: u16,
        bytes: *mut u64,
    ) -> u16;
    fn tamis_free(mbufs: *mut *mut c_void, count: c_uint);
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result) }
}

/// Starts the EAL. It may keep its arguments, so they stay.
pub(crate) fn init(arguments: Vec<CString>) -> io::Result<()> {
    let count = arguments.len() as c_int;
    let pointers = arguments.into_iter().map(CString::into_raw).chain([ptr::null_mut()]);
    let pointers: &'static mut [*mut c_char] = Vec::from_iter(pointers).leak();
    // SAFETY: `count` strings, each ending with a zero byte, and a null pointer, all of which live for ever and are
    // nobody else's.
    checked(unsafe { tamis_init(count, pointers.as_mut_ptr()) })?;
    Ok(())
}

/// Ends the EAL, and unmaps its memory.
pub(crate) fn cleanup() {
    // SAFETY: takes no pointers; the caller has seen to it that nothing is used any more.
    unsafe { tamis_cleanup() }
}

/// Registers the calling thread with the EAL, so that it has its own caches of mbufs; returns whether that worked.
pub(crate) fn register_thread() -> bool {
    // SAFETY: takes no pointers.
    unsafe { tamis_thread_register() == 0 }
}

/// Undoes [`register_thread`].
pub(crate) fn unregister_thread() {
    // SAFETY: takes no pointers.
    unsafe { tamis_thread_unregister() }
}

/// Mbufs of one NUMA node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mempool(NonNull<c_void>);

// SAFETY: mempools are made for use by all threads at once; a mempool is never freed before the EAL ends.
unsafe impl Send for Mempool {}
// SAFETY: as above.
unsafe impl Sync for Mempool {}

impl Mempool {
    /// The pool of this name, made if there is none: `mbufs` of them with `room` bytes each, of which a thread keeps
    /// up to `cache` for itself.
    pub(crate) fn new(
        name: &CStr,
        mbufs: u32,
        cache: u32,
        room: u16,
        socket: c_int,
    ) -> io::Result<Self> {
        // SAFETY: `name` ends with a zero byte and lives until the call returns.
        let pool = unsafe { tamis_pool(name.as_ptr(), mbufs, cache, room, socket) };
        // SAFETY: takes no pointers.
        let error = || io::Error::from_raw_os_error(unsafe { tamis_errno() });
        NonNull::new(pool).map(Self).ok_or_else(error)
    }

    /// Number of mbufs that nobody has.
    pub(crate) fn free(self) -> usize {
        // SAFETY: a pool, as long as there is one.
        unsafe { tamis_pool_free(self.0.as_ptr()) as usize }
    }

    /// Number of all mbufs.
    pub(crate) fn mbufs(self) -> usize {
        // SAFETY: a pool, as long as there is one.
        unsafe { tamis_pool_mbufs(self.0.as_ptr()) as usize }
    }

    /// A copy of a frame, to be sent; `None` if no mbuf is free, or the frame is longer.
    pub(crate) fn copy(self, bytes: &[u8]) -> Option<Leaving> {
        let length = u16::try_from(bytes.len()).ok()?;
        let mut copy = MaybeUninit::uninit();
        // SAFETY: the pool exists, `bytes` are as many as said, and there is room for what is written.
        let result = unsafe { tamis_copy(self.0.as_ptr(), bytes.as_ptr(), length, &raw mut copy) };
        // SAFETY: it was written, an mbuf that is ours from now on.
        (result == 0).then(|| unsafe { copy.assume_init() })
    }
}

/// An mbuf that is ours.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Mbuf(NonNull<c_void>);

// SAFETY: an mbuf is memory that belongs to its owner, on whatever thread.
unsafe impl Send for Mbuf {}

/// A frame that was received.
#[derive(Debug)]
pub(crate) struct Frame {
    /// All of its mbuf's memory, and the mbuf as its tag.
    pub(crate) memory: Memory,
    /// Where in it the frame begins.
    pub(crate) start: usize,
    pub(crate) length: usize,
    /// The tag that the device took out.
    pub(crate) tci: Option<u16>,
    /// The device found the transport checksum right.
    pub(crate) is_verified: bool,
}

impl Mbuf {
    fn into_frame(raw: RawFrame) -> Frame {
        // SAFETY: the shim hands over an mbuf that nobody shares, whose memory is that long, initialised (a mapping
        // begins as zeros), and in nobody's hands until the mbuf goes back to its pool or to a device. That takes the
        // `Memory`, which is made here once. The pool is not unmapped while there is a frame of it (`mbuf.rs`).
        let room = unsafe { std::slice::from_raw_parts_mut(raw.room, raw.room_bytes as usize) };
        Frame {
            memory: Memory::lent(room, raw.mbuf as u64),
            start: raw.start as usize,
            length: raw.length as usize,
            tci: (raw.flags & IS_STRIPPED != 0).then_some(raw.tci),
            is_verified: raw.flags & IS_VERIFIED != 0,
        }
    }

    /// The mbuf whose memory this is. Only for memory that [`Queue::receive`] gave out, which the private region in
    /// `mbuf.rs` sees to: nobody else can make a frame of it.
    pub(crate) fn from_frame(memory: Memory) -> Option<Self> {
        NonNull::new(memory.tag() as *mut c_void).map(Self)
    }

    /// Gives mbufs back to their pools.
    pub(crate) fn free(mut mbufs: impl Iterator<Item = Self>) {
        let mut row = [ptr::null_mut(); FREED];
        loop {
            let mut count = 0;
            for (place, mbuf) in row.iter_mut().zip(mbufs.by_ref()) {
                *place = mbuf.0.as_ptr();
                count += 1;
            }
            if count == 0 {
                return;
            }
            // SAFETY: `count` mbufs that were ours, none of them null.
            unsafe { tamis_free(row.as_mut_ptr(), count) };
        }
    }
}

/// `struct tamis_leaving`: a frame that is to be sent.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Leaving {
    mbuf: Mbuf,
    start: u16,
    length: u16,
}

impl Leaving {
    /// A frame of an mbuf that is ours, in this range of its memory; `None` if the mbuf is shorter.
    pub(crate) fn new(memory: Memory, range: Range<usize>) -> Option<Self> {
        let _: &[u8] = memory.bytes().get(range.clone())?;
        let (start, length) = (range.start.try_into().ok()?, range.len().try_into().ok()?);
        Some(Self { mbuf: Mbuf::from_frame(memory)?, start, length })
    }

    /// Returns the mbuf of the frame.
    pub(crate) fn into_mbuf(self) -> Mbuf {
        self.mbuf
    }
}

/// The name and the number of each device.
pub(crate) fn devices() -> Vec<(String, u16)> {
    let device = |at| {
        let mut name = [0; NAME_BYTES];
        // SAFETY: a name has as many bytes at most.
        let number = unsafe { tamis_device_name(at, name.as_mut_ptr()) };
        let name = name.map(|byte| byte as u8);
        let name = CStr::from_bytes_until_nul(&name).ok()?;
        Some((name.to_string_lossy().into_owned(), u16::try_from(number).ok()?))
    };
    (0..).map_while(device).collect()
}

/// The NUMA node that a device is at.
pub(crate) fn socket_of(device: u16) -> c_int {
    // SAFETY: takes no pointers.
    unsafe { tamis_device_socket(device) }
}

/// Configures and starts a device.
pub(crate) fn start(device: u16, wanted: &mut Opened, pool: Mempool) -> io::Result<()> {
    // SAFETY: `wanted` is written before the call returns; the pool exists until the EAL ends.
    checked(unsafe { tamis_device_start(device, wanted, pool.0.as_ptr()) }).map(drop)
}

/// Stops a device. Nobody may use a queue of it afterwards.
pub(crate) fn close(device: u16) {
    // SAFETY: takes no pointers.
    unsafe { tamis_device_close(device) }
}

/// Frames that a device lost, or had no mbuf for.
pub(crate) fn lost(device: u16) -> u64 {
    // SAFETY: takes no pointers.
    unsafe { tamis_device_lost(device) }
}

/// A queue of a device that runs, for one thread at a time.
#[derive(Debug)]
pub(crate) struct Queue {
    device: u16,
    number: u16,
    /// Where the shim writes frames; empty between calls.
    frames: Vec<RawFrame>,
}

// SAFETY: `frames` is empty between calls, so no pointer goes from one thread to another.
unsafe impl Send for Queue {}

impl Queue {
    /// Queue `number` of a device that runs, which receives `most` frames at once.
    pub(crate) fn new(device: u16, number: u16, most: usize) -> Self {
        Self { device, number, frames: Vec::with_capacity(most) }
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// The frames that came.
    pub(crate) fn receive(
        &mut self,
        pool: Mempool,
        received: &mut Received,
    ) -> impl ExactSizeIterator<Item = Frame> {
        let Self { device, number, frames } = self;
        let most = frames.capacity().min(u16::MAX.into()) as u16;
        let pool = pool.0.as_ptr();
        // SAFETY: there is room for `most` frames; the device runs, and this queue is one thread's at a time (`&mut`).
        let came =
            unsafe { tamis_rx_burst(*device, *number, pool, frames.as_mut_ptr(), most, received) };
        // SAFETY: as many were written.
        unsafe { frames.set_len(came.into()) };
        frames.drain(..).map(Mbuf::into_frame)
    }

    /// Sends the first of `leaving`, as many as the device takes, which leave the list: how many. Adds their bytes.
    pub(crate) fn send(&mut self, leaving: &mut Vec<Leaving>, bytes: &mut u64) -> usize {
        let count = leaving.len().min(u16::MAX.into()) as u16;
        // SAFETY: `count` mbufs that are ours, and ranges in their memory; the device runs, and this queue is one
        // thread's at a time (`&mut`).
        let sent =
            unsafe { tamis_tx_burst(self.device, self.number, leaving.as_ptr(), count, bytes) };
        // The device owns them now. They have no destructor: this forgets them.
        leaving.drain(..usize::from(sent));
        usize::from(sent)
    }
}
