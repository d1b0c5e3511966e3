//! What the two processes say to each other: a [`Request`] of a few bytes, and an [`Answer`] with a descriptor or none.
//!
//! Contract: one message of a `SOCK_SEQPACKET` socket each, of bounded length. What is no request is [`None`].

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Bytes of the longest name of an interface.
const MOST_NAME: usize = 15;
/// Bytes of the longest message: an error's text; it is cut there.
const MOST: usize = 256;

/// Bytes that begin a request.
const PACKET_SOCKET: u8 = b'p';
const QUEUE: u8 = b'q';
const ONLY_QUEUE: u8 = b'o';
const UP: u8 = b'u';
const DOWN: u8 = b'd';

/// What one process asks of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request<'b> {
    PacketSocket,
    TunQueue { name: &'b str, is_only: bool },
    SetUp { name: &'b str, is_up: bool },
}

/// What comes of it: a name, if there is one to tell, or the text of an error.
pub(super) type Answer = Result<(Option<OwnedFd>, String), String>;

impl<'b> Request<'b> {
    fn bytes(self) -> Vec<u8> {
        let (kind, name) = match self {
            Self::PacketSocket => (PACKET_SOCKET, ""),
            Self::TunQueue { name, is_only } => (if is_only { ONLY_QUEUE } else { QUEUE }, name),
            Self::SetUp { name, is_up } => (if is_up { UP } else { DOWN }, name),
        };
        [&[kind], name.as_bytes()].concat()
    }

    /// The request that these bytes are.
    pub(super) fn parse(bytes: &'b [u8]) -> Option<Self> {
        let (kind, name) = bytes.split_first()?;
        let name = str::from_utf8(name).ok()?;
        match (*kind, name.len()) {
            (PACKET_SOCKET, 0) => Some(Self::PacketSocket),
            (QUEUE | ONLY_QUEUE, 1..=MOST_NAME) => {
                Some(Self::TunQueue { name, is_only: *kind == ONLY_QUEUE })
            }
            (UP | DOWN, 1..=MOST_NAME) => Some(Self::SetUp { name, is_up: *kind == UP }),
            _ => None,
        }
    }
}

/// Asks.
///
/// # Errors
/// There is nobody at the other end.
pub(super) fn ask(socket: impl AsFd, request: Request<'_>) -> io::Result<()> {
    send(socket, &request.bytes(), None)
}

/// Answers.
///
/// # Errors
/// There is nobody at the other end.
pub(super) fn answer(socket: impl AsFd, answer: &Answer) -> io::Result<()> {
    let (is_well, text, descriptor) = match answer {
        Ok((descriptor, name)) => (1, name, descriptor.as_ref()),
        Err(text) => (0, text, None),
    };
    let bytes = [&[is_well], text.as_bytes()].concat();
    send(socket, &bytes[..bytes.len().min(MOST)], descriptor.map(AsFd::as_fd))
}

/// Waits for an answer.
///
/// # Errors
/// There is nobody at the other end, or not for as long as the socket waits.
pub(super) fn answered(socket: impl AsFd) -> io::Result<Answer> {
    let mut bytes = [0; MOST];
    let (length, descriptor) = receive(socket, &mut bytes)?;
    let (is_well, text) = bytes[..length].split_first().ok_or(Errno::PIPE)?;
    let text = String::from_utf8_lossy(text).into_owned();
    Ok(if *is_well == 1 { Ok((descriptor, text)) } else { Err(text) })
}

fn send(socket: impl AsFd, bytes: &[u8], passed: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let passed = passed.as_slice();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !passed.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(passed));
    }
    let bytes = [IoSlice::new(bytes)];
    retry_on_intr(|| sendmsg(&socket, &bytes, &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Waits for a message: its length, 0 where the other end is closed, and the descriptor that came with it.
///
/// # Errors
/// It is longer than the buffer, or nothing came for as long as the socket waits.
pub(super) fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(bytes)], &mut control, flags) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(Errno::MSGSIZE.into());
    }
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok((received.bytes, descriptors.next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let name = "fifteen bytes !";
        for request in [
            Request::PacketSocket,
            Request::TunQueue { name, is_only: true },
            Request::TunQueue { name: "t", is_only: false },
            Request::SetUp { name, is_up: true },
            Request::SetUp { name: "eth0", is_up: false },
        ] {
            assert_eq!(Request::parse(&request.bytes()), Some(request));
        }
    }

    #[test]
    fn what_is_no_request_is_none() {
        let long = [b"u".as_slice(), &[b'a'; 16]].concat();
        for bytes in [b"".as_slice(), b"x", b"pa", b"q", b"o", b"u", b"d", b"u\xff", &long] {
            assert_eq!(Request::parse(bytes), None, "{bytes:?}");
        }
    }
}
