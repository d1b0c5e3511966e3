//! [`Recall`]: whether the router in front of a node forgets it in seconds, as the node finds out.
//!
//! A directory that does not know says so with *registered*, and says something after some seconds of the node's silence. If
//! nothing arrives, the node registers at once, and the directory tries again; if nothing arrives a second time, the
//! router has forgotten the node meanwhile. Then keepalives go to all peers three times as often.
//!
//! Contract: pure; time is passed in. A node that says something else in between is not silent, and learns nothing.

use crate::limits::{RECALL_LATE, RECALL_MISSES, SECOND};

/// What a node waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recall {
    /// By when the directory has said something, after how many seconds of silence.
    awaited: Option<(u64, u8)>,
    /// How often in a row it was not heard.
    missed: u8,
}

impl Recall {
    /// The directory says something after that many seconds of silence; 0 if it does not.
    pub(crate) fn expect(&mut self, seconds: u8, now: u64) {
        let by = now.saturating_add(u64::from(seconds) * SECOND + RECALL_LATE);
        self.awaited = (seconds > 0).then_some((by, seconds));
    }

    /// The node has said something.
    pub(crate) fn said(&mut self) {
        self.awaited = None;
    }

    /// The directory has said it.
    pub(crate) fn heard(&mut self) {
        if self.awaited.take().is_some() {
            self.missed = 0;
        }
    }

    /// When nothing is awaited any more.
    pub(crate) fn due(&self) -> Option<u64> {
        self.awaited.map(|(by, _)| by)
    }

    /// Whether something was awaited in vain, and, if that is certain, after how many nanoseconds of silence keepalives are to go.
    pub(crate) fn miss(&mut self, now: u64) -> Option<Option<u64>> {
        let (_, seconds) = self.awaited.take_if(|(by, _)| *by <= now)?;
        self.missed += 1;
        let is_certain = self.missed >= RECALL_MISSES;
        if is_certain {
            self.missed = 0;
        }
        Some(is_certain.then(|| u64::from(seconds) * SECOND / 3))
    }
}
