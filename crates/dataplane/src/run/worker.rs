//! A worker: takes the frames of its wires from port to port, each burst to its end, and sleeps while there are none.
//!
//! Contract: it stops once it is told to and its ports have nothing more, or [`DRAIN`] after that; or once all its
//! ports have ended, which those of captures do. A panic over a burst costs that burst: it is caught and told, and
//! from then on nothing is evaluated, and all frames are dropped or all leave, as configured. A second one ends the
//! worker, and so does a port that fails.

use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pktio::{PortError, Readiness};
use smallvec::SmallVec;

use super::account::Reason;
use super::causes::Causes;
use super::config::OnPanic;
use super::parker::Parker;
use super::wire::Wire;
use crate::publish;

/// How long frames are still taken that come after it is told to stop.
pub const DRAIN: Duration = Duration::from_millis(200);

/// What it shares with who starts it.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    pub(super) parker: Arc<Parker>,
    /// It panicked, and evaluates nothing any more.
    pub(super) panicked: AtomicBool,
    pub(super) causes: Causes,
}

impl Shared {
    pub(super) fn new(parker: Arc<Parker>) -> Self {
        Self {
            stop: AtomicBool::new(false),
            parker,
            panicked: AtomicBool::new(false),
            causes: Causes::default(),
        }
    }
}

/// Drives wires.
pub(super) struct Worker {
    pub(super) wires: Vec<Wire>,
    pub(super) rules: publish::Worker,
    pub(super) on_panic: OnPanic,
    pub(super) shared: Arc<Shared>,
    /// Of its parker.
    pub(super) waker: Waker,
}

/// Why a worker ended before it was told to.
#[derive(Debug)]
pub(super) enum Failed {
    Port(PortError),
    Panicked,
}

impl Worker {
    /// Takes frames on their way until it is told to stop, and sees them out.
    pub(super) fn run(&mut self) -> Result<(), Failed> {
        let ended = self.take_turns();
        let flushed = self.wires.iter_mut().try_for_each(Wire::flush);
        ended.and(flushed.map_err(Failed::Port))
    }

    fn take_turns(&mut self) -> Result<(), Failed> {
        let mut until = None;
        loop {
            let frames = match catch_unwind(AssertUnwindSafe(|| self.turn())) {
                Ok(Ok(frames)) => frames,
                Ok(Err(error)) => {
                    self.abandon(Reason::Device);
                    return Err(Failed::Port(error));
                }
                Err(_) => {
                    self.abandon(Reason::Panic);
                    if self.shared.panicked.swap(true, Ordering::Relaxed) {
                        return Err(Failed::Panicked);
                    }
                    continue;
                }
            };
            if until.is_none() && self.shared.stop.load(Ordering::Relaxed) {
                until = Some(Instant::now() + DRAIN);
            }
            match until {
                Some(until) if frames == 0 || Instant::now() >= until => return Ok(()),
                None if frames == 0 && !self.sleep() => return Ok(()),
                _ => {}
            }
        }
    }

    /// One burst from each port of all wires: how many frames came.
    fn turn(&mut self) -> Result<usize, PortError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let is_open = self.on_panic == OnPanic::Open;
        let is_evaluated = !self.shared.panicked.load(Ordering::Relaxed);
        let mut frames = 0;
        for wire in &mut self.wires {
            frames += match is_evaluated {
                true => wire.turn(&mut self.rules, &self.shared.causes, now)?,
                false => wire.turn_unevaluated(is_open)?,
            };
        }
        Ok(frames)
    }

    fn abandon(&mut self, reason: Reason) {
        self.wires.iter_mut().for_each(|wire| wire.abandon(reason));
    }

    /// Waits for frames; false where there will never be any.
    fn sleep(&self) -> bool {
        let mut descriptors: SmallVec<[BorrowedFd<'_>; 8]> = SmallVec::new();
        let mut most: Option<Duration> = None;
        let (mut is_over, mut may_have_missed) = (true, false);
        for ready in self.wires.iter().flat_map(Wire::readiness) {
            is_over &= matches!(ready, Readiness::Never);
            match ready {
                Readiness::Never => {}
                Readiness::Always => may_have_missed = true,
                Readiness::After(wait) => most = Some(most.map_or(wait, |most| most.min(wait))),
                Readiness::Bell(bell) => may_have_missed |= bell.wakes(&self.waker),
                Readiness::Descriptor(descriptor) => descriptors.push(descriptor),
            }
        }
        if !is_over && !may_have_missed {
            self.shared.parker.park(&descriptors, most);
        }
        !is_over
    }
}
