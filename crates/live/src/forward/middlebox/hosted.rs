//! [`Hosted`]: a worker whose frames are shown as [`Descriptor`]s to the program that holds this, which gives their
//! verdicts. Either that program takes the worker's steps, and the worker has no thread of its own, or the worker has
//! one and a ring is between them (`ring`).
//!
//! Contract: one thread polls; each worker of a run has one of its own, since workers wait for each other.
//! [`Hosted::poll`] carries out the verdicts of the frames that it showed last, then goes on as any worker does until
//! others wait; through a ring it gives them back to the worker, which carries them out. Descriptors stay at one
//! address; the memory of the frames that they name is the middlebox's until the next poll, and nobody's after that.
//! Dropping a [`Hosted`] before it has ended counts as a panic of the worker's thread: the worker's thread, or a thread
//! that is started for this, drops and counts what waits and what still comes, and the run ends.

use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use conntrack::Listing;

use super::descriptor::Descriptor;
use super::ring::{self, PollerRing};
use super::shown::{Polled, show, take_back};
use crate::config::topology;
use crate::forward::slots::WorkerSlots;
use crate::forward::worker::{Failed, Left, Step, Worker};

/// A worker that is polled.
pub struct Hosted {
    frames: Frames,
    number: usize,
    core: Option<usize>,
    descriptors: Box<[Descriptor]>,
    /// The number of descriptors whose frames wait for their verdicts.
    shown: usize,
    shared: Arc<WorkerSlots>,
}

/// Where the frames come from.
enum Frames {
    Steps(Steps),
    Ring(PollerRing),
}

/// A worker without a thread.
struct Steps {
    /// The worker, until it has ended.
    worker: Option<Box<Worker>>,
    number: usize,
    /// Whether the connections that the worker leaves are wanted.
    keeps: bool,
    end: Arc<End>,
}

/// Where the end of a worker is reported.
#[derive(Debug, Default)]
pub(crate) struct End(Mutex<Option<Left>>);

impl End {
    pub(crate) fn is_told(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn take(&self) -> Option<Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn tell(&self, left: Left) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }
}

impl Hosted {
    /// A worker that has no thread, with room for `burst` frames at a time.
    pub(crate) fn new(
        worker: Worker,
        burst: usize,
        core: Option<usize>,
        keeps: bool,
    ) -> (Self, Arc<End>) {
        let end = Arc::<End>::default();
        let (number, shared) = (worker.number, Arc::clone(&worker.shared));
        let worker = Some(Box::new(worker));
        let steps = Steps { worker, number, keeps, end: Arc::clone(&end) };
        (Self::of(Frames::Steps(steps), number, burst, core, shared), end)
    }

    /// Gives a worker a ring with room for `room` frames and returns its other end. That end has no core of its own:
    /// the worker's thread has it.
    ///
    /// # Errors
    /// The machine has no descriptors left.
    pub(crate) fn by_ring(worker: &mut Worker, room: usize, burst: usize) -> io::Result<Self> {
        let (number, shared) = (worker.number, Arc::clone(&worker.shared));
        let wires = worker.wires.len();
        let (own, other) = ring::ring(room.max(1), wires, worker.waker.clone())?;
        worker.ring = Some(Box::new(own));
        Ok(Self::of(Frames::Ring(other), number, burst, None, shared))
    }

    fn of(
        frames: Frames,
        number: usize,
        burst: usize,
        core: Option<usize>,
        shared: Arc<WorkerSlots>,
    ) -> Self {
        let descriptors = vec![Descriptor::default(); burst.max(1)].into();
        Self { frames, number, core, descriptors, shown: 0, shared }
    }

    /// The worker's number, from 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The core that the configuration gives to the thread that polls the worker, if it gives it one.
    #[must_use]
    pub fn core(&self) -> Option<usize> {
        self.core
    }

    /// Makes the calling thread run on this core alone.
    ///
    /// # Errors
    /// There is no core of this number, or this process may not run there.
    pub fn pin(core: usize) -> io::Result<()> {
        topology::pin(core)
    }

    /// Asks all workers of the run to stop once they have handled what their ports still have.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// All descriptors; the first ones describe the frames that the last poll showed. They stay at this address.
    pub fn descriptors(&mut self) -> &mut [Descriptor] {
        &mut self.descriptors
    }

    /// Carries out the verdicts of the frames that were shown last, and waits for others for at most `timeout`.
    pub fn poll(&mut self, timeout: Duration) -> Polled {
        let (shown, descriptors) = (mem::take(&mut self.shown), &mut *self.descriptors);
        let polled = match &mut self.frames {
            Frames::Steps(steps) => steps.poll(shown, descriptors, timeout),
            Frames::Ring(ring) => ring.poll(shown, descriptors, timeout),
        };
        if let Polled::Frames(shown) = polled {
            self.shown = shown;
        }
        polled
    }
}

impl Steps {
    fn poll(&mut self, shown: usize, descriptors: &mut [Descriptor], timeout: Duration) -> Polled {
        let Some(worker) = &mut self.worker else { return Polled::Ended };
        if shown > 0 {
            take_back(worker.waiting(), &descriptors[..shown]);
            match show(worker.waiting(), descriptors) {
                0 => worker.carry_out(),
                shown => return Polled::Frames(shown),
            }
        }
        let mut until = None;
        loop {
            // The clock is not read for frames that are there.
            let left = match until {
                None => Duration::ZERO,
                Some(until) => Instant::saturating_duration_since(&until, Instant::now()),
            };
            let step = worker.step(Some(left));
            match (step, show(worker.waiting(), descriptors)) {
                (_, shown @ 1..) => return Polled::Frames(shown),
                (Step::Ended, _) => break,
                (Step::Goes, _) if until.is_some() && left.is_zero() => return Polled::Idle,
                (Step::Goes, _) => {}
            }
            until.get_or_insert_with(|| Instant::now() + timeout);
        }
        self.finish();
        Polled::Ended
    }

    /// Reports that the worker has ended, and how.
    fn finish(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            let ended = worker.see_out();
            let left = worker.left(self.keeps);
            drop(worker);
            self.end.tell((ended, left));
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        let Some(mut worker) = self.worker.take() else { return };
        let (number, end) = (self.number, Arc::clone(&self.end));
        let work = move || {
            worker.gives_up();
            let ended = worker.run();
            drop(worker);
            end.tell((ended, Listing::default()));
        };
        if thread::Builder::new().name(format!("worker {number}")).spawn(work).is_err() {
            // The worker was dropped together with its remaining work.
            self.end.tell((Err(Failed::Abandoned(number)), Listing::default()));
        }
    }
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted").field("number", &self.number).finish_non_exhaustive()
    }
}
