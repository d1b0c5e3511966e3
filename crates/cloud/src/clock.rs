//! [`Clock`]: the time of a server and of its relay's workers.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use overlay::Now;

/// The clock of a server.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// A clock that starts.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// What time it is.
    pub(crate) fn now(self) -> Now {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { nanos: self.nanos(), unix: unix.as_secs() }
    }

    /// Nanoseconds of [`Self::now`].
    pub(crate) fn nanos(self) -> u64 {
        self.0.elapsed().as_nanos() as u64 + 1
    }
}
