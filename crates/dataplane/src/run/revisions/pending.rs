//! [`Pending`]: a revision that goes back by itself unless somebody confirms it.
//!
//! Contract: the time is the wall's in the journal, as it has to outlast the run, and the machine's own while it runs.

use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

/// Seconds that a confirmation may be waited for: an hour.
pub(in crate::run) const MOST_SECONDS: u64 = 3600;

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
    pub(super) fn of(revision: u64, seconds: u64) -> Self {
        let wait = Duration::from_secs(seconds.min(MOST_SECONDS));
        let at = now_ms().saturating_add(wait.as_millis() as u64);
        Self { revision, until: Instant::now() + wait, at }
    }

    /// What a journal says, whose run has ended.
    pub(super) fn read(text: &str) -> Option<Self> {
        let Written { revision, until_ms } = serde_json::from_str(text).ok()?;
        let left = until_ms.saturating_sub(now_ms()).min(MOST_SECONDS * 1000);
        let until = Instant::now() + Duration::from_millis(left);
        Some(Self { revision, until, at: until_ms })
    }

    pub(super) fn written(&self) -> String {
        let written = Written { revision: self.revision, until_ms: self.at };
        serde_json::to_string(&written).unwrap_or_default()
    }

    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Seconds until then, begun ones counted whole.
    pub(super) fn seconds_left(&self) -> u64 {
        let left = self.until.saturating_duration_since(Instant::now());
        left.as_millis().div_ceil(1000) as u64
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    now_ms() / 1000
}
