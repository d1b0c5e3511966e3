//! Receiving in batches: each message goes into a chunk of its own, which is the frame from then on.

use super::arrived::{Arrived, Slot};
use super::message::BATCH;
use super::sys::Calls;
use crate::memory::FrameBuf;
use std::array;
use std::io::{self, ErrorKind, IoSliceMut};

/// Errors in a row that are ignored; each took one out of the socket.
const PATIENCE: usize = 64;

/// Room for what comes with the messages of one call: of a thread that receives, used again and again.
#[derive(Debug)]
pub struct RecvBatch {
    slots: Box<[Slot]>,
    lost: u64,
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

/// Receives the messages that are there, if any. What a datagram that was sent met on its way is an error of this
/// socket, too, but does not end it: the call is made again.
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
