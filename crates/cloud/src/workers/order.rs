//! Workers and the main thread, in one thread and in any order: whatever waits where, what one node sends to another one arrives in
//! the order in which it was sent, each once or not at all.

use std::net::{Ipv6Addr, SocketAddrV6, UdpSocket};

use overlay::{Pair, Relay};

use super::tests::{LOCAL, free_port, key, name, pair_keys};
use super::*;

/// Nodes 0 and 1 speak with each other, 2 and 3, and 4 and 5, whose last one is at the end of a TCP connection.
const PAIRS: usize = 3;
const BY_STREAM: usize = 5;

/// A relay whose threads are this one.
struct Steps {
    relay: Relay,
    main: Workers,
    worker: Worker,
    nodes: Vec<UdpSocket>,
    port: u16,
    /// The next number of each node, and the numbers that arrived at each.
    next: [u32; 2 * PAIRS],
    arrived: [Vec<u32>; 2 * PAIRS],
    random: fastrand::Rng,
}

/// Where a connection is, as a server knows it.
fn stream() -> SocketAddr {
    SocketAddrV6::new(Ipv6Addr::LOCALHOST, 9, 0, 7).into()
}

fn pair(number: usize) -> ([usize; 2], Pair) {
    let ends = [2 * number, 2 * number + 1];
    (ends, Pair::of(&name(ends[0]), &name(ends[1])))
}

impl Steps {
    fn new(seed: u64) -> Self {
        let (mut relay, clock) = (Relay::default(), Clock::start());
        let socket = |_| {
            let socket = UdpSocket::bind((LOCAL, 0)).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let nodes = (0..2 * PAIRS).map(socket).collect();
        // Somebody else may be quicker to have a free port.
        let forwarding = relay.forwarding();
        let open = || {
            let (port, forwarding) = (free_port(), Arc::clone(&forwarding));
            let relaying = Relaying { ports: port..=port, workers: 1, forwarding };
            Workers::open(&relaying, LOCAL, clock).ok().map(|opened| (port, opened))
        };
        let (port, (main, mut workers)) = (0..9).find_map(|_| open()).unwrap();
        for (ends, pair) in (0..PAIRS).map(pair) {
            relay.join(&pair, pair_keys(ends), port);
        }
        let (worker, random) = (workers.remove(0), fastrand::Rng::with_seed(seed));
        let (next, arrived) = Default::default();
        Self { relay, main, worker, nodes, port, next, arrived, random }
    }

    /// A node sends some datagrams, of which some in a row are equally long.
    fn send(&mut self, node: usize) {
        let length = self.random.usize(8..200);
        for _ in 0..self.random.usize(1..24) {
            let mut bytes = vec![node as u8; length + self.random.usize(..12) / 11];
            bytes[..4].copy_from_slice(&self.next[node].to_le_bytes());
            self.next[node] += 1;
            let _ = self.nodes[node].send_to(&bytes, (LOCAL, self.port));
        }
    }

    /// The main thread's turn: it knows where nodes are.
    fn main(&mut self) {
        let (relay, nodes, arrived) = (&mut self.relay, &self.nodes, &mut self.arrived);
        let place = |of: &_| {
            let node = (0..nodes.len()).find(|node| key(*node) == *of)?;
            nodes[node].local_addr().ok()
        };
        let look = |port, from, datagram: &_| {
            relay.look_for(port, from, datagram, place);
            true
        };
        let by_stream = |to, _, datagram: &[u8]| {
            assert_eq!(to, stream());
            // What was sent to its socket before is there.
            drain(&nodes[BY_STREAM], BY_STREAM, &mut arrived[BY_STREAM]);
            arrived[BY_STREAM].push(number(datagram, BY_STREAM - 1));
        };
        let now = Now { nanos: overlay::limits::SECOND, unix: 0 };
        self.main.turn(look, by_stream, now).unwrap();
    }

    /// A path ends, and is there again, where nobody knows where its nodes send from.
    fn join_again(&mut self, number: usize) {
        let (ends, pair) = pair(number);
        self.relay.part(&pair);
        self.relay.join(&pair, pair_keys(ends), self.port);
    }

    /// It is known where the nodes of a path send from, without a look; the last node of all may have a connection.
    fn restore(&mut self, number: usize) {
        let (ends, pair) = pair(number);
        let mut places = ends.map(|node| self.nodes[node].local_addr().ok());
        if ends[1] == BY_STREAM && self.random.bool() {
            places[1] = Some(stream());
        }
        self.relay.restore(&pair, places);
    }

    /// Takes what nodes got.
    fn take(&mut self) {
        for (node, socket) in self.nodes.iter().enumerate() {
            drain(socket, node, &mut self.arrived[node]);
        }
    }

    fn step(&mut self) {
        match self.random.u32(..100) {
            0..40 => {
                let node = self.random.usize(..2 * PAIRS);
                self.send(node);
            }
            40..75 => self.worker.turn(0).unwrap(),
            75..90 => self.main(),
            drawn => {
                let number = self.random.usize(..PAIRS);
                if drawn < 95 { self.join_again(number) } else { self.restore(number) }
            }
        }
        self.take();
    }
}

/// Takes what a node got in its socket.
fn drain(socket: &UdpSocket, node: usize, arrived: &mut Vec<u32>) {
    let mut buffer = [0; 400];
    while let Ok((length, _)) = socket.recv_from(&mut buffer) {
        arrived.push(number(&buffer[..length], node ^ 1));
    }
}

/// The number of a datagram of a node.
fn number(datagram: &[u8], node: usize) -> u32 {
    assert!(datagram[4..].iter().all(|byte| usize::from(*byte) == node), "{node}: {datagram:?}");
    u32::from_le_bytes(*datagram.first_chunk().unwrap())
}

#[test]
fn nothing_overtakes_what_its_node_sent_before() {
    let (mut all, mut by_stream) = (0, 0);
    for seed in 0..150 {
        let mut steps = Steps::new(seed);
        (0..400).for_each(|_| steps.step());
        for _ in 0..40 {
            steps.worker.turn(0).unwrap();
            steps.main();
            steps.take();
        }
        for (node, numbers) in steps.arrived.iter().enumerate() {
            let is_sorted = numbers.is_sorted_by(|one, next| one < next);
            assert!(is_sorted, "seed {seed}: {node} got {numbers:?}");
            all += numbers.len();
        }
        by_stream += steps.arrived[BY_STREAM].len();
    }
    // So there was something to overtake.
    assert!(all > 100_000 && by_stream > 1_000, "{all}, {by_stream} by TCP");
}
