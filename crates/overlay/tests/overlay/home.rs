//! A node of a town, as `tamis tunnel up` runs it, and the routers between it and the network.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use overlay::limits::SECOND;
use overlay::{Action, Carrier, Name, Node, PORT};
use tunnel::{Path, PeerConfig, PeerId, PublicKey};

use crate::clouded::{CLOUD, CLOUD6, end, whole};
use crate::router::{Kind, Router};
use crate::world::{directory_key, network, seeded, signer};

/// What stands between a node and the network: the node's own router first.
pub(crate) type Routers = &'static [Kind];

/// The name of a node.
pub(crate) fn name_of(side: usize) -> Name {
    let letter = char::from(b'a' + (side % 26) as u8);
    letter.to_string().repeat(side / 26 + 1).parse().unwrap()
}

/// Packets by the counts of a node's tunnel: sealed for other nodes, opened of theirs, and sealed for the cloud.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) sealed: u64,
    pub(crate) opened: u64,
    pub(crate) signals: u64,
}

impl Counted {
    pub(crate) fn add(&mut self, other: Self) {
        self.sealed += other.sealed;
        self.opened += other.opened;
        self.signals += other.signals;
    }
}

pub(crate) struct Home {
    pub(crate) carrier: Carrier,
    pub(crate) node: Node,
    /// Nanoseconds of silence after which peers get a keepalive.
    pub(crate) keep: u64,
    pub(crate) side: usize,
    pub(crate) kinds: Routers,
    inside: SocketAddr,
    /// An address of IPv6, where the node has one, and the router before it.
    pub(crate) v6: Option<(SocketAddr, Router)>,
    pub(crate) routers: Vec<Router>,
    /// The keys of peers by the directory.
    shown: BTreeMap<Name, PublicKey>,
    /// Those of them that are reached directly, and when it was looked last.
    direct: BTreeSet<Name>,
    looked: u64,
    /// The host sleeps.
    pub(crate) is_asleep: bool,
    /// When something is due, as far as it was looked.
    pub(crate) due: u64,
    /// Messages that the node sent.
    pub(crate) said: u64,
    /// What peers counted that the tunnel has no more.
    before: Counted,
    pub(crate) notes: Vec<String>,
}

impl Home {
    /// A node that begins at that time; where it is depends on how often it has moved before.
    pub(crate) fn new(side: usize, kinds: Routers, moves: u16, now: u64) -> Self {
        let number = side as u64 + 1;
        let mut carrier = Carrier::new(end(number, now));
        let cloud = PeerConfig {
            endpoint: Some(if kinds == [Kind::Sole] { CLOUD6.into() } else { CLOUD.into() }),
            keepalive: Some(25 * SECOND),
            allowed: vec![whole(network().directory().0.into())],
            ..PeerConfig::new(directory_key())
        };
        carrier.tunnel_mut().add_peer(&cloud).unwrap();
        let entropy = Box::new(seeded(number ^ 9 ^ now << 12));
        let node = Node::new(name_of(side), signer().key(), entropy).unwrap();
        let (inside, keep) = (SocketAddr::from(([0; 4], 0)), 25 * SECOND);
        let (v6, routers, before, notes) = (None, Vec::new(), Counted::default(), Vec::new());
        let (shown, direct, looked, is_asleep) = (BTreeMap::new(), BTreeSet::new(), 0, false);
        let mut home = Self {
            carrier,
            node,
            keep,
            side,
            kinds,
            inside,
            v6,
            routers,
            shown,
            direct,
            looked,
            is_asleep,
            due: 0,
            said: 0,
            before,
            notes,
        };
        home.move_to(kinds, moves);
        home
    }

    /// The node is behind other routers from now on, at other addresses.
    pub(crate) fn move_to(&mut self, kinds: Routers, moves: u16) {
        let (number, [high, low]) = (self.side as u8 + 1, moves.to_be_bytes());
        self.kinds = kinds;
        self.inside = SocketAddr::from(([10, number, low, 2], 51_900));
        let is_v6 = |kind: &Kind| matches!(kind, Kind::Firewall | Kind::Sole);
        self.v6 = kinds.iter().any(is_v6).then(|| {
            let host = [0x2001, 0xdb8, u16::from(number), moves, 0, 0, 0, 2];
            let at = SocketAddr::from((host, 51_900));
            (at, Router::new(Kind::Firewall, at.ip()))
        });
        let v4 = kinds.iter().filter(|kind| **kind != Kind::Sole);
        let v4 = v4.map(|kind| if *kind == Kind::Firewall { Kind::Random } else { *kind });
        let places = (0..).map(|at: u8| {
            IpAddr::from(
                [[64 + high, 51, low, number], [100, 64 + at, low, number]]
                    [usize::from(at + 1 < kinds.len() as u8)],
            )
        });
        self.routers = v4.zip(places).map(|(kind, at)| Router::new(kind, at)).collect();
        let v4 = (!self.routers.is_empty()).then_some(self.inside);
        self.node.set_locals(v4.into_iter().chain(self.v6.iter().map(|it| it.0)).collect());
    }

    /// The addresses outside by which the network reaches this node.
    pub(crate) fn outside(&self) -> impl Iterator<Item = IpAddr> {
        let v4 = self.routers.last().map(|router| router.address);
        v4.into_iter().chain(self.v6.as_ref().map(|(_, router)| router.address))
    }

    /// Looks which peers are no longer reached directly.
    fn look_at_ways(&mut self, now: u64) {
        let is_direct = |name: &&Name| {
            let status = self.peer_named(name).and_then(|peer| self.carrier.tunnel().status(peer));
            status.is_some_and(|status| status.path == Some(Path::Direct))
        };
        let direct: BTreeSet<Name> = self.shown.keys().filter(is_direct).cloned().collect();
        self.direct.difference(&direct).for_each(|name| self.node.fell_back(name, now));
        (self.direct, self.looked) = (direct, now);
    }

    /// Does what the node wants, as `tamis tunnel up` does.
    pub(crate) fn act(&mut self, now: u64) {
        if now >= self.looked + 10 * SECOND {
            self.look_at_ways(now);
        }
        let own = SocketAddr::new(network().addresses(self.side as u32 + 2).0.into(), PORT);
        let cloud = SocketAddr::new(network().directory().0.into(), PORT);
        while let Some(action) = self.node.take() {
            match action {
                Action::Send(message) | Action::Ask(message) => {
                    self.said += 1;
                    self.carrier.send(own, cloud, &message, now);
                }
                Action::Add { claims, relays } => {
                    self.remove(&claims.name);
                    self.shown.insert(claims.name.clone(), claims.key);
                    let peer = PeerConfig {
                        endpoint: relays.first().copied(),
                        relays,
                        keepalive: Some(self.keep),
                        allowed: vec![whole(claims.v4.into()), whole(claims.v6.into())],
                        ..PeerConfig::new(claims.key)
                    };
                    self.carrier.tunnel_mut().add_peer(&peer).unwrap();
                }
                Action::Remove { name } => self.remove(&name),
                Action::Punch { name, candidates, after, .. } => {
                    let peer = self.peer_named(&name).unwrap();
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
                Action::Note(line) => self.notes.push(line),
            }
        }
    }

    fn peer_named(&self, name: &Name) -> Option<PeerId> {
        self.carrier.tunnel().find(self.shown.get(name)?)
    }

    fn remove(&mut self, name: &Name) {
        let Some(peer) = self.peer_named(name) else { return };
        if let Some(status) = self.carrier.tunnel().status(peer) {
            self.before.sealed += status.sent.0;
            self.before.opened += status.received.0;
        }
        self.carrier.tunnel_mut().remove_peer(peer);
    }

    /// The peer of the tunnel that is this node.
    pub(crate) fn peer(&self, side: usize) -> Option<PeerId> {
        self.peer_named(&name_of(side))
    }

    /// What the tunnel has counted.
    pub(crate) fn counted(&self) -> Counted {
        let tunnel = self.carrier.tunnel();
        let status = tunnel.peers().filter_map(|peer| tunnel.status(peer));
        status.fold(self.before, |mut all, it| {
            match it.key == directory_key() {
                true => all.signals += it.sent.0,
                false => all.add(Counted { sealed: it.sent.0, opened: it.received.0, signals: 0 }),
            }
            all
        })
    }

    /// Looks when something is due.
    pub(crate) fn look(&mut self) {
        let tunnel = self.carrier.tunnel().next_due().unwrap_or(u64::MAX);
        self.due = if self.is_asleep { u64::MAX } else { tunnel.min(self.node.next_due()) };
    }

    /// Where a datagram comes from that this node sends, once it is through its routers.
    pub(crate) fn out(&mut self, to: SocketAddr, now: u64) -> Option<SocketAddr> {
        if to.is_ipv6() {
            return self.v6.as_mut().map(|(at, router)| router.out(*at, to, now));
        }
        self.routers.first()?;
        Some(self.routers.iter_mut().fold(self.inside, |from, router| router.out(from, to, now)))
    }

    /// Whether a datagram for that place reaches this node.
    pub(crate) fn lets_in(&mut self, from: SocketAddr, to: SocketAddr, now: u64) -> bool {
        if let Some((at, router)) = self.v6.as_mut().filter(|(at, _)| at.ip() == to.ip()) {
            return router.inward(from, to, now) == Some(*at);
        }
        let mut routers = self.routers.iter_mut().rev();
        let inside = routers.try_fold(to, |to, router| router.inward(from, to, now));
        inside == Some(self.inside)
    }
}
