//! [`Recall`]: whether the router in front of a node forgets it in seconds, which the node finds out by the directory's help.
//!
//! Once a node was silent for some seconds, the directory says that it is not registered, which a node answers at once. If it does,
//! longer silence is tried; a node to which it does not arrive twice knows what that means, and is tried no more.

use crate::limits::{RECALL_LATE, RECALL_MISSES, RECALLS, SECOND};

/// What is known of a node's router.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recall {
    /// How many of [`RECALLS`] are done with.
    done: usize,
    /// When the node said something last.
    pub(super) said: u64,
    /// When the directory said something after its silence, if it has not registered since.
    pub(super) told: Option<u64>,
    missed: u8,
}

impl Recall {
    /// The node registers: returns after how many seconds of silence the directory says something, 0 for never.
    pub(super) fn registered(&mut self, now: u64) -> u8 {
        self.said = now;
        if let Some(told) = self.told.take() {
            // It waits for longer before it registers by itself.
            let is_heard = now < told.saturating_add(RECALL_LATE / 2);
            self.missed = if is_heard { 0 } else { self.missed + 1 };
            self.done += usize::from(is_heard);
            if self.missed >= RECALL_MISSES {
                self.done = RECALLS.len();
            }
        }
        RECALLS.get(self.done).copied().unwrap_or(0)
    }

    /// Whether the node was silent for long enough.
    pub(super) fn is_due(&self, now: u64) -> bool {
        let seconds = RECALLS.get(self.done).filter(|_| self.told.is_none());
        let silent = |seconds: &u8| u64::from(*seconds) * SECOND;
        seconds.is_some_and(|seconds| now >= self.said.saturating_add(silent(seconds)))
    }
}
