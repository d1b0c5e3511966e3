//! [`Lines`]: bounds the lines of a log that others bring about, so that who sends nonsense fills no disk.

use std::cmp::Ordering;

use crate::limits;

/// The lines of the present [`limits::LINES_TIME`].
#[derive(Debug, Default)]
pub(crate) struct Lines {
    since: u64,
    count: u32,
}

impl Lines {
    /// Begins to count again, once it is time.
    pub(crate) fn expire(&mut self, now: u64) {
        if now.saturating_sub(self.since) >= limits::LINES_TIME {
            *self = Self { since: now, count: 0 };
        }
    }

    /// The line to be logged for this one, unless there were too many.
    pub(crate) fn admit(&mut self, line: String) -> Option<String> {
        self.count = self.count.saturating_add(1);
        match self.count.cmp(&limits::LINES) {
            Ordering::Less => Some(line),
            Ordering::Equal => Some("more lines within these ten seconds are left out".to_owned()),
            Ordering::Greater => None,
        }
    }
}
