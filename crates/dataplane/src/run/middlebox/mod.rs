//! Middleboxes: who is given the frames that cross a wire, may rewrite them, and says of each whether it goes on.
//!
//! Contract: each worker has one of its own, and it sees each frame once: those that leave after the rules, or those that
//! come before them ([`Slot`]); replies that rules make leave unseen. Frames keep their order and stay in their memory. No
//! frame is lost: what is dropped counts as [`Reason::Middlebox`](super::Reason::Middlebox) or
//! [`Reason::Handler`](super::Reason::Handler). A middlebox that panics is a worker that panics; after that none sees any
//! frame.

mod away;
mod descriptor;
mod hosted;
mod offsets;
mod ring;
mod shown;
mod waiting;

use std::fmt;

use super::config::Slot;

pub(super) use away::Away;
pub use descriptor::{Descriptor, LAYOUT_VERSION};
pub(super) use hosted::End;
pub use hosted::Hosted;
pub use offsets::Offsets;
pub(super) use ring::WorkerRing;
pub use shown::Polled;
pub use waiting::{Shown, Waiting};

/// Who sees the frames of a worker.
pub trait Middlebox: Send {
    /// Gives frames that came in by one end of a wire their verdicts; at first each is [`Verdict::Pass`].
    fn burst(&mut self, frames: &mut Waiting);

    /// There was nothing to do at `now`, in nanoseconds since the Unix epoch. The worker sleeps after this until frames come.
    fn idle(&mut self, _now: u64) {}
}

/// What becomes of a frame that a middlebox has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Verdict {
    /// It goes on.
    #[default]
    Pass = 0,
    /// It is dropped.
    Drop = 1,
    /// It leaves by the port that it came in by.
    Back = 2,
    /// The middlebox failed over it: what [`OnError`](super::config::OnError) says.
    Error = 3,
}

impl Verdict {
    /// What a descriptor says; anything unheard of is an error.
    fn of(byte: u8) -> Self {
        match byte {
            0 => Self::Pass,
            1 => Self::Drop,
            2 => Self::Back,
            _ => Self::Error,
        }
    }
}

/// Who drives the workers of a run, and whether a middlebox sees their frames.
pub enum Driver<'m> {
    /// Threads of theirs. There is no middlebox.
    Alone,
    /// Threads of theirs. Each worker, by its number, has a middlebox that is made for it.
    With(Slot, &'m mut dyn FnMut(usize) -> Box<dyn Middlebox>),
    /// Whoever polls them, with room for so many frames at a time.
    Hosted(Slot, usize),
    /// Threads of theirs. Whoever polls sees their frames by a ring, as many of each worker at most as `room` says.
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
    pub(super) fn slot(&self) -> Option<Slot> {
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
