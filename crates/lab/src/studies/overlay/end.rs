//! What both forms share: an end's device, its socket, its protocol and its clock.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use tunnel::{
    Config, Content, Due, HEADROOM, Offer, Opened, Outgoing, PeerConfig, Prefix, PrivateKey,
    PublicKey, Received, SystemEntropy, TAILROOM, Tunnel,
};

use crate::oracle::tun::open_tun;

/// Bytes of a buffer, for a packet or a datagram.
pub(super) const BUFFER: usize = HEADROOM + 1500 + TAILROOM;
/// At least so often it is looked what is due.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What an end is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The device that it makes.
    pub device: String,
    /// Its private key.
    pub key: [u8; 32],
    /// Its UDP port; 0 for any.
    pub listen: u16,
    /// Bytes of the longest inner packet.
    pub mtu: u16,
    /// Whom it talks to.
    pub peers: Vec<Peer>,
}

/// Somebody that an end talks to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Peer {
    /// Its public key.
    pub key: [u8; 32],
    /// Where it is, if that is known.
    pub endpoint: Option<SocketAddr>,
    /// Its inner address.
    pub address: Ipv4Addr,
    /// Seconds of silence after which it gets a keepalive; 0 for none.
    pub keepalive: u16,
}

/// Where packets come and go.
pub(super) struct Wires {
    device: File,
    socket: UdpSocket,
    started: Instant,
}

/// One end.
pub(super) struct End {
    pub(super) wires: Wires,
    pub(super) tunnel: Tunnel,
}

impl End {
    pub(super) fn new(settings: &Settings) -> io::Result<Self> {
        let device = open_tun(&settings.device)?;
        let socket = UdpSocket::bind(("0.0.0.0", settings.listen))?;
        socket.set_nonblocking(true)?;
        let wires = Wires { device, socket, started: Instant::now() };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
        let config = Config {
            key: PrivateKey::new(settings.key),
            offer: Offer::of_this_machine(),
            started: 0,
            started_unix: u64::try_from(since.as_nanos()).map_err(io::Error::other)?,
            mtu: settings.mtu.into(),
        };
        let entropy = Box::new(SystemEntropy::new());
        let mut tunnel = Tunnel::new(config, entropy).map_err(io::Error::other)?;
        for peer in &settings.peers {
            let keepalive = Some(u64::from(peer.keepalive) * 1_000_000_000);
            let address = Prefix::new(peer.address.into(), 32).into_iter();
            let peer = PeerConfig {
                endpoint: peer.endpoint,
                keepalive: keepalive.filter(|nanos| *nanos > 0),
                allowed: address.collect(),
                ..PeerConfig::new(PublicKey::new(peer.key))
            };
            tunnel.add_peer(&peer).map_err(|error| io::Error::other(format!("{error:?}")))?;
        }
        Ok(Self { wires, tunnel })
    }
}

impl Wires {
    /// Nanoseconds since the end began.
    pub(super) fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// The device and the socket, to wait for.
    pub(super) fn both(&self) -> [BorrowedFd<'_>; 2] {
        [self.device.as_fd(), self.socket.as_fd()]
    }

    /// An inner packet into a buffer, behind the room that sealing needs; nothing if none waits.
    pub(super) fn read(&self, buffer: &mut [u8; BUFFER]) -> io::Result<Option<Range<usize>>> {
        let room = HEADROOM..BUFFER - TAILROOM;
        match (&self.device).read(&mut buffer[room]) {
            Ok(length) => Ok(Some(HEADROOM..HEADROOM + length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A datagram into a buffer; nothing if none waits.
    pub(super) fn receive(
        &self,
        buffer: &mut [u8; BUFFER],
    ) -> io::Result<Option<(usize, SocketAddr)>> {
        match self.socket.recv_from(buffer) {
            Ok(received) => Ok(Some(received)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a datagram. One that is not taken is lost, as on any wire.
    pub(super) fn send(&self, datagram: &[u8], to: SocketAddr) {
        let _ = self.socket.send_to(datagram, to);
    }

    fn send_own(&self, own: &Outgoing) {
        self.send(own.bytes(), own.to());
    }

    /// Sends what the protocol has to say.
    pub(super) fn send_due(&self, tunnel: &mut Tunnel) {
        while let Some(due) = tunnel.due(self.now()) {
            if let Due::Send(own) = due {
                self.send_own(&own);
            }
        }
    }

    /// Answers what is about a handshake.
    pub(super) fn answer(&self, received: &Received) {
        match received {
            Received::Reply(own)
            | Received::Answered { reply: own, .. }
            | Received::Established { reply: own, .. } => self.send_own(own),
            Received::Opening(_) | Received::Told(_) | Received::Dropped(_) => (),
        }
    }

    /// Hands out the inner packet of a datagram that was opened. One that the host refuses is lost.
    pub(super) fn deliver(&self, tunnel: &mut Tunnel, opened: Opened, datagram: &[u8]) {
        let delivered = tunnel.release(opened, datagram, self.now());
        match delivered.map(|delivered| delivered.content) {
            Ok(Ok(Content::Packet(range))) => {
                let packet = datagram.get(range).unwrap_or_default();
                let _ = (&self.device).write(packet);
            }
            Ok(Ok(Content::Probe(own))) => self.send_own(&own),
            _ => (),
        }
    }
}

/// Waits until one of these has something, or a moment.
pub(super) fn wait(ends: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut ends: Vec<_> =
        ends.iter().map(|end| PollFd::from_borrowed_fd(*end, PollFlags::IN)).collect();
    match poll(&mut ends, Some(&TICK)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
