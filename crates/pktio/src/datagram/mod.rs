//! [`DatagramSocket`]: a UDP socket that sends and receives in batches, several datagrams of one flow as one message.
//!
//! Contract: one system call for a batch, and no copy of ours. A message is up to 64 datagrams, equally long but the
//! last: the kernel, or the device, cuts what is sent (`UDP_SEGMENT`), and puts together what is received
//! (`UDP_GRO`). Where the kernel does not, everything is the same, one by one. One socket speaks IPv4 and IPv6, or
//! IPv4 alone on a host that has no other; addresses are given and told without mapping. Several threads may send and
//! receive at once: each brings a batch of its own, and frames of a pool. Nothing blocks.
//!
//! Beside a socket there may be others at its port, each for one sender ([`DatagramSocket::receive_from`]): the kernel
//! gives a datagram to the one that is connected to where it comes from, so whoever floods the port fills the queue of
//! the first one alone.
//!
//! Datagrams are never fragmented on their way: what a path does not take is told ([`SendBatch::too_long`]). What
//! happens to one of them, there or here, is no end of the socket.
//!
//! Source: `udp(7)`, `ip(7)`, `ipv6(7)`, `sendmmsg(2)`, `recvmmsg(2)`; Linux `net/ipv4/udp.c`, `net/ipv6/udp.c`.

mod address;
mod control;
mod outgoing;
mod receive;
mod sys;
#[cfg(test)]
mod tests;
mod transmit;

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{SOL_IP, SOL_IPV6, SOL_SOCKET, SOL_UDP, c_int};

use crate::memory::FrameBuf;
use crate::socket::{get, set};
use address::Address;
use outgoing::Outgoing;
use receive::Slot;
use transmit::Way;

pub use outgoing::MOST_BYTES;
pub use receive::RecvBatch;
pub use transmit::{SendBatch, TooLong};

/// Messages that one system call sends or receives, at most.
const BATCH: usize = 32;

/// Counters of a socket's memory that the kernel tells at once, and which of them counts losses
/// (`linux/sock_diag.h`).
const MEMORY_COUNTERS: usize = 9;
const LOSSES: usize = 8;

/// How to open a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatagramConfig {
    /// Port to receive at; 0: one that is free.
    pub port: u16,
    /// Mark of what is sent (`SO_MARK`), for routing rules to tell it from others'.
    pub mark: Option<u32>,
    /// Device by which alone it sends and receives (`SO_BINDTODEVICE`).
    pub device: Option<String>,
    /// Bytes that may wait to be received, and as many to be sent; 0: as the system has it.
    pub buffer: usize,
}

/// An address of this host that datagrams come to or are sent from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The address.
    pub address: IpAddr,
    /// The kernel's index of the interface; `None`: whichever the routes say.
    pub interface: Option<NonZeroU32>,
}

/// What is known of a message that came: one datagram or several of the same flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Who sent it.
    pub from: SocketAddr,
    /// Where it came to: what an answer is sent from.
    pub at: Option<Source>,
    /// DSCP (6 bits) and ECN (2 bits) of its IP header.
    pub tos: u8,
    /// Bytes of each datagram but the last, which may be shorter. At least 1, even of a datagram without bytes.
    pub segment: usize,
}

/// What is to be sent: one datagram or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Their bytes, one after the other.
    pub bytes: &'a [u8],
    /// Bytes of each but the last, which may be shorter; 0: it is one datagram.
    pub segment: u16,
    /// Where they go.
    pub to: SocketAddr,
    /// Where they are sent from; `None`, or of another family than `to`: as the routes say.
    pub from: Option<Source>,
    /// DSCP (6 bits) and ECN (2 bits) of their IP headers.
    pub tos: u8,
}

/// What one call of [`DatagramSocket::send`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Messages that are done with, sent or lost: the first ones. For the others there was no room; of the first of
    /// those, some datagrams may have been sent.
    pub taken: usize,
    /// Datagrams that the kernel took.
    pub datagrams: u64,
    /// Bytes of these, without headers.
    pub bytes: u64,
    /// Datagrams lost: longer than their path takes.
    pub too_long: u64,
    /// Datagrams lost: refused for another reason.
    pub refused: u64,
    /// The last such reason.
    pub refusal: Option<ErrorKind>,
}

/// The two system calls, for tests to stand in for.
trait Calls {
    /// Receives messages into rooms, one into each, and tells each in its slot; how many came.
    fn receive(&self, rooms: &mut [IoSliceMut<'_>], slots: &mut [Slot]) -> io::Result<usize>;

    /// Sends messages, each from its pieces; how many were taken. An error is the first message's.
    fn send(&self, outgoing: &[Outgoing], pieces: &[IoSlice<'_>]) -> io::Result<usize>;
}

impl Calls for OwnedFd {
    fn receive(&self, rooms: &mut [IoSliceMut<'_>], slots: &mut [Slot]) -> io::Result<usize> {
        sys::receive(self, rooms, slots)
    }

    fn send(&self, outgoing: &[Outgoing], pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        sys::send(self, outgoing, pieces)
    }
}

/// A UDP socket.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: OwnedFd,
    port: u16,
    /// Of IPv4 and IPv6.
    is_both: bool,
    /// The kernel cuts what is sent; until it says that it does not.
    is_together: AtomicBool,
}

impl DatagramSocket {
    /// A socket in the calling thread's namespace, at all addresses of the host.
    ///
    /// # Errors
    /// When the kernel refuses: a port that is taken, a device that is not there, a mark without `CAP_NET_ADMIN`.
    pub fn bind(config: &DatagramConfig) -> io::Result<Self> {
        Self::bind_with(config, 0).map(|(socket, _)| socket)
    }

    /// A socket like that of [`Self::bind`], and so many others at the same port, which receive nothing until they are
    /// told whose datagrams ([`Self::receive_from`]).
    ///
    /// # Errors
    /// As there.
    pub fn bind_with(config: &DatagramConfig, others: usize) -> io::Result<(Self, Vec<Self>)> {
        let no_v6 = |error: &io::Error| {
            let code = error.raw_os_error();
            matches!(code, Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL))
        };
        match Self::open(config, true, others) {
            Err(error) if no_v6(&error) => Self::open(config, false, others),
            opened => opened,
        }
    }

    /// Of sockets that are all as good, the kernel has the one receive that was bound last: that is the main one. The
    /// port is found by one that shares it with nobody, as another program's may be there; and nobody can join in
    /// afterwards. That one is bound to whatever port, if any will do, and would lose it with whom it is connected to.
    fn open(
        config: &DatagramConfig,
        is_both: bool,
        others: usize,
    ) -> io::Result<(Self, Vec<Self>)> {
        let first = Self::unbound(config, is_both)?.bound(config.port)?;
        if others == 0 {
            return Ok((first, Vec::new()));
        }
        first.share(true)?;
        let shared = || {
            let socket = Self::unbound(config, is_both)?;
            socket.share(true)?;
            socket.bound(first.port)
        };
        let others = (0..others).map(|_| shared()).collect::<io::Result<Vec<_>>>()?;
        let main = shared()?;
        others.iter().chain([&main]).try_for_each(|socket| socket.share(false))?;
        Ok((main, others))
    }

    fn unbound(config: &DatagramConfig, is_both: bool) -> io::Result<Self> {
        let socket = sys::socket(if is_both { libc::AF_INET6 } else { libc::AF_INET })?;
        if let Some(mark) = config.mark {
            set(&socket, SOL_SOCKET, libc::SO_MARK, &mark)?;
        }
        if let Some(device) = &config.device {
            sys::set_text(&socket, libc::SO_BINDTODEVICE, device)?;
        }
        set_options(&socket, is_both)?;
        let opened = Self { socket, port: 0, is_both, is_together: AtomicBool::new(true) };
        if config.buffer > 0 {
            opened.set_buffer(config.buffer)?;
        }
        Ok(opened)
    }

    fn bound(mut self, port: u16) -> io::Result<Self> {
        let any: IpAddr =
            if self.is_both { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        sys::bind(&self.socket, &Address::new(SocketAddr::new(any, port), self.is_both))?;
        self.port = sys::bound(&self.socket)?.read().map_or(port, |bound| bound.port());
        Ok(self)
    }

    /// Whether other sockets may be bound to its port.
    fn share(&self, is_shared: bool) -> io::Result<()> {
        set(&self.socket, SOL_SOCKET, libc::SO_REUSEADDR, &c_int::from(is_shared))
    }

    /// Receives datagrams from there alone from now on, and those at the address alone from which the routes have one
    /// sent there: which one that is. No other socket at its port receives these. What is in its queue already
    /// stays, and what comes in this moment may be of anybody. It is not to send any more.
    ///
    /// # Errors
    /// There is no route there: it goes on as it was the first time, and may receive anything later.
    pub fn receive_from(&self, from: SocketAddr) -> io::Result<IpAddr> {
        let is_connected =
            sys::bound(&self.socket)?.read().is_some_and(|at| !at.ip().is_unspecified());
        if is_connected {
            // Else it would keep the address that it had towards the one before.
            sys::connect(&self.socket, &Address::NOBODY)?;
        }
        sys::connect(&self.socket, &Address::new(from, self.is_both))?;
        let at = sys::bound(&self.socket)?.read();
        at.map(|at| at.ip()).ok_or_else(|| ErrorKind::AddrNotAvailable.into())
    }

    /// The port that it receives at.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether several datagrams are given to the kernel as one message. On until the kernel refuses that.
    #[must_use]
    pub fn sends_together(&self) -> bool {
        self.is_together.load(Ordering::Relaxed)
    }

    /// Lets this many bytes wait to be received, and as many to be sent: beyond the system's limit where the process
    /// may, else up to that.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_buffer(&self, bytes: usize) -> io::Result<()> {
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        let forced = [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE];
        let plain = [libc::SO_RCVBUF, libc::SO_SNDBUF];
        for (forced, plain) in forced.into_iter().zip(plain) {
            set(&self.socket, SOL_SOCKET, forced, &bytes)
                .or_else(|_| set(&self.socket, SOL_SOCKET, plain, &bytes))?;
        }
        Ok(())
    }

    /// Messages that the kernel lost since the socket was opened because nobody received them in time.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn overruns(&self) -> io::Result<u32> {
        let mut counters = [0_u32; MEMORY_COUNTERS];
        get(&self.socket, SOL_SOCKET, libc::SO_MEMINFO, &mut counters)?;
        Ok(counters[LOSSES])
    }

    /// Receives messages that are there, each into a frame of `spare`, from its end on, after the frame's headroom;
    /// `each` gets them in order. How many there were: none without a spare frame, or if nothing is there.
    ///
    /// Frames should have room for 65,535 bytes, unless nobody sends so much at once: a message that is longer than
    /// its chunk is lost ([`RecvBatch::lost`]), all of its datagrams.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn recv(
        &self,
        batch: &mut RecvBatch,
        spare: &mut Vec<FrameBuf>,
        each: impl FnMut(FrameBuf, Arrived),
    ) -> io::Result<usize> {
        batch.fill(&self.socket, spare, each)
    }

    /// Sends messages in order. Consecutive ones to one destination are given to the kernel as one where they can be.
    pub fn send<'a>(
        &self,
        batch: &mut SendBatch,
        messages: impl IntoIterator<Item = Message<'a>>,
    ) -> Sent {
        let way = Way { is_together: &self.is_together, is_both: self.is_both };
        batch.send(&self.socket, way, messages)
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What the kernel is to do, and to tell of each datagram.
fn set_options(socket: &OwnedFd, is_both: bool) -> io::Result<()> {
    let (on, off): (c_int, c_int) = (1, 0);
    if is_both {
        set(socket, SOL_IPV6, libc::IPV6_V6ONLY, &off)?;
        set(socket, SOL_IPV6, libc::IPV6_RECVPKTINFO, &on)?;
        set(socket, SOL_IPV6, libc::IPV6_RECVTCLASS, &on)?;
        set(socket, SOL_IPV6, libc::IPV6_MTU_DISCOVER, &libc::IPV6_PMTUDISC_DO)?;
    } else {
        set(socket, SOL_IP, libc::IP_PKTINFO, &on)?;
    }
    set(socket, SOL_IP, libc::IP_RECVTOS, &on)?;
    set(socket, SOL_IP, libc::IP_MTU_DISCOVER, &libc::IP_PMTUDISC_DO)?;
    // Kernels before 5.0 do not know it, and hand over one by one.
    let _ = set(socket, SOL_UDP, libc::UDP_GRO, &on);
    Ok(())
}
