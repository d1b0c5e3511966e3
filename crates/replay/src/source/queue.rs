//! Frames that were read and not handed out yet: first until they are in order of time, then until it is known what each
//! of them is.
//!
//! Contract: every batch read is a run of ascending time; runs are merged by their first frame not yet handed
//! out. Equal times keep the order of the captures as given, and of the frames in each. A run that no other
//! reaches into is handed out as it is: a sorted capture costs no copy. Those that are in order leave as they came.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::mem;
use std::sync::Arc;

use pktio::Frame;

use crate::batch::{Arrived, BATCH_BYTES, Batch};

/// Batches kept to be read into: a window's worth, or every lull in a capture would cost their memory again.
const MOST_IDLE: usize = 256;

/// How far frames are read ahead of the frames that are handed out. The limit that is reached first counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Nanoseconds of the captures' time.
    pub(super) nanos: u64,
    pub(super) frames: usize,
    /// Bytes of memory.
    pub(super) bytes: usize,
}

/// Time and number: what frames are ordered by.
type Key = (u64, u64);

/// A batch as it was read.
struct Run {
    batch: Batch,
    /// How many of its frames were handed out.
    next: usize,
}

/// How much waits.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    frames: usize,
    bytes: usize,
}

impl Held {
    fn add(&mut self, batch: &Batch) {
        self.frames += batch.arrived.len();
        self.bytes += batch.burst.capacity();
    }

    fn remove(&mut self, batch: &Batch) {
        self.frames -= batch.arrived.len();
        self.bytes -= batch.burst.capacity();
    }

    /// Whether it is more than a window allows.
    fn is_over(self, window: Window) -> bool {
        self.frames > window.frames || self.bytes > window.bytes
    }
}

/// Runs in the order in which they were read, and batches in order of time.
#[derive(Default)]
pub(super) struct Queue {
    runs: VecDeque<Option<Run>>,
    /// Number of the first run.
    first: u64,
    /// The next frame of each run.
    heads: BinaryHeap<Reverse<(Key, u64)>>,
    unordered: Held,
    /// Batches in order.
    kept: VecDeque<Batch>,
    ordered: Held,
    /// Batches that nobody has.
    idle: Vec<Batch>,
}

impl Arrived {
    fn key(&self) -> Key {
        (self.time.unwrap_or(0), self.number)
    }
}

impl Queue {
    /// A batch to read into.
    pub(super) fn idle(&mut self) -> Batch {
        let mut batch = self.idle.pop().unwrap_or_default();
        batch.clear();
        batch
    }

    /// Gives back a batch that [`Queue::idle`] lent.
    pub(super) fn put_back(&mut self, batch: Batch) {
        // What a burst of disorder needed is not kept for ever.
        if self.idle.len() < MOST_IDLE {
            self.idle.push(batch);
        }
    }

    /// How many frames wait to be put in order, and how many that are.
    pub(super) fn waiting(&self) -> [u64; 2] {
        [self.unordered.frames as u64, self.ordered.frames as u64]
    }

    /// Keeps a batch that is in order, and comes after the batches that are kept.
    pub(super) fn keep(&mut self, batch: Batch) {
        self.ordered.add(&batch);
        self.kept.push_back(batch);
    }

    /// The oldest batch that is kept, and whether more are than a window allows.
    pub(super) fn oldest(&self, window: Window) -> Option<(&Batch, bool)> {
        Some((self.kept.front()?, self.ordered.is_over(window)))
    }

    /// Hands out the oldest batch that is kept; false if none is.
    pub(super) fn release(&mut self, to: &mut Batch) -> bool {
        let Some(mut batch) = self.kept.pop_front() else { return false };
        self.ordered.remove(&batch);
        mem::swap(to, &mut batch);
        self.put_back(batch);
        true
    }

    /// Takes in a batch.
    pub(super) fn push(&mut self, mut batch: Batch) {
        if batch.run.is_none() && !batch.arrived.is_sorted_by_key(Arrived::key) {
            batch = self.sorted(batch);
        }
        let Some(first) = batch.arrived.first() else { return self.put_back(batch) };
        let run = self.first + self.runs.len() as u64;
        self.heads.push(Reverse((first.key(), run)));
        self.unordered.add(&batch);
        self.runs.push_back(Some(Run { batch, next: 0 }));
    }

    /// Copies the frames of a batch in order of time.
    fn sorted(&mut self, batch: Batch) -> Batch {
        let mut order: Vec<usize> = (0..batch.arrived.len()).collect();
        // Nearly sorted, which the stable sort sees.
        order.sort_by_key(|at| batch.arrived[*at].key());
        let mut sorted = self.idle();
        for at in order {
            copy(&batch, at, &mut sorted);
        }
        sorted.stream = batch.stream.clone();
        self.put_back(batch);
        sorted
    }

    /// Hands out the oldest frames, whole runs where none reaches into another; false if nothing may go
    /// yet. Only frames before `horizon` may: younger ones may still have company.
    pub(super) fn pop(&mut self, to: &mut Batch, horizon: Option<u64>) -> bool {
        let mut filled = 0;
        while filled < BATCH_BYTES {
            let Some(Reverse((head, number))) = self.heads.pop() else { break };
            let other = self.heads.peek().map(|Reverse((key, _))| *key);
            let place = (number - self.first) as usize;
            let Some(Some(run)) = self.runs.get_mut(place) else { continue };
            let last = run.batch.arrived.last().map_or(head, Arrived::key);
            let (end, to_its_end) = match other {
                Some(other) if other < last => (other, false),
                _ => (last, true),
            };
            let is_whole = to_its_end && run.next == 0;
            let is_ripe = horizon.is_none_or(|horizon| end.0 < horizon);
            if !is_ripe || is_whole && filled > 0 {
                self.heads.push(Reverse((head, number)));
                break;
            }
            if is_whole {
                self.unordered.remove(&run.batch);
                mem::swap(to, &mut run.batch);
                self.remove(place);
                return true;
            }
            self.unordered.frames -= run.hand_out(end, to, &mut filled);
            match run.batch.arrived.get(run.next).map(Arrived::key) {
                Some(head) => self.heads.push(Reverse((head, number))),
                None => {
                    self.unordered.bytes -= run.batch.burst.capacity();
                    self.remove(place);
                }
            }
        }
        filled > 0
    }

    /// Whether more waits to be put in order than a window allows.
    pub(super) fn is_over(&self, window: Window) -> bool {
        self.unordered.is_over(window)
    }

    fn remove(&mut self, place: usize) {
        if let Some(run) = self.runs[place].take() {
            self.put_back(run.batch);
        }
        while let Some(None) = self.runs.front() {
            self.runs.pop_front();
            self.first += 1;
        }
    }
}

impl Run {
    /// Copies frames up to a key, as long as there is room; how many they are.
    fn hand_out(&mut self, end: Key, to: &mut Batch, filled: &mut usize) -> usize {
        let from = self.next;
        let arrived = &self.batch.arrived;
        while *filled < BATCH_BYTES && arrived.get(self.next).is_some_and(|next| next.key() <= end)
        {
            // One without a byte counts, too: bursts of them are bounded as well.
            *filled += copy(&self.batch, self.next, to) + 1;
            self.next += 1;
        }
        if to.stream.interfaces.len() < self.batch.stream.interfaces.len() {
            to.stream.interfaces = Arc::clone(&self.batch.stream.interfaces);
        }
        self.next - from
    }
}

/// Copies a frame to the end of another batch; its length.
fn copy(from: &Batch, at: usize, to: &mut Batch) -> usize {
    let Some(Frame { bytes, meta }) = from.burst.get(at) else { return 0 };
    to.burst.push(bytes, *meta);
    to.tells |= from.tells;
    to.arrived.push(from.arrived[at]);
    bytes.len()
}
