//! The list of several threads, which changes by hand and at the times of their packets.
//!
//! Contract: a change by hand is seen by every decision that begins after it. A timed change is carried out
//! by the first thread that has a packet of its time or later, before that packet is decided, and once; a
//! thread whose packets are behind sees it early. Readers take no lock but where a change is due. Order of
//! locks: what is due, then the writers' turn in [`Published`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Change, List, Published, Reader, Schedule};

/// The list in force.
#[derive(Debug)]
pub struct Live {
    published: Published,
    schedule: Mutex<Schedule>,
    /// Before this time, in nanoseconds since the Unix epoch, nothing is due.
    next: AtomicU64,
}

impl Live {
    /// This list, with its timed changes.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        let next = if schedule.changes_in_time() { 0 } else { u64::MAX };
        let published = Published::new(Arc::clone(schedule.list()));
        Self { published, schedule: Mutex::new(schedule), next: AtomicU64::new(next) }
    }

    /// Applies changes, all at one moment: how many ranges of sources are banned after them.
    pub fn update_all(&self, changes: &[Change]) -> usize {
        self.published.update_all(changes)
    }

    /// A reader, one for each thread.
    #[must_use]
    pub fn reader(self: &Arc<Self>) -> LiveReader {
        LiveReader { live: Arc::clone(self), reader: self.published.reader() }
    }

    /// Carries out what is due by now.
    #[cold]
    fn catch_up(&self, now: u64) {
        let mut schedule = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
        let due = schedule.due(now);
        if !due.is_empty() {
            self.published.update_all(&due);
        }
        self.next.store(schedule.next().unwrap_or(u64::MAX), Ordering::Release);
    }
}

/// One thread's look at the list.
#[derive(Debug)]
pub struct LiveReader {
    live: Arc<Live>,
    reader: Reader,
}

impl LiveReader {
    /// The list as it is for a packet of this time, as [`Schedule::at`].
    #[inline]
    pub fn at(&mut self, time: Option<u64>) -> &List {
        if let Some(now) = time
            && now >= self.live.next.load(Ordering::Acquire)
        {
            self.live.catch_up(now);
        }
        self.reader.latest()
    }
}
