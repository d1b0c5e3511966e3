//! [`Hosted`]: a worker without a thread of its own. Whoever has it takes its steps, and is shown the frames that wait for a
//! verdict as [`Descriptor`]s.
//!
//! Contract: one thread polls; each worker of a run has one of its own, since workers wait for each other. [`Hosted::poll`]
//! carries out the verdicts of the frames that it showed last, then goes on as any worker does until others wait. Descriptors
//! stay at one address, and the memory of the frames that they name is the middlebox's until the next poll. One that is dropped before it ended is a worker whose thread
//! panicked: it takes the frames that wait with it, counted, and the run ends.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use conntrack::Listing;

use super::super::topology;
use super::super::worker::{Failed, Left, Step, Worker};
use super::descriptor::Descriptor;

/// A worker that is driven from outside.
pub struct Hosted {
    worker: Worker,
    descriptors: Box<[Descriptor]>,
    core: Option<usize>,
    /// Whether somebody asks for the connections that it leaves.
    keeps: bool,
    has_ended: bool,
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
        let descriptors = vec![Descriptor::default(); burst.max(1)].into();
        let told = Arc::clone(&end);
        (Self { worker, descriptors, core, keeps, has_ended: false, end }, told)
    }

    /// Its number, from 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.worker.number
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
        self.worker.shared.stop();
    }

    /// All descriptors; the first ones are those of the frames that the last poll showed. They stay at this address.
    pub fn descriptors(&mut self) -> &mut [Descriptor] {
        &mut self.descriptors
    }

    /// Carries out the verdicts of the frames that were shown last, and waits for others for at most `timeout`.
    pub fn poll(&mut self, timeout: Duration) -> Polled {
        let until = Instant::now() + timeout;
        while !self.has_ended {
            let left = until.saturating_duration_since(Instant::now());
            match self.worker.step(Some(left)) {
                Step::Goes if left.is_zero() => return Polled::Idle,
                Step::Goes => {}
                Step::Ended => self.finish(),
            }
        }
        Polled::Ended
    }

    /// Sees everything out, and tells so.
    fn finish(&mut self) {
        let ended = self.worker.see_out();
        let left = if self.keeps { self.worker.rules.connections() } else { Listing::default() };
        self.has_ended = true;
        self.end.tell((ended, left));
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end.tell((Err(Failed::Panicked(self.worker.number)), Listing::default()));
        }
    }
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted").field("number", &self.worker.number).finish_non_exhaustive()
    }
}
