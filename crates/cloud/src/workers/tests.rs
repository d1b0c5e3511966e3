//! Workers between real sockets, over loopback: nodes of many paths send at once, and each gets what its peer sent, in order.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use overlay::{Forwarded, Name, Pair, Relay};
use tunnel::PublicKey;

use super::*;

pub(super) const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A port that no program has at this moment.
pub(super) fn free_port() -> u16 {
    let socket = UdpSocket::bind((LOCAL, 0)).unwrap();
    socket.local_addr().unwrap().port()
}

pub(super) fn name(number: usize) -> Name {
    format!("n{number}").parse().unwrap()
}

pub(super) fn key(number: usize) -> PublicKey {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&number.to_le_bytes());
    PublicKey::new(key)
}

/// A relay with workers, nodes 0 and 1, 2 and 3 and so on, and where each is.
struct Scene {
    relay: Relay,
    workers: Workers,
    nodes: Vec<UdpSocket>,
    places: HashMap<PublicKey, SocketAddr>,
    at: SocketAddr,
    clock: Clock,
}

impl Scene {
    fn new(pairs: usize, workers: usize) -> Self {
        let (mut relay, clock, port) = (Relay::default(), Clock::start(), free_port());
        let socket = || {
            let socket = UdpSocket::bind((LOCAL, 0)).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
            socket
        };
        let nodes: Vec<UdpSocket> = (0..2 * pairs).map(|_| socket()).collect();
        for pair in 0..pairs {
            let ends = [2 * pair, 2 * pair + 1];
            relay.join(&Pair::of(&name(ends[0]), &name(ends[1])), pair_keys(ends), port);
        }
        let place = |number: usize| (key(number), nodes[number].local_addr().unwrap());
        let places = (0..nodes.len()).map(place).collect();
        let relaying = Relaying { ports: port..=port, workers, forwarding: relay.forwarding() };
        let workers = Workers::start(&relaying, LOCAL, clock).unwrap();
        Self { relay, workers, nodes, places, at: (LOCAL, port).into(), clock }
    }

    /// The main thread's part.
    fn turn(&mut self) {
        let (relay, places) = (&mut self.relay, &self.places);
        let look = |port, from, datagram: &_| {
            relay.look_for(port, from, datagram, |key| places.get(key).copied());
            true
        };
        self.workers.turn(look, |_, _, _: &_| panic!("no stream"), self.clock.now()).unwrap();
    }

    /// Makes both nodes of all paths known, each by a datagram.
    fn meet(&mut self) {
        let all = 2 * self.nodes.len() as u64;
        while self.relay.paths().any(|path| path.sources.contains(&None)) {
            self.nodes.iter().for_each(|node| drop(node.send_to(b"hello", self.at)));
            thread::sleep(Duration::from_millis(5));
            self.turn();
        }
        assert!(self.relay.counts().0 <= all * 100);
        for node in &self.nodes {
            while node.recv(&mut [0; 9]).is_ok() {}
        }
    }
}

pub(super) fn pair_keys(ends: [usize; 2]) -> [PublicKey; 2] {
    // In the order of their names.
    let mut ends = ends.map(|end| (name(end), key(end)));
    ends.sort_by(|one, other| one.0.cmp(&other.0));
    ends.map(|end| end.1)
}

/// A datagram of a node: who sent it, which it is, and bytes that follow from both.
fn datagram(node: usize, number: u32) -> Vec<u8> {
    // Rows of equal ones, which may be put together, and others.
    let length = if number % 16 < 12 { 300 } else { 20 + (number as usize * 37 + node) % 1_300 };
    let mut bytes = vec![(number as usize ^ node) as u8; length];
    bytes[..4].copy_from_slice(&(node as u32).to_le_bytes());
    bytes[4..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Sends numbered datagrams, in rows that the kernel takes as one where they are equally long.
fn send_all(socket: &UdpSocket, to: SocketAddr, node: usize, count: u32) {
    for number in 0..count {
        let _ = socket.send_to(&datagram(node, number), to);
        if number % 64 == 63 {
            thread::sleep(Duration::from_micros(500));
        }
    }
}

/// The numbers that a node received, once nothing follows; each datagram has to be what its peer sent.
fn received(socket: &UdpSocket, peer: usize) -> Vec<u32> {
    let (mut numbers, mut buffer) = (Vec::new(), [0; 2_000]);
    while let Ok((length, _)) = socket.recv_from(&mut buffer) {
        let number = u32::from_le_bytes(*buffer[4..].first_chunk().unwrap());
        assert_eq!(buffer[..length], datagram(peer, number), "of {peer}, number {number}");
        numbers.push(number);
    }
    numbers
}

/// All nodes send to their peers at once, and this is what each received of how many.
fn exchange(scene: &mut Scene, count: u32, pause: Duration) -> Vec<Vec<u32>> {
    let (at, is_over) = (scene.at, Arc::new(AtomicBool::new(false)));
    let nodes: Vec<UdpSocket> = scene.nodes.iter().map(|it| it.try_clone().unwrap()).collect();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(&nodes)
            .map(|(number, node)| {
                scope.spawn(move || send_all(node, at, number, count));
                scope.spawn(move || received(node, number ^ 1))
            })
            .collect();
        let ended = Arc::clone(&is_over);
        let all = scope.spawn(move || {
            let all = threads.into_iter().map(|it| it.join()).collect::<Vec<_>>();
            ended.store(true, Ordering::Relaxed);
            all
        });
        while !is_over.load(Ordering::Relaxed) {
            scene.turn();
            thread::sleep(pause);
        }
        all.join().unwrap().into_iter().map(Result::unwrap).collect()
    })
}

#[test]
fn each_gets_what_its_peer_sent_in_order_by_any_number_of_workers() {
    for workers in [1, 4] {
        let mut scene = Scene::new(6, workers);
        scene.meet();
        let before = scene.relay.counts();
        let all = exchange(&mut scene, 4_000, Duration::from_millis(1));
        for (node, numbers) in all.iter().enumerate() {
            assert!(numbers.is_sorted_by(|one, next| one < next), "{node}, {workers} workers");
            assert!(!numbers.is_empty(), "{node}, {workers} workers");
        }
        let (forwarded, dropped) = scene.relay.counts();
        let got: usize = all.iter().map(Vec::len).sum();
        assert!(got as u64 <= forwarded - before.0 && forwarded - before.0 <= 12 * 4_000);
        assert_eq!(dropped, before.1, "all are known");
    }
}

#[test]
fn what_the_main_thread_has_of_a_source_is_not_overtaken() {
    // Nobody is known, and the main thread is slow: the first datagrams wait for it while more arrive.
    for _ in 0..5 {
        let mut scene = Scene::new(4, 2);
        let all = exchange(&mut scene, 3_000, Duration::from_millis(3));
        for (node, numbers) in all.iter().enumerate() {
            assert!(numbers.is_sorted_by(|one, next| one < next), "{node}: {numbers:?}");
        }
        assert!(all.iter().any(|numbers| !numbers.is_empty()));
    }
}

#[test]
fn strangers_get_nothing_back_and_nothing_is_sent_for_them() {
    let mut scene = Scene::new(2, 2);
    scene.meet();
    let stranger = UdpSocket::bind((LOCAL, 0)).unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let (before, sent) = (scene.relay.counts(), 3_000);
    for number in 0..sent {
        stranger.send_to(&[7; 900], scene.at).unwrap();
        if number % 32 == 0 {
            scene.turn();
            thread::sleep(Duration::from_micros(300));
        }
    }
    for _ in 0..20 {
        scene.turn();
        thread::sleep(Duration::from_millis(5));
    }
    assert!(stranger.recv(&mut [0; 9]).is_err());
    for node in &scene.nodes {
        node.set_nonblocking(true).unwrap();
        assert!(node.recv(&mut [0; 9]).is_err());
    }
    let after = scene.relay.counts();
    assert_eq!(after.0, before.0);
    assert!(after.1 > before.1 && after.1 - before.1 <= sent);
}

#[test]
fn a_path_whose_rate_is_used_up_drops_and_no_other_path_does() {
    let scene = Scene::new(2, 1);
    let forwarding = scene.relay.forwarding();
    let mut relay = scene.relay;
    for (pair, sources) in [([0, 1], [1, 2]), ([2, 3], [3, 4])] {
        let at = |port: u16| Some(SocketAddr::new(LOCAL, port));
        relay.restore(&Pair::of(&name(pair[0]), &name(pair[1])), sources.map(at));
    }
    forwarding.limit(100_000);
    let port = scene.at.port();
    let send = |from: u16, bytes, now| {
        let from = SocketAddr::new(LOCAL, from);
        forwarding.read().forward(port, from, (1, bytes), now)
    };
    let second = overlay::limits::SECOND;
    // Both ways count, and the first tenth of a second is free.
    let passed = |now: u64, sources: [u16; 2]| {
        let fates = (0..1_000).map(|number| send(sources[number % 2], 1_000, now));
        fates.filter(|fate| matches!(fate, Forwarded::To(_))).count()
    };
    let first = passed(second, [1, 2]);
    assert!((10..=12).contains(&first), "{first}");
    assert_eq!(passed(second, [3, 4]), first, "the other path has its own");
    let later = passed(2 * second, [1, 2]);
    assert!((10..=12).contains(&later), "{later}: what was not used is not kept for long");
    let steady: usize = (0..100).map(|tick| passed(3 * second + tick * second / 100, [1, 2])).sum();
    assert!((105..=115).contains(&steady), "{steady}");
    // A message that is longer than the burst passes, and is paid for.
    assert!(matches!(send(3, 60_000, 5 * second), Forwarded::To(_)));
    assert_eq!(send(3, 10, 5 * second + second / 4), Forwarded::Dropped);
    assert!(matches!(send(4, 10, 5 * second + second * 6 / 10), Forwarded::To(_)));
}
