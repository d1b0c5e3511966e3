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
use super::config::{OnPanic, Other};
use super::handover::{self, Handover};
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
}

/// One direction of a wire, over all workers.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    pub(super) from: Arc<str>,
    pub(super) to: Arc<str>,
    pub(super) accounts: Vec<Arc<Account>>,
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
        let mut of_workers: Vec<Vec<Wire>> = (0..count).map(|_| Vec::new()).collect();
        for (number, Joined { ports, crossings, other }) in wires.into_iter().enumerate() {
            let [first, second] = ports;
            let ends = [parts(first, steering)?, parts(second, steering)?];
            let [firsts, seconds] = ends.map(Vec::into_iter);
            for ((first, second), wires) in firsts.zip(seconds).zip(&mut of_workers) {
                wires.push(Wire::new(number as u16, [first, second], other, crossings, count));
            }
        }
        let directions = directions(&of_workers);
        let wakers = shared.wakers();
        let handovers = handover::among(&wakers, steering);
        let max = published.program().config().ct.max;
        let make =
            |(number, ((wires, handover), waker)): (usize, ((Vec<Wire>, Handover), _))| Worker {
                number,
                wires,
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
fn parts((name, queues): (Arc<str>, Queues), steering: &Steering) -> io::Result<Vec<Driven>> {
    let (ports, has_queues): (Vec<BoxedPort>, _) = match queues {
        Queues::One(port) if steering.workers() == 1 => (vec![port], true),
        Queues::One(port) => {
            let parts = SharedPort::parts(port, steering.workers())?;
            (parts.into_iter().map(|part| Box::new(part) as BoxedPort).collect(), false)
        }
        Queues::Parts(ports) => (ports, false),
        Queues::Each(ports) => (ports, true),
    };
    let steers = steering.steers(has_queues);
    let keeps = !has_queues;
    let drive = |port| Driven { name: Arc::clone(&name), port, steers, keeps };
    Ok(ports.into_iter().map(drive).collect())
}

/// Both directions of every wire, with what each worker counts.
fn directions(of_workers: &[Vec<Wire>]) -> Vec<Counted> {
    let mut directions = Vec::new();
    for (at, wire) in of_workers.first().into_iter().flatten().enumerate() {
        let [first, second] = wire.names();
        for (from, to, way) in [(&first, &second, 0), (&second, &first, 1)] {
            let own = of_workers.iter().map(|wires| wires[at].accounts());
            directions.push(Counted {
                from: Arc::clone(from),
                to: Arc::clone(to),
                accounts: own.map(|accounts| Arc::clone(&accounts[way])).collect(),
            });
        }
    }
    directions
}
