//! [`Middlebox`] and [`Driver`]: what sees the frames of a worker, and what drives the workers.

use std::fmt;

use super::waiting::Waiting;
use crate::config::Slot;

/// A program part that sees the frames of a worker.
pub trait Middlebox: Send {
    /// Gives the frames of one direction of a wire their verdicts; at first each is [`Verdict::Pass`](super::Verdict::Pass).
    fn burst(&mut self, frames: &mut Waiting);

    /// Nothing was to be done at `now`, in nanoseconds since the Unix epoch. The worker sleeps after this until frames
    /// come.
    fn idle(&mut self, _now: u64) {}
}

/// What drives the workers of a run, and whether a middlebox sees their frames.
pub enum Driver<'m> {
    /// Threads of their own. There is no middlebox.
    Alone,
    /// Threads of their own. Each worker, by its number, has a middlebox that is made for it.
    With(Slot, &'m mut dyn FnMut(usize) -> Box<dyn Middlebox>),
    /// A program that polls them, with room for this number of frames at a time.
    Hosted(Slot, usize),
    /// Threads of their own. A program that polls sees their frames through a ring, at most `room` of each worker.
    Ringed {
        /// Where frames wait.
        slot: Slot,
        /// Frames that are shown at a time.
        burst: usize,
        /// Frames that may be in the ring, or be shown, or wait for their verdicts to be carried out; at least 1.
        room: usize,
    },
}

impl Driver<'_> {
    /// Where frames wait for a middlebox, if there is one.
    pub(crate) fn slot(&self) -> Option<Slot> {
        match self {
            Self::Alone => None,
            Self::With(slot, _) | Self::Hosted(slot, _) | Self::Ringed { slot, .. } => Some(*slot),
        }
    }
}

impl fmt::Debug for Driver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Driver").field(&self.slot()).finish_non_exhaustive()
    }
}
