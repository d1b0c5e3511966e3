//! What the tests are made of: ends with names, whose randomness can be repeated, a wire between two of them, and
//! packets that can be told apart.

use std::net::{IpAddr, SocketAddr};

use tunnel::limits::SECOND;
use tunnel::{
    Config, Content, Delivered, Dropped, Due, Entropy, HEADROOM, NoEntropy, Offer, Outgoing,
    PeerConfig, PeerId, Prefix, PrivateKey, PublicKey, Received, Staged, TAILROOM, Tunnel,
};

/// Randomness of a seed.
pub(crate) struct Seeded(pub(crate) fastrand::Rng);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        self.0.fill(bytes);
        Ok(())
    }
}

pub(crate) fn private_key(name: u8) -> PrivateKey {
    PrivateKey::generate(&mut Seeded(fastrand::Rng::with_seed(u64::from(name)))).unwrap()
}

pub(crate) fn public_key(name: u8) -> PublicKey {
    private_key(name).public()
}

/// Where an end is on the wire.
pub(crate) fn place(name: u8) -> SocketAddr {
    ([192, 0, 2, name], 51_820).into()
}

/// Returns the end's address in the overlay.
pub(crate) fn address(name: u8) -> IpAddr {
    [10, 0, 0, name].into()
}

pub(crate) fn prefix(text: &str) -> Prefix {
    let (address, len) = text.split_once('/').unwrap();
    Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap()
}

/// When the tests begin, on the monotonic clock and since 1970.
pub(crate) const START: u64 = 1_000 * SECOND;
pub(crate) const START_UNIX: u64 = 1_800_000_000 * SECOND;

pub(crate) fn config(name: u8, offer: Offer) -> Config {
    let key = private_key(name);
    Config { key, offer, started: START, started_unix: START_UNIX, mtu: 1_420 }
}

pub(crate) fn peer(name: u8) -> PeerConfig {
    PeerConfig {
        endpoint: Some(place(name)),
        allowed: vec![Prefix::new(address(name), 32).unwrap()],
        ..PeerConfig::new(public_key(name))
    }
}

pub(crate) fn end(config: Config, seed: u64) -> Tunnel {
    Tunnel::new(config, Box::new(Seeded(fastrand::Rng::with_seed(seed)))).unwrap()
}

/// An IPv4 packet of `len` bytes; bytes 20 to 28 are its number.
pub(crate) fn packet(from: IpAddr, to: IpAddr, number: u64, len: usize) -> Vec<u8> {
    let (IpAddr::V4(from), IpAddr::V4(to)) = (from, to) else { panic!("IPv4 here") };
    let mut packet = vec![0x5a; len.max(28)];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(len.max(28) as u16).to_be_bytes());
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    packet[20..28].copy_from_slice(&number.to_be_bytes());
    packet
}

pub(crate) fn number(packet: &[u8]) -> u64 {
    u64::from_be_bytes(packet[20..28].try_into().unwrap())
}

/// Stages and seals at once.
pub(crate) fn send(end: &mut Tunnel, packet: &[u8], now: u64) -> Result<Outbound, Refused> {
    match end.stage(packet, now) {
        Staged::Seal(sealing) => {
            let to = sealing.to();
            let mut buffer = [vec![0; HEADROOM], packet.to_vec(), vec![0; TAILROOM]].concat();
            let inner = HEADROOM..HEADROOM + packet.len();
            let sealed = sealing.seal(&mut buffer, inner).unwrap();
            Ok((to, buffer[sealed].to_vec()))
        }
        Staged::Wait(peer) => Err(Refused::Wait(peer)),
        Staged::Dropped(why) => Err(Refused::Dropped(why)),
    }
}

/// A datagram, and where it goes.
pub(crate) type Outbound = (SocketAddr, Vec<u8>);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Wait(PeerId),
    Dropped(Dropped),
}

/// What came of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Reply(Outgoing),
    Answered(Outgoing),
    Established(Outgoing),
    Told,
    Probe(Outgoing),
    Probed(u32),
    /// A keepalive, or a packet.
    Data {
        established: bool,
        packet: Option<Vec<u8>>,
    },
    Dropped(Dropped),
}

/// Receives, opens and releases at once.
pub(crate) fn take(end: &mut Tunnel, datagram: &[u8], from: SocketAddr, now: u64) -> Came {
    match end.receive(datagram, from, now) {
        Received::Opening(opening) => {
            let mut datagram = datagram.to_vec();
            let opened = match opening.open(&mut datagram) {
                Ok(opened) => opened,
                Err(why) => return Came::Dropped(why),
            };
            match end.release(opened, &datagram, now) {
                Ok(Delivered { established, content, .. }) => {
                    contained(established, content, &datagram)
                }
                Err(why) => Came::Dropped(why),
            }
        }
        Received::Reply(reply) => Came::Reply(reply),
        Received::Answered { reply, .. } => Came::Answered(reply),
        Received::Established { reply, .. } => Came::Established(reply),
        Received::Told(_) => Came::Told,
        Received::Dropped(why) => Came::Dropped(why),
    }
}

fn contained(established: bool, content: Result<Content, Dropped>, datagram: &[u8]) -> Came {
    match content {
        Ok(Content::Keepalive) => Came::Data { established, packet: None },
        Ok(Content::Packet(range)) => {
            Came::Data { established, packet: Some(datagram[range].to_vec()) }
        }
        Ok(Content::Probe(answer)) => Came::Probe(answer),
        Ok(Content::Probed(number)) => Came::Probed(number),
        Err(why) => Came::Dropped(why),
    }
}

/// What is due to be sent, all of it; nothing is given up.
pub(crate) fn due(end: &mut Tunnel, now: u64) -> Vec<Outgoing> {
    let all = std::iter::from_fn(|| end.due(now));
    all.map(|due| match due {
        Due::Send(outgoing) => outgoing,
        other => panic!("{other:?}"),
    })
    .collect()
}

/// Ends 1 and 2, which know each other.
pub(crate) struct Pair {
    pub(crate) a: Tunnel,
    pub(crate) b: Tunnel,
    pub(crate) now: u64,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::offering(Offer::BOTH, Offer::BOTH)
    }

    pub(crate) fn offering(a: Offer, b: Offer) -> Self {
        let (mut a, mut b) = (end(config(1, a), 11), end(config(2, b), 22));
        a.add_peer(&peer(2)).unwrap();
        b.add_peer(&peer(1)).unwrap();
        Self { a, b, now: START }
    }

    pub(crate) fn peer_of_a(&self) -> PeerId {
        self.a.find(&public_key(2)).unwrap()
    }

    pub(crate) fn peer_of_b(&self) -> PeerId {
        self.b.find(&public_key(1)).unwrap()
    }

    /// The next packet of A's, or B's.
    pub(crate) fn packet(from: u8, number: u64) -> Vec<u8> {
        packet(address(from), address(3 - from), number, 100)
    }

    /// A's initiation, which a packet brings about.
    pub(crate) fn initiation(&mut self) -> Outgoing {
        let waits = send(&mut self.a, &Self::packet(1, 0), self.now);
        assert!(matches!(waits, Err(Refused::Wait(_))), "{waits:?}");
        let [initiation] = due(&mut self.a, self.now).try_into().unwrap();
        initiation
    }

    /// B's answer.
    pub(crate) fn answer(&mut self, initiation: &Outgoing) -> Outgoing {
        match take(&mut self.b, initiation.bytes(), place(1), self.now) {
            Came::Answered(response) => response,
            other => panic!("{other:?}"),
        }
    }

    /// A takes the answer, and B what confirms it.
    pub(crate) fn confirm(&mut self, response: &Outgoing) {
        let Came::Established(first) = take(&mut self.a, response.bytes(), place(2), self.now)
        else {
            panic!("no session")
        };
        let confirmed = take(&mut self.b, first.bytes(), place(1), self.now);
        assert_eq!(confirmed, Came::Data { established: true, packet: None });
    }

    /// A whole handshake that A begins.
    pub(crate) fn shake(&mut self) {
        let initiation = self.initiation();
        let response = self.answer(&initiation);
        self.confirm(&response);
    }

    pub(crate) fn established() -> Self {
        let mut pair = Self::new();
        pair.shake();
        pair
    }

    /// A's packet of that number arrives at B.
    pub(crate) fn passes(&mut self, number: u64) {
        let sent = Self::packet(1, number);
        let (to, datagram) = send(&mut self.a, &sent, self.now).unwrap();
        assert_eq!(to, place(2));
        let came = take(&mut self.b, &datagram, place(1), self.now);
        assert_eq!(came, Came::Data { established: false, packet: Some(sent) });
    }

    /// B's packet of that number arrives at A.
    pub(crate) fn passes_back(&mut self, number: u64) {
        let sent = Self::packet(2, number);
        let (_, datagram) = send(&mut self.b, &sent, self.now).unwrap();
        let came = take(&mut self.a, &datagram, place(2), self.now);
        assert_eq!(came, Came::Data { established: false, packet: Some(sent) });
    }
}
