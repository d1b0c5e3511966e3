//! [`Recall`]: whether the router in front of a node forgets it in seconds, which the node finds out by the directory's help.
//!
//! Once a node was silent for some seconds, the directory says that it is not registered, which a node answers at once. If it does,
//! longer silence is tried; a node to which it does not arrive twice knows what that means, and is tried no more.

use super::state::Directory;
use crate::effect::Now;
use crate::limits::{RECALL_LATE, RECALL_MISSES, RECALLS};
use crate::message::Refusal;
use crate::name::Name;

/// What is known of a node's router.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recall {
    /// How many of [`RECALLS`] are done with.
    done: usize,
    /// When the node said something last.
    said: u64,
    /// When it was told something after its silence, and has not registered since.
    told: Option<u64>,
    missed: u8,
}

impl Recall {
    /// The node registers: returns after how many seconds of silence it is told something, 0 for never.
    pub(super) fn registered(&mut self, now: u64) -> u8 {
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

    fn is_due(&self, now: u64) -> bool {
        let seconds = RECALLS.get(self.done).filter(|_| self.told.is_none());
        let silent = |seconds: &u8| u64::from(*seconds) * crate::limits::SECOND;
        seconds.is_some_and(|seconds| now >= self.said.saturating_add(silent(seconds)))
    }
}

impl Directory {
    /// A node says something.
    pub(super) fn heard_of(&mut self, name: &Name, now: Now) {
        if let Some(presence) = self.present.get_mut(name) {
            presence.recall.said = now.nanos;
        }
    }

    /// Says something to nodes that were silent for long enough, and may be behind a router that forgets in seconds: to be called
    /// each second, or never.
    pub fn recall(&mut self, now: Now) {
        self.recalls = true;
        let due = self.present.iter_mut().filter(|(_, it)| it.recall.is_due(now.nanos));
        let due: Vec<Name> = due
            .map(|(name, presence)| {
                presence.recall.told = Some(now.nanos);
                name.clone()
            })
            .collect();
        due.iter().for_each(|name| self.refuse(name, 0, Refusal::NotRegistered));
    }
}
