//! [`Readiness`]: how a worker sleeps until a port has frames, and [`Bell`], which wakes it for ports in memory.
//!
//! Contract: a worker reads the bell's count, looks at all of its ports, and only if it finds nothing waits for the
//! count to change: what is queued in between is not slept through. Ports of one worker may share a bell. A descriptor
//! is polled for reading (`poll(2)`), which may report it ready in vain. A worker that waits for both lets the bell
//! wake it ([`Bell::wakes`]).

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

/// What to wait for until [`Port::rx_burst`](crate::Port::rx_burst) may have frames.
#[derive(Clone, Copy, Debug)]
pub enum Readiness<'p> {
    /// Nothing: the port has frames or has ended, or waits for them itself (a capture that is piped in).
    Always,
    /// The port never has frames, or no longer.
    Never,
    /// The port has no frames before this much time has passed.
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
    rung: Mutex<Rung>,
    again: Condvar,
}

#[derive(Debug, Default)]
struct Rung {
    count: u64,
    /// The wakers to call at each ring.
    wakers: Vec<Waker>,
}

impl Bell {
    /// How often it rang.
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// Wakes all who wait.
    pub fn ring(&self) {
        let mut rung = self.lock();
        rung.count += 1;
        rung.wakers.iter().for_each(Waker::wake_by_ref);
        drop(rung);
        self.again.notify_all();
    }

    /// Waits until it rang after `seen` was read from [`Bell::count`], no longer than `most`; whether it rang.
    pub fn wait(&self, seen: u64, most: Duration) -> bool {
        let waiting = self.again.wait_timeout_while(self.lock(), most, |rung| rung.count == seen);
        let (rung, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        rung.count != seen
    }

    /// Wakes this one, too, from now on, for who waits for descriptors besides; whether it did not before. Then what
    /// rang until now may have been missed.
    pub fn wakes(&self, waker: &Waker) -> bool {
        let mut rung = self.lock();
        let is_new = !rung.wakers.iter().any(|known| known.will_wake(waker));
        if is_new {
            rung.wakers.push(waker.clone());
        }
        is_new
    }

    fn lock(&self) -> MutexGuard<'_, Rung> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bell that rings when another one does.
impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
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

    #[test]
    fn a_waker_is_woken_each_time_and_once() {
        let (bell, other) = (Bell::default(), Arc::<Bell>::default());
        let waker = Waker::from(Arc::clone(&other));
        assert!(bell.wakes(&waker));
        assert!(!bell.wakes(&waker.clone()), "it is known");
        bell.ring();
        bell.ring();
        assert_eq!(other.count(), 2);
    }
}
