//! [`Recall`]: whether the router in front of a node forgets it in seconds, as the node finds out.
//!
//! A directory that does not know says so with *registered*, and says something twice after some seconds of the node's silence. If
//! nothing arrives, the router has forgotten the node meanwhile: the node registers at once, and from then on keepalives go to all
//! peers three times as often. Where both were lost on the way, keepalives go for nothing.
//!
//! Contract: pure; time is passed in. Where a node says something else in between, both wait anew from then on.

use std::mem;

use crate::limits::{RECALL_LATE, SECOND};

/// What a node waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recall {
    /// By when the directory has said something, after how many seconds of silence.
    awaited: Option<(u64, u8)>,
    /// Whether the node has said something since it looked last.
    is_interrupted: bool,
}

impl Recall {
    /// The directory says something after that many seconds of silence; 0 if it does not.
    pub(crate) fn expect(&mut self, seconds: u8, now: u64) {
        let by = now.saturating_add(u64::from(seconds) * SECOND + RECALL_LATE);
        self.awaited = (seconds > 0).then_some((by, seconds));
    }

    /// The node has said something.
    pub(crate) fn said(&mut self) {
        self.is_interrupted = true;
    }

    /// The directory has said it.
    pub(crate) fn heard(&mut self) {
        self.awaited = None;
    }

    /// When nothing is awaited any more.
    pub(crate) fn due(&self) -> Option<u64> {
        self.awaited.map(|(by, _)| by)
    }

    /// After how many nanoseconds of silence keepalives are to go, if something was awaited in vain.
    pub(crate) fn miss(&mut self, now: u64) -> Option<u64> {
        if let (true, Some((_, seconds))) = (mem::take(&mut self.is_interrupted), self.awaited) {
            self.expect(seconds, now);
        }
        let (_, seconds) = self.awaited.take_if(|(by, _)| *by <= now)?;
        Some(u64::from(seconds) * SECOND / 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_node_says_in_between_begins_the_wait_anew() {
        let mut recall = Recall::default();
        recall.expect(3, 0);
        recall.said();
        assert_eq!(recall.miss(SECOND), None);
        assert_eq!((recall.due(), recall.miss(5 * SECOND)), (Some(6 * SECOND), None));
        assert_eq!(recall.miss(6 * SECOND), Some(SECOND), "a third of the silence");
        assert_eq!((recall.due(), recall.miss(20 * SECOND)), (None, None));
        recall.expect(7, 20 * SECOND);
        recall.heard();
        assert_eq!(recall.miss(30 * SECOND), None);
    }
}
