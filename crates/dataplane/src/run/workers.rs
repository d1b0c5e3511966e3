//! Workers, from open ports: each drives a queue of every port, with a thread and a handler of its own.
//!
//! Contract: a port that has a queue for each worker gives each its own; of one with fewer as many workers receive, the
//! first ones, and the others transmit by their queues in turn ([`SharedPort`]). All threads are there before the first
//! frame is taken: a run starts whole or not at all.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use conntrack::Listing;

use super::account::Account;
use super::config::{OnPanic, Order, Other, Slot};
use super::handover::{self, Handover};
use super::middlebox::{End, Hosted, Middlebox};
use super::ordered::{Lanes, Ordered};
use super::parker::Parker;
use super::shadow::Shade;
use super::shared::Shared;
use super::shared_port::SharedPort;
use super::steering::Steering;
use super::talkers::Sampler;
use super::taps::Taps;
use super::topology;
use super::wire::{BoxedPort, Driven, Wire};
use super::worker::{Failed, Left, Stage, Worker};
use crate::publish::Published;
use crate::wires::Crossing;
use crate::wires::Join;

/// A port, as workers share it.
pub(super) struct Queues {
    /// What each worker drives: a queue of its own, or its part of one.
    pub(super) parts: Vec<BoxedPort>,
    /// How many queues there are. As many workers receive, the first ones; of an ordered wire all do, in turn.
    pub(super) receiving: usize,
}

impl Queues {
    /// So many queues, at most one for each worker. Where there are fewer, as many workers receive, and the others
    /// transmit by them in turn.
    ///
    /// # Errors
    /// The machine has no descriptors left.
    pub(super) fn of(queues: Vec<BoxedPort>, workers: usize, order: Order) -> io::Result<Self> {
        let receiving = queues.len();
        if receiving >= workers {
            return Ok(Self { parts: queues, receiving });
        }
        let mut shared = Vec::new();
        for (at, queue) in queues.into_iter().enumerate() {
            let sharing = (workers - at).div_ceil(receiving);
            shared.push(SharedPort::of(queue, sharing, order)?.into_iter());
        }
        let part = |worker: usize| shared.get_mut(worker % receiving.max(1))?.next();
        let parts = (0..workers).filter_map(part).map(|part| Box::new(part) as BoxedPort);
        Ok(Self { parts: parts.collect(), receiving })
    }
}

/// A wire to be: its ports with their names.
pub(super) struct Joined {
    pub(super) ports: [(Arc<str>, Queues); 2],
    pub(super) crossings: [Crossing; 2],
    pub(super) other: Other,
    pub(super) order: Order,
}

impl Joined {
    /// As who replays frames is to know it.
    pub(super) fn join(&self) -> Join {
        let ports = self.ports.each_ref().map(|(name, _)| name.to_string());
        Join { ports, crossings: self.crossings }
    }
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
    pub(super) taps: Arc<Taps>,
}

/// Where a worker works.
#[derive(Debug)]
pub(super) enum Thread {
    /// By itself.
    Own(JoinHandle<Left>),
    /// Wherever it is polled.
    Hosted(Arc<End>),
}

impl Thread {
    pub(super) fn is_finished(&self) -> bool {
        match self {
            Self::Own(thread) => thread.is_finished(),
            Self::Hosted(end) => end.is_told(),
        }
    }

    /// How it ended: one of its own is waited for, one that is hosted has been told to have ended.
    fn join(self) -> Option<Left> {
        match self {
            Self::Own(thread) => thread.join().ok(),
            Self::Hosted(end) => end.take(),
        }
    }
}

impl Crew {
    /// Workers for these wires, as many as `steering` says. Frames wait for a middlebox in `slot`, if there is one.
    ///
    /// # Errors
    /// The machine has no descriptors left.
    pub(super) fn new(
        wires: Vec<Joined>,
        published: &Published,
        steering: &Steering,
        on_panic: OnPanic,
        slot: Option<Slot>,
    ) -> io::Result<Self> {
        let count = steering.workers();
        let parkers = (0..count).map(|_| Parker::new().map(Arc::new)).collect::<io::Result<_>>()?;
        let shared = Arc::new(Shared::new(parkers));
        let taps = Arc::<Taps>::default();
        let mut of_workers: Vec<Wires> = (0..count).map(|_| Wires::default()).collect();
        let mut directions = Vec::new();
        for Joined { ports, crossings, other, order } in wires {
            // One worker keeps it anyway.
            let lanes = (order == Order::Wire && count > 1).then(|| Arc::new(Lanes::new(steering)));
            let mut counted = directions_of(&ports, lanes.as_ref());
            let [first, second] = ports;
            let ends = [parts(first, steering, order), parts(second, steering, order)];
            let [firsts, seconds] = ends.map(Vec::into_iter);
            let workers = of_workers.iter_mut().enumerate();
            for (ends, (worker, wires)) in firsts.zip(seconds).zip(workers) {
                // A frame that is handed over names its wire by its place among those.
                let number = wires.free.len() as u16;
                let ends = [ends.0, ends.1];
                let tap = taps.tap(ends.each_ref().map(|end| Arc::clone(&end.name)));
                let mut wire = Wire::new(number, ends, other, crossings, count, tap);
                slot.into_iter().for_each(|slot| wire.open(slot));
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
            shade: Shade::new(Arc::clone(&shared.shadow), steering.shard(number, max)),
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

    /// Gives each the middlebox that is made for it.
    pub(super) fn equip(&mut self, make: &mut dyn FnMut(usize) -> Box<dyn Middlebox>) {
        self.workers.iter_mut().for_each(|worker| worker.middlebox = Some(make(worker.number)));
    }

    /// Gives each a ring with room for so many frames: the other ends, which show so many frames at a time.
    ///
    /// # Errors
    /// The machine has no descriptors left.
    pub(super) fn ring(&mut self, room: usize, burst: usize) -> io::Result<Vec<Hosted>> {
        self.shared.seats().for_each(|seat| seat.has_ring(room));
        let ring = |worker: &mut Worker| Hosted::by_ring(worker, room, burst);
        self.workers.iter_mut().map(ring).collect()
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
            threads.push(Thread::Own(thread::Builder::new().name(name).spawn(work)?));
        }
        Ok(threads)
    }

    /// Hands them out instead, each with room for so many frames at a time.
    pub(super) fn host(
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

/// Waits for the end of all: how the first to fail failed, and what connections they leave together.
pub(super) fn join(threads: Vec<Thread>) -> (Result<(), Failed>, Listing) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    use pktio::{Burst, Port, PortError, Readiness, Stats};

    /// A queue that says who it is whenever it is asked for something.
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

    /// Which queues so many workers receive by, and transmit by, in their order; and how many queues tell.
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
