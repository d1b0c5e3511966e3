//! What a poll shows: frames of several directions in one list of [`Descriptor`]s, and how their verdicts come back.
//!
//! Contract: descriptors are taken back in the order of the same directions in which they were shown.

use super::descriptor::Descriptor;
use super::waiting::Waiting;

/// The result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// This number of frames wait for their verdicts: the first descriptors are theirs.
    Frames(usize),
    /// No frame came in time.
    Idle,
    /// The worker has ended; [`Run::wait`](crate::Run::wait) says how.
    Ended,
}

/// Shows the frames that were not shown yet, as many as there is room for; returns their number.
pub(super) fn show<'w>(
    waiting: impl Iterator<Item = &'w mut Waiting>,
    descriptors: &mut [Descriptor],
) -> usize {
    let mut shown = 0;
    for waiting in waiting {
        shown += waiting.describe(&mut descriptors[shown..]);
    }
    shown
}

/// Takes the verdicts of the frames that were shown last.
pub(super) fn take_back<'w>(
    waiting: impl Iterator<Item = &'w mut Waiting>,
    mut descriptors: &[Descriptor],
) {
    for waiting in waiting {
        let own = waiting.unseen().min(descriptors.len());
        let (taken, left) = descriptors.split_at(own);
        waiting.take_back(taken);
        descriptors = left;
    }
}
