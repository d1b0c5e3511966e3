//! [`Readiness`]: how a worker sleeps until a port has frames, and [`Bell`], which wakes it for ports in memory.
//!
//! Contract: a worker reads the bell's count, looks at all of its ports, and only if it finds nothing waits for the
//! count to change: what is queued in between is not slept through. Ports of one worker may share a bell. For a
//! descriptor, `poll(2)` for reading; it may report one that then has nothing.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What to wait for until [`Port::rx_burst`](crate::Port::rx_burst) may have frames.
#[derive(Clone, Copy, Debug)]
pub enum Readiness<'p> {
    /// Nothing: it has frames or has ended, or waits for them itself (a capture that is piped in).
    Always,
    /// It never has frames, or none any more.
    Never,
    /// It has none before this much time has passed.
    After(Duration),
    /// This bell rings.
    Bell(&'p Bell),
    /// This descriptor becomes readable.
    #[cfg(unix)]
    Descriptor(std::os::fd::BorrowedFd<'p>),
}

/// Counts what happened, and wakes those who wait for the next of it.
#[derive(Debug, Default)]
pub struct Bell {
    count: Mutex<u64>,
    rung: Condvar,
}

impl Bell {
    /// How often it rang.
    pub fn count(&self) -> u64 {
        *self.lock()
    }

    /// Wakes all who wait.
    pub fn ring(&self) {
        *self.lock() += 1;
        self.rung.notify_all();
    }

    /// Waits until it rang after `seen` was read from [`Bell::count`], no longer than `most`; whether it rang.
    pub fn wait(&self, seen: u64, most: Duration) -> bool {
        let waiting = self.rung.wait_timeout_while(self.lock(), most, |count| *count == seen);
        let (count, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        *count != seen
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_rang_before_the_wait_is_not_slept_through() {
        let bell = Bell::default();
        let seen = bell.count();
        assert!(!bell.wait(seen, Duration::from_millis(1)));
        bell.ring();
        assert!(bell.wait(seen, Duration::from_secs(60)));
    }

    #[test]
    fn a_bell_wakes_another_thread() {
        let bell = Bell::default();
        let seen = bell.count();
        thread::scope(|scope| {
            let waits = scope.spawn(|| bell.wait(seen, Duration::from_secs(60)));
            bell.ring();
            assert!(waits.join().unwrap());
        });
    }
}
