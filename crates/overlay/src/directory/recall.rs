//! [`Recall`]: whether the router in front of a node forgets it in seconds, which the node finds out by the directory's help.
//!
//! Once a node was silent for some seconds, the directory says twice that it is not registered, which a node answers at once. If it does,
//! longer silence is tried. A node to which neither arrives knows what that means; a node that did not answer several times is tried no more.

use crate::limits::{RECALL_LATE, RECALL_TRIES, RECALLS, SECOND};

/// What is known of a node's router.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recall {
    /// How many of [`RECALLS`] are done with.
    done: usize,
    /// When the node said something last.
    said: u64,
    /// When the directory said something after its silence, if it has not registered since.
    pub(super) told: Option<u64>,
    /// How often in a row it did not answer.
    missed: u8,
}

impl Recall {
    /// The node registers: returns after how many seconds of silence the directory says something, 0 for never.
    pub(super) fn registered(&mut self, now: u64) -> u8 {
        let is_heard = self.lost_since(now).is_none();
        self.said = now;
        if self.told.take().is_some() {
            // It waits for longer before it registers by itself.
            self.missed = if is_heard { 0 } else { self.missed + 1 };
            self.done += usize::from(is_heard);
            if self.missed >= RECALL_TRIES {
                self.done = RECALLS.len();
            }
        }
        RECALLS.get(self.done).copied().unwrap_or(0)
    }

    /// Since when what was said to the node may not have arrived, if it registers so late after the directory said something that its
    /// router had forgotten it: what came a second after the node's own words did.
    pub(super) fn lost_since(&self, now: u64) -> Option<u64> {
        let told = self.told?;
        (now >= told.saturating_add(RECALL_LATE / 2)).then_some(self.said.saturating_add(SECOND))
    }

    /// The node says something else: its silence begins again.
    pub(super) fn heard_of(&mut self, now: u64) {
        (self.said, self.told) = (now, None);
    }

    /// Whether the node was silent for long enough.
    pub(super) fn is_due(&self, now: u64) -> bool {
        let seconds = RECALLS.get(self.done).filter(|_| self.told.is_none());
        let silent = |seconds: &u8| u64::from(*seconds) * SECOND;
        seconds.is_some_and(|seconds| now >= self.said.saturating_add(silent(seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_tried_until_it_answers_longer_silence_too_or_was_asked_in_vain_several_times() {
        let mut recall = Recall::default();
        assert_eq!(recall.registered(0), 3);
        recall.heard_of(SECOND);
        assert!(!recall.is_due(3 * SECOND) && recall.is_due(4 * SECOND));
        recall.told = Some(4 * SECOND);
        assert!(!recall.is_due(9 * SECOND), "once");
        assert_eq!(recall.registered(4 * SECOND + 1), 7);
        for (number, expected) in (1..=RECALL_TRIES).zip([7, 7, 0]) {
            let told = u64::from(number) * 20 * SECOND;
            recall.told = Some(told);
            assert_eq!(recall.registered(told + RECALL_LATE), expected);
        }
        assert!(!recall.is_due(u64::MAX));
    }

    /// What it says before it has heard anything, it says in its own time.
    #[test]
    fn what_a_node_says_in_between_is_no_answer() {
        let mut recall = Recall::default();
        recall.registered(0);
        recall.told = Some(3 * SECOND);
        recall.heard_of(3 * SECOND);
        assert!(recall.is_due(6 * SECOND));
        assert_eq!(recall.registered(10 * SECOND), 3);
    }
}
