//! Counts the packets between source and end, and makes whoever would exceed the bound wait.
//!
//! Contract: any number of threads. The count is one atomic; only who must wait, and who lets them go, takes
//! the lock. A waiter checks again under the lock that wakers take, so no wake-up is lost.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::{Condvar, Mutex};

/// The count and who waits for it.
#[derive(Debug)]
pub(super) struct InFlight {
    most: usize,
    now: CachePadded<AtomicUsize>,
    high: CachePadded<AtomicUsize>,
    waiting: CachePadded<AtomicUsize>,
    turn: Mutex<()>,
    room: Condvar,
}

impl InFlight {
    pub(super) fn new(most: usize) -> Self {
        let count = || CachePadded::new(AtomicUsize::new(0));
        let (now, high, waiting) = (count(), count(), count());
        Self { most, now, high, waiting, turn: Mutex::new(()), room: Condvar::new() }
    }

    /// Lets packets in when there is room for all of them; never more than the bound at a time.
    pub(super) fn enter(&self, packets: usize) {
        if !self.try_enter(packets) {
            self.wait(packets);
        }
    }

    fn try_enter(&self, packets: usize) -> bool {
        let relaxed = Ordering::Relaxed;
        let fits = |now: usize| (now + packets <= self.most).then_some(now + packets);
        let Ok(before) = self.now.fetch_update(Ordering::SeqCst, relaxed, fits) else {
            return false;
        };
        // Written only when it grows, so that it costs nothing in the long run.
        if before + packets > self.high.load(relaxed) {
            self.high.fetch_max(before + packets, relaxed);
        }
        true
    }

    fn wait(&self, packets: usize) {
        let mut turn = self.turn.lock();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        while !self.try_enter(packets) {
            self.room.wait(&mut turn);
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// They have left.
    pub(super) fn leave(&self, packets: usize) {
        self.now.fetch_sub(packets, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let _turn = self.turn.lock();
            self.room.notify_all();
        }
    }

    /// The most that were in flight.
    pub(super) fn high_water(&self) -> usize {
        self.high.load(Ordering::Relaxed)
    }
}
