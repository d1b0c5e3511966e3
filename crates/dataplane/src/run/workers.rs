//! Workers, from open ports: each drives a queue of every port, with a thread and a handler of its own.
//!
//! Contract: a port that has a queue for each worker gives each its own; one that has a single queue is received by the
//! first worker, and all transmit by it in turn ([`SharedPort`]). All threads are there before the first frame is taken: a
//! run starts whole or not at all.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use conntrack::Listing;

use super::account::Account;
use super::config::{OnPanic, Order, Other};
use super::handover::{self, Handover};
use super::ordered::{Lanes, Ordered};
use super::parker::Parker;
use super::shared::Shared;
use super::shared_port::SharedPort;
use super::steering::Steering;
use super::topology;
use super::wire::{BoxedPort, Driven, Wire};
use super::worker::{Failed, Stage, Worker};
use crate::arrival::Crossing;
use crate::publish::Published;

/// A port, as workers share it.
pub(super) enum Queues {
    /// One queue for all.
    One(BoxedPort),
    /// One queue for all, of which each worker has its part: the first one receives.
    Parts(Vec<BoxedPort>),
    /// One for each worker.
    Each(Vec<BoxedPort>),
}

/// A wire to be: its ports with their names.
pub(super) struct Joined {
    pub(super) ports: [(Arc<str>, Queues); 2],
    pub(super) crossings: [Crossing; 2],
    pub(super) other: Other,
    pub(super) order: Order,
}

/// One direction of a wire, over all workers.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    pub(super) from: Arc<str>,
    pub(super) to: Arc<str>,
    pub(super) accounts: Vec<Arc<Account>>,
    /// Of a wire that keeps the order of all its frames, and which end they come in by.
    pub(super) lanes: Option<(Arc<Lanes>, usize)>,
}

/// One worker's part of all wires.
#[derive(Default)]
struct Wires {
    /// Those that keep order within a flow alone.
    free: Vec<Wire>,
    ordered: Vec<Ordered>,
}

/// Workers to be.
pub(super) struct Crew {
    workers: Vec<Worker>,
    pub(super) directions: Vec<Counted>,
    pub(super) shared: Arc<Shared>,
}

/// A worker's thread: why it ended, and the connections that it leaves.
pub(super) type Thread = JoinHandle<(Result<(), Failed>, Listing)>;

impl Crew {
    /// Workers for these wires, as many as `steering` says.
    ///
    /// # Errors
    /// The machine has no descriptors left.
    pub(super) fn new(
        wires: Vec<Joined>,
        published: &Published,
        steering: &Steering,
        on_panic: OnPanic,
    ) -> io::Result<Self> {
        let count = steering.workers();
        let parkers = (0..count).map(|_| Parker::new().map(Arc::new)).collect::<io::Result<_>>()?;
        let shared = Arc::new(Shared::new(parkers));
        let mut of_workers: Vec<Wires> = (0..count).map(|_| Wires::default()).collect();
        let mut directions = Vec::new();
        for Joined { ports, crossings, other, order } in wires {
            // One worker keeps it anyway.
            let lanes = (order == Order::Wire && count > 1).then(|| Arc::new(Lanes::new(steering)));
            let mut counted = directions_of(&ports, lanes.as_ref());
            let [first, second] = ports;
            let ends = [parts(first, steering, order)?, parts(second, steering, order)?];
            let [firsts, seconds] = ends.map(Vec::into_iter);
            let workers = of_workers.iter_mut().enumerate();
            for (ends, (worker, wires)) in firsts.zip(seconds).zip(workers) {
                // A frame that is handed over names its wire by its place among those.
                let number = wires.free.len() as u16;
                let wire = Wire::new(number, [ends.0, ends.1], other, crossings, count);
                for (counted, account) in counted.iter_mut().zip(wire.accounts()) {
                    counted.accounts.push(account);
                }
                match &lanes {
                    Some(lanes) => wires.ordered.push(Ordered::new(wire, lanes, worker)),
                    None => wires.free.push(wire),
                }
            }
            directions.extend(counted);
        }
        let wakers = shared.wakers();
        let handovers = handover::among(&wakers, steering);
        let max = published.program().config().ct.max;
        let make = |(number, ((wires, handover), waker)): (usize, ((Wires, Handover), _))| Worker {
            number,
            wires: wires.free,
            ordered: wires.ordered,
            rules: published.worker_of(steering.shard(number, max)).sending(),
            handover,
            on_panic,
            shared: Arc::clone(&shared),
            waker,
            stage: Stage::default(),
            taken: VecDeque::new(),
        };
        let all = of_workers.into_iter().zip(handovers).zip(wakers).enumerate();
        let workers = all.map(make).collect();
        Ok(Self { workers, directions, shared })
    }

    /// Starts a thread for each, on the core that it is given if it is given one. What connections they leave is asked
    /// for or not.
    ///
    /// # Errors
    /// There are no threads left: those that were started stop.
    pub(super) fn start(self, cores: &[Option<usize>], keeps: bool) -> io::Result<Vec<Thread>> {
        let mut threads = Vec::new();
        for (mut worker, core) in self.workers.into_iter().zip(cores) {
            let (name, core) = (format!("worker {}", worker.number), *core);
            let work = move || {
                if let Some(core) = core {
                    // One that may not be pinned runs anywhere; that the core is there was asked before.
                    let _ = topology::pin(core);
                }
                let ended = worker.run();
                let left = if keeps { worker.rules.connections() } else { Listing::default() };
                (ended, left)
            };
            // A worker that gets no thread is dropped, which stops the others.
            threads.push(thread::Builder::new().name(name).spawn(work)?);
        }
        Ok(threads)
    }
}

/// Waits for the end of all: how the first to fail failed, and what connections they leave together.
pub(super) fn join(threads: Vec<Thread>) -> (Result<(), Failed>, Listing) {
    let ends = threads.into_iter().enumerate().map(|(number, thread)| {
        thread.join().unwrap_or_else(|_| (Err(Failed::Panicked(number)), Listing::default()))
    });
    // The first one to fail stopped the others.
    ends.fold((Ok(()), Listing::default()), |(ended, left), (own, of_own)| {
        (ended.and(own), left.and(of_own))
    })
}

/// A port as each worker drives it.
fn parts(
    (name, queues): (Arc<str>, Queues),
    steering: &Steering,
    order: Order,
) -> io::Result<Vec<Driven>> {
    let (ports, has_queues): (Vec<BoxedPort>, _) = match queues {
        Queues::One(port) if steering.workers() == 1 => (vec![port], true),
        Queues::One(port) => {
            let parts = SharedPort::of(port, steering.workers(), order)?;
            (parts.into_iter().map(|part| Box::new(part) as BoxedPort).collect(), false)
        }
        Queues::Parts(ports) => (ports, false),
        Queues::Each(ports) => (ports, true),
    };
    let steers = order == Order::Flow && steering.steers(has_queues);
    let keeps = !has_queues;
    let drive = |port| Driven { name: Arc::clone(&name), port, steers, keeps };
    Ok(ports.into_iter().map(drive).collect())
}

/// Both directions of a wire, which nobody has counted anything of.
fn directions_of(
    [first, second]: &[(Arc<str>, Queues); 2],
    lanes: Option<&Arc<Lanes>>,
) -> [Counted; 2] {
    [(first, second, 0), (second, first, 1)].map(|(from, to, end)| Counted {
        from: Arc::clone(&from.0),
        to: Arc::clone(&to.0),
        accounts: Vec::new(),
        lanes: lanes.map(|lanes| (Arc::clone(lanes), end)),
    })
}
