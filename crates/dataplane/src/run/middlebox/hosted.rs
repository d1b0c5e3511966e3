//! [`Hosted`]: a worker whose frames whoever has this is shown as [`Descriptor`]s, and gives their verdicts. Either it takes
//! the worker's steps, which has no thread of its own then, or the worker has one and a ring is between them (`ring`).
//!
//! Contract: one thread polls; each worker of a run has one of its own, since workers wait for each other. [`Hosted::poll`]
//! carries out the verdicts of the frames that it showed last, then goes on as any worker does until others wait; by a ring
//! it gives them back to the worker, which carries them out. Descriptors stay at one address; the memory of the frames that they name is the middlebox's until the next poll, and
//! nobody's after that. One that is dropped before it ended is a worker whose thread panicked: the worker's thread, or one
//! that it gets for this, has what waits with it, and what still comes, dropped and counted, and the run ends.

use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use conntrack::Listing;

use super::super::shared::Shared;
use super::super::topology;
use super::super::worker::{Failed, Left, Step, Worker};
use super::descriptor::Descriptor;
use super::ring::{self, PollerRing};
use super::shown::{Polled, show, take_back};

/// A worker that is polled.
pub struct Hosted {
    frames: Frames,
    number: usize,
    core: Option<usize>,
    descriptors: Box<[Descriptor]>,
    /// How many of them are frames that wait for their verdicts.
    shown: usize,
    shared: Arc<Shared>,
}

/// Where its frames come from.
enum Frames {
    Steps(Steps),
    Ring(PollerRing),
}

/// A worker without a thread.
struct Steps {
    /// Until it has ended.
    worker: Option<Box<Worker>>,
    number: usize,
    /// Whether somebody asks for the connections that it leaves.
    keeps: bool,
    end: Arc<End>,
}

/// Where the end of a worker is told.
#[derive(Debug, Default)]
pub(in crate::run) struct End(Mutex<Option<Left>>);

impl End {
    pub(in crate::run) fn is_told(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(in crate::run) fn take(&self) -> Option<Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn tell(&self, left: Left) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }
}

impl Hosted {
    /// A worker that has no thread, with room for so many frames at a time.
    pub(in crate::run) fn new(
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

    /// Gives a worker a ring with room for so many frames: the other end of it. No core is its own: the worker's thread
    /// has that.
    ///
    /// # Errors
    /// The machine has no descriptors left.
    pub(in crate::run) fn by_ring(
        worker: &mut Worker,
        room: usize,
        burst: usize,
    ) -> io::Result<Self> {
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
        shared: Arc<Shared>,
    ) -> Self {
        let descriptors = vec![Descriptor::default(); burst.max(1)].into();
        Self { frames, number, core, descriptors, shown: 0, shared }
    }

    /// Its number, from 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The core that the configuration gives to whoever polls it, if it gives it one.
    #[must_use]
    pub fn core(&self) -> Option<usize> {
        self.core
    }

    /// Has the calling thread run on this core alone.
    ///
    /// # Errors
    /// There is none of this number, or this process may not run there.
    pub fn pin(core: usize) -> io::Result<()> {
        topology::pin(core)
    }

    /// Tells all workers of the run to stop once they have handled what their ports still have.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// All descriptors; the first ones are those of the frames that the last poll showed. They stay at this address.
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
            // Not asked of the clock for frames that are there.
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

    /// Tells that it has ended, and how.
    fn finish(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            let ended = worker.see_out();
            let left = if self.keeps { worker.rules.connections() } else { Listing::default() };
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
            // The worker went with what was to be done.
            self.end.tell((Err(Failed::Abandoned(number)), Listing::default()));
        }
    }
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted").field("number", &self.number).finish_non_exhaustive()
    }
}
