//! Two ends of a tunnel whose datagrams a relay forwards, and messages inside a tunnel.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;

use overlay::limits::SECOND;
use overlay::{Carrier, Pair, Relay};
use tunnel::{Config, Offer, PeerConfig, Prefix, PublicKey, Tunnel};

use crate::world::{name, secret, seeded};

const PORT: u16 = 52_000;

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// An end that has one peer, by the relay.
pub(crate) fn end(own: u64, peer: u64) -> Carrier {
    let config = Config {
        key: secret(own),
        offer: Offer::CHACHA,
        started: 0,
        started_unix: 1_800_000_000 * SECOND,
        mtu: 1_420,
    };
    let mut tunnel = Tunnel::new(config, Box::new(seeded(own))).unwrap();
    let address = Prefix::new([10, 0, 0, peer as u8].into(), 32).unwrap();
    let peer = PeerConfig {
        endpoint: Some(at("203.0.113.1:52000")),
        // Each says at once that it is there.
        keepalive: Some(25 * SECOND),
        allowed: vec![address],
        ..PeerConfig::new(secret(peer).public())
    };
    tunnel.add_peer(&peer).unwrap();
    Carrier::new(tunnel)
}

/// Nodes 1 and 2, the relay between them, and where each is: its session with the directory, and its sessions by the relay.
struct Scene {
    relay: Relay,
    ends: [Carrier; 2],
    sources: [SocketAddr; 2],
    directory: RefCell<HashMap<PublicKey, SocketAddr>>,
    now: u64,
}

impl Scene {
    fn new(sources: [&str; 2], directory: [&str; 2]) -> Self {
        let keys = [secret(1).public(), secret(2).public()];
        let mut relay = Relay::default();
        relay.join(&Pair::of(&name("a"), &name("b")), keys, PORT);
        Self {
            relay,
            ends: [end(1, 2), end(2, 1)],
            sources: sources.map(at),
            directory: RefCell::new(keys.into_iter().zip(directory.map(at)).collect()),
            now: SECOND,
        }
    }

    fn forward(&mut self, from: SocketAddr, datagram: &[u8]) -> Option<SocketAddr> {
        let known = self.directory.borrow();
        self.relay.forward(PORT, from, datagram, self.now, |key| known.get(key).copied())
    }

    /// Whether what one end says arrives at the other.
    fn says(&mut self, from: usize, what: &[u8]) -> bool {
        let [own, other] = [from, 1 - from].map(|it| at(&format!("10.0.0.{}:7", it + 1)));
        let now = self.now;
        self.ends[from].send(own, other, what, now);
        let mut got = false;
        for _ in 0..8 {
            for side in 0..2 {
                self.ends[side].tick(now);
                while let Some((_, mut datagram)) = self.ends[side].take() {
                    let source = self.sources[side];
                    if self.forward(source, &datagram) != Some(self.sources[1 - side]) {
                        continue;
                    }
                    let relay = at("203.0.113.1:52000");
                    let carried = self.ends[1 - side].receive(&mut datagram, relay, now).message();
                    got |= carried.is_some_and(|it| {
                        (it.from, it.to) == (own, other) && datagram[it.payload] == *what
                    });
                }
            }
        }
        got
    }
}

#[test]
fn two_nodes_behind_routers_that_keep_ports_speak_by_the_relay() {
    let places = ["192.0.2.1:51900", "198.51.100.1:51900"];
    let mut scene = Scene::new(places, places);
    assert!(scene.says(0, b"one") && scene.says(1, b"two"));
    // Somebody else, from elsewhere, and with what it has seen.
    let mut seen = Vec::new();
    scene.ends[0].send(at("10.0.0.1:7"), at("10.0.0.2:7"), b"x", scene.now);
    while let Some((_, datagram)) = scene.ends[0].take() {
        seen.push(datagram);
    }
    assert_eq!(scene.forward(at("203.0.113.9:51900"), &seen[0]), None);
    assert_eq!(scene.forward(at("192.0.2.1:51901"), &seen[0]), None, "no handshake");
}

#[test]
fn a_router_that_gives_another_port_for_the_relay_is_found_by_the_handshake() {
    let sources = ["192.0.2.1:40000", "198.51.100.1:40001"];
    let mut scene = Scene::new(sources, ["192.0.2.1:51900", "198.51.100.1:51900"]);
    assert!(scene.says(0, b"one") && scene.says(1, b"two"));
}

#[test]
fn two_nodes_behind_one_router_are_told_apart() {
    let mut scene =
        Scene::new(["192.0.2.1:40000", "192.0.2.1:40001"], ["192.0.2.1:51900", "192.0.2.1:51901"]);
    assert!(scene.says(0, b"one") && scene.says(1, b"two"));
}

#[test]
fn nothing_goes_to_a_node_that_has_not_sent_by_the_path() {
    let places = ["192.0.2.1:51900", "198.51.100.1:51900"];
    let mut scene = Scene::new(places, places);
    scene.ends[0].tick(SECOND);
    let (_, initiation) = scene.ends[0].take().unwrap();
    assert_eq!(scene.forward(at(places[0]), &initiation), None);
    scene.ends[1].tick(SECOND);
    let (_, initiation) = scene.ends[1].take().unwrap();
    assert_eq!(scene.forward(at(places[1]), &initiation), Some(at(places[0])));
}

#[test]
fn a_path_that_ended_forwards_nothing() {
    let places = ["192.0.2.1:51900", "198.51.100.1:51900"];
    let mut scene = Scene::new(places, places);
    assert!(scene.says(0, b"one"));
    scene.relay.part(&Pair::of(&name("a"), &name("b")));
    assert!(!scene.says(0, b"two"));
    assert!(scene.relay.counts().1 > 0);
}

#[test]
fn a_node_that_moves_is_found_again() {
    let places = ["192.0.2.1:51900", "198.51.100.1:51900"];
    let mut scene = Scene::new(places, places);
    assert!(scene.says(0, b"one"));
    scene.sources[0] = at("192.0.2.77:51900");
    scene.directory.borrow_mut().insert(secret(1).public(), scene.sources[0]);
    assert!(scene.says(0, b"two") && scene.says(1, b"three"));
}

#[test]
fn a_session_goes_on_by_a_relay_that_began_again() {
    // Routers give another port for each destination: only a handshake would show whose they are.
    let sources = ["192.0.2.1:40000", "198.51.100.1:40001"];
    let mut scene = Scene::new(sources, ["192.0.2.1:51900", "198.51.100.1:51900"]);
    assert!(scene.says(0, b"one") && scene.says(1, b"two"));
    let kept = scene.relay.take_changed();
    assert_eq!(kept.len(), 1);
    assert!(scene.relay.take_changed().is_empty());
    let pair = Pair::of(&name("a"), &name("b"));
    let keys = [secret(1).public(), secret(2).public()];
    for is_kept in [false, true] {
        scene.relay = Relay::default();
        scene.relay.join(&pair, keys, PORT);
        kept.iter().filter(|_| is_kept).for_each(|(pair, bound)| scene.relay.restore(pair, *bound));
        assert_eq!(scene.says(0, b"three"), is_kept);
    }
}

#[test]
fn a_flood_from_one_address_keeps_nobody_else_out() {
    let places = ["192.0.2.1:51900", "198.51.100.1:51900"];
    // Two addresses share a part of the rate by chance, in one of 16 scenes.
    let goes_on = (0..8).filter(|_| {
        let mut scene = Scene::new(places, places);
        for port in 1..5_000 {
            let from = SocketAddr::new([203, 0, 113, 9].into(), port);
            assert_eq!(scene.forward(from, b"a flood"), None);
        }
        scene.says(0, b"one") && scene.says(1, b"two")
    });
    assert!(goes_on.count() > 0);
}

#[test]
fn what_waits_for_a_peer_that_is_removed_is_dropped_and_counted() {
    let mut carrier = end(1, 2);
    carrier.send(at("10.0.0.1:7"), at("10.0.0.2:7"), b"x", SECOND);
    assert_eq!((carrier.waiting(), carrier.unsent()), (1, 0));
    let peer = carrier.tunnel().peers().next().unwrap();
    carrier.tunnel_mut().remove_peer(peer);
    carrier.tick(2 * SECOND);
    assert_eq!((carrier.waiting(), carrier.unsent()), (0, 1));
    carrier.send(at("10.0.0.1:7"), at("10.0.0.2:7"), b"y", 2 * SECOND);
    assert_eq!((carrier.waiting(), carrier.unsent()), (0, 2), "nobody has the address");
}
