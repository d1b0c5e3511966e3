//! Counts the packets between source and end, and makes whoever would exceed the bound wait.
//!
//! Contract: any number of threads. The count is one atomic; only who must wait, and who lets them go, takes
//! the lock. A waiter checks again under the lock that wakers take, after it has said that it waits, and wakers look
//! for waiters after they made room: all four in one order (`SeqCst`), so no wake-up is lost. Nobody waits in a run that
//! is given up. `tests/in_flight.rs` explores this by loom.

use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;

use super::sync::{AtomicBool, AtomicUsize, Condvar, Mutex};

/// The count and who waits for it.
#[derive(Debug)]
pub(super) struct InFlight {
    most: usize,
    now: CachePadded<AtomicUsize>,
    high: CachePadded<AtomicUsize>,
    waiting: CachePadded<AtomicUsize>,
    /// Looked at with every burst, and written once.
    given_up: CachePadded<AtomicBool>,
    turn: Mutex<()>,
    room: Condvar,
}

impl InFlight {
    pub(super) fn new(most: usize) -> Self {
        let count = || CachePadded::new(AtomicUsize::new(0));
        let (now, high, waiting) = (count(), count(), count());
        let given_up = CachePadded::new(AtomicBool::new(false));
        Self { most, now, high, waiting, given_up, turn: Mutex::new(()), room: Condvar::new() }
    }

    /// Lets packets in when there is room for all of them; never more than the bound at a time. None once the run is
    /// given up.
    #[must_use]
    pub(super) fn enter(&self, packets: usize) -> bool {
        !self.is_given_up() && (self.try_enter(packets) || self.wait(packets))
    }

    /// Nothing enters any more, and nobody waits.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::SeqCst);
        let _turn = self.turn.lock();
        self.room.notify_all();
    }

    /// Whether to take no more.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    fn try_enter(&self, packets: usize) -> bool {
        let relaxed = Ordering::Relaxed;
        let fits = |now: usize| (now + packets <= self.most).then_some(now + packets);
        let order = Ordering::SeqCst;
        let Ok(before) = self.now.fetch_update(order, order, fits) else {
            return false;
        };
        // Written only when it grows, so that it costs nothing in the long run.
        if before + packets > self.high.load(relaxed) {
            self.high.fetch_max(before + packets, relaxed);
        }
        true
    }

    fn wait(&self, packets: usize) -> bool {
        let mut turn = self.turn.lock();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut has_entered = self.try_enter(packets);
        while !has_entered && !self.is_given_up() {
            self.room.wait(&mut turn);
            has_entered = self.try_enter(packets);
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        has_entered
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
