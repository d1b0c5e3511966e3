//! A cloud and two nodes of it, each behind routers: what is said, sealed, relayed and sent directly, over a network in which
//! each datagram takes its time. Nothing is decided here but which way a datagram takes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::net::{IpAddr, SocketAddr};

use overlay::limits::SECOND;
use overlay::{
    Action, Authority, Carrier, Device, Directory, Effect, Node, Now, Outpost, PORT, Pair, Record,
    Relay, Sources,
};
use tunnel::{Config, Offer, Path, PeerConfig, Prefix, PublicKey, Tunnel};

use crate::router::{Kind, Router};
use crate::world::{directory_key, name, network, policy, relay, relay_of, secret, seeded, signer};

pub(crate) const MILLISECOND: u64 = SECOND / 1_000;
/// Where the cloud is: by IPv4, as nodes know it.
const CLOUD: ([u8; 4], u16) = ([203, 0, 113, 1], 51_900);
const NAMES: [&str; 2] = ["a", "b"];

/// How long a datagram takes from each node to the cloud, and from one to the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distances {
    pub(crate) cloud: [u64; 2],
    pub(crate) between: u64,
}

/// What stands between a node and the network: the node's own router first.
pub(crate) type Routers = &'static [Kind];

struct Cloud {
    carrier: Carrier,
    directory: Directory,
    authority: Authority,
    relay: Relay,
    /// What is to go from a port of the relay, though nobody asked for it.
    strays: Vec<(u16, SocketAddr)>,
}

struct Home {
    carrier: Carrier,
    node: Node,
    /// Nanoseconds of silence after which peers get a keepalive.
    keep: u64,
    number: u32,
    inside: SocketAddr,
    /// An address of IPv6, where the node has one, and the router before it.
    v6: Option<(SocketAddr, Router)>,
    routers: Vec<Router>,
}

type Flight = Reverse<(u64, u64, SocketAddr, SocketAddr, Vec<u8>)>;

/// A relay on a host of its own.
struct Apart {
    at: IpAddr,
    key: PublicKey,
    /// Nothing while it is killed.
    outpost: Option<Outpost>,
    /// What is on its disk.
    kept: Vec<(Pair, Sources)>,
    /// How long a datagram takes from a node to it.
    takes: u64,
}

/// All of it.
pub(crate) struct Town {
    cloud: Cloud,
    relays: Vec<Apart>,
    homes: [Home; 2],
    distances: Distances,
    pub(crate) now: u64,
    /// Nothing passes between the nodes without the relay.
    pub(crate) is_cut: bool,
    flights: BinaryHeap<Flight>,
    launched: u64,
    sent: u64,
    arrived: HashSet<Vec<u8>>,
    /// Datagrams that went from one node to the other without the relay.
    pub(crate) direct: u64,
}

fn tunnel(key: u64, now: u64) -> Tunnel {
    let config = Config {
        key: secret(key),
        offer: Offer::CHACHA,
        started: now,
        started_unix: 1_800_000_000 * SECOND,
        mtu: 1_420,
    };
    Tunnel::new(config, Box::new(seeded(key ^ 5))).unwrap()
}

fn whole(address: IpAddr) -> Prefix {
    Prefix::new(address, if address.is_ipv4() { 32 } else { 128 }).unwrap()
}

impl Cloud {
    fn new() -> Self {
        let device = |(number, text): (u64, &&str)| Device {
            name: name(text),
            key: secret(number).public(),
            number: number as u32 + 1,
            revoked: false,
        };
        let devices = (1..).zip(&NAMES).map(device).map(Record::Device);
        let kept: Vec<Record> = devices.collect();
        let keys = (signer().key(), directory_key());
        let policy = policy(&[NAMES]);
        let entropy = &mut seeded(3);
        let directory =
            Directory::new(network(), relay(), policy, keys, kept.clone(), entropy).unwrap();
        let keys = (signer(), directory_key());
        let authority = Authority::new(network(), keys, kept, Box::new(seeded(4))).unwrap();
        let carrier = Carrier::new(tunnel(1_000, SECOND));
        Self { carrier, directory, authority, relay: Relay::default(), strays: Vec::new() }
    }

    /// Carries out what is wanted.
    fn settle(&mut self, relays: &mut [Apart], now: u64) {
        let own = SocketAddr::new(network().directory().0.into(), PORT);
        while let Some(effect) = self.authority.take().or_else(|| self.directory.take()) {
            match effect {
                Effect::Admit { key, addresses } => {
                    let allowed = addresses.into_iter().map(whole).collect();
                    let peer = PeerConfig { allowed, ..PeerConfig::new(key) };
                    let _ = self.carrier.tunnel_mut().add_peer(&peer);
                }
                Effect::Send { to, message, .. } if relays.iter().any(|it| it.key == to) => {
                    let relay = relays.iter_mut().find(|it| it.key == to);
                    let outpost = relay.and_then(|relay| relay.outpost.as_mut());
                    outpost.into_iter().for_each(|outpost| outpost.receive(&message, now));
                }
                Effect::Send { at, message, .. } => {
                    self.carrier.send(own, SocketAddr::new(at, PORT), &message, now);
                }
                Effect::Join { pair, keys, port } => self.relay.join(&pair, keys, port),
                Effect::Part { pair } => self.relay.part(&pair),
                Effect::Tell(device) => self.directory.learn(device),
                Effect::Stray { port, to } => self.strays.push((port, to)),
                Effect::Keep(_) | Effect::Note(_) => {}
                Effect::Dismiss { .. } => unreachable!(),
            }
        }
    }

    /// Takes a datagram, as `tamis-cloud` does; returns what the relay sends on.
    fn arrived(
        &mut self,
        port: u16,
        from: SocketAddr,
        bytes: &mut [u8],
        now: u64,
    ) -> Option<SocketAddr> {
        let time = Now { nanos: now, unix: 1_800_000_000 };
        if port != CLOUD.1 {
            if let Some(peer) = self.carrier.tunnel_mut().probed_aside(bytes, from, now) {
                let key = self.carrier.tunnel().status(peer)?.key;
                self.directory.probed(&key, port, from, time);
                return None;
            }
            let tunnel = self.carrier.tunnel();
            return self
                .relay
                .forward(port, from, bytes, now, |key| tunnel.status(tunnel.find(key)?)?.endpoint);
        }
        let it = self.carrier.receive(bytes, from, now).message()?;
        let key = self.carrier.tunnel().status(it.peer)?.key;
        let payload = &bytes[it.payload];
        if !self.authority.receive(&key, payload, time) {
            self.directory.receive(&key, payload, time);
        }
        self.directory.heard(&key, from, time);
        None
    }
}

impl Home {
    fn new(side: usize, kinds: Routers) -> Self {
        let number = side as u64 + 1;
        let mut carrier = Carrier::new(tunnel(number, SECOND));
        let cloud = PeerConfig {
            endpoint: Some(CLOUD.into()),
            keepalive: Some(25 * SECOND),
            allowed: vec![whole(network().directory().0.into())],
            ..PeerConfig::new(directory_key())
        };
        carrier.tunnel_mut().add_peer(&cloud).unwrap();
        let entropy = Box::new(seeded(number ^ 9));
        let mut node = Node::new(name(NAMES[side]), signer().key(), entropy).unwrap();
        let inside = SocketAddr::from(([10, number as u8, 0, 2], 51_900));
        let v6 = kinds.contains(&Kind::Firewall).then(|| {
            let at = SocketAddr::from(([0x2001, 0xdb8, number as u16, 0, 0, 0, 0, 2], 51_900));
            (at, Router::new(Kind::Firewall, at.ip()))
        });
        let v4 =
            kinds.iter().map(|kind| if *kind == Kind::Firewall { Kind::Random } else { *kind });
        let places = (0..).map(|at: u8| {
            IpAddr::from(
                [[198, 51, 100, number as u8], [100, 64, at, number as u8]]
                    [usize::from(at + 1 < kinds.len() as u8)],
            )
        });
        let routers = v4.zip(places).map(|(kind, at)| Router::new(kind, at)).collect();
        node.set_locals([inside].into_iter().chain(v6.iter().map(|it| it.0)).collect());
        let keep = 25 * SECOND;
        Self { carrier, node, keep, number: number as u32 + 1, inside, v6, routers }
    }

    /// Does what the node wants, as `tamis tunnel up` does.
    fn act(&mut self, now: u64) {
        let own = SocketAddr::new(network().addresses(self.number).0.into(), PORT);
        let cloud = SocketAddr::new(network().directory().0.into(), PORT);
        while let Some(action) = self.node.take() {
            match action {
                Action::Send(message) | Action::Ask(message) => {
                    self.carrier.send(own, cloud, &message, now);
                }
                Action::Add { claims, relays } => {
                    let peer = PeerConfig {
                        endpoint: relays.first().copied(),
                        relays,
                        keepalive: Some(self.keep),
                        allowed: vec![whole(claims.v4.into()), whole(claims.v6.into())],
                        ..PeerConfig::new(claims.key)
                    };
                    self.carrier.tunnel_mut().add_peer(&peer).unwrap();
                }
                Action::Punch { candidates, after, .. } => {
                    let peer = self.peer().unwrap();
                    self.carrier.tunnel_mut().attempt(peer, &candidates, now + after);
                }
                Action::Probe { to } => {
                    let cloud = self.carrier.tunnel().find(&directory_key()).unwrap();
                    assert!(self.carrier.tunnel_mut().probe_aside(cloud, &to));
                }
                Action::Keep(after) => {
                    self.keep = after;
                    let peers: Vec<_> = self.carrier.tunnel().peers().collect();
                    for peer in peers {
                        assert!(self.carrier.tunnel_mut().set_keepalive(peer, after, now));
                    }
                }
                Action::Permit { .. } | Action::Answer { .. } => {}
                Action::Remove { .. } | Action::Note(_) => unreachable!("{action:?}"),
            }
        }
    }

    fn peer(&self) -> Option<tunnel::PeerId> {
        self.carrier.tunnel().find(&secret(u64::from(4 - self.number)).public())
    }

    /// Where a datagram comes from that this node sends, once it is through its routers.
    fn out(&mut self, to: SocketAddr, now: u64) -> Option<SocketAddr> {
        if to.is_ipv6() {
            return self.v6.as_mut().map(|(at, router)| router.out(*at, to, now));
        }
        Some(self.routers.iter_mut().fold(self.inside, |from, router| router.out(from, to, now)))
    }

    /// Whether a datagram for that place reaches this node.
    fn lets_in(&mut self, from: SocketAddr, to: SocketAddr, now: u64) -> bool {
        if let Some((at, router)) = self.v6.as_mut().filter(|(at, _)| at.ip() == to.ip()) {
            return router.inward(from, to, now) == Some(*at);
        }
        let mut routers = self.routers.iter_mut().rev();
        let inside = routers.try_fold(to, |to, router| router.inward(from, to, now));
        inside == Some(self.inside)
    }
}

impl Town {
    pub(crate) fn new(routers: [Routers; 2], distances: Distances) -> Self {
        Self::apart(routers, distances, &[])
    }

    /// One with relays on hosts of their own, to which datagrams take so long.
    pub(crate) fn apart(routers: [Routers; 2], distances: Distances, relays: &[u64]) -> Self {
        let [one, other] = routers;
        let apart = |(number, takes): (usize, &u64)| {
            let ((at, key), entropy) = (relay_of(number), &mut seeded(number as u64 ^ 77));
            let outpost = Outpost::new(relay().1, Vec::new(), entropy).unwrap();
            Apart { at, key, outpost: Some(outpost), kept: Vec::new(), takes: *takes }
        };
        let mut town = Self {
            cloud: Cloud::new(),
            relays: relays.iter().enumerate().map(apart).collect(),
            homes: [Home::new(0, one), Home::new(1, other)],
            distances,
            now: SECOND,
            is_cut: false,
            flights: BinaryHeap::new(),
            launched: 0,
            sent: 0,
            arrived: HashSet::new(),
            direct: 0,
        };
        for relay in &town.relays {
            town.cloud.directory.relay_apart(relay.at, relay.key);
        }
        town.cloud.settle(&mut town.relays, SECOND);
        town
    }

    /// A relay is killed.
    pub(crate) fn kill_relay(&mut self, number: usize) {
        let outpost = self.relays[number].outpost.take();
        let paths = outpost.iter().flat_map(|outpost| outpost.paths());
        self.relays[number].kept = paths.map(|path| (path.pair, path.sources)).collect();
    }

    /// A relay begins again, with what is on its disk.
    pub(crate) fn restart_relay(&mut self, number: usize) {
        let (kept, entropy) = (self.relays[number].kept.clone(), &mut seeded(self.now));
        self.relays[number].outpost = Some(Outpost::new(relay().1, kept, entropy).unwrap());
    }

    /// The relay to which a node sends what is for the other one, if it does not send directly.
    pub(crate) fn relay(&self, side: usize) -> Option<usize> {
        let home = &self.homes[side];
        let endpoint = home.carrier.tunnel().status(home.peer()?)?.endpoint?;
        self.relays.iter().position(|relay| relay.at == endpoint.ip())
    }

    /// Relays say what they have to say.
    fn hear_relays(&mut self) {
        let (now, time) = (self.now, Now { nanos: self.now, unix: 1_800_000_000 });
        for number in 0..self.relays.len() {
            let Apart { key, outpost, .. } = &mut self.relays[number];
            let (key, said) = (*key, outpost.as_mut().and_then(|outpost| outpost.take(now)));
            said.iter().for_each(|said| self.cloud.directory.receive(&key, said, time));
        }
    }

    /// A node asks for the other one.
    pub(crate) fn ask(&mut self, side: usize) {
        let now = self.now;
        self.homes[side].node.resolve(&name(NAMES[1 - side]), now);
        self.flush(side);
    }

    /// After how many nanoseconds of silence a node sends keepalives.
    pub(crate) fn keep(&self, side: usize) -> u64 {
        self.homes[side].keep
    }

    /// How a node reaches the other one, if it knows it.
    pub(crate) fn path(&self, side: usize) -> Option<Path> {
        let home = &self.homes[side];
        home.carrier.tunnel().status(home.peer()?)?.path
    }

    fn launch(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let cloud = IpAddr::from(CLOUD.0);
        let of = |at: SocketAddr| self.relays.iter().find(|relay| relay.at == at.ip());
        let relay = of(from).or(of(to)).map(|relay| relay.takes);
        let is_direct = from.ip() != cloud && to.ip() != cloud && relay.is_none();
        self.direct += u64::from(is_direct);
        if is_direct && self.is_cut {
            return;
        }
        let far = if from.ip() == cloud { to } else { from };
        let takes = match (relay, is_direct, self.side_of(far)) {
            (Some(takes), ..) => takes,
            (_, true, _) | (_, _, None) => self.distances.between,
            (_, false, Some(side)) => self.distances.cloud[side],
        };
        self.launched += 1;
        self.flights.push(Reverse((self.now + takes, self.launched, from, to, bytes)));
    }

    /// The node that has an address outside.
    fn side_of(&self, place: SocketAddr) -> Option<usize> {
        let is_its = |router: &Router| router.address == place.ip();
        let mut homes = self.homes.iter();
        homes.position(|home| {
            home.routers.last().is_some_and(is_its)
                || home.v6.as_ref().is_some_and(|(_, router)| is_its(router))
        })
    }

    fn flush(&mut self, side: usize) {
        let now = self.now;
        self.homes[side].act(now);
        while let Some((to, bytes)) = self.homes[side].carrier.take() {
            if let Some(from) = self.homes[side].out(to, now) {
                self.launch(from, to, bytes);
            }
        }
    }

    fn flush_cloud(&mut self) {
        self.cloud.settle(&mut self.relays, self.now);
        for (port, to) in std::mem::take(&mut self.cloud.strays) {
            self.launch((CLOUD.0, port).into(), to, vec![0]);
        }
        while let Some((to, bytes)) = self.cloud.carrier.take() {
            self.launch(CLOUD.into(), to, bytes);
        }
    }

    fn arrive(&mut self, from: SocketAddr, to: SocketAddr, mut bytes: Vec<u8>) {
        let now = self.now;
        if to.ip() == IpAddr::from(CLOUD.0) {
            if let Some(next) = self.cloud.arrived(to.port(), from, &mut bytes, now) {
                self.launch(to, next, bytes);
            }
            return self.flush_cloud();
        }
        if let Some(relay) = self.relays.iter_mut().find(|relay| relay.at == to.ip()) {
            let outpost = relay.outpost.as_mut();
            let next = outpost.and_then(|it| it.forward(to.port(), from, &bytes, now));
            return next.into_iter().for_each(|next| self.launch(to, next, bytes.clone()));
        }
        let Some(side) = self.side_of(to) else { return };
        let home = &mut self.homes[side];
        if !home.lets_in(from, to, now) {
            return;
        }
        if let Some(carried) = home.carrier.receive(&mut bytes, from, now).message() {
            let payload = &bytes[carried.payload];
            match carried.to.port() {
                PORT => home.node.receive(payload, now),
                _ => assert!(self.arrived.insert(payload.to_vec()), "a packet came out twice"),
            }
        }
        self.flush(side);
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, nanos: u64) {
        let end = self.now + nanos;
        while self.now < end {
            let now = self.now;
            for side in 0..2 {
                self.homes[side].node.tick(now);
                self.homes[side].carrier.tick(now);
                self.flush(side);
            }
            self.cloud.carrier.tick(now);
            self.hear_relays();
            let time = Now { nanos: now, unix: 1_800_000_000 };
            self.cloud.directory.sweep(time);
            self.cloud.directory.recall(time);
            self.flush_cloud();
            let next = (now + 5 * MILLISECOND).min(end);
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

    /// Sends something from these sides, fifty times a second, for that many hundredths; returns how many packets did not arrive
    /// within a second after that.
    pub(crate) fn speak(&mut self, sides: &[usize], hundredths: u64) -> usize {
        let first = self.sent;
        self.speak_on(sides, hundredths);
        self.wait(SECOND);
        (first..self.sent).filter(|it| !self.arrived.contains(&it.to_le_bytes()[..])).count()
    }

    /// Sends as [`Self::speak`] does, and waits for nothing.
    pub(crate) fn speak_on(&mut self, sides: &[usize], hundredths: u64) {
        for _ in 0..hundredths / 2 {
            for side in sides.iter().copied() {
                let of =
                    |side: usize| SocketAddr::new(network().addresses(side as u32 + 2).0.into(), 7);
                let (now, text) = (self.now, self.sent.to_le_bytes());
                self.sent += 1;
                self.homes[side].carrier.send(of(side), of(1 - side), &text, now);
                self.flush(side);
            }
            self.wait(20 * MILLISECOND);
        }
    }
}
