//! [`DatagramSocket`]: opening, its options, and its calls.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{SOL_IP, SOL_IPV6, SOL_SOCKET, SOL_UDP, c_int};

use super::address::Address;
use super::arrived::Arrived;
use super::message::{Message, Sent};
use super::receive::RecvBatch;
use super::sys;
use super::transmit::{SendBatch, Way};
use crate::memory::FrameBuf;
use crate::socket::{get, set};

/// Counters of a socket's memory that the kernel tells at once, and which of them counts losses
/// (`linux/sock_diag.h`).
const MEMORY_COUNTERS: usize = 9;

const LOSSES: usize = 8;

/// How to open a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatagramConfig {
    /// Port to receive at; 0: any free port.
    pub port: u16,
    /// Mark of what is sent (`SO_MARK`), for routing rules to tell it from others'.
    pub mark: Option<u32>,
    /// Device by which alone it sends and receives (`SO_BINDTODEVICE`).
    pub device: Option<String>,
    /// Bytes that may wait to be received, and as many to be sent; 0: as the system has it.
    pub buffer: usize,
}

/// A UDP socket.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: OwnedFd,
    port: u16,
    /// Whether it is a socket of both IPv4 and IPv6.
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

    /// Opens a socket as [`Self::bind`] does, and `others` more at the same port, which receive nothing until
    /// [`Self::receive_from`] names their sender.
    ///
    /// # Errors
    /// See [`Self::bind`].
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

    /// Of equally good sockets, the kernel lets the one receive that was bound last: that is the main one. The first
    /// socket finds the port without sharing it, as another program may have it; and nobody can join in afterwards.
    /// That socket is bound to any port, if any will do, and would lose it when it is connected.
    pub(super) fn open(
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

    /// Opens `count` sockets at one address of the host, or at all of a family, and at the port of `config`. The kernel
    /// shares out senders among them: what one sender sends to one address arrives at one socket, in order.
    ///
    /// The first socket finds the port without sharing it (see [`Self::bind_with`]), so another program that has the port is
    /// an error. Programs of the same user may join in afterwards, as the sockets have to go on sharing.
    ///
    /// # Errors
    /// See [`Self::bind`].
    pub fn bind_each(config: &DatagramConfig, at: IpAddr, count: usize) -> io::Result<Vec<Self>> {
        let is_both = at.is_ipv6();
        let first = Self::unbound(config, is_both)?.bound_at(SocketAddr::new(at, config.port))?;
        let (on, at) = (1 as c_int, SocketAddr::new(at, first.port));
        let mut sockets = vec![first];
        for number in 1..count {
            if number == 1 {
                set(&sockets[0].socket, SOL_SOCKET, libc::SO_REUSEPORT, &on)?;
            }
            let other = Self::unbound(config, is_both)?;
            set(&other.socket, SOL_SOCKET, libc::SO_REUSEPORT, &on)?;
            sockets.push(other.bound_at(at)?);
        }
        Ok(sockets)
    }

    pub(super) fn unbound(config: &DatagramConfig, is_both: bool) -> io::Result<Self> {
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

    pub(super) fn bound(self, port: u16) -> io::Result<Self> {
        let any: IpAddr =
            if self.is_both { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        self.bound_at(SocketAddr::new(any, port))
    }

    fn bound_at(mut self, at: SocketAddr) -> io::Result<Self> {
        sys::bind(&self.socket, &Address::new(at, self.is_both))?;
        self.port = sys::bound(&self.socket)?.read().map_or(at.port(), |bound| bound.port());
        Ok(self)
    }

    /// Whether other sockets may be bound to its port.
    pub(super) fn share(&self, is_shared: bool) -> io::Result<()> {
        set(&self.socket, SOL_SOCKET, libc::SO_REUSEADDR, &c_int::from(is_shared))
    }

    /// Receives datagrams from `from` alone from now on, and only at the address that the routes choose for sending
    /// there; returns this address. No other socket at the port receives these. What is in the queue already stays, and
    /// what arrives at this moment may be from anybody. The socket must no longer send.
    ///
    /// # Errors
    /// There is no route there: the socket stays as it was the first time, and may receive anything later.
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
    /// Frames should have room for 65,535 bytes, unless no sender sends that many at once: a message that is longer
    /// than its chunk is lost ([`RecvBatch::lost`]), all of its datagrams.
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
        set(socket, SOL_IPV6, libc::IPV6_MTU_DISCOVER, &libc::IPV6_PMTUDISC_PROBE)?;
    } else {
        set(socket, SOL_IP, libc::IP_PKTINFO, &on)?;
    }
    set(socket, SOL_IP, libc::IP_RECVTOS, &on)?;
    set(socket, SOL_IP, libc::IP_MTU_DISCOVER, &libc::IP_PMTUDISC_PROBE)?;
    // Kernels before 5.0 do not know it, and hand over one by one.
    let _ = set(socket, SOL_UDP, libc::UDP_GRO, &on);
    Ok(())
}
