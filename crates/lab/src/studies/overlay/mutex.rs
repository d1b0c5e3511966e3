//! Three modules a direction: a stager, which gives each packet its place in a queue and a lock; workers; and a sender,
//! which takes packets from the queue in order, and waits for the lock of each.
//!
//! Contract: a lock is that of one packet, and held by nobody while the packet waits for its worker: a packet that is not
//! done says so. Queues are as long as those of the lab's programs, and a stager waits where one is full. The protocol's
//! own lock is taken for each packet by both stagers and by the sender inbound.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::{Condvar, Mutex};
use tunnel::{Opened, Opening, Received, Sealing, Staged, Tunnel};

use super::end::{BUFFER, End, Wires, wait};

/// Packets of a queue.
const QUEUE: usize = 1024;

/// A packet with its lock.
struct Packet {
    state: Mutex<State>,
    done: Condvar,
}

/// How far a packet has come.
enum State {
    /// It waits for a worker, or is with one.
    Waiting,
    /// It was sealed, and lies there.
    Sealed(Box<[u8; BUFFER]>, Range<usize>, SocketAddr),
    /// It was opened, and is so long.
    Opened(Box<[u8; BUFFER]>, usize, Opened),
    /// Nothing came of it.
    Lost,
}

/// What a worker does.
enum Job {
    Seal(Sealing, Range<usize>),
    Open(Opening, usize),
}

/// A job, with the bytes, and the packet that waits for it.
type Order = (Job, Box<[u8; BUFFER]>, Arc<Packet>);

/// What stagers share.
struct Shared {
    wires: Wires,
    tunnel: Mutex<Tunnel>,
    orders: Sender<Order>,
}

/// For good.
pub(super) fn run(end: End) -> io::Result<()> {
    let workers = thread::available_parallelism()?.get();
    let (orders, jobs) = bounded(QUEUE);
    let shared = Shared { wires: end.wires, tunnel: Mutex::new(end.tunnel), orders };
    let (out, to_send) = bounded(QUEUE);
    let (inward, to_hand_out) = bounded(QUEUE);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(&jobs));
        }
        scope.spawn(|| send(&shared.wires, &to_send));
        scope.spawn(|| hand_out(&shared, &to_hand_out));
        let sealing = scope.spawn(|| stage_outbound(&shared, &out));
        stage_inbound(&shared, &inward)?;
        sealing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl Packet {
    fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Waiting), done: Condvar::new() })
    }

    fn finish(&self, state: State) {
        *self.state.lock() = state;
        self.done.notify_one();
    }

    /// Waits for its worker.
    fn finished(&self) -> State {
        let mut state = self.state.lock();
        while matches!(*state, State::Waiting) {
            self.done.wait(&mut state);
        }
        std::mem::replace(&mut state, State::Lost)
    }
}

impl Shared {
    /// Gives a job its place in a queue, and to the workers.
    fn stage(&self, job: Job, bytes: Box<[u8; BUFFER]>, queue: &Sender<Arc<Packet>>) {
        let packet = Packet::new();
        // Whoever takes from these has ended with a panic, which is told.
        let _ = queue.send(Arc::clone(&packet));
        let _ = self.orders.send((job, bytes, packet));
    }
}

fn stage_outbound(shared: &Shared, queue: &Sender<Arc<Packet>>) -> io::Result<()> {
    let [device, _] = shared.wires.both();
    loop {
        let mut bytes = Box::new([0; BUFFER]);
        let Some(inner) = shared.wires.read(&mut bytes)? else {
            shared.wires.send_due(&mut shared.tunnel.lock());
            wait(&[device])?;
            continue;
        };
        let mut tunnel = shared.tunnel.lock();
        let staged = tunnel.stage(&bytes[inner.clone()], shared.wires.now());
        shared.wires.send_due(&mut tunnel);
        drop(tunnel);
        if let Staged::Seal(sealing) = staged {
            shared.stage(Job::Seal(sealing, inner), bytes, queue);
        }
    }
}

fn stage_inbound(shared: &Shared, queue: &Sender<Arc<Packet>>) -> io::Result<()> {
    let [_, socket] = shared.wires.both();
    loop {
        let mut bytes = Box::new([0; BUFFER]);
        let Some((length, from)) = shared.wires.receive(&mut bytes)? else {
            wait(&[socket])?;
            continue;
        };
        let received = shared.tunnel.lock().receive(&bytes[..length], from, shared.wires.now());
        match received {
            Received::Opening(opening) => shared.stage(Job::Open(opening, length), bytes, queue),
            other => shared.wires.answer(&other),
        }
    }
}

/// A worker.
fn work(jobs: &Receiver<Order>) {
    for (job, mut bytes, packet) in jobs {
        packet.finish(match job {
            Job::Seal(sealing, inner) => {
                let to = sealing.to();
                let sealed = sealing.seal(&mut bytes[..], inner);
                sealed.map_or(State::Lost, |range| State::Sealed(bytes, range, to))
            }
            Job::Open(opening, length) => {
                let opened = opening.open(&mut bytes[..length]);
                opened.map_or(State::Lost, |opened| State::Opened(bytes, length, opened))
            }
        });
    }
}

/// The sender outbound.
fn send(wires: &Wires, queue: &Receiver<Arc<Packet>>) {
    for packet in queue {
        if let State::Sealed(bytes, range, to) = packet.finished() {
            wires.send(&bytes[range], to);
        }
    }
}

/// The sender inbound.
fn hand_out(shared: &Shared, queue: &Receiver<Arc<Packet>>) {
    for packet in queue {
        if let State::Opened(bytes, length, opened) = packet.finished() {
            shared.wires.deliver(&mut shared.tunnel.lock(), opened, &bytes[..length]);
        }
    }
}
