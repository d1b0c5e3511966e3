//! Frames that are dropped, for who watches: workers write them down ([`Tap`]), and [`Taps`] collects them, looks up the
//! rules that decided, and gives each to those whose filter wants it.
//!
//! Contract: nobody who watches holds up a frame, or another who watches. At most [`PER_SECOND`] frames a second are
//! written down for all of them together; what that, or a reader that is too slow, leaves no room for is lost, and every
//! [`Listening`] counts what it may have lost. The last [`KEPT`] drops are there for who comes later: one for each reason in
//! a tenth of a second, by each worker.

mod filter;
mod place;
mod record;
mod switch;
mod tap;
#[cfg(test)]
mod tests;
mod told;

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use filter::Filter;
use place::Texts;
use switch::{PER_SECOND, Switch};
use tap::Source;

pub use filter::FilterError;
pub(super) use record::{Decision, Judged};
pub(super) use tap::Tap;
pub use told::{Told, decided, text};

/// Drops that are kept for who asks later.
const KEPT: usize = 64;

/// How often it is looked whether those who watch have ended.
const LOOK: Duration = Duration::from_millis(1);

/// Frames that wait for each who watches.
const WAITING: usize = 1024;

/// All workers' frames, and those who watch them.
#[derive(Default)]
pub(super) struct Taps {
    switch: Arc<Switch>,
    collected: Mutex<Collected>,
    /// Of the one who began to watch last.
    last: AtomicU64,
    /// How many there are who have not ended.
    listening: AtomicUsize,
}

#[derive(Default)]
struct Collected {
    sources: Vec<Source>,
    texts: Texts,
    kept: VecDeque<Arc<Told>>,
    watchers: Vec<Watcher>,
    /// When there was room made last.
    since: Option<Instant>,
    has_ended: bool,
}

/// One who watches.
struct Watcher {
    number: u64,
    filter: Arc<Filter>,
    to: SyncSender<Arc<Told>>,
    lost: Arc<Lost>,
    /// What the workers had lost when it began.
    before: u64,
}

/// Frames that one who watches did not get.
#[derive(Debug, Default)]
struct Lost {
    /// The workers had no room for them. They are another's if that one watches, too.
    by_workers: AtomicU64,
    /// They were not read in time.
    unread: AtomicU64,
}

/// Frames as they come, for one who watches. It ends when this is dropped.
pub struct Listening {
    taps: Arc<Taps>,
    number: u64,
    from: Receiver<Arc<Told>>,
    lost: Arc<Lost>,
}

/// What comes next to one who watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A frame.
    Frame(Arc<Told>),
    /// None came in time.
    Nothing,
    /// None will come: the run has ended.
    Ended,
}

impl Taps {
    /// One more wire of a worker, between ports of these names.
    pub(super) fn tap(&self, names: [Arc<str>; 2]) -> Tap {
        let (tap, source) = Tap::new(&self.switch, names);
        self.collected().sources.push(source);
        tap
    }

    /// Watches from now on; [`Filter::parse`] reads the filter.
    ///
    /// # Errors
    /// It is no filter.
    pub(super) fn listen(self: &Arc<Self>, filter: &str) -> Result<Listening, FilterError> {
        let filter = Arc::new(Filter::parse(filter)?);
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let (to, from) = sync_channel(WAITING);
        let lost = Arc::<Lost>::default();
        let mut collected = self.collected();
        if !collected.has_ended {
            let before = collected.lost();
            let lost = Arc::clone(&lost);
            collected.watchers.push(Watcher { number, filter, to, lost, before });
        }
        if collected.watchers.len() == 1 {
            self.switch.make_room(PER_SECOND);
        }
        self.turn(&collected);
        self.listening.fetch_add(1, Ordering::AcqRel);
        Ok(Listening { taps: Arc::clone(self), number, from, lost })
    }

    /// Takes what the workers have written down to those who watch.
    pub(super) fn collect(&self) {
        let mut collected = self.collected();
        let now = Instant::now();
        let since = *collected.since.get_or_insert(now);
        let more = (now - since).as_millis().min(1000) as i64 * PER_SECOND / 1000;
        if more > 0 && !collected.watchers.is_empty() {
            self.switch.make_room(more);
            collected.since = Some(now);
        }
        if collected.collect() {
            self.turn(&collected);
        }
    }

    /// The last drops, oldest first.
    pub(super) fn drops(&self) -> Vec<Arc<Told>> {
        self.collect();
        self.collected().kept.iter().map(Arc::clone).collect()
    }

    /// Nobody writes anything any more: whoever watches ends, once it has what there is.
    pub(super) fn end(&self) {
        self.collect();
        let mut collected = self.collected();
        collected.has_ended = true;
        collected.watchers.clear();
    }

    /// Waits until all who watch have ended, or `patience` is over.
    pub(super) fn wait(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.listening.load(Ordering::Acquire) > 0 && Instant::now() < until {
            thread::sleep(LOOK);
        }
    }

    /// Has the workers look for what is wanted now.
    fn turn(&self, collected: &Collected) {
        let filters = collected.watchers.iter().map(|watcher| Arc::clone(&watcher.filter));
        self.switch.set(filters.collect());
    }

    fn stop(&self, number: u64) {
        let mut collected = self.collected();
        collected.watchers.retain(|watcher| watcher.number != number);
        self.turn(&collected);
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collected {
    /// What workers had no room for, ever.
    fn lost(&self) -> u64 {
        self.sources.iter().map(|source| source.lost.load(Ordering::Relaxed)).sum()
    }

    /// Empties the rings; whether somebody who watched has ended.
    fn collect(&mut self) -> bool {
        let Self { sources, texts, kept, watchers, .. } = self;
        let before = watchers.len();
        for Source { names, records, bytes, .. } in sources {
            while let Ok(record) = records.pop() {
                let mut frame = vec![0; record.captured as usize];
                // They were there before the record was.
                if bytes.pop_entire_slice(&mut frame).is_err() {
                    break;
                }
                let told = Arc::new(Told::new(&record, names, frame, texts));
                if !record.is_sample {
                    watchers.retain(|watcher| watcher.tells(&told));
                }
                if record.reason.is_some() {
                    if kept.len() == KEPT {
                        kept.pop_front();
                    }
                    kept.push_back(told);
                }
            }
        }
        let lost = self.lost();
        for watcher in &self.watchers {
            watcher.lost.by_workers.store(lost - watcher.before, Ordering::Relaxed);
        }
        self.watchers.len() < before
    }
}

impl Watcher {
    /// Gives it a frame, if it wants that; false once nobody is there.
    fn tells(&self, told: &Arc<Told>) -> bool {
        if !self.filter.wants(&told.sight()) {
            return true;
        }
        match self.to.try_send(Arc::clone(told)) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.lost.unread.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

impl Listening {
    /// The next frame; waits so long for it.
    #[must_use]
    pub fn next(&self, patience: Duration) -> Next {
        match self.from.recv_timeout(patience) {
            Ok(told) => Next::Frame(told),
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::Ended,
        }
    }

    /// How many frames it did not get that may have been wanted.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let Lost { by_workers, unread } = &*self.lost;
        by_workers.load(Ordering::Relaxed) + unread.load(Ordering::Relaxed)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.taps.stop(self.number);
        self.taps.listening.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for Taps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taps").finish_non_exhaustive()
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("number", &self.number).finish_non_exhaustive()
    }
}
