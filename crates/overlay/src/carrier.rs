//! [`Carrier`]: messages inside a tunnel, for programs without a device: each is a UDP datagram in an inner packet, as a
//! node's own programs would send it. So signaling needs no message of the tunnel's own.
//!
//! Contract: no sockets and no clock. What waits for a session is bounded, and may be lost, which is counted: who asks asks
//! again.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use packet::craft::{Addresses, Craft, Message};
use packet::{ipv4, ipv6, udp};
use tunnel::{
    Content, Delivered, Dropped, Due, HEADROOM, PeerId, Received, Staged, TAILROOM, Tunnel,
};

/// The UDP port of a directory, inside the tunnel.
pub const PORT: u16 = 4502;

/// Packets that wait for sessions, at most: of all peers together.
const WAITING: usize = 1_024;

/// A tunnel, and what it has to send.
pub struct Carrier {
    tunnel: Tunnel,
    waiting: VecDeque<(PeerId, Vec<u8>)>,
    outgoing: VecDeque<(SocketAddr, Vec<u8>)>,
    unsent: u64,
}

/// What a datagram brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// Nothing for the program.
    Nothing,
    /// A session with this peer is there, by which nothing came yet.
    Session(PeerId),
    /// A message.
    Message(Carried),
    /// The datagram was dropped, or what was in it.
    Dropped(Dropped),
}

impl Came {
    /// The message, if that is what came.
    #[must_use]
    pub fn message(self) -> Option<Carried> {
        match self {
            Self::Message(message) => Some(message),
            Self::Nothing | Self::Session(_) | Self::Dropped(_) => None,
        }
    }
}

/// A UDP datagram that a peer sent inside the tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The peer that sent it.
    pub peer: PeerId,
    /// The datagram's source inside the tunnel.
    pub from: SocketAddr,
    /// The datagram's destination inside the tunnel.
    pub to: SocketAddr,
    /// Where its payload lies in the datagram that was received.
    pub payload: Range<usize>,
}

impl Carrier {
    /// Carries messages by this tunnel.
    #[must_use]
    pub fn new(tunnel: Tunnel) -> Self {
        Self { tunnel, waiting: VecDeque::new(), outgoing: VecDeque::new(), unsent: 0 }
    }

    /// The tunnel.
    #[must_use]
    pub fn tunnel(&self) -> &Tunnel {
        &self.tunnel
    }

    /// The tunnel, to add and remove peers.
    pub fn tunnel_mut(&mut self) -> &mut Tunnel {
        &mut self.tunnel
    }

    /// The next datagram to send.
    pub fn take(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.outgoing.pop_front()
    }

    /// How many packets wait for sessions.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many packets were dropped before they were sealed: nobody has the address, the peer's place is not known, the peer was
    /// given up or removed, or too many waited.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Takes a datagram that came from there.
    pub fn receive(&mut self, datagram: &mut [u8], from: SocketAddr, now: u64) -> Came {
        let opening = match self.tunnel.receive(datagram, from, now) {
            Received::Opening(opening) => opening,
            Received::Reply(reply) | Received::Answered { reply, .. } => {
                self.outgoing.push_back((reply.to(), reply.bytes().to_vec()));
                return Came::Nothing;
            }
            Received::Established { peer, reply } => {
                self.outgoing.push_back((reply.to(), reply.bytes().to_vec()));
                self.send_waiting(peer, now);
                return Came::Session(peer);
            }
            Received::Told(_) => return Came::Nothing,
            Received::Dropped(why) => return Came::Dropped(why),
        };
        let opened = opening.open(datagram);
        match opened.and_then(|opened| self.tunnel.release(opened, datagram, now)) {
            Ok(delivered) => self.delivered(delivered, datagram, now),
            Err(why) => Came::Dropped(why),
        }
    }

    fn delivered(&mut self, delivered: Delivered, datagram: &[u8], now: u64) -> Came {
        let Delivered { peer, established, content } = delivered;
        if established {
            self.send_waiting(peer, now);
        }
        let message = match content {
            Ok(Content::Packet(range)) => carried(peer, datagram, range),
            Ok(Content::Probe(answer)) => {
                self.outgoing.push_back((answer.to(), answer.bytes().to_vec()));
                None
            }
            Ok(Content::Keepalive | Content::Probed(_)) => None,
            Err(why) if !established => return Came::Dropped(why),
            Err(_) => None,
        };
        match message {
            Some(message) => Came::Message(message),
            None if established => Came::Session(peer),
            None => Came::Nothing,
        }
    }

    /// Sends a payload from an address and port inside the tunnel to another one, both of one family.
    pub fn send(&mut self, from: SocketAddr, to: SocketAddr, payload: &[u8], now: u64) {
        let Some(addresses) = Addresses::new(from.ip(), to.ip()) else { return };
        let message = Message::udp(from.port(), to.port());
        let packet =
            Craft { ethernet: None, payload: payload.to_vec(), ..Craft::new(addresses, message) };
        self.stage(packet.frame(), now);
    }

    fn stage(&mut self, packet: Vec<u8>, now: u64) {
        match self.tunnel.stage(&packet, now) {
            Staged::Seal(sealing) => {
                let (to, end) = (sealing.to(), HEADROOM + packet.len());
                let mut buffer = vec![0; end + TAILROOM];
                buffer[HEADROOM..end].copy_from_slice(&packet);
                match sealing.seal(&mut buffer, HEADROOM..end) {
                    Ok(range) => self.outgoing.push_back((to, buffer[range].to_vec())),
                    Err(_) => self.unsent += 1,
                }
            }
            Staged::Wait(peer) if self.waiting.len() < WAITING => {
                self.waiting.push_back((peer, packet));
            }
            Staged::Wait(_) | Staged::Dropped(_) => self.unsent += 1,
        }
    }

    /// Drops the packets that wait for peers of which this does not hold.
    fn keep_waiting(&mut self, holds: impl Fn(&Tunnel, PeerId) -> bool) {
        let (before, tunnel) = (self.waiting.len(), &self.tunnel);
        self.waiting.retain(|(of, _)| holds(tunnel, *of));
        self.unsent += (before - self.waiting.len()) as u64;
    }

    fn send_waiting(&mut self, peer: PeerId, now: u64) {
        let all = self.waiting.drain(..);
        let (ready, others): (Vec<_>, Vec<_>) = all.partition(|(of, _)| *of == peer);
        self.waiting = others.into();
        ready.into_iter().for_each(|(_, packet)| self.stage(packet, now));
    }

    /// Does what time brings: handshakes and keepalives.
    pub fn tick(&mut self, now: u64) {
        while let Some(due) = self.tunnel.due(now) {
            match due {
                Due::Send(datagram) => {
                    self.outgoing.push_back((datagram.to(), datagram.bytes().to_vec()));
                }
                Due::GaveUp(peer) | Due::Failed(peer, _) => {
                    self.keep_waiting(|_, of| of != peer);
                }
            }
        }
        // Nobody gives up a peer that was removed.
        self.keep_waiting(|tunnel, of| tunnel.status(of).is_some());
    }
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Carrier({} wait, {} to send)", self.waiting.len(), self.outgoing.len())
    }
}

/// The UDP datagram of an inner packet, if that is one, whole and without options or extension headers.
fn carried(peer: PeerId, datagram: &[u8], range: Range<usize>) -> Option<Carried> {
    let bytes = datagram.get(range.clone())?;
    let (source, destination, header): (IpAddr, IpAddr, usize) = match bytes.first()? {
        0x45 => {
            let header = ipv4::Header::new_checked(bytes)?;
            let is_whole = !header.more_fragments() && header.fragment_offset() == 0;
            let is_udp = header.protocol() == udp::PROTOCOL && is_whole;
            let ends = (header.source().into(), header.destination().into(), ipv4::MIN_HEADER_LEN);
            is_udp.then_some(ends)?
        }
        first if first >> 4 == 6 => {
            let is_udp = bytes.get(ipv6::NEXT_HEADER)? == [udp::PROTOCOL];
            let end = |range| <[u8; 16]>::try_from(bytes.get(range)?).ok().map(IpAddr::from);
            let ends = (end(ipv6::SOURCE)?, end(ipv6::DESTINATION)?, ipv6::HEADER_LEN);
            is_udp.then_some(ends)?
        }
        _ => return None,
    };
    let segment = bytes.get(header..)?;
    let word = |range| <[u8; 2]>::try_from(segment.get(range)?).ok().map(u16::from_be_bytes);
    let payload = usize::from(word(udp::LENGTH)?).checked_sub(udp::HEADER_LEN)?;
    segment.get(udp::HEADER_LEN..udp::HEADER_LEN + payload)?;
    let start = range.start + header + udp::HEADER_LEN;
    Some(Carried {
        peer,
        from: SocketAddr::new(source, word(udp::SOURCE_PORT)?),
        to: SocketAddr::new(destination, word(udp::DESTINATION_PORT)?),
        payload: start..start + payload,
    })
}
