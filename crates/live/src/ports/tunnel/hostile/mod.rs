//! Checks what a tunnel makes of a peer that has a session and seals whatever it likes, and of programs of the host
//! that send it whatever they like. Property tests and libFuzzer (`fuzz/`, target `envelope`) share it; nothing that
//! ships has it.
//!
//! Contract: [`Arena::receives`] and [`Arena::sends`] panic unless each datagram and frame becomes what a slow reading
//! of the same bytes says, a packet, a loss or an answer, in its order, and all memory is whole afterwards. No datagram
//! of a message crosses a socket; what the tunnel answers is sent to a socket of this process, over the loopback
//! device.

mod bytes;
mod outbound;
pub(super) mod settings;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ::tunnel::{
    Config, Due, HEADROOM, Inner, Offer, PeerConfig, PeerId, Prefix, Received, SystemEntropy,
    TAILROOM, Tunnel, message,
};
use packet::{Superframe, checksum, ipv4};
use pktio::datagram::Arrived;
use pktio::{Burst, Envelope, LiveMeta, Lost, Pool};

pub(crate) use self::bytes::envelope;
#[cfg(test)]
pub(super) use self::outbound::Given;
use self::settings::{MTU, inside, key, peer, settings};
use super::fit::headers_of;
use super::outer::{Kind, OUTER, kind};
use super::path_mtu::PathMtu;
use super::reception::CHUNK;
use super::site::Site;
use super::worker::Worker;
use super::{TunnelPort, ecn, mss};

/// The hostile end, and its victim.
const HOSTILE: u8 = 1;
const VICTIM: u8 = 2;
/// Bytes of the longest message: of UDP datagrams that the kernel joins.
const MESSAGE: usize = 65_535;

/// Bytes of the longest packet of the narrowest path.
const SHORTEST: u16 = 576;

/// A datagram of a message.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// A text, sealed.
    Sealed(Vec<u8>),
    /// A datagram that was sealed before, counted back from the last one.
    Again(u8),
    /// An earlier datagram, cut after this number of bytes.
    Cut(u8, u16),
    /// An earlier datagram, with these bits of a byte flipped.
    Turned(u8, u16, u8),
    /// A handshake message of this kind, of noise, whole or not.
    Handshake(u8, bool),
    Noise(Vec<u8>),
}

impl Piece {
    /// The datagram's bytes, given the datagrams that were sealed before it; empty for a text.
    pub(super) fn made_of(&self, before: &[Vec<u8>]) -> Vec<u8> {
        let sealed = |back: u8| {
            let at = before.len().checked_sub(1 + usize::from(back) % before.len().max(1));
            at.map(|at| before[at].clone()).unwrap_or_default()
        };
        match self {
            Self::Sealed(_) => Vec::new(),
            Self::Again(back) => sealed(*back),
            Self::Cut(back, len) => {
                let mut cut = sealed(*back);
                cut.truncate((*len).into());
                cut
            }
            Self::Turned(back, at, bits) => {
                let mut turned = sealed(*back);
                let at = usize::from(*at) % turned.len().max(1);
                turned.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bits);
                turned
            }
            Self::Handshake(kind, is_whole) => {
                let (kind, len) = match kind % 3 {
                    0 => (0x81, message::INITIATION),
                    1 => (0x82, message::RESPONSE),
                    _ => (0x83, message::COOKIE),
                };
                let mut bytes = vec![kind; len - usize::from(!is_whole)];
                bytes[..4].copy_from_slice(&[kind, 1, 0, 0]);
                bytes
            }
            Self::Noise(bytes) => bytes.clone(),
        }
    }
}

/// A message that the kernel hands over as one: datagrams that it joined.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    pub(super) pieces: Vec<Piece>,
    /// Bytes of each datagram; `None`: as many as the first one has.
    pub(super) segment: Option<u16>,
    /// TOS of their outer packets.
    pub(super) tos: u8,
}

/// The result of a burst of messages.
#[derive(Debug, Default)]
struct Outcome {
    packets: Vec<Vec<u8>>,
    lost: usize,
    /// Datagrams that hold no data.
    refused: u64,
}

/// A tunnel, and its hostile peer.
pub(super) struct Arena {
    site: Arc<Site>,
    port: TunnelPort,
    worker: Worker,
    pool: Pool,
    hostile: Tunnel,
    victim: PeerId,
    sink: UdpSocket,
    /// Bytes of the longest packet that the path takes.
    most: u16,
    /// Datagrams that were sealed, in their order, and what is in each.
    order: Vec<Vec<u8>>,
    texts: HashMap<Vec<u8>, Vec<u8>>,
    /// The datagrams that were received.
    came: HashSet<Vec<u8>>,
}

/// Whether an address is the hostile end's own.
fn is_theirs(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..2] == [10, HOSTILE],
        IpAddr::V6(address) => address.octets()[..2] == [0xfd, HOSTILE],
    }
}

impl Arena {
    /// Opens a tunnel that has a session with its hostile peer.
    pub(super) fn new() -> Self {
        let settings = settings(VICTIM, vec![peer(HOSTILE, None)]);
        let site = Arc::new(Site::open("victim", &settings).expect("a socket"));
        let config = Config {
            key: key(HOSTILE),
            offer: Offer::BOTH,
            started: 0,
            started_unix: 1_800_000_000_000_000_000,
            mtu: MTU.into(),
        };
        let mut hostile = Tunnel::new(config, Box::new(SystemEntropy::new())).expect("randomness");
        // Whatever the victim sends is to be seen.
        let all = |is_v6| Prefix::new(inside(VICTIM, 0, is_v6), 0).expect("a prefix");
        let victim = PeerConfig {
            endpoint: Some(SocketAddr::from(([127, 0, 0, 1], site.socket.port()))),
            allowed: vec![all(false), all(true)],
            ..PeerConfig::new(key(VICTIM).public())
        };
        let victim = hostile.add_peer(&victim).expect("a peer");
        let mut arena = Self {
            port: TunnelPort::new(Arc::clone(&site)),
            worker: Worker::new(Arc::clone(&site)),
            site,
            pool: Pool::new(64, CHUNK, OUTER),
            hostile,
            victim,
            sink: UdpSocket::bind("127.0.0.1:0").expect("a socket"),
            most: MTU,
            order: Vec::new(),
            texts: HashMap::new(),
            came: HashSet::new(),
        };
        arena.shake_hands();
        arena
    }

    /// Begins a session from the hostile end, and confirms it.
    fn shake_hands(&mut self) {
        let now = self.site.now();
        assert!(self.hostile.stage_run(self.victim, (1, 1), now).is_err());
        let Some(Due::Send(initiation)) = self.hostile.due(now) else { panic!("nothing is due") };
        let (Some(response), None) = self.site.handshake(initiation.bytes(), &self.arrived(0, 0))
        else {
            panic!("no answer")
        };
        let from = SocketAddr::from(([127, 0, 0, 1], self.site.socket.port()));
        let Received::Established { reply, .. } =
            self.hostile.receive(response.bytes(), from, self.site.now())
        else {
            panic!("no session")
        };
        let keepalive = reply.bytes().to_vec();
        self.texts.insert(keepalive.clone(), Vec::new());
        self.order.push(keepalive);
        self.receives(&[Message { pieces: vec![Piece::Again(0)], ..Message::default() }]);
        self.forget();
    }

    /// Lowers the longest packet that the path takes.
    pub(super) fn narrow(&mut self, most: u16) {
        self.most = most.clamp(SHORTEST, MTU);
        for peer in self.site.lock().peers.values_mut() {
            peer.path = PathMtu::new(self.most);
        }
        self.site.is_narrow.store(self.most < MTU, Ordering::Relaxed);
    }

    /// Forgets what was sealed.
    pub(super) fn forget(&mut self) {
        self.order.clear();
        self.texts.clear();
        self.came.clear();
    }

    fn arrived(&self, segment: usize, tos: u8) -> Arrived {
        let from = self.sink.local_addr().expect("an address");
        Arrived { from, at: None, tos, segment }
    }

    /// Seals a text of the hostile end.
    fn seal(&mut self, text: &[u8]) -> Vec<u8> {
        let now = self.site.now();
        let run = self.hostile.stage_run(self.victim, (1, text.len()), now);
        let Ok(mut run) = run else { panic!("no session") };
        let mut buffer = vec![0; HEADROOM + text.len() + TAILROOM];
        let inner = HEADROOM..HEADROOM + text.len();
        buffer[inner.clone()].copy_from_slice(text);
        let sealed = run.seal(&mut buffer, inner).expect("room");
        let datagram = buffer[sealed].to_vec();
        self.texts.insert(datagram.clone(), text.to_vec());
        self.order.push(datagram.clone());
        datagram
    }

    fn bytes(&mut self, piece: &Piece) -> Vec<u8> {
        match piece {
            Piece::Sealed(text) => self.seal(text),
            other => other.made_of(&self.order),
        }
    }

    /// Makes the tunnel receive messages, in one burst, and compares the result with what is expected.
    pub(super) fn receives(&mut self, messages: &[Message]) {
        let (mut burst, mut expected) = (Burst::with_capacity(0), Outcome::default());
        let refused = self.site.refused.load(Ordering::Relaxed);
        for message in messages {
            let mut datagrams: Vec<_> =
                message.pieces.iter().map(|piece| self.bytes(piece)).collect();
            let mut len = 0;
            datagrams.retain(|datagram| {
                let fits = len + datagram.len() <= MESSAGE;
                len += if fits { datagram.len() } else { 0 };
                fits
            });
            let first = datagrams.first().map_or(0, Vec::len);
            let segment = message.segment.map_or(first, usize::from).max(1);
            let bytes = datagrams.concat();
            self.expect(&bytes, segment, message.tos, &mut expected);
            let mut frame = self.pool.take().expect("a chunk");
            assert!(frame.extend(&bytes));
            let arrived = self.arrived(segment, message.tos);
            let frame = self.port.enveloped(frame, &arrived, None, usize::MAX);
            frame.into_iter().for_each(|frame| burst.push_frame(frame));
        }
        let mut lost = Vec::new();
        self.worker.open(&mut burst, &mut |why, _| lost.push(why));
        let packets: Vec<_> = (0..burst.len())
            .flat_map(|at| cut(burst.get(at).expect("a frame").bytes, burst.live(at)))
            .collect();
        burst.clear();
        // One loss for all packets of a frame that there was no memory for.
        let no_room = lost.iter().filter(|why| **why == Lost::NoRoom).count();
        if no_room == 0 {
            assert_eq!(comparable(packets), comparable(expected.packets));
        } else {
            assert!(packets.len() + no_room <= expected.packets.len());
        }
        assert_eq!(lost.len() - no_room, expected.lost, "{lost:?}");
        assert_eq!(self.site.refused.load(Ordering::Relaxed) - refused, expected.refused);
        for pool in [&self.pool, &self.worker.pool] {
            assert_eq!(pool.free(), pool.chunks());
        }
        assert!(self.worker.opens.joins.is_whole());
    }

    /// Adds what a message comes to, read datagram by datagram.
    fn expect(&mut self, bytes: &[u8], segment: usize, tos: u8, to: &mut Outcome) {
        for datagram in bytes.chunks(segment) {
            if kind(datagram) != Kind::Data {
                to.refused += 1;
                continue;
            }
            match self.texts.get(datagram) {
                Some(text) if self.came.insert(datagram.to_vec()) => {
                    read(text, tos, self.most, to);
                }
                _ => to.lost += 1,
            }
        }
    }
}

/// Adds what a text that the peer sealed comes to.
fn read(text: &[u8], tos: u8, most: u16, to: &mut Outcome) {
    let mut text = text.to_vec();
    let padded = text.len().next_multiple_of(16).min(usize::from(MTU).max(text.len()));
    text.resize(padded, 0);
    let is_probe = matches!(text[..], [1 | 2, 0, 0, 0, _, _, _, _, ..]);
    match Inner::parse(&text) {
        _ if text.is_empty() || is_probe => {}
        Some(inner) if is_theirs(inner.source) => {
            text.truncate(inner.len);
            mss::clamp(&mut text, most);
            if ecn::told(&mut text, tos) { to.packets.push(text) } else { to.lost += 1 }
        }
        _ => to.lost += 1,
    }
}

/// The packets that a frame stands for.
pub(super) fn cut(bytes: &[u8], live: Option<&LiveMeta>) -> Vec<Vec<u8>> {
    let Some(segments) = live.and_then(|live| live.segments) else { return vec![bytes.to_vec()] };
    let headers = headers_of(bytes);
    let superframe = Superframe::new(bytes, &headers, segments.size).expect("a superframe");
    let piece = |at| {
        let mut piece = vec![0; superframe.piece_len(at).expect("a piece")];
        superframe.write(at, &mut piece).expect("room");
        piece
    };
    (0..superframe.count()).map(piece).collect()
}

/// Packets without identifications that mean nothing, as the packets may not be fragmented: joining renumbers them.
fn comparable(mut packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    for packet in packets.iter_mut().filter(|packet| packet.first().is_some_and(|it| it >> 4 == 4))
    {
        let is_right = packet.first() == Some(&0x45) && checksum::sum(&packet[..20]) == u16::MAX;
        if is_right && packet[ipv4::FRAGMENT.start] & 0x40 != 0 {
            packet[ipv4::ID].fill(0);
            packet[ipv4::CHECKSUM].fill(0);
        }
    }
    packets
}
