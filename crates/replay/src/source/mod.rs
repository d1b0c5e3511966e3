//! Captures as one stream of batches: the packets that are judged, numbered, in order of time.
//!
//! Contract: constant memory in the length of the captures; several captures are one stream, merged by time.
//! Within a window that is read ahead frames are put in order of time. One that comes later still takes the
//! latest time, and is counted; one without a time has that of the frame before it. Selection happens here, so
//! that what is left out is never judged.

mod argument;
mod feed;
mod interfaces;
mod numbers;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use conntrack::States;
use dataplane::Disposition;
use host::sighting::Seen;
use pktio::{Burst, Interface};

use crate::decider::Decider;
use crate::error::Error;
use crate::report::{Capture, Report, Soundness};
use crate::select::{Choice, Selection};
use crate::spotter::{Names, Spotter};
use feed::{Feed, Waiting};
use interfaces::Table;
use queue::Queue;

pub use argument::CaptureName;
pub use numbers::Numbers;
pub(crate) use numbers::capture_of;
pub(crate) use queue::{MOST_IDLE, Window};

/// Bytes of frames that are read and judged together: they stay in the cache.
const BATCH_BYTES: usize = 64 * 1024;

/// How far frames are read ahead.
const WINDOW: Window = Window { nanos: 1_000_000_000, frames: 64 * 1024, bytes: 64 * 1024 * 1024 };

/// Packets on their way from the captures to the report.
pub(crate) struct Batch {
    /// The frames to judge.
    pub(crate) burst: Burst,
    /// For each frame, when and which it is.
    pub(crate) arrived: Vec<Arrived>,
    /// For each frame, what it is; empty where nothing tells of any.
    pub(crate) seen: Vec<Seen>,
    /// What is known of the captures.
    pub(crate) stream: Stream,
    /// What became of each frame, where somebody wants to know.
    pub(crate) outcomes: Vec<Outcome>,
    /// Connections that its judges have made up to here.
    pub(crate) connections: u64,
}

/// A frame's place in the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    /// Its number in its capture, from 1, and which capture that is: see [`Numbers`].
    pub(crate) number: u64,
    /// Its time in nanoseconds since the Unix epoch; when it is handed out, made to run forward.
    pub(crate) time: Option<u64>,
}

/// What is known of the captures when a batch is handed out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    /// Their interfaces so far.
    pub(crate) interfaces: Arc<[Interface]>,
    /// Names of the devices that frames were seen at, by number.
    pub(crate) devices: Names,
    /// No frame was seen that the host sent, though the captures tell which way frames went.
    pub(crate) one_sided: bool,
    /// The time of the first frame.
    pub(crate) began: Option<u64>,
}

/// What became of one frame.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) end: Disposition,
    pub(crate) by: Decider,
    /// What becomes of it under the rules of `--vs`.
    pub(crate) new: Option<(Disposition, Decider)>,
    /// The interfaces that it came in and goes out by, where known and wanted.
    pub(crate) sides: [Option<String>; 2],
    /// The states that its connection may be in, where one is tracked.
    pub(crate) states: Option<States>,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            burst: Burst::with_capacity(BATCH_BYTES),
            arrived: Vec::new(),
            seen: Vec::new(),
            stream: Stream::default(),
            outcomes: Vec::new(),
            connections: 0,
        }
    }
}

impl Batch {
    /// Forgets the frames and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.burst.clear();
        self.arrived.clear();
        self.seen.clear();
        self.outcomes.clear();
    }
}

/// What the frame at a place of [`Batch::seen`] is.
pub(crate) fn seen_at(seen: &[Seen], at: usize) -> Seen {
    seen.get(at).copied().unwrap_or_default()
}

/// Called now and then with bytes read and, if known, bytes in all, of the current capture.
pub(crate) type Progress<'w> = &'w mut dyn FnMut(u64, Option<u64>);

/// The captures.
pub(crate) struct Source<'c> {
    /// Captures to open, the earliest first.
    waiting: VecDeque<Waiting>,
    /// Those that are read.
    feeds: Vec<Feed>,
    queue: Queue,
    table: Table,
    /// Says what frames are, if that is wanted.
    spotter: Option<Spotter<'c>>,
    /// Frames that wait there.
    spotted: u64,
    names: &'c [String],
    /// No capture was looked into yet.
    is_new: bool,
    stop: Option<Arc<AtomicBool>>,
    /// So many packets come even when it is to stop.
    least: u64,
    /// No more packets are wanted.
    ended: bool,
    /// The time of the first packet, and the latest time handed out and read.
    start: Option<u64>,
    now: Option<u64>,
    newest: Option<u64>,
    /// What the report says of the captures.
    pub(crate) read: ReadOf,
}

/// What was read of the captures.
#[derive(Debug, Default)]
pub(crate) struct ReadOf {
    /// Those that were opened.
    captures: Vec<Option<Capture>>,
    warnings: Vec<String>,
    /// Packets read, and those of them that were judged.
    frames: u64,
    packets: u64,
    time_went_back: u64,
    /// Times that a frame was older than the one before it in its capture.
    backwards: u64,
    /// The captures follow each other in another order than given.
    by_time: bool,
    interrupted: bool,
    soundness: Soundness,
}

impl<'c> Source<'c> {
    /// The packets of these captures; once `stop` is true there are no more than the first `least`.
    pub(crate) fn new(
        captures: &'c [String],
        stop: Option<Arc<AtomicBool>>,
        least: u64,
        spotter: Option<Spotter<'c>>,
    ) -> Self {
        Self {
            waiting: VecDeque::new(),
            feeds: Vec::new(),
            queue: Queue::default(),
            table: Table::default(),
            spotter,
            spotted: 0,
            names: captures,
            is_new: true,
            stop,
            least,
            ended: false,
            start: None,
            now: None,
            newest: None,
            read: ReadOf { captures: vec![None; captures.len()], ..ReadOf::default() },
        }
    }

    /// Hands out the next packets in a batch; false when there are no more.
    ///
    /// # Errors
    /// A capture cannot be opened or read, or a filter cannot be compiled.
    pub(crate) fn next(
        &mut self,
        batch: &mut Batch,
        selection: &mut Selection,
        progress: &mut Option<Progress<'_>>,
    ) -> Result<bool, Error> {
        if std::mem::take(&mut self.is_new) {
            self.look()?;
        }
        batch.clear();
        let mut spotter = self.spotter.take();
        let mut done = Ok(true);
        while batch.arrived.is_empty() && !self.ended && matches!(done, Ok(true)) {
            done = match &mut spotter {
                None => self.ordered(batch, selection, progress),
                Some(spotter) => self.spotted(batch, spotter, selection, progress),
            };
            done = done.and_then(|more| self.select(batch, selection).map(|()| more));
        }
        self.spotter = spotter;
        done.map(|_| !batch.arrived.is_empty())
    }

    /// The next frames, each with what it is.
    fn spotted(
        &mut self,
        batch: &mut Batch,
        spotter: &mut Spotter<'c>,
        selection: &Selection,
        progress: &mut Option<Progress<'_>>,
    ) -> Result<bool, Error> {
        loop {
            // Those of a live capture that are wanted are not kept waiting for others.
            let is_live = self.feeds.iter().any(|feed| feed.is_live);
            let enough = is_live && selection.is_full(self.read.packets + spotter.len() as u64);
            if spotter.pop(batch, enough) {
                self.spotted = spotter.len() as u64;
                return Ok(true);
            }
            let mut next = spotter.idle();
            if !self.ordered(&mut next, selection, progress)? {
                return Ok(spotter.pop(batch, true));
            }
            spotter.push(next);
            self.spotted = spotter.len() as u64;
        }
    }

    /// The next frames in order of time; false if there are no more.
    fn ordered(
        &mut self,
        batch: &mut Batch,
        selection: &Selection,
        progress: &mut Option<Progress<'_>>,
    ) -> Result<bool, Error> {
        while !self.hand_out(batch, selection) {
            if self.feeds.is_empty() && self.waiting.is_empty() {
                return Ok(false);
            }
            self.read_more(selection, progress)?;
        }
        Ok(true)
    }

    fn is_raised(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn stopped(&self) -> bool {
        self.read.packets >= self.least && self.is_raised()
    }

    /// Looks into several captures, to read them in order of time.
    fn look(&mut self) -> Result<(), Error> {
        let names = self.names.iter().map(|name| CaptureName::parse(name)).enumerate();
        let mut waiting: Vec<_> = names.map(|(at, name)| Waiting::new(at, name)).collect();
        if waiting.len() > 1 {
            for one in &mut waiting {
                match one.look(self.stop.as_ref()) {
                    Err(_) if self.stopped() => {}
                    done => done?,
                }
            }
        }
        waiting.sort_by_key(Waiting::order);
        self.waiting = waiting.into();
        Ok(())
    }

    /// Hands out what no frame that is still to be read should precede.
    fn hand_out(&mut self, batch: &mut Batch, selection: &Selection) -> bool {
        let reads = self.feeds.iter().map(|feed| feed.now.unwrap_or(0));
        let opens = self.waiting.iter().take(1).map(|next| next.order().0);
        let oldest = reads.chain(opens).min();
        // One that is live is not waited for when enough is there.
        let enough = || {
            self.feeds.iter().any(|feed| feed.is_live)
                && selection.is_full(self.read.packets + self.queue.len() as u64)
        };
        let horizon = match oldest {
            Some(oldest) if !self.queue.is_over(WINDOW) && !enough() => {
                Some(oldest.saturating_sub(WINDOW.nanos))
            }
            _ => None,
        };
        self.queue.pop(batch, horizon)
    }

    /// Reads from the capture that is furthest back, which may have to be opened.
    fn read_more(
        &mut self,
        selection: &Selection,
        progress: &mut Option<Progress<'_>>,
    ) -> Result<(), Error> {
        // What waits is handed out yet; how much of it a selection leaves is not known.
        let waiting = self.queue.len() as u64 + self.spotted;
        let coming = if selection.is_everything() { waiting } else { 0 };
        if self.is_raised() && self.read.packets + coming >= self.least {
            self.interrupt();
            return Ok(());
        }
        let behind = (0..self.feeds.len()).min_by_key(|at| self.feeds[*at].now);
        let next = self.waiting.front().map(|next| next.order().0);
        let at = match behind {
            Some(at) if next.is_none_or(|next| self.feeds[at].now.unwrap_or(0) < next) => at,
            _ => match self.open()? {
                Some(at) => at,
                None => return Ok(()),
            },
        };
        let mut batch = self.queue.idle();
        let Self { feeds, table, read, queue, .. } = self;
        let more = feeds[at].read(&mut batch, table)?;
        match more {
            Some(backwards) => {
                if let Some(progress) = progress {
                    let reader = feeds[at].reader();
                    progress(reader.bytes_read(), reader.total_bytes());
                }
                read.backwards += backwards;
                self.newest = self.newest.max(feeds[at].now);
                queue.push(batch);
            }
            None => {
                queue.put_back(batch);
                self.close(at);
            }
        }
        Ok(())
    }

    /// Opens the next capture; its place among those that are read.
    fn open(&mut self) -> Result<Option<usize>, Error> {
        let Some(next) = self.waiting.pop_front() else { return Ok(None) };
        let capture = next.capture;
        let after = self.read.captures.iter().rposition(Option::is_some);
        // Those that overlap in time have no order but that.
        self.read.by_time |= next.first.is_some() && self.feeds.is_empty() && after > Some(capture);
        self.read.captures[capture] = Some(Capture::new(next.name.clone()));
        match next.open(self.stop.as_ref(), self.newest) {
            Ok(feed) => {
                self.feeds.push(feed);
                Ok(Some(self.feeds.len() - 1))
            }
            // Stopped before the capture said what it is.
            Err(_) if self.stopped() => {
                self.interrupt();
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads nothing more.
    fn interrupt(&mut self) {
        self.read.interrupted = true;
        self.feeds.iter().for_each(|feed| self.read.lost(feed));
        self.feeds.clear();
        self.waiting.clear();
    }

    fn close(&mut self, at: usize) {
        let feed = self.feeds.remove(at);
        self.read.lost(&feed);
        // One that was not read to its end is not whole, and no wonder.
        if self.stopped() {
            self.read.interrupted = true;
        } else {
            self.read.warnings.extend(feed.reader().warning());
            self.read.soundness = self.read.soundness.max(feed.soundness());
        }
    }

    /// Keeps the frames that are to be judged, with times that run forward.
    fn select(&mut self, batch: &mut Batch, selection: &mut Selection) -> Result<(), Error> {
        let Self { ended, start, now, read, .. } = self;
        let Batch { burst, arrived, seen, stream, .. } = batch;
        let mut failed = None;
        let (mut at, mut kept) = (0, 0);
        burst.retain(|frame| {
            let (place, Arrived { number, time }) = (at, arrived[at]);
            at += 1;
            if *ended {
                return false;
            }
            let time = forward(time, now, &mut read.time_went_back);
            *start = start.or(time);
            let choice = selection.choose(frame, (time, *start), read.packets);
            match choice {
                Ok(Choice::Judge) => {}
                Ok(Choice::LeaveOut) => {
                    read.frames += 1;
                    return false;
                }
                Ok(Choice::Stop) => {
                    *ended = true;
                    return false;
                }
                Err(error) => {
                    failed = failed.take().or(Some(error));
                    *ended = true;
                    return false;
                }
            }
            read.frames += 1;
            read.packets += 1;
            if let Some(capture) = &mut read.captures[capture_of(number)] {
                capture.count(u64::from(frame.meta.wire_length), time);
            }
            arrived[kept] = Arrived { number, time };
            if let Some(told) = seen.get(place).copied() {
                seen[kept] = told;
            }
            kept += 1;
            // A capture that goes on for ever is not waited for.
            *ended = selection.is_full(read.packets);
            true
        });
        arrived.truncate(kept);
        seen.truncate(kept);
        stream.began = *start;
        failed.map_or(Ok(()), Err)
    }
}

/// A time that is not before `now`, which becomes it. Without one, it is `now`.
fn forward(time: Option<u64>, now: &mut Option<u64>, went_back: &mut u64) -> Option<u64> {
    *went_back += u64::from(time.is_some() && time < *now);
    *now = time.max(*now);
    *now
}

impl ReadOf {
    /// Notes what a capture says that its recorder lost.
    fn lost(&mut self, feed: &Feed) {
        if let Some(capture) = &mut self.captures[feed.capture] {
            capture.dropped = feed.reader().dropped();
        }
    }

    /// Says it in the report.
    pub(crate) fn report(self, report: &mut Report<'_>) {
        report.captures = self.captures.into_iter().flatten().collect();
        report.warnings.extend(self.warnings);
        report.frames = self.frames;
        report.packets = self.packets;
        report.time_went_back = self.time_went_back;
        report.backwards = self.backwards;
        report.by_time = self.by_time;
        report.interrupted = self.interrupted;
        report.soundness = self.soundness;
    }

    /// How many packets of each capture were judged.
    pub(crate) fn packets_of_each(&self) -> Vec<u64> {
        let packets = |capture: &Option<Capture>| capture.as_ref().map_or(0, |c| c.count.packets);
        self.captures.iter().map(packets).collect()
    }

    /// What was odd about the captures.
    pub(crate) fn into_warnings(self) -> Vec<String> {
        self.warnings
    }
}
