//! Datagrams to the ends of an overlay: two that have a session, and what was on the wire between them.

use std::net::SocketAddr;

use tunnel::{
    Config, Content, Due, Entropy, HEADROOM, NoEntropy, Offer, PeerConfig, Prefix, PrivateKey,
    Received, Staged, TAILROOM, Tunnel,
};

/// Randomness that is the same in each run.
struct Seeded(fastrand::Rng);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        self.0.fill(bytes);
        Ok(())
    }
}

/// Two ends, and a time.
pub(super) struct Ends {
    pub(super) ends: [Tunnel; 2],
    pub(super) now: u64,
}

pub(super) const PACKETS: [[u8; 20]; 2] = [
    [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
    [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1],
];

/// Records: a byte whose lowest bit is the receiver and whose others choose a genuine datagram, or none; a
/// length; and as many bytes, which change it, or are the datagram.
pub(super) fn tunnel(data: &[u8]) {
    let mut ends = Ends::new();
    let genuine = ends.talk();
    let mut rest = data;
    while let [choice, len, more @ ..] = rest {
        let (bytes, next) = more.split_at(more.len().min(usize::from(*len)));
        let mut datagram = genuine.get(usize::from(choice >> 1)).cloned().unwrap_or_default();
        datagram.resize(datagram.len().max(bytes.len()), 0);
        datagram.iter_mut().zip(bytes).for_each(|(byte, change)| *byte ^= change);
        ends.now += 1_000_000;
        let (end, now) = (usize::from(choice & 1), ends.now);
        assert!(ends.ends[end].probed_aside(&datagram, place(2), now).is_none());
        let delivered = ends.take(usize::from(choice & 1), &mut datagram);
        assert!(delivered.is_none(), "{choice}: {bytes:?}");
        rest = next;
    }
    for from in [0, 1] {
        let mut datagram = ends.send(from);
        assert_eq!(ends.take(1 - from, &mut datagram), Some(PACKETS[from].to_vec()));
    }
}

pub(super) fn place(of: usize) -> SocketAddr {
    ([192, 0, 2, of as u8], 1).into()
}

/// End 0 or 1, or a stranger, who knows another one; as it is when it starts, with this randomness.
pub(super) fn end(of: usize, other: usize, seed: u64) -> Tunnel {
    let key = |of: usize| PrivateKey::new([1 + of as u8; 32]);
    let config = Config {
        key: key(of),
        offer: Offer::BOTH,
        started: 0,
        started_unix: 1_800_000_000_000_000_000,
        mtu: 1_420,
    };
    let random = fastrand::Rng::with_seed(seed);
    let mut tunnel = Tunnel::new(config, Box::new(Seeded(random))).expect("randomness");
    let prefix = Prefix::new([10, 0, 0, 1 + other as u8].into(), 32).expect("a prefix");
    let peer = PeerConfig {
        endpoint: Some(place(other)),
        allowed: vec![prefix],
        ..PeerConfig::new(key(other).public())
    };
    tunnel.add_peer(&peer).expect("a peer");
    tunnel
}

impl Ends {
    pub(super) fn new() -> Self {
        Self { ends: [end(0, 1, 0), end(1, 0, 1)], now: 1_000_000_000 }
    }

    /// A handshake and a packet in each direction: all that is on the wire.
    fn talk(&mut self) -> Vec<Vec<u8>> {
        let Staged::Wait(_) = self.ends[0].stage(&PACKETS[0], self.now) else {
            panic!("a session before a handshake")
        };
        let Some(Due::Send(initiation)) = self.ends[0].due(self.now) else { panic!("nothing due") };
        let mut wire = vec![initiation.bytes().to_vec()];
        let Received::Answered { reply, .. } =
            self.ends[1].receive(initiation.bytes(), place(0), self.now)
        else {
            panic!("no answer")
        };
        wire.push(reply.bytes().to_vec());
        let Received::Established { reply, .. } =
            self.ends[0].receive(reply.bytes(), place(1), self.now)
        else {
            panic!("no session")
        };
        wire.push(reply.bytes().to_vec());
        assert_eq!(self.take(1, &mut reply.bytes().to_vec()), None);
        for from in [0, 1] {
            let datagram = self.send(from);
            assert!(self.take(1 - from, &mut datagram.clone()).is_some());
            wire.push(datagram);
        }
        wire
    }

    fn send(&mut self, from: usize) -> Vec<u8> {
        let Staged::Seal(sealing) = self.ends[from].stage(&PACKETS[from], self.now) else {
            panic!("no session")
        };
        let mut buffer = vec![0; HEADROOM + 20 + TAILROOM];
        buffer[HEADROOM..HEADROOM + 20].copy_from_slice(&PACKETS[from]);
        let sealed = sealing.seal(&mut buffer, HEADROOM..HEADROOM + 20).expect("room");
        buffer[sealed].to_vec()
    }

    /// The packet in a datagram, if it is delivered.
    pub(super) fn take(&mut self, at: usize, datagram: &mut [u8]) -> Option<Vec<u8>> {
        let received = self.ends[at].receive(datagram, place(1 - at), self.now);
        let Received::Opening(opening) = received else { return None };
        let opened = opening.open(datagram).ok()?;
        let delivered = self.ends[at].release(opened, datagram, self.now).ok()?;
        match delivered.content {
            Ok(Content::Packet(range)) => Some(datagram[range].to_vec()),
            _ => None,
        }
    }
}
