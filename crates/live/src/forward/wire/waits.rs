//! [`Waits`]: the frames of a wire that wait for a middlebox.

use crate::config::Slot;
use crate::forward::middlebox::Waiting;

/// Frames that wait for a middlebox's verdicts, by end of arrival.
pub(super) struct Waits {
    pub(super) slot: Slot,
    pub(super) ends: [Waiting; 2],
}

impl Waits {
    pub(super) fn clear(&mut self) {
        self.ends.iter_mut().for_each(Waiting::clear);
    }
}
