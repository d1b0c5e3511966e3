//! Two ends of a tunnel behind routers that translate, a relay, and a network between them that loses, repeats, delays and
//! reorders.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::net::SocketAddr;

use overlay::limits::SECOND;
use overlay::{Carrier, Pair, Relay};
use tunnel::{Config, Offer, Path, PeerConfig, PeerId, Prefix, Tunnel};

use crate::router::{Kind, Router};
use crate::world::{name, secret, seeded};

pub(crate) const MILLISECOND: u64 = SECOND / 1_000;
const RELAY: ([u8; 4], u16) = ([203, 0, 113, 1], 52_000);
const DIRECTORY: ([u8; 4], u16) = ([203, 0, 113, 1], 51_900);

/// Where copies come from.
const COPIER: ([u8; 4], u16) = ([203, 0, 113, 66], 6_666);

/// How bad the network is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// Datagrams of a hundred that are lost, and that arrive twice.
    pub(crate) lost: u32,
    pub(crate) twice: u32,
    /// By how much datagrams are late, at most.
    pub(crate) late: u64,
    /// How long one takes between the routers, and between a router and the relay.
    pub(crate) direct: u64,
    pub(crate) relayed: u64,
}

pub(crate) const FAIR: Weather =
    Weather { lost: 0, twice: 0, late: 0, direct: 8 * MILLISECOND, relayed: 10 * MILLISECOND };

struct Host {
    carrier: Carrier,
    peer: PeerId,
    inside: SocketAddr,
    router: Router,
}

type Flight = Reverse<(u64, u64, SocketAddr, SocketAddr, Vec<u8>)>;

pub(crate) struct Streets {
    hosts: [Host; 2],
    relay: Relay,
    pub(crate) weather: Weather,
    /// Nothing passes between the routers.
    pub(crate) is_cut: bool,
    /// Somebody on the path sends a copy of each datagram to these sides from elsewhere, which arrives before it.
    pub(crate) copied: [bool; 2],
    pub(crate) now: u64,
    flights: BinaryHeap<Flight>,
    launched: u64,
    random: fastrand::Rng,
    sent: u64,
    arrived: HashSet<Vec<u8>>,
}

fn host(number: u64, kind: Kind) -> Host {
    let config = Config {
        key: secret(number),
        offer: Offer::CHACHA,
        started: 0,
        started_unix: 1_800_000_000 * SECOND,
        mtu: 1_420,
    };
    let mut tunnel = Tunnel::new(config, Box::new(seeded(number))).unwrap();
    let other = 3 - number;
    let peer = PeerConfig {
        endpoint: Some(RELAY.into()),
        relays: vec![RELAY.into()],
        keepalive: Some(25 * SECOND),
        allowed: vec![Prefix::new([10, 99, 0, other as u8].into(), 32).unwrap()],
        ..PeerConfig::new(secret(other).public())
    };
    let peer = tunnel.add_peer(&peer).unwrap();
    let router = Router::new(kind, [198, 51, 100, number as u8].into());
    let inside = ([10, number as u8, 0, 2], 51_900).into();
    Host { carrier: Carrier::new(tunnel), peer, inside, router }
}

impl Streets {
    pub(crate) fn new(kinds: [Kind; 2], seed: u64, weather: Weather) -> Self {
        let mut relay = Relay::default();
        let keys = [secret(1).public(), secret(2).public()];
        relay.join(&Pair::of(&name("a"), &name("b")), keys, RELAY.1);
        Self {
            hosts: [host(1, kinds[0]), host(2, kinds[1])],
            relay,
            weather,
            is_cut: false,
            copied: [false; 2],
            now: SECOND,
            flights: BinaryHeap::new(),
            launched: 0,
            random: fastrand::Rng::with_seed(seed),
            sent: 0,
            arrived: HashSet::new(),
        }
    }

    /// Where the directory sees a host's session: the host says that it is there all the time.
    fn seen(&mut self, side: usize) -> SocketAddr {
        let (now, host) = (self.now, &mut self.hosts[side]);
        host.router.out(host.inside, DIRECTORY.into(), now)
    }

    /// The directory has both try, each after its pause.
    pub(crate) fn punch(&mut self, after: [u64; 2]) {
        for (side, after) in after.into_iter().enumerate() {
            let (at, other) = (self.now + after, self.seen(1 - side));
            let host = &mut self.hosts[side];
            // The second place leads nowhere.
            let places = [other, ([10, 9, 9, 9], 51_900).into()];
            assert!(host.carrier.tunnel_mut().attempt(host.peer, &places, at));
        }
    }

    pub(crate) fn path(&self, side: usize) -> Path {
        let host = &self.hosts[side];
        host.carrier.tunnel().status(host.peer).unwrap().path.unwrap()
    }

    /// The round trip of the way to the other host, as a host has measured it.
    pub(crate) fn round_trip(&self, side: usize) -> Option<u64> {
        let host = &self.hosts[side];
        host.carrier.tunnel().status(host.peer).unwrap().round_trip
    }

    /// Datagrams that came to the relay.
    pub(crate) fn relayed(&self) -> u64 {
        let (forwarded, dropped) = self.relay.counts();
        forwarded + dropped
    }

    fn launch(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let relay = SocketAddr::from(RELAY);
        let is_direct = from != relay && to != relay;
        let mut hosts = self.hosts.iter().zip(self.copied);
        if hosts.any(|(host, is)| is && host.router.address == to.ip()) {
            let copy = Reverse((self.now, 0, COPIER.into(), to, bytes.to_vec()));
            self.flights.push(copy);
        }
        if is_direct && self.is_cut {
            return;
        }
        let Weather { lost, twice, late, direct, relayed } = self.weather;
        let copies = 1 + usize::from(self.random.u32(..100) < twice);
        for _ in 0..copies {
            if self.random.u32(..100) < lost {
                continue;
            }
            let takes = if is_direct { direct } else { relayed };
            let at = self.now + takes + self.random.u64(..=late);
            self.launched += 1;
            self.flights.push(Reverse((at, self.launched, from, to, bytes.to_vec())));
        }
    }

    fn flush(&mut self, side: usize) {
        while let Some((to, bytes)) = self.hosts[side].carrier.take() {
            let (now, host) = (self.now, &mut self.hosts[side]);
            let from = host.router.out(host.inside, to, now);
            self.launch(from, to, &bytes);
        }
    }

    fn arrive(&mut self, from: SocketAddr, to: SocketAddr, mut bytes: Vec<u8>) {
        if to == RELAY.into() {
            let ends = [(secret(1).public(), self.seen(0)), (secret(2).public(), self.seen(1))];
            let seen =
                |key: &tunnel::PublicKey| ends.iter().find(|(of, _)| of == key).map(|(_, at)| *at);
            if let Some(next) = self.relay.forward(RELAY.1, from, &bytes, self.now, seen) {
                self.launch(to, next, &bytes);
            }
            return;
        }
        let found = self.hosts.iter().position(|host| host.router.address == to.ip());
        let Some(side) = found else { return };
        let (now, host) = (self.now, &mut self.hosts[side]);
        if host.router.inward(from, to, now).is_none() {
            return;
        }
        if let Some(carried) = host.carrier.receive(&mut bytes, from, now).message() {
            let payload = bytes[carried.payload].to_vec();
            assert!(self.arrived.insert(payload), "a packet came out twice");
        }
        self.flush(side);
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, nanos: u64) {
        let end = self.now + nanos;
        while self.now < end {
            for side in 0..2 {
                let now = self.now;
                self.hosts[side].carrier.tick(now);
                self.seen(side);
                self.flush(side);
            }
            let next = (self.now + 10 * MILLISECOND).min(end);
            while let Some(Reverse((at, ..))) = self.flights.peek()
                && *at <= next
            {
                let Some(Reverse((at, _, from, to, bytes))) = self.flights.pop() else { break };
                self.now = self.now.max(at);
                self.arrive(from, to, bytes);
            }
            self.now = next;
        }
    }

    /// Sends something each way, five times a second for some seconds; returns the number of packets that did not arrive.
    pub(crate) fn speak(&mut self, seconds: u64) -> u64 {
        self.speak_from(&[0, 1], seconds)
    }

    /// Sends as [`Self::speak`] does, from these sides alone.
    pub(crate) fn speak_from(&mut self, sides: &[usize], seconds: u64) -> u64 {
        let first = self.sent + 1;
        for _ in 0..5 * seconds {
            for side in sides.iter().copied() {
                let [own, other] = [side, 1 - side].map(|it| ([10, 99, 0, it as u8 + 1], 7).into());
                self.sent += 1;
                let (now, text) = (self.now, self.sent.to_le_bytes());
                self.hosts[side].carrier.send(own, other, &text, now);
                self.flush(side);
            }
            self.wait(SECOND / 5);
        }
        let is_missing = |number: &u64| !self.arrived.contains(&number.to_le_bytes()[..]);
        (first..=self.sent).filter(is_missing).count() as u64
    }
}
