//! [`InHand`]: the frames that a worker has in hand.

use crate::forward::account::Reason;
use crate::forward::wire::Wire;

/// Frames that a worker has in hand, so that a panic over them, or a port that fails, costs none its fate.
#[derive(Debug)]
pub(super) struct InHand {
    from: usize,
    /// The number of frames taken.
    frames: usize,
    /// What was on its way then, by this worker's own account.
    before: i64,
}

impl InHand {
    pub(super) fn new(from: usize, frames: usize, before: i64) -> Self {
        Self { from, frames, before }
    }

    /// Counts the frames that have found no fate since as dropped.
    pub(super) fn drop_as(self, reason: Reason, wire: &Wire) {
        let account = wire.account(self.from);
        let left = self.frames as i64 + account.on_its_way() - self.before;
        let left = usize::try_from(left).unwrap_or(0);
        account.dropped(reason, left);
        wire.tap.lose(left);
    }
}
