//! [`Source`]: reads captures in order of time, batch by batch.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use conntrack::SECOND;

use super::argument::CaptureName;
use super::feed::{Feed, Waiting};
use super::interfaces::Table;
use super::numbers::capture_of;
use super::queue::{Queue, Window};
use crate::batch::{Arrived, Batch};
use crate::error::Error;
use crate::report::{Capture, Count, Report, Soundness};
use crate::select::{Choice, Selection};
use crate::spotter::Spotter;
use crate::stoppable;

/// How far frames are read ahead to be put in order, and, once in order, for a frame that shows a packet leaving.
const WINDOW: Window = Window { nanos: SECOND, frames: 64 * 1024, bytes: 64 * 1024 * 1024 };

/// How captures are read; by default all of them, to their end.
#[derive(Default)]
pub(crate) struct Reading<'w> {
    /// Which packets are evaluated.
    pub(crate) selection: Selection,
    /// Called now and then with bytes read and, if known, bytes in all, of the current capture.
    pub(crate) progress: Option<&'w mut dyn FnMut(u64, Option<u64>)>,
    /// Once true, there are no more packets.
    pub(crate) stop: Option<Arc<AtomicBool>>,
    /// Frames are handed out as they come: none waits for others, neither for an older frame nor for a frame that shows
    /// its packet leaving.
    pub(crate) follows: bool,
}

/// The captures.
pub(crate) struct Source<'c, 'w> {
    /// Captures to open, the earliest first.
    waiting: VecDeque<Waiting>,
    /// Captures that are being read.
    feeds: Vec<Feed>,
    queue: Queue,
    table: Table,
    /// Says what frames are, if that is wanted.
    spotter: Option<Spotter<'c>>,
    names: &'c [String],
    /// No capture was looked into yet.
    is_new: bool,
    reading: Reading<'w>,
    /// Packets that come even when the source is to stop.
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
    /// Captures that were opened.
    captures: Vec<Option<Capture>>,
    warnings: Vec<String>,
    /// Links of the host that no capture was taken on.
    unrecorded: Vec<String>,
    /// Frames are as taps saw them.
    is_tapped: bool,
    /// Packets read, and evaluated packets.
    frames: u64,
    packets: u64,
    pub(super) time_went_back: u64,
    /// Times that a frame was older than the one before it in its capture.
    pub(super) backwards: u64,
    /// The captures follow each other in another order than given.
    pub(super) by_time: bool,
    interrupted: bool,
    soundness: Soundness,
}

impl<'c, 'w> Source<'c, 'w> {
    /// The packets of these captures; a spotter says what frames are.
    pub(crate) fn new(
        captures: &'c [String],
        spotter: Option<Spotter<'c>>,
        reading: Reading<'w>,
    ) -> Self {
        let mut spotter = spotter;
        let named = captures.iter().filter_map(|name| CaptureName::parse(name).interface);
        if let Some(spotter) = &mut spotter {
            named.for_each(|name| spotter.expect(&name));
        }
        Self {
            waiting: VecDeque::new(),
            feeds: Vec::new(),
            queue: Queue::default(),
            table: Table::default(),
            spotter,
            names: captures,
            is_new: true,
            reading,
            least: 0,
            ended: false,
            start: None,
            now: None,
            newest: None,
            read: ReadOf { captures: vec![None; captures.len()], ..ReadOf::default() },
        }
    }

    /// Whether a capture may keep its reader waiting: then it cannot be read a second time, either.
    pub(crate) fn may_wait(&self) -> bool {
        self.names.iter().any(|name| stoppable::may_wait(&CaptureName::parse(name).file))
    }

    /// Reads the captures from the start again; the first `least` packets come even when it is to stop.
    pub(crate) fn restart(&mut self, spotter: Option<Spotter<'c>>, least: u64) {
        let reading = std::mem::take(&mut self.reading);
        *self = Self { least, ..Self::new(self.names, spotter, reading) };
    }

    /// Hands out the next packets in a batch; false when there are no more.
    ///
    /// # Errors
    /// A capture cannot be opened or read, or a filter cannot be compiled.
    pub(crate) fn next(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        if std::mem::take(&mut self.is_new) {
            self.look()?;
        }
        batch.clear();
        let mut spotter = self.spotter.take();
        let mut done = Ok(true);
        while batch.arrived.is_empty() && !self.ended && matches!(done, Ok(true)) {
            done = match &mut spotter {
                None => self.ordered(batch),
                Some(spotter) => self.spotted(batch, spotter),
            };
            done = done.and_then(|more| self.select(batch).map(|()| more));
        }
        self.spotter = spotter;
        done.map(|_| !batch.arrived.is_empty())
    }

    /// What the report says of the captures, and which of their packets were evaluated.
    pub(crate) fn finish(mut self) -> (ReadOf, Selection) {
        if let Some(spotter) = &self.spotter {
            self.read.unrecorded = spotter.unrecorded();
            self.read.warnings.extend(spotter.warnings());
            self.read.is_tapped = spotter.is_told();
        }
        (self.read, self.reading.selection)
    }

    /// The next frames, each with what it is.
    fn spotted(&mut self, batch: &mut Batch, spotter: &mut Spotter<'c>) -> Result<bool, Error> {
        loop {
            let [_, waiting] = self.queue.waiting();
            if let Some((oldest, is_over)) = self.queue.oldest(WINDOW)
                && (is_over || spotter.is_ripe(oldest, WINDOW.nanos) || self.is_enough(waiting))
            {
                break;
            }
            let mut next = self.queue.idle();
            if !self.ordered(&mut next)? {
                break;
            }
            spotter.see(&next);
            self.queue.keep(next);
        }
        let more = self.queue.release(batch);
        if more {
            spotter.tell(batch);
        }
        Ok(more)
    }

    /// Whether frames that wait are not kept waiting for others: of a live capture, if they are all that are wanted.
    fn is_enough(&self, waiting: u64) -> bool {
        let Reading { follows, selection, .. } = &self.reading;
        let is_live = || self.feeds.iter().any(|feed| feed.is_live);
        *follows || selection.is_full(self.read.packets + waiting) && is_live()
    }

    /// The next frames in order of time; false if there are no more.
    fn ordered(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        while !self.hand_out(batch) {
            if self.feeds.is_empty() && self.waiting.is_empty() {
                return Ok(false);
            }
            self.read_more()?;
        }
        Ok(true)
    }

    fn is_raised(&self) -> bool {
        self.reading.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
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
                match one.look(self.reading.stop.as_ref()) {
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
    fn hand_out(&mut self, batch: &mut Batch) -> bool {
        let reads = self.feeds.iter().map(|feed| feed.now.unwrap_or(0));
        let opens = self.waiting.iter().take(1).map(|next| next.order().0);
        let oldest = reads.chain(opens).min();
        let [waiting, _] = self.queue.waiting();
        let horizon = match oldest {
            Some(oldest) if !self.queue.is_over(WINDOW) && !self.is_enough(waiting) => {
                Some(oldest.saturating_sub(WINDOW.nanos))
            }
            _ => None,
        };
        self.queue.pop(batch, horizon)
    }

    /// Reads from the capture that is furthest back, which may have to be opened.
    fn read_more(&mut self) -> Result<(), Error> {
        // What waits is handed out yet; how much of it a selection leaves is not known.
        let waiting: u64 = self.queue.waiting().iter().sum();
        let coming = if self.reading.selection.is_everything() { waiting } else { 0 };
        if self.is_raised() && self.read.packets + coming >= self.least {
            self.interrupt();
            return Ok(());
        }
        let latest = (0..self.feeds.len()).min_by_key(|at| self.feeds[*at].now);
        let next = self.waiting.front().map(|next| next.order().0);
        let at = match latest {
            Some(at) if next.is_none_or(|next| self.feeds[at].now.unwrap_or(0) < next) => at,
            _ => match self.open()? {
                Some(at) => at,
                None => return Ok(()),
            },
        };
        let mut batch = self.queue.idle();
        let Self { feeds, table, read, queue, reading, .. } = self;
        let more = feeds[at].read(&mut batch, table)?;
        match more {
            Some(backwards) => {
                if let Some(progress) = &mut reading.progress {
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

    /// Opens the next capture; returns its place among the open ones.
    fn open(&mut self) -> Result<Option<usize>, Error> {
        let Some(next) = self.waiting.pop_front() else { return Ok(None) };
        let capture = next.capture;
        let after = self.read.captures.iter().rposition(Option::is_some);
        // Captures that overlap in time have no order but by time.
        self.read.by_time |= next.first.is_some() && self.feeds.is_empty() && after > Some(capture);
        self.read.captures[capture] = Some(Capture::new(next.name.clone()));
        match next.open(self.reading.stop.as_ref(), self.newest) {
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

    /// Counts a run of which every frame is evaluated, and none is older than those before it; false if it is not one.
    fn takes_run(&mut self, batch: &mut Batch) -> bool {
        let Self { start, now, read, .. } = self;
        let (Some(bytes), [first, ..]) = (batch.run, &*batch.arrived) else { return false };
        if !self.reading.selection.is_everything() || first.time < *now {
            return false;
        }
        *start = start.or(first.time);
        *now = batch.arrived.last().and_then(|last| last.time);
        let packets = batch.arrived.len() as u64;
        read.frames += packets;
        read.packets += packets;
        if let Some(capture) = &mut read.captures[capture_of(first.number)] {
            capture.count(&Count { packets, bytes }, [first.time, *now]);
        }
        batch.stream.began = *start;
        true
    }

    /// Keeps the frames that are to be evaluated, with times that run forward.
    fn select(&mut self, batch: &mut Batch) -> Result<(), Error> {
        if self.takes_run(batch) {
            return Ok(());
        }
        let Self { ended, start, now, read, reading: Reading { selection, .. }, .. } = self;
        let Batch { burst, arrived, run, seen, stream, .. } = batch;
        *run = None;
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
            let choice = selection.choose(frame, time, *start, read.packets);
            match choice {
                Ok(Choice::Evaluate) => {}
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
                let bytes = u64::from(frame.meta.wire_length);
                capture.count(&Count { packets: 1, bytes }, [time; 2]);
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
    pub(crate) fn report(self, report: &mut Report) {
        report.captures = self.captures.into_iter().flatten().collect();
        report.warnings.extend(self.warnings);
        report.is_tapped = self.is_tapped;
        report.unrecorded = self.unrecorded;
        report.frames = self.frames;
        report.packets = self.packets;
        report.time_went_back = self.time_went_back;
        report.backwards = self.backwards;
        report.by_time = self.by_time;
        report.interrupted = self.interrupted;
        report.soundness = self.soundness;
    }

    /// How many packets of each capture were evaluated.
    pub(crate) fn packets_of_each(&self) -> Vec<u64> {
        let packets = |capture: &Option<Capture>| capture.as_ref().map_or(0, |c| c.count.packets);
        self.captures.iter().map(packets).collect()
    }

    /// What was odd about the captures.
    pub(crate) fn into_warnings(self) -> Vec<String> {
        self.warnings
    }
}
