//! What a kernel can hand over, and what it can say instead.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;

use super::super::address::Address;
use super::super::arrived::Slot;
use super::super::control::Control;
use super::super::outgoing::Outgoing;
use super::super::sys::Calls;
use super::super::{Arrived, RecvBatch};
use crate::pool::Pool;

/// What a call answers: messages, each with the segment size that the kernel reports, or an error.
type Answer = Result<Vec<Message>, i32>;

#[derive(Clone, Debug)]
struct Message {
    bytes: Vec<u8>,
    from: Address,
    segment: Option<i32>,
    is_cut: bool,
}

struct Kernel {
    answers: RefCell<VecDeque<Answer>>,
}

impl Calls for Kernel {
    fn receive(&self, rooms: &mut [IoSliceMut<'_>], slots: &mut [Slot]) -> io::Result<usize> {
        let answer = self.answers.borrow_mut().pop_front().unwrap_or(Err(libc::EAGAIN));
        let messages = answer.map_err(io::Error::from_raw_os_error)?;
        for ((message, room), slot) in messages.iter().zip(rooms).zip(slots) {
            slot.length = message.bytes.len().min(room.len());
            room[..slot.length].copy_from_slice(&message.bytes[..slot.length]);
            (slot.address, slot.is_cut) = (message.from, message.is_cut);
            slot.control = Control::EMPTY;
            if let Some(bytes) = message.segment {
                slot.control.push(libc::SOL_UDP, libc::UDP_GRO, &bytes.to_ne_bytes());
            }
        }
        Ok(messages.len())
    }

    fn send(&self, _: &[Outgoing], _: &[IoSlice<'_>]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(libc::EAGAIN))
    }
}

fn sender() -> SocketAddr {
    "192.0.2.7:51900".parse().unwrap()
}

fn message(bytes: &[u8], segment: Option<i32>) -> Message {
    let from = Address::new(sender(), true);
    Message { bytes: bytes.to_vec(), from, segment, is_cut: false }
}

type Came = Vec<(Vec<u8>, Arrived)>;

/// What is received in one call, with what is known of it; and messages that were lost.
fn receive(answers: Vec<Answer>) -> (io::Result<Came>, u64) {
    let kernel = Kernel { answers: RefCell::new(answers.into()) };
    let (mut batch, mut spare) = (RecvBatch::new(8), Vec::new());
    let pool = Pool::new(16, 100, 10);
    pool.fill(&mut spare, 16);
    let mut came = Vec::new();
    let count = batch.fill(&kernel, &mut spare, |frame, arrived| {
        came.push((frame.bytes().to_vec(), arrived));
    });
    if let Ok(count) = count {
        assert_eq!(count, came.len());
    }
    (count.map(|_| came), batch.lost())
}

fn segments(segment: Option<i32>, bytes: &[u8]) -> usize {
    receive(vec![Ok(vec![message(bytes, segment)])]).0.unwrap()[0].1.segment
}

#[test]
fn a_segment_is_what_the_message_can_be_cut_to() {
    assert_eq!(segments(Some(4), b"0123456789"), 4);
    assert_eq!(segments(None, b"0123456789"), 10);
    for odd in [0, -1, 11, i32::MAX, i32::MIN] {
        let segment = segments(Some(odd), b"0123456789");
        assert!((1..=10).contains(&segment), "{odd}: {segment}");
        assert_eq!(segments(Some(odd), b""), 1);
    }
    assert_eq!(segments(None, b""), 1, "what is cut to it never ends otherwise");
}

#[test]
fn what_is_cut_or_of_nobody_is_lost_and_no_other() {
    let cut = Message { is_cut: true, ..message(b"cut", Some(2)) };
    let nobody = Message { from: Address::EMPTY, ..message(b"nobody's", None) };
    let all = vec![message(b"one", None), cut, message(b"two", None), nobody, message(b"", None)];
    let (came, lost) = receive(vec![Ok(all)]);
    let came = came.unwrap();
    let bytes: Vec<_> = came.iter().map(|(bytes, _)| bytes.as_slice()).collect();
    assert_eq!((bytes, lost), (vec![b"one".as_slice(), b"two", b""], 2));
    assert!(came.iter().all(|(_, arrived)| arrived.from == sender()));
}

/// What a datagram that was sent met comes out of the socket before what is received.
#[test]
fn errors_of_others_are_passed_over() {
    let errors =
        [libc::ECONNREFUSED, libc::EHOSTUNREACH, libc::EMSGSIZE, libc::EINTR, libc::EACCES];
    let mut answers: Vec<Answer> = errors.map(Err).to_vec();
    answers.push(Ok(vec![message(b"one", None)]));
    assert_eq!(receive(answers).0.unwrap().len(), 1);
    // However many there are, a call ends.
    assert_eq!(receive(vec![Err(libc::ECONNREFUSED); 100_000]).0.unwrap(), []);
    assert_eq!(receive(vec![Err(libc::EAGAIN)]).0.unwrap(), []);
    for end in [libc::EBADF, libc::ENOTSOCK, libc::ENOMEM] {
        assert_eq!(receive(vec![Err(end)]).0.unwrap_err().raw_os_error(), Some(end));
    }
}
