//! Two ends over a wire that loses, repeats, delays and reorders, while they move and restart: whatever happens, a
//! packet is delivered once at most and no nonce is used twice, and once the wire is good again packets pass.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::net::SocketAddr;

use proptest::prelude::*;
use tunnel::limits::SECOND;
use tunnel::{Due, Offer, Tunnel};

use crate::ends::*;

/// An end, and what waits there for a session.
struct Node {
    name: u8,
    tunnel: Tunnel,
    place: SocketAddr,
    waiting: Vec<Vec<u8>>,
}

/// How bad the wire is.
#[derive(Clone, Copy, Debug)]
struct Wire {
    /// Datagrams of a hundred that are lost, and that arrive twice.
    lost: u32,
    twice: u32,
    /// The longest delay.
    delay: u64,
}

/// What is on its way: when it arrives, a number that keeps apart what arrives at once, whence, where, and what.
type Flight = Reverse<(u64, u64, SocketAddr, SocketAddr, Vec<u8>)>;

struct World {
    nodes: [Node; 2],
    wire: Wire,
    random: fastrand::Rng,
    now: u64,
    flights: BinaryHeap<Flight>,
    launched: u64,
    /// Numbers of packets that came out, and heads of data that was sealed.
    delivered: HashSet<u64>,
    nonces: HashSet<Vec<u8>>,
    sent: u64,
}

fn node(name: u8, seed: u64, now: u64) -> Node {
    let mut config = config(name, Offer::BOTH);
    (config.started, config.started_unix) = (now, START_UNIX + now);
    let mut tunnel = end(config, seed);
    tunnel.add_peer(&peer(3 - name)).unwrap();
    Node { name, tunnel, place: place(name), waiting: Vec::new() }
}

impl World {
    fn new(seed: u64, wire: Wire) -> Self {
        Self {
            nodes: [node(1, seed, START), node(2, !seed, START)],
            wire,
            random: fastrand::Rng::with_seed(seed),
            now: START,
            flights: BinaryHeap::new(),
            launched: 0,
            delivered: HashSet::new(),
            nonces: HashSet::new(),
            sent: 0,
        }
    }

    fn launch(&mut self, from: usize, to: SocketAddr, datagram: &[u8]) {
        if datagram[0] == 0x84 {
            let head = datagram[..16].to_vec();
            assert!(self.nonces.insert(head), "a nonce was used twice");
        }
        let copies = match self.random.u32(..100) {
            n if n < self.wire.lost => 0,
            n if n >= 100 - self.wire.twice => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let at = self.now + 1_000_000 + self.random.u64(..=self.wire.delay);
            self.launched += 1;
            let whence = self.nodes[from].place;
            self.flights.push(Reverse((at, self.launched, whence, to, datagram.to_vec())));
        }
    }

    fn send(&mut self, from: usize, packet: Vec<u8>) {
        match send(&mut self.nodes[from].tunnel, &packet, self.now) {
            Ok((to, datagram)) => self.launch(from, to, &datagram),
            Err(Refused::Wait(_)) => self.nodes[from].waiting.push(packet),
            Err(Refused::Dropped(why)) => panic!("{why:?}"),
        }
        self.timers(from);
    }

    fn send_new(&mut self, from: usize) -> u64 {
        self.sent += 1;
        let name = self.nodes[from].name;
        self.send(from, packet(address(name), address(3 - name), self.sent, 64));
        self.sent
    }

    fn timers(&mut self, of: usize) {
        while let Some(due) = self.nodes[of].tunnel.due(self.now) {
            match due {
                Due::Send(outgoing) => self.launch(of, outgoing.to(), outgoing.bytes()),
                Due::GaveUp(_) => self.nodes[of].waiting.clear(),
                Due::Failed(_, why) => panic!("{why:?}"),
            }
        }
    }

    fn arrive(&mut self, whence: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let Some(at) = self.nodes.iter().position(|node| node.place == to) else { return };
        match take(&mut self.nodes[at].tunnel, datagram, whence, self.now) {
            Came::Reply(reply) | Came::Answered(reply) => {
                self.launch(at, reply.to(), reply.bytes())
            }
            Came::Established(reply) => {
                self.launch(at, reply.to(), reply.bytes());
                self.flush(at);
            }
            Came::Data { established, packet } => {
                if let Some(packet) = packet {
                    assert!(self.delivered.insert(number(&packet)), "a packet came out twice");
                }
                if established {
                    self.flush(at);
                }
            }
            Came::Told | Came::Probe(_) | Came::Probed(_) | Came::Dropped(_) => {}
        }
        self.timers(at);
    }

    fn flush(&mut self, of: usize) {
        for packet in std::mem::take(&mut self.nodes[of].waiting) {
            self.send(of, packet);
        }
    }

    /// Lets time pass until `end`, one event after the other.
    fn until(&mut self, end: u64) {
        loop {
            let flight = self.flights.peek().map(|Reverse((at, ..))| *at);
            let timer = self.nodes.iter().filter_map(|node| node.tunnel.next_due()).min();
            let Some(next) = [flight, timer].into_iter().flatten().min().filter(|at| *at < end)
            else {
                break;
            };
            self.now = self.now.max(next);
            if flight == Some(next) {
                let Some(Reverse((.., whence, to, datagram))) = self.flights.pop() else { break };
                self.arrive(whence, to, &datagram);
            } else {
                self.timers(0);
                self.timers(1);
            }
        }
        self.now = end;
    }

    /// The end is elsewhere from now on, and the other may not know.
    fn moves(&mut self, of: usize) {
        let name = self.nodes[of].name;
        self.nodes[of].place = ([203, 0, 113, name], self.random.u16(1_000..2_000)).into();
    }

    /// The end forgets everything, and its clock may be wrong.
    fn starts_anew(&mut self, of: usize) {
        let (name, at, seed) = (self.nodes[of].name, self.nodes[of].place, self.random.u64(..));
        let clock = self.now.saturating_sub(self.random.u64(..500) * SECOND);
        self.nodes[of] = Node { place: at, ..node(name, seed, clock) };
    }

    /// A good wire, and half a minute of packets: those at its end arrive.
    fn recovers(&mut self) {
        self.wire = Wire { lost: 0, twice: 0, delay: 0 };
        for second in 0..35 {
            let numbers = [self.send_new(0), self.send_new(1)];
            self.until(self.now + SECOND);
            if second >= 30 {
                assert!(numbers.iter().all(|n| self.delivered.contains(n)), "second {second}");
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Send(usize),
    Wait(u64),
    Move,
    Anew(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        30 => (0..2_usize).prop_map(Event::Send),
        10 => (0..2_000_000_000_u64).prop_map(Event::Wait),
        4 => (0..200 * SECOND).prop_map(Event::Wait),
        1 => Just(Event::Move),
        1 => (0..2_usize).prop_map(Event::Anew),
    ]
}

proptest! {
    #[test]
    fn packets_come_out_once_at_most_and_sessions_recover(
        seed in any::<u64>(),
        lost in 0..60_u32,
        twice in 0..30_u32,
        delay in prop_oneof![Just(0), 0..SECOND, 0..8 * SECOND],
        events in proptest::collection::vec(event(), 1..150),
    ) {
        let mut world = World::new(seed, Wire { lost, twice, delay });
        for event in events {
            match event {
                Event::Send(from) => drop(world.send_new(from)),
                Event::Wait(time) => world.until(world.now + time),
                // One end alone: when both move at once, nobody can tell the other.
                Event::Move => world.moves(0),
                Event::Anew(of) => world.starts_anew(of),
            }
        }
        world.recovers();
    }
}

/// An hour over a good wire: no packet is lost, whatever sessions come and go.
#[test]
fn an_hour_over_a_good_wire_loses_nothing() {
    let mut world = World::new(5, Wire { lost: 0, twice: 0, delay: 200_000_000 });
    for _ in 0..3_600 {
        world.send_new(0);
        world.send_new(1);
        world.until(world.now + SECOND);
    }
    world.until(world.now + 10 * SECOND);
    assert_eq!(world.delivered.len() as u64, world.sent);
    assert_eq!(world.sent, 7_200);
}
