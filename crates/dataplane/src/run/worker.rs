//! A worker: takes the frames of its wires from port to port, each burst to its end, and sleeps while there are none.
//!
//! Contract: it stops once it is told to and its ports have nothing more, or [`DRAIN`] after that; or once all its
//! ports have ended, which those of captures do. A panic over a burst costs that burst: it is caught and told, and
//! from then on nothing is evaluated, and all frames are dropped or all leave, as configured. A second one ends the
//! worker, and so does a port that fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pktio::{PortError, Readiness};

use super::account::Reason;
use super::causes::Causes;
use super::config::OnPanic;
use super::wire::Wire;
use crate::publish;

/// How long frames are still taken that come after it is told to stop.
pub const DRAIN: Duration = Duration::from_millis(200);

/// The longest sleep: whoever says stop waits no longer for it.
const LONGEST: Duration = Duration::from_millis(20);

/// The longest sleep where frames may come by something that cannot wake it.
const SHORTEST: Duration = Duration::from_micros(200);

/// What it shares with who starts it.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    /// It panicked, and evaluates nothing any more.
    pub(super) panicked: AtomicBool,
    pub(super) causes: Causes,
}

/// Drives wires.
pub(super) struct Worker {
    pub(super) wires: Vec<Wire>,
    pub(super) rules: publish::Worker,
    pub(super) on_panic: OnPanic,
    pub(super) shared: Arc<Shared>,
}

/// Why a worker ended before it was told to.
#[derive(Debug)]
pub(super) enum Failed {
    Port(PortError),
    Panicked,
}

impl Worker {
    /// Takes frames on their way until it is told to stop.
    pub(super) fn run(&mut self) -> Result<(), Failed> {
        let mut until = None;
        loop {
            let bells = self.bells();
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
                None if frames == 0 && !self.sleep(bells) => return Ok(()),
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

    /// How often the bells of all ports rang, before anyone looks whether there are frames.
    fn bells(&self) -> u64 {
        let ready = self.wires.iter().flat_map(Wire::readiness);
        ready.map(|ready| if let Readiness::Bell(bell) = ready { bell.count() } else { 0 }).sum()
    }

    /// Waits for frames; false where there will never be any.
    fn sleep(&self, rung: u64) -> bool {
        let (mut bells, mut others) = (Vec::new(), 0);
        let mut shortest = SHORTEST;
        for ready in self.wires.iter().flat_map(Wire::readiness) {
            match ready {
                Readiness::Never => {}
                Readiness::Bell(bell) => bells.push(bell),
                Readiness::Always => return true,
                Readiness::After(wait) => {
                    others += 1;
                    shortest = shortest.max(wait.min(LONGEST));
                }
                #[cfg(unix)]
                Readiness::Descriptor(_) => others += 1,
            }
        }
        match (&*bells, others) {
            ([], 0) => return false,
            ([bell], 0) => {
                bell.wait(rung, LONGEST);
            }
            _ if bells.iter().map(|bell| bell.count()).sum::<u64>() != rung => {}
            _ => thread::sleep(shortest),
        }
        true
    }
}
