//! [`Hosted`]: a worker without a thread of its own. Whoever has it takes its steps, and is shown the frames that wait for
//! their verdicts as [`Descriptor`]s.
//!
//! Contract: one thread polls; each worker of a run has one of its own, since workers wait for each other. [`Hosted::poll`]
//! carries out the verdicts of the frames that it showed last, then goes on as any worker does until others wait.
//! Descriptors stay at one address; the memory of the frames that they name is the middlebox's until the next poll, and
//! nobody's after that. One that is dropped before it ended is a worker whose thread panicked: a thread of its own has
//! what waits with it, and what still comes, dropped and counted, and the run ends.

use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use conntrack::Listing;

use super::super::topology;
use super::super::worker::{Failed, Left, Step, Worker};
use super::descriptor::Descriptor;

/// A worker that is polled.
pub struct Hosted {
    /// Until it has ended.
    worker: Option<Box<Worker>>,
    number: usize,
    core: Option<usize>,
    /// Whether somebody asks for the connections that it leaves.
    keeps: bool,
    descriptors: Box<[Descriptor]>,
    /// How many of them are frames that wait for their verdicts.
    shown: usize,
    end: Arc<End>,
}

/// What a poll came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// So many frames wait for their verdicts: the first descriptors are theirs.
    Frames(usize),
    /// No frame came in time.
    Idle,
    /// The worker has ended; [`Run::wait`](crate::run::Run::wait) says how.
    Ended,
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
    /// With room for so many frames at a time.
    pub(in crate::run) fn new(
        worker: Worker,
        burst: usize,
        core: Option<usize>,
        keeps: bool,
    ) -> (Self, Arc<End>) {
        let end = Arc::<End>::default();
        let hosted = Self {
            number: worker.number,
            worker: Some(Box::new(worker)),
            core,
            keeps,
            descriptors: vec![Descriptor::default(); burst.max(1)].into(),
            shown: 0,
            end: Arc::clone(&end),
        };
        (hosted, end)
    }

    /// Its number, from 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The core that the configuration gives it, if it gives it one.
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
        self.worker.iter().for_each(|worker| worker.shared.stop());
    }

    /// All descriptors; the first ones are those of the frames that the last poll showed. They stay at this address.
    pub fn descriptors(&mut self) -> &mut [Descriptor] {
        &mut self.descriptors
    }

    /// Carries out the verdicts of the frames that were shown last, and waits for others for at most `timeout`.
    pub fn poll(&mut self, timeout: Duration) -> Polled {
        let Some(worker) = &mut self.worker else { return Polled::Ended };
        if self.shown > 0 {
            take_back(worker, &self.descriptors[..mem::take(&mut self.shown)]);
            self.shown = show(worker, &mut self.descriptors);
            if self.shown > 0 {
                return Polled::Frames(self.shown);
            }
            worker.carry_out();
        }
        let mut until = None;
        loop {
            // Not asked of the clock for frames that are there.
            let left = match until {
                None => Duration::ZERO,
                Some(until) => Instant::saturating_duration_since(&until, Instant::now()),
            };
            let step = worker.step(Some(left));
            self.shown = show(worker, &mut self.descriptors);
            match (step, self.shown) {
                (_, 1..) => return Polled::Frames(self.shown),
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

/// Shows the frames that were not shown yet, as many as there is room for: how many.
fn show(worker: &mut Worker, descriptors: &mut [Descriptor]) -> usize {
    let mut shown = 0;
    for waiting in worker.waiting() {
        shown += waiting.describe(&mut descriptors[shown..]);
    }
    shown
}

/// Takes the verdicts of those that were shown last.
fn take_back(worker: &mut Worker, mut descriptors: &[Descriptor]) {
    for waiting in worker.waiting() {
        let own = waiting.unseen().min(descriptors.len());
        let (taken, left) = descriptors.split_at(own);
        waiting.take_back(taken);
        descriptors = left;
    }
}

impl Drop for Hosted {
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
            self.end.tell((Err(Failed::Panicked(number)), Listing::default()));
        }
    }
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted").field("number", &self.number).finish_non_exhaustive()
    }
}
