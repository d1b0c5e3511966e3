//! What the two processes say to each other: a [`Request`] of a few bytes, and an [`Answer`] with descriptors or none.
//!
//! Contract: one message of a `SOCK_SEQPACKET` socket each, of bounded length. What is no request is [`None`].

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pktio::{XdpMode, XdpSockets};
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
const XDP_SOCKETS: u8 = b'x';

/// Modes of XDP, each as its letter.
const MODES: [(u8, XdpMode); 3] =
    [(b'a', XdpMode::Auto), (b'n', XdpMode::Native), (b'g', XdpMode::Generic)];
/// Descriptors of an answer: a link, and a socket for each of the most queues that a port has.
const MOST_DESCRIPTORS: usize = 65;
/// Queues of an interface whose program is asked for.
const MOST_CHANNELS: u32 = 1 << 16;

/// What one process asks of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request<'b> {
    PacketSocket,
    TunQueue { name: &'b str, is_only: bool },
    XdpSockets { name: &'b str, mode: XdpMode, queues: u16, channels: u32 },
    SetUp { name: &'b str, is_up: bool },
}

/// Descriptors, and a name, if there is one to tell.
pub(super) type Told = (Vec<OwnedFd>, String);

/// What comes of it, or the text of an error.
pub(super) type Answer = Result<Told, String>;

impl<'b> Request<'b> {
    fn bytes(self) -> Vec<u8> {
        let (kind, name) = match self {
            Self::PacketSocket => (PACKET_SOCKET, ""),
            Self::XdpSockets { name, mode, queues, channels } => {
                let words = [&queues.to_be_bytes()[..], &channels.to_be_bytes()].concat();
                return [&[XDP_SOCKETS, letter(mode)], &*words, name.as_bytes()].concat();
            }
            Self::TunQueue { name, is_only } => (if is_only { ONLY_QUEUE } else { QUEUE }, name),
            Self::SetUp { name, is_up } => (if is_up { UP } else { DOWN }, name),
        };
        [&[kind], name.as_bytes()].concat()
    }

    /// The request that these bytes are.
    pub(super) fn parse(bytes: &'b [u8]) -> Option<Self> {
        let (kind, name) = bytes.split_first()?;
        if *kind == XDP_SOCKETS {
            return Self::xdp_sockets(name);
        }
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

    fn xdp_sockets(bytes: &'b [u8]) -> Option<Self> {
        let ([letter, a, b, c, d, e, f], name) = bytes.split_first_chunk()?;
        let (_, mode) = *MODES.iter().find(|(of, _)| of == letter)?;
        let (queues, channels) =
            (u16::from_be_bytes([*a, *b]), u32::from_be_bytes([*c, *d, *e, *f]));
        let name = str::from_utf8(name).ok()?;
        let is_sound = (1..=MOST_NAME).contains(&name.len())
            && (1..MOST_DESCRIPTORS).contains(&queues.into())
            && (queues.into()..=MOST_CHANNELS).contains(&channels);
        is_sound.then_some(Self::XdpSockets { name, mode, queues, channels })
    }
}

fn letter(mode: XdpMode) -> u8 {
    MODES.iter().find(|(_, of)| *of == mode).map_or(b'a', |(letter, _)| *letter)
}

/// Sockets as a message: the link is the last descriptor, the mode's letter the first byte, and why the driver
/// refused follows it.
pub(super) fn of_sockets(of: XdpSockets) -> Told {
    let XdpSockets { link, mut sockets, mode, refused } = of;
    sockets.push(link);
    (sockets, format!("{}{}", char::from(letter(mode)), refused.unwrap_or_default()))
}

/// Reads the sockets of a message; `None` if it has none.
pub(super) fn sockets_of((mut sockets, text): Told) -> Option<XdpSockets> {
    let (first, refused) = text.split_at_checked(1)?;
    let (_, mode) = *MODES.iter().find(|(letter, _)| first.as_bytes() == [*letter])?;
    let link = sockets.pop()?;
    let refused = Some(refused.to_owned()).filter(|refused| !refused.is_empty());
    Some(XdpSockets { link, sockets, mode, refused })
}

/// Asks.
///
/// # Errors
/// There is nobody at the other end.
pub(super) fn ask(socket: impl AsFd, request: Request<'_>) -> io::Result<()> {
    send(socket, &request.bytes(), &[])
}

/// Answers.
///
/// # Errors
/// There is nobody at the other end.
pub(super) fn answer(socket: impl AsFd, answer: &Answer) -> io::Result<()> {
    let (is_well, text, descriptors) = match answer {
        Ok((descriptors, name)) => (1, name, &descriptors[..]),
        Err(text) => (0, text, &[][..]),
    };
    let bytes = [&[is_well], text.as_bytes()].concat();
    let passed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    send(socket, &bytes[..bytes.len().min(MOST)], &passed)
}

/// Waits for an answer.
///
/// # Errors
/// There is nobody at the other end, or not for as long as the socket waits.
pub(super) fn answered(socket: impl AsFd) -> io::Result<Answer> {
    let mut bytes = [0; MOST];
    let (length, descriptors) = receive(socket, &mut bytes)?;
    let (is_well, text) = bytes[..length].split_first().ok_or(Errno::PIPE)?;
    let text = String::from_utf8_lossy(text).into_owned();
    Ok(if *is_well == 1 { Ok((descriptors, text)) } else { Err(text) })
}

fn send(socket: impl AsFd, bytes: &[u8], passed: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !passed.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(passed));
    }
    let bytes = [IoSlice::new(bytes)];
    retry_on_intr(|| sendmsg(&socket, &bytes, &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Waits for a message: its length, 0 where the other end is closed, and the descriptors that came with it.
///
/// # Errors
/// It is longer than the buffer, or nothing came for as long as the socket waits.
pub(super) fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
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
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok((received.bytes, rights.flatten().collect()))
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
            Request::XdpSockets { name, mode: XdpMode::Native, queues: 64, channels: 65536 },
            Request::XdpSockets { name: "e", mode: XdpMode::Auto, queues: 1, channels: 1 },
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
        let xdp = |queues, channels| {
            let mode = XdpMode::Auto;
            Request::XdpSockets { name: "e", mode, queues, channels }.bytes()
        };
        assert!(Request::parse(&xdp(1, 1)).is_some());
        for (queues, channels) in [(0, 1), (2, 1), (65, 65), (1, 65537)] {
            assert_eq!(Request::parse(&xdp(queues, channels)), None, "{queues} of {channels}");
        }
        let mut other = xdp(1, 1);
        other[1] = b'z';
        assert_eq!((Request::parse(&other), Request::parse(&xdp(1, 1)[..8])), (None, None));
    }
}
