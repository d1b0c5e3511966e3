//! Builds workers from open ports: each drives a queue of every port, with a thread and a handler of its own.
//!
//! Contract: a port that has a queue for each worker gives each its own; of a port with fewer queues as many workers
//! receive, the first ones, and the others transmit through those queues in turn ([`SharedPort`]). All threads are
//! there before the first frame is taken: a run starts whole or not at all.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use conntrack::Listing;

use crate::config::{OnPanic, Order, Other, Slot, topology};
use crate::forward::account::Account;
use crate::forward::evaluator::EvaluatorHandle;
use crate::forward::handover::{self, Handover};
use crate::forward::middlebox::{End, Hosted, Middlebox};
use crate::forward::ordered::{Lanes, Ordered};
use crate::forward::parker::Parker;
use crate::forward::shadow::ShadowWorker;
use crate::forward::slots::WorkerSlots;
use crate::forward::steering::Steering;
use crate::forward::talkers::Sampler;
use crate::forward::taps::Taps;
use crate::forward::wire::{Driven, Wire};
use crate::forward::worker::{Failed, Left, Stage, Worker};
use crate::ports::queues::Queues;
use dataplane::publish::Published;
use dataplane::{Crossing, Join};

/// A wire before it is started: two named ports.
pub(crate) struct OpenWire {
    pub(crate) ports: [(Arc<str>, Queues); 2],
    pub(crate) crossings: [Crossing; 2],
    pub(crate) other: Other,
    pub(crate) order: Order,
}

impl OpenWire {
    /// The wire's topology, as exported for replays.
    pub(crate) fn join(&self) -> Join {
        let ports = self.ports.each_ref().map(|(name, _)| name.to_string());
        Join { ports, crossings: self.crossings }
    }
}

/// One direction of a wire, over all workers.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) from: Arc<str>,
    pub(crate) to: Arc<str>,
    pub(crate) accounts: Vec<Arc<Account>>,
    /// The lanes of a wire that keeps the order of all its frames, and this direction's end of arrival.
    pub(crate) lanes: Option<(Arc<Lanes>, usize)>,
}

/// One worker's part of all wires.
#[derive(Default)]
struct Wires {
    /// Wires that keep order within a flow alone.
    free: Vec<Wire>,
    ordered: Vec<Ordered>,
}

/// Workers before they are started.
pub(crate) struct WorkerBuilder {
    workers: Vec<Worker>,
    pub(crate) directions: Vec<Counted>,
    pub(crate) shared: Arc<WorkerSlots>,
    pub(crate) taps: Arc<Taps>,
}

/// Where a worker runs.
#[derive(Debug)]
pub(crate) enum Thread {
    /// On a thread of its own.
    Own(JoinHandle<Left>),
    /// Wherever it is polled.
    Hosted(Arc<End>),
}

impl Thread {
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Own(thread) => thread.is_finished(),
            Self::Hosted(end) => end.is_told(),
        }
    }

    /// Returns how the worker ended: waits for a thread, or takes the reported end of a hosted worker.
    fn join(self) -> Option<Left> {
        match self {
            Self::Own(thread) => thread.join().ok(),
            Self::Hosted(end) => end.take(),
        }
    }
}

impl WorkerBuilder {
    /// Makes workers for these wires, as many as `steering` says. Frames wait for a middlebox in `slot`, if there is
    /// one.
    ///
    /// # Errors
    /// The machine has no descriptors left.
    pub(crate) fn new(
        wires: Vec<OpenWire>,
        published: &Published,
        steering: &Steering,
        on_panic: OnPanic,
        slot: Option<Slot>,
    ) -> io::Result<Self> {
        let count = steering.workers();
        let parkers = (0..count).map(|_| Parker::new().map(Arc::new)).collect::<io::Result<_>>()?;
        let shared = Arc::new(WorkerSlots::new(parkers));
        let taps = Arc::<Taps>::default();
        let mut of_workers: Vec<Wires> = (0..count).map(|_| Wires::default()).collect();
        let mut directions = Vec::new();
        for OpenWire { ports, crossings, other, order } in wires {
            // A single worker keeps the order anyway.
            let has_envelopes = ports.iter().any(|(_, queues)| queues.have_envelopes());
            let lanes = (order == Order::Wire && count > 1)
                .then(|| Arc::new(Lanes::new(steering, has_envelopes)));
            let mut counted = directions_of(&ports, lanes.as_ref());
            let [first, second] = ports;
            let ends = [parts(first, steering, order), parts(second, steering, order)];
            let [firsts, seconds] = ends.map(Vec::into_iter);
            let workers = of_workers.iter_mut();
            for (ends, wires) in firsts.zip(seconds).zip(workers) {
                // A frame that is handed over names its wire by its place among `free`.
                let number = wires.free.len() as u16;
                let ends = [ends.0, ends.1];
                let tap = taps.tap(ends.each_ref().map(|end| Arc::clone(&end.name)));
                let mut wire = Wire::new(number, ends, other, crossings, count, tap);
                slot.into_iter().for_each(|slot| wire.open(slot));
                for (counted, account) in counted.iter_mut().zip(wire.accounts()) {
                    counted.accounts.push(account);
                }
                match &lanes {
                    Some(lanes) => wires.ordered.push(Ordered::new(wire, lanes)),
                    None => wires.free.push(wire),
                }
            }
            directions.extend(counted);
        }
        let wakers = shared.wakers();
        let handovers = handover::among(&wakers, steering);
        let max = published.program().config().ct.max;
        let evaluator = |number| {
            let [of_rules, of_shade] = [(), ()].map(|()| steering.shard(number, max));
            let rules = published.worker_of(of_rules).sending();
            EvaluatorHandle::new(rules, ShadowWorker::new(Arc::clone(&shared.shadow), of_shade))
        };
        let evaluators: Vec<_> = (0..steering.evaluators()).map(evaluator).collect();
        let evaluator = |number: usize| evaluators[number.min(evaluators.len() - 1)].clone();
        let make = |(number, ((wires, handover), waker)): (usize, ((Wires, Handover), _))| Worker {
            number,
            wires: wires.free,
            ordered: wires.ordered,
            evaluator: evaluator(number),
            answers: number < steering.evaluators(),
            handover,
            sampler: Sampler::of(&shared.talkers, number),
            on_panic,
            shared: Arc::clone(&shared),
            waker,
            stage: Stage::default(),
            taken: VecDeque::new(),
            middlebox: None,
            ring: None,
        };
        let all = of_workers.into_iter().zip(handovers).zip(wakers).enumerate();
        let workers = all.map(make).collect();
        Ok(Self { workers, directions, shared, taps })
    }

    /// Gives each worker the middlebox that `make` makes for it.
    pub(crate) fn equip(&mut self, make: &mut dyn FnMut(usize) -> Box<dyn Middlebox>) {
        self.workers.iter_mut().for_each(|worker| worker.middlebox = Some(make(worker.number)));
    }

    /// Gives each worker a ring with room for `room` frames; returns the other ends, which show `burst` frames at a
    /// time.
    ///
    /// # Errors
    /// The machine has no descriptors left.
    pub(crate) fn ring(&mut self, room: usize, burst: usize) -> io::Result<Vec<Hosted>> {
        self.shared.seats().for_each(|seat| seat.has_ring(room));
        let ring = |worker: &mut Worker| Hosted::by_ring(worker, room, burst);
        self.workers.iter_mut().map(ring).collect()
    }

    /// Starts a thread for each worker, on its core if it is given one. With `keeps` the threads return the connections
    /// that they leave.
    ///
    /// # Errors
    /// There are no threads left: the threads that were started stop.
    pub(crate) fn start(self, cores: &[Option<usize>], keeps: bool) -> io::Result<Vec<Thread>> {
        let mut threads = Vec::new();
        for (mut worker, core) in self.workers.into_iter().zip(cores) {
            let (name, core) = (format!("worker {}", worker.number), *core);
            let work = move || {
                if let Some(core) = core {
                    // A worker that may not be pinned runs anywhere; that the core exists was checked before.
                    let _ = topology::pin(core);
                }
                let ended = worker.run();
                (ended, worker.left(keeps))
            };
            // A worker that gets no thread is dropped, which stops the others.
            threads.push(Thread::Own(thread::Builder::new().name(name).spawn(work)?));
        }
        Ok(threads)
    }

    /// Hands the workers out instead, each with room for `burst` frames at a time.
    pub(crate) fn host(
        self,
        cores: &[Option<usize>],
        keeps: bool,
        burst: usize,
    ) -> (Vec<Thread>, Vec<Hosted>) {
        let host = |(worker, core): (Worker, &Option<usize>)| {
            let (hosted, end) = Hosted::new(worker, burst, *core, keeps);
            (Thread::Hosted(end), hosted)
        };
        self.workers.into_iter().zip(cores).map(host).unzip()
    }
}

/// Waits for the end of all; returns how the first to fail failed, and all connections that they leave.
pub(crate) fn join(threads: Vec<Thread>) -> (Result<(), Failed>, Listing) {
    let ends = threads.into_iter().enumerate().map(|(number, thread)| {
        thread.join().unwrap_or_else(|| (Err(Failed::Panicked(number)), Listing::default()))
    });
    // The first one to fail stopped the others.
    ends.fold((Ok(()), Listing::default()), |(ended, left), (own, of_own)| {
        (ended.and(own), left.and(of_own))
    })
}

/// A port as each worker drives it.
fn parts((name, queues): (Arc<str>, Queues), steering: &Steering, order: Order) -> Vec<Driven> {
    let Queues { parts, receiving } = queues;
    let has_queues = receiving >= steering.workers();
    let steers = order == Order::Flow && steering.steers(has_queues);
    let keeps = !has_queues && receiving == 1;
    let drive = |port| Driven { name: Arc::clone(&name), port, steers, keeps };
    parts.into_iter().map(drive).collect()
}

/// Both directions of a wire, with empty counters.
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

#[cfg(test)]
mod tests {
    use super::*;
    use pktio::BoxedPort;
    use std::sync::{Mutex, PoisonError};

    use pktio::{Burst, Port, PortError, Readiness, Stats};

    /// A queue that reports its name whenever it is asked for something.
    struct Named(char, Arc<Mutex<String>>);

    impl Named {
        fn says(&self) -> usize {
            self.1.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
            0
        }
    }

    impl Port for Named {
        fn rx_burst(&mut self, _: &mut Burst) -> Result<usize, PortError> {
            Ok(self.says())
        }

        fn tx_burst(&mut self, _: &mut Burst) -> Result<usize, PortError> {
            Ok(self.says())
        }

        fn readiness(&self) -> Readiness<'_> {
            Readiness::Always
        }

        fn stats(&self) -> Stats {
            Stats { rx_frames: 1, ..Stats::default() }
        }
    }

    /// The queues on which the workers receive, and transmit, in their order; and how many queues report.
    fn shared(queues: &str, workers: usize) -> (String, String, u64) {
        let said = Arc::<Mutex<String>>::default();
        let named = |name| Box::new(Named(name, Arc::clone(&said))) as BoxedPort;
        let queues = queues.chars().map(named).collect();
        let mut queues = Queues::of(queues, workers, Order::Flow).expect("nothing to duplicate");
        assert_eq!(queues.parts.len(), workers);
        let mut burst = Burst::default();
        let take = || std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
        let receives = |part: &mut BoxedPort| part.rx_burst(&mut burst).expect("received");
        queues.parts.iter_mut().map(receives).for_each(drop);
        let received = take();
        assert_eq!(received.len(), queues.receiving);
        for part in &mut queues.parts {
            part.tx_burst(&mut burst).expect("transmitted");
        }
        (received, take(), queues.parts.iter().map(|part| part.stats().rx_frames).sum())
    }

    #[test]
    fn of_fewer_queues_the_first_workers_receive_and_the_others_transmit_in_turn() {
        let told = |received: &str, sent: &str, told| (received.to_owned(), sent.to_owned(), told);
        assert_eq!(shared("a", 1), told("a", "a", 1));
        assert_eq!(shared("a", 3), told("a", "aaa", 1));
        assert_eq!(shared("ab", 2), told("ab", "ab", 2));
        assert_eq!(shared("ab", 5), told("ab", "ababa", 2));
        assert_eq!(shared("abc", 4), told("abc", "abca", 3));
    }
}
