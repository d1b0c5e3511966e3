//! Frames that are dropped, for watchers: workers write them down ([`Tap`]), and [`Taps`] collects them, looks up the
//! rules that decided, and gives each to the watchers whose filter wants it.
//!
//! Contract: no watcher holds up a frame, or another watcher. At most [`PER_SECOND`] frames a second are written down
//! for all of them together; what that, or a reader that is too slow, leaves no room for is lost, and every
//! [`Listening`] counts what it may have lost. The last [`KEPT`] drops are there for later watchers: one for each
//! reason in a tenth of a second, by each worker.

mod event;
mod filter;
mod place;
mod record;
mod switch;
mod tap;
#[cfg(test)]
mod tests;

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

pub use event::FrameEvent;
pub use filter::FilterError;
pub(crate) use record::{Decision, Judged};
pub(crate) use tap::Tap;

/// Drops that are kept for later watchers.
const KEPT: usize = 64;

/// How often it is checked whether all watchers have ended.
const LOOK: Duration = Duration::from_millis(1);

/// Frames that wait for each watcher, at most.
const WAITING: usize = 1024;

/// The frames of all workers, and their watchers.
#[derive(Default)]
pub(crate) struct Taps {
    switch: Arc<Switch>,
    collected: Mutex<Collected>,
    /// The number of the newest watcher.
    last: AtomicU64,
    /// The number of watchers that have not ended.
    listening: AtomicUsize,
}

#[derive(Default)]
struct Collected {
    sources: Vec<Source>,
    texts: Texts,
    kept: VecDeque<Arc<FrameEvent>>,
    watchers: Vec<Watcher>,
    /// When room was last made.
    since: Option<Instant>,
    has_ended: bool,
}

/// A client that watches frames.
struct Watcher {
    number: u64,
    filter: Arc<Filter>,
    to: SyncSender<Arc<FrameEvent>>,
    lost: Arc<Lost>,
    /// What the workers had lost when the watcher began.
    before: u64,
}

/// Frames that a watcher did not get.
#[derive(Debug, Default)]
struct Lost {
    /// Frames that the workers had no room for. Another watcher may have wanted them.
    by_workers: AtomicU64,
    /// Frames that were not read in time.
    unread: AtomicU64,
}

/// Frames for a watcher as they come. The watch ends when this is dropped.
pub struct Listening {
    taps: Arc<Taps>,
    number: u64,
    from: Receiver<Arc<FrameEvent>>,
    lost: Arc<Lost>,
}

/// The next event of a watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A frame.
    Frame(Arc<FrameEvent>),
    /// No frame came in time.
    Nothing,
    /// No frame will come: the run has ended.
    Ended,
}

impl Taps {
    /// Adds a wire of a worker, between ports of these names.
    pub(crate) fn tap(&self, names: [Arc<str>; 2]) -> Tap {
        let (tap, source) = Tap::new(&self.switch, names);
        self.collected().sources.push(source);
        tap
    }

    /// Starts a watch; [`Filter::parse`] reads the filter.
    ///
    /// # Errors
    /// The words are no filter.
    pub(crate) fn listen(self: &Arc<Self>, filter: &str) -> Result<Listening, FilterError> {
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

    /// Gives what the workers have written down to the watchers.
    pub(crate) fn collect(&self) {
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
    pub(crate) fn drops(&self) -> Vec<Arc<FrameEvent>> {
        self.collect();
        self.collected().kept.iter().map(Arc::clone).collect()
    }

    /// Ends all watches, each once it has read what is there: nothing more is written down.
    pub(crate) fn end(&self) {
        self.collect();
        let mut collected = self.collected();
        collected.has_ended = true;
        collected.watchers.clear();
    }

    /// Waits until all watchers have ended, or `patience` is over.
    pub(crate) fn wait(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.listening.load(Ordering::Acquire) > 0 && Instant::now() < until {
            thread::sleep(LOOK);
        }
    }

    /// Makes the workers look for what is wanted now.
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
    /// The number of wanted frames that workers ever had no room for.
    fn lost(&self) -> u64 {
        self.sources.iter().map(|source| source.lost.load(Ordering::Relaxed)).sum()
    }

    /// Empties the rings; returns whether a watcher has ended.
    fn collect(&mut self) -> bool {
        let Self { sources, texts, kept, watchers, .. } = self;
        let before = watchers.len();
        for Source { names, records, bytes, .. } in sources {
            while let Ok(record) = records.pop() {
                let mut frame = vec![0; record.captured as usize];
                // The bytes were there before the record was.
                if bytes.pop_entire_slice(&mut frame).is_err() {
                    break;
                }
                let told = Arc::new(FrameEvent::new(&record, names, frame, texts));
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
    /// Gives the watcher a frame, if it wants that; false once it has ended.
    fn tells(&self, told: &Arc<FrameEvent>) -> bool {
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
    /// The next frame; waits for it for at most `patience`.
    #[must_use]
    pub fn next(&self, patience: Duration) -> Next {
        match self.from.recv_timeout(patience) {
            Ok(told) => Next::Frame(told),
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::Ended,
        }
    }

    /// The number of frames that the watcher did not get and may have wanted.
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
