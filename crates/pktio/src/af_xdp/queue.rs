//! One queue of an interface: a socket, its rings, and the way of chunks through them.
//!
//! Contract: chunks go from the free list to the fill ring, from the receive ring to a frame, from a frame of the
//! same UMEM to the transmit ring, and from the completion ring to the free list. The kernel is only called where a
//! ring asks for it (`XDP_USE_NEED_WAKEUP`).

use std::io::{self, ErrorKind};
use std::mem;
use std::num::NonZeroU32;
use std::ops::{ControlFlow, Range};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use super::ring::{self, Consumer, Producer};
use super::sys;
use super::umem::{Holder, Umem};
use crate::memory::{FrameBuf, Memory};
use crate::socket::take_error;

/// How long a queue may be busy that was given up.
const PATIENCE: Duration = Duration::from_secs(2);

/// A queue of an interface.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) socket: OwnedFd,
    pub(super) number: u16,
    umem: Umem,
    fill: Producer<1>,
    completion: Consumer<1>,
    rx: Consumer<2>,
    tx: Producer<2>,
    /// The kernel was not done with the transmit ring when it was last asked.
    is_behind: bool,
}

impl Queue {
    /// Gives its socket memory and rings of as many entries, and has the kernel receive.
    pub(super) fn open(
        socket: OwnedFd,
        (index, number): (NonZeroU32, u16),
        umem: &Umem,
        entries: u32,
        flags: u16,
    ) -> io::Result<Self> {
        umem.register(&socket)?;
        let fill = Producer::new(&socket, ring::FILL, entries)?;
        let completion = Consumer::new(&socket, ring::COMPLETION, entries)?;
        let rx = Consumer::new(&socket, ring::RX, entries)?;
        let tx = Producer::new(&socket, ring::TX, entries)?;
        let umem = umem.clone();
        let mut queue = Self { socket, number, umem, fill, completion, rx, tx, is_behind: false };
        // Before it is bound: a driver that reads the UMEM itself takes its first chunks then.
        queue.recycle();
        queue.bind(index, flags | libc::XDP_USE_NEED_WAKEUP)?;
        Ok(queue)
    }

    /// Binds the socket. The kernel frees a queue some time after the socket that had it is closed, so a busy queue is
    /// waited for.
    fn bind(&self, index: NonZeroU32, flags: u16) -> io::Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            match sys::bind(&self.socket, index, self.number, flags) {
                Err(error) if error.kind() != ErrorKind::ResourceBusy => return Err(error),
                Err(_) if Instant::now() >= until => {
                    let what = format!("another socket has queue {}", self.number);
                    return Err(io::Error::new(ErrorKind::ResourceBusy, what));
                }
                Err(_) => thread::sleep(PATIENCE / 1000),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Takes back what was transmitted, and gives the kernel what it can receive into.
    pub(super) fn recycle(&mut self) {
        let (completed, room) = (self.completion.filled(), self.fill.room());
        if completed == 0 && room == 0 {
            return;
        }
        let umem = &self.umem.shared;
        let mut free = umem.free();
        for _ in 0..completed {
            let [address] = self.completion.take();
            free.push(umem.pass(address, Holder::Kernel, Holder::Nobody));
        }
        self.completion.release();
        let kept = free.len().saturating_sub(room);
        for start in free.drain(kept..).rev() {
            self.fill.put([umem.pass(start, Holder::Nobody, Holder::Kernel)]);
        }
        self.fill.submit();
    }

    /// Takes the next `most` frames, or as many as there are; how many were lost.
    pub(super) fn receive(&mut self, most: usize, mut each: impl FnMut(FrameBuf)) -> u64 {
        let count = self.rx.filled().min(most);
        let mut lost = 0;
        for _ in 0..count {
            let [address, rest] = self.rx.take();
            match self.umem.frame(address, length_in(rest)) {
                Some(frame) => each(frame),
                None => lost += 1,
            }
        }
        self.rx.release();
        lost
    }

    /// How many frames can be transmitted now, `wanted` at most; asks the kernel for room if there is less.
    pub(super) fn room(&mut self, wanted: usize) -> io::Result<usize> {
        if self.tx.room() < wanted {
            self.recycle();
            self.wake()?;
        }
        Ok(self.tx.room().min(wanted))
    }

    /// Puts a frame of this UMEM, for which there is room.
    pub(super) fn put(&mut self, memory: Memory, range: Range<usize>) {
        let address = memory.tag() + range.start as u64;
        drop(memory);
        self.umem.shared.pass(address, Holder::Frame, Holder::Kernel);
        self.tx.put([address, with_length(range.len())]);
    }

    /// Has the kernel transmit what was put.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        self.tx.submit();
        self.wake()
    }

    /// Has the kernel transmit what it did not get to before.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        if self.is_behind { self.wake() } else { Ok(()) }
    }

    /// Calls the kernel as long as it asks for it and gets on: it takes a few dozen frames at a time, and none while
    /// it has no room to say which it has transmitted.
    fn wake(&mut self) -> io::Result<()> {
        let mut pending = self.tx.pending();
        while pending > 0 && self.tx.needs_wakeup() {
            let woken = sys::wake_tx(&self.socket);
            let before = mem::replace(&mut pending, self.tx.pending());
            if let Err(error) = woken
                && !is_later(&error)
            {
                return Err(error);
            }
            if pending == before {
                if self.completion.filled() == 0 {
                    break;
                }
                self.recycle();
            }
        }
        self.is_behind = pending > 0;
        Ok(())
    }

    /// After a look that found nothing: has the kernel receive, if it asks for that, and says what happened to the
    /// socket, if anything did.
    pub(super) fn check(&self) -> ControlFlow<io::Error> {
        if self.fill.needs_wakeup() {
            // What is wrong with the socket is asked for below.
            let _ = sys::wake_rx(&self.socket);
        }
        take_error(&self.socket).map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }
}

/// The length in the second word of `struct xdp_desc`.
fn length_in(word: u64) -> usize {
    let [a, b, c, d, ..] = word.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d]) as usize
}

/// The second word of `struct xdp_desc`, without options.
fn with_length(length: usize) -> u64 {
    let [a, b, c, d] = (length as u32).to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}

/// Whether the same call may do better later: there is no room, or the interface is down.
fn is_later(error: &io::Error) -> bool {
    const LATER: [i32; 4] = [libc::EBUSY, libc::ENOBUFS, libc::ENOMEM, libc::ENETDOWN];
    error.raw_os_error().is_some_and(|code| LATER.contains(&code))
        || matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
