//! Receiving in batches: each message goes into a chunk of its own, which is the frame from then on.

use std::array;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;

use super::address::Address;
use super::control::Control;
use super::{Arrived, BATCH, Calls};
use crate::memory::FrameBuf;

/// Errors in a row that are passed over; each took one out of the socket.
const PATIENCE: usize = 64;

/// Room for what comes with the messages of one call: of a thread that receives, used again and again.
#[derive(Debug)]
pub struct RecvBatch {
    slots: Box<[Slot]>,
    lost: u64,
}

/// What came with a message, as the kernel wrote it.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) address: Address,
    pub(super) control: Control,
    /// Bytes of the message that there was room for.
    pub(super) length: usize,
    /// There was none for all of them, or for what came with it.
    pub(super) is_cut: bool,
}

impl Slot {
    const EMPTY: Self =
        Self { address: Address::EMPTY, control: Control::EMPTY, length: 0, is_cut: false };

    /// What it says of a message that came whole.
    fn read(&self) -> Option<Arrived> {
        let from: SocketAddr = self.address.read().filter(|_| !self.is_cut)?;
        let with = self.control.read();
        let segment = with.segment.unwrap_or(self.length).min(self.length).max(1);
        Some(Arrived { from, at: with.at, tos: with.tos, segment })
    }
}

impl RecvBatch {
    /// Room for this many messages, 1 to 32.
    #[must_use]
    pub fn new(messages: usize) -> Self {
        Self { slots: vec![Slot::EMPTY; messages.clamp(1, BATCH)].into(), lost: 0 }
    }

    /// Messages that it holds.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.slots.len()
    }

    /// Messages that were lost because they were longer than their chunk, since it was made.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Receives into the last frames of `spare`; how many messages `each` got.
    pub(super) fn fill(
        &mut self,
        calls: &impl Calls,
        spare: &mut Vec<FrameBuf>,
        mut each: impl FnMut(FrameBuf, Arrived),
    ) -> io::Result<usize> {
        let mut rooms: [IoSliceMut<'_>; BATCH] = array::from_fn(|_| IoSliceMut::new(&mut []));
        let mut wanted = 0;
        for (room, frame) in rooms.iter_mut().zip(spare.iter_mut().rev().take(self.slots.len())) {
            let start = frame.start;
            *room = IoSliceMut::new(&mut frame.chunk.memory.bytes_mut()[start..]);
            wanted += 1;
        }
        if wanted == 0 {
            return Ok(0);
        }
        let came = receive(calls, &mut rooms[..wanted], &mut self.slots)?;
        let mut given = 0;
        for slot in &self.slots[..came] {
            let Some(mut frame) = spare.pop() else { break };
            match slot.read() {
                Some(arrived) => {
                    frame.length = slot.length;
                    given += 1;
                    each(frame, arrived);
                }
                None => self.lost += 1,
            }
        }
        Ok(given)
    }
}

/// The messages that are there: none if there are none. What a datagram that was sent met on its way is an error of
/// this socket, too, but no end of it: the call is made again.
fn receive(
    calls: &impl Calls,
    rooms: &mut [IoSliceMut<'_>],
    slots: &mut [Slot],
) -> io::Result<usize> {
    for _ in 0..PATIENCE {
        match calls.receive(rooms, slots) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if is_of_another(&error) => {}
            came => return came,
        }
    }
    Ok(0)
}

/// Whether an error says nothing of what is to be received.
fn is_of_another(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EINTR
                | libc::ECONNREFUSED
                | libc::ECONNRESET
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::EHOSTDOWN
                | libc::ENETDOWN
                | libc::ENOPROTOOPT
                | libc::EPROTO
                | libc::EOPNOTSUPP
                | libc::EMSGSIZE
                | libc::EACCES
                | libc::EPERM
        )
    )
}
