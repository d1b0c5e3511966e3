//! [`Pending`]: a revision that goes back by itself unless somebody confirms it.
//!
//! Contract: the time is the wall's in the journal, as it has to outlast the run, and the machine's own while it runs. Both
//! are passed in, as a [`Time`]: revisions read it from a [`Clock`].

use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

/// Seconds that a confirmation may be waited for: an hour.
pub(crate) const MOST_SECONDS: u64 = 3600;

/// A point in time, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    /// The machine's own, which nobody sets.
    pub(super) own: Instant,
    /// The wall's: milliseconds since 1970.
    pub(super) wall_ms: u64,
}

/// Where revisions have the time from.
pub(crate) type Clock = fn() -> Time;

impl Time {
    /// The system's.
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let wall_ms = since.map_or(0, |since| since.as_millis() as u64);
        Self { own: Instant::now(), wall_ms }
    }

    /// Seconds since 1970.
    pub(super) fn seconds(self) -> u64 {
        self.wall_ms / 1000
    }
}

/// A revision that waits for its confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) revision: u64,
    until: Instant,
    /// Milliseconds since 1970.
    at: u64,
}

/// As the journal has it.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    revision: u64,
    until_ms: u64,
}

impl Pending {
    pub(super) fn of(revision: u64, seconds: u64, now: Time) -> Self {
        let wait = Duration::from_secs(seconds.min(MOST_SECONDS));
        let at = now.wall_ms.saturating_add(wait.as_millis() as u64);
        Self { revision, until: now.own + wait, at }
    }

    /// What a journal says, whose run has ended.
    pub(super) fn read(text: &str, now: Time) -> Option<Self> {
        let Written { revision, until_ms } = serde_json::from_str(text).ok()?;
        let left = until_ms.saturating_sub(now.wall_ms).min(MOST_SECONDS * 1000);
        let until = now.own + Duration::from_millis(left);
        Some(Self { revision, until, at: until_ms })
    }

    /// The same as another revision.
    pub(super) fn again(self, revision: u64) -> Self {
        Self { revision, ..self }
    }

    pub(super) fn written(&self) -> String {
        let written = Written { revision: self.revision, until_ms: self.at };
        serde_json::to_string(&written).unwrap_or_default()
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        now.own >= self.until
    }

    /// Seconds until then, begun ones counted whole.
    pub(super) fn seconds_left(&self, now: Time) -> u64 {
        let left = self.until.saturating_duration_since(now.own);
        left.as_millis().div_ceil(1000) as u64
    }
}
