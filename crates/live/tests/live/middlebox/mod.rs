//! Middleboxes, in threads of the workers and polled from others: what they see, what becomes of it, and that every frame
//! is accounted for.

mod captures;
mod descriptors;
mod ends;
mod passing;
mod ring;
mod verdicts;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dataplane::Unresolved;
use live::config::{Cores, OnPanic, Order, Other, Slot, Workers};
use live::{
    Accounted, BoxedPort, Descriptor, Driver, Hosted, Middlebox, Polled, Run, RunError, Status,
    Verdict, Waiting, WireSpec,
};
use pktio::{MemoryPort, Pool};
use rules::model::{Family, Ruleset};

use super::workers::Recording;
use super::{NAMES, config, received, ruleset, send};

/// The kind of a wire's two ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// Captures: frames lie next to each other in a burst, and end.
    Recorded,
    /// OpenWire in memory: each frame has its own.
    OpenWire,
}

/// A run to be.
#[derive(Clone)]
struct Job {
    rules: Arc<Ruleset>,
    /// The frames that each port receives.
    frames: [Vec<Vec<u8>>; 2],
    ports: Ports,
    workers: usize,
    slot: Slot,
    on_panic: OnPanic,
}

/// The frames that left through each port, in order, and the counters.
struct Left {
    frames: [Vec<Vec<u8>>; 2],
    status: Status,
    ended: Result<(), RunError>,
}

/// Frames that left, once the run has ended.
type Leaving = Box<dyn FnOnce() -> [Vec<Vec<u8>>; 2]>;

impl Job {
    fn new(text: &str, frames: Vec<Vec<u8>>) -> Self {
        Self {
            rules: ruleset(Family::Ipv4, text),
            frames: [frames, Vec::new()],
            ports: Ports::Recorded,
            workers: 1,
            slot: Slot::default(),
            on_panic: OnPanic::Closed,
        }
    }

    fn ports(&self) -> ([BoxedPort; 2], Leaving) {
        match self.ports {
            Ports::Recorded => {
                let left: [Arc<Mutex<Vec<_>>>; 2] = Default::default();
                let port = |side: usize| -> BoxedPort {
                    let (frames, left) = (self.frames[side].clone(), Arc::clone(&left[side]));
                    Box::new(Recording { frames, at: 0, left })
                };
                let ports = [0, 1].map(port);
                let take = move || left.map(|left| std::mem::take(&mut *left.lock().unwrap()));
                (ports, Box::new(take))
            }
            Ports::OpenWire => {
                let pool = Pool::new(16384, 2048, 64);
                let ends = [0, 1].map(|_| MemoryPort::pair(&pool, 8192, 32));
                let [[mut left, near_left], [mut right, near_right]] = ends;
                send(&mut left, &self.frames[0]);
                send(&mut right, &self.frames[1]);
                let take = move || [left, right].map(|mut port| received(&mut port));
                ([Box::new(near_left), Box::new(near_right)], Box::new(take))
            }
        }
    }

    fn start(&self, ports: [BoxedPort; 2], driver: Driver<'_>) -> (Run, Vec<Hosted>) {
        let [left, right] = ports;
        let ports = [(NAMES[0].to_owned(), left), (NAMES[1].to_owned(), right)];
        let (other, order) = (Other::Pass, Order::Flow);
        let ends = vec![WireSpec { ports, crossings: Default::default(), other, order }];
        let workers = Workers { cores: Cores::Any, count: Some(self.workers) };
        let (rules, config) = ([Arc::clone(&self.rules)], config(Unresolved::Drop, Vec::new()));
        Run::start_driven(ends, (&rules, config), self.on_panic, &workers, driver).expect("a run")
    }

    /// Without a middlebox.
    fn alone(&self) -> Left {
        let (ports, leaving) = self.ports();
        let (run, _) = self.start(ports, Driver::Alone);
        self.finish(run, leaving)
    }

    /// Runs with a middlebox for each worker.
    fn with<M: Middlebox + 'static>(&self, make: impl Fn() -> M) -> Left {
        let (ports, leaving) = self.ports();
        let mut make = |_| Box::new(make()) as Box<dyn Middlebox>;
        let (run, _) = self.start(ports, Driver::With(self.slot, &mut make));
        self.finish(run, leaving)
    }

    /// Polls the worker, with descriptors for `burst` frames, which `judge` is shown.
    fn hosted(&self, burst: usize, judge: impl Judge) -> Left {
        self.polled(Driver::Hosted(self.slot, burst), judge)
    }

    /// Polls through a ring with room for `room` frames.
    fn ringed(&self, room: usize, burst: usize, judge: impl Judge) -> Left {
        self.polled(Driver::Ringed { slot: self.slot, burst, room }, judge)
    }

    fn polled(&self, driver: Driver<'_>, judge: impl Judge) -> Left {
        let (ports, leaving) = self.ports();
        let (run, hosted) = self.start(ports, driver);
        let drive = move |hosted| {
            let judge = judge.clone();
            thread::spawn(move || poll(hosted, judge))
        };
        let threads: Vec<_> = hosted.into_iter().map(drive).collect();
        let left = self.finish(run, leaving);
        threads.into_iter().for_each(|thread| thread.join().expect("it polls to the end"));
        left
    }

    fn finish(&self, run: Run, leaving: Leaving) -> Left {
        let stop = AtomicBool::new(self.ports == Ports::OpenWire);
        let (status, ended) = run.wait(&stop, |_| {});
        for (direction, frames) in status.directions.iter().zip(&self.frames) {
            let counted = direction.frames;
            assert!(counted.balances(), "{}: {counted:?}", direction.from);
            assert_eq!(counted.received, frames.len() as u64, "{}", direction.from);
        }
        Left { frames: leaving(), status, ended }
    }
}

impl Left {
    fn counted(&self, from: usize) -> &Accounted {
        &self.status.directions[from].frames
    }
}

/// Polls until the worker has ended.
fn poll(mut hosted: Hosted, mut judge: impl Judge) {
    let address = hosted.descriptors().as_ptr();
    loop {
        match hosted.poll(Duration::from_millis(10)) {
            Polled::Frames(count) => {
                let descriptors = hosted.descriptors();
                assert!(std::ptr::eq(descriptors.as_ptr(), address));
                judge(&mut descriptors[..count]);
            }
            Polled::Idle => {}
            Polled::Ended => return,
        }
    }
}

/// Gives verdicts in descriptors.
trait Judge: FnMut(&mut [Descriptor]) + Clone + Send + 'static {}

impl<J: FnMut(&mut [Descriptor]) + Clone + Send + 'static> Judge for J {}

/// A middlebox that is a function of each frame.
struct Each<F>(F);

impl<F: FnMut(&mut [u8], u64) -> Verdict + Send> Middlebox for Each<F> {
    fn burst(&mut self, frames: &mut Waiting) {
        for shown in frames.frames() {
            *shown.verdict = (self.0)(shown.bytes, shown.meta.number);
        }
    }
}

/// A middlebox that has everything pass.
fn passes() -> impl Middlebox {
    Each(|_: &mut [u8], _| Verdict::Pass)
}
