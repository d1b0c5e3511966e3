//! [`Awake`]: how long a worker has been awake, which is how busy it is: while it does not sleep it works or looks for
//! work.
//!
//! Contract: the worker's own thread falls asleep and wakes, which costs it two looks at the clock for each sleep and
//! nothing for a frame; anyone may read. What is read never goes down.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::atomic::AtomicCell;

/// How long a worker has been awake.
#[derive(Debug)]
pub(crate) struct Awake {
    /// The moment 0 of the other times.
    start: Instant,
    so_far: AtomicCell<SoFar>,
    /// The highest time that was read so far.
    told: AtomicU64,
}

/// Nanoseconds since the start. Both are written at once: else a reader would count a time twice, or not at all.
#[derive(Debug, Clone, Copy)]
struct SoFar {
    /// Time awake until the worker fell asleep last.
    before: u64,
    /// When it woke since then.
    since: Option<u64>,
}

impl Awake {
    /// The times of a worker that is awake from now on.
    pub(crate) fn new() -> Self {
        let so_far = AtomicCell::new(SoFar { before: 0, since: Some(0) });
        Self { start: Instant::now(), so_far, told: AtomicU64::new(0) }
    }

    pub(crate) fn falls_asleep(&self) {
        let now = self.now();
        let before = self.so_far.load().until(now);
        self.so_far.store(SoFar { before, since: None });
    }

    pub(crate) fn wakes(&self) {
        let SoFar { before, .. } = self.so_far.load();
        self.so_far.store(SoFar { before, since: Some(self.now()) });
    }

    /// How long the worker has been awake in all.
    pub(crate) fn so_far(&self) -> Duration {
        // The clock comes first: what it says lies before what is loaded then, so a sleep in between is not counted.
        let now = self.now();
        let so_far = self.so_far.load().until(now);
        // A worker that is just falling asleep has read the clock, and not written it down: that moment is not counted.
        Duration::from_nanos(self.told.fetch_max(so_far, Ordering::Relaxed).max(so_far))
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

impl SoFar {
    fn until(self, now: u64) -> u64 {
        self.before + self.since.map_or(0, |since| now.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn time_asleep_does_not_count_and_time_awake_does() {
        let awake = Awake::new();
        thread::sleep(Duration::from_millis(2));
        assert!(awake.so_far() >= Duration::from_millis(2), "it is awake from the start");
        awake.falls_asleep();
        let before = awake.so_far();
        thread::sleep(Duration::from_millis(2));
        assert_eq!(awake.so_far(), before);
        awake.falls_asleep();
        assert_eq!(awake.so_far(), before, "it was asleep already");
        awake.wakes();
        thread::sleep(Duration::from_millis(2));
        assert!(awake.so_far() >= before + Duration::from_millis(2));
    }

    /// A reader alongside a worker that falls asleep and wakes all the time.
    #[test]
    fn what_is_read_never_goes_down_nor_ahead_of_the_clock() {
        let awake = Awake::new();
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                for _ in 0..20_000 {
                    awake.falls_asleep();
                    awake.wakes();
                }
            });
            let mut last = Duration::ZERO;
            while !worker.is_finished() {
                let now = awake.so_far();
                assert!(now >= last && now <= awake.start.elapsed(), "{last:?} {now:?}");
                last = now;
            }
        });
    }
}
