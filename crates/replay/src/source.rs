//! Captures as one stream of batches: the packets that are judged, numbered, with times that only run forward.
//!
//! Contract: constant memory in the length of the captures; several captures are one stream in argument
//! order. A packet with an earlier time than one before takes the latest time, and is counted. Selection
//! happens here, so that what is left out is never judged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dataplane::Disposition;
use pktio::{Burst, CaptureReader, Interface, Port};
use rules::conntrack::States;

use crate::decider::Decider;
use crate::error::Error;
use crate::report::{Capture, Report};
use crate::select::{Choice, Selection};
use crate::stoppable;

/// Bytes of frames that are read and judged together: they stay in the cache.
const BATCH_BYTES: usize = 64 * 1024;

/// Packets on their way from the captures to the report.
pub(crate) struct Batch {
    /// The frames to judge.
    pub(crate) burst: Burst,
    /// For each frame, when and which it is.
    pub(crate) arrived: Vec<Arrived>,
    /// The interfaces of their capture.
    pub(crate) interfaces: Arc<[Interface]>,
    /// What became of each frame, where somebody wants to know.
    pub(crate) outcomes: Vec<Outcome>,
    /// Connections that its judges have made up to here.
    pub(crate) connections: u64,
}

/// A frame's place in the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    /// Its number in the captures, from 1.
    pub(crate) number: u64,
    /// Its time in nanoseconds since the Unix epoch, made to run forward.
    pub(crate) time: Option<u64>,
    /// That of the first frame.
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
            interfaces: Arc::default(),
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
        self.outcomes.clear();
    }
}

/// Called now and then with bytes read and, if known, bytes in all, of the current capture.
pub(crate) type Progress<'w> = &'w mut dyn FnMut(u64, Option<u64>);

/// The captures.
pub(crate) struct Source<'c> {
    names: std::slice::Iter<'c, String>,
    open: Option<(CaptureReader, Capture)>,
    interfaces: Arc<[Interface]>,
    stop: Option<Arc<AtomicBool>>,
    /// So many packets come even when it is to stop.
    least: u64,
    /// No more packets are wanted.
    ended: bool,
    /// The time of the first packet, and the latest time seen.
    start: Option<u64>,
    now: Option<u64>,
    /// What the report says of the captures.
    pub(crate) read: ReadOf,
}

/// What was read of the captures.
#[derive(Debug, Default)]
pub(crate) struct ReadOf {
    captures: Vec<Capture>,
    warnings: Vec<String>,
    /// Packets read, and those of them that were judged.
    frames: u64,
    packets: u64,
    time_went_back: u64,
    interrupted: bool,
}

impl<'c> Source<'c> {
    /// The packets of these captures; once `stop` is true there are no more than the first `least`.
    pub(crate) fn new(captures: &'c [String], stop: Option<Arc<AtomicBool>>, least: u64) -> Self {
        Self {
            names: captures.iter(),
            open: None,
            interfaces: Arc::default(),
            stop,
            least,
            ended: false,
            start: None,
            now: None,
            read: ReadOf::default(),
        }
    }

    /// Reads the next packets into a batch; false when there are no more.
    ///
    /// # Errors
    /// A capture cannot be opened or read, or a filter cannot be compiled.
    pub(crate) fn next(
        &mut self,
        batch: &mut Batch,
        selection: &mut Selection,
        progress: &mut Option<Progress<'_>>,
    ) -> Result<bool, Error> {
        batch.clear();
        while batch.arrived.is_empty() && self.fill(batch, selection)? {
            if let (Some(progress), Some((reader, _))) = (&mut *progress, &self.open) {
                progress(reader.bytes_read(), reader.total_bytes());
            }
        }
        Ok(!batch.arrived.is_empty())
    }

    fn stopped(&self) -> bool {
        self.read.packets >= self.least
            && self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Reads once; false when there is nothing left to read.
    fn fill(&mut self, batch: &mut Batch, selection: &mut Selection) -> Result<bool, Error> {
        if self.open.is_none() && !self.open_next()? {
            return Ok(false);
        }
        let stopped = self.stopped();
        let Some((reader, _)) = &mut self.open else { return Ok(true) };
        if stopped || self.ended || reader.rx_burst(&mut batch.burst)? == 0 {
            self.close();
            return Ok(true);
        }
        // Interfaces are only ever added.
        if reader.interfaces().len() != self.interfaces.len() {
            self.interfaces = reader.interfaces().into();
        }
        batch.interfaces = Arc::clone(&self.interfaces);
        self.select(batch, selection)?;
        Ok(true)
    }

    /// Opens the next capture, if one is left and wanted.
    fn open_next(&mut self) -> Result<bool, Error> {
        if self.ended || self.read.interrupted {
            return Ok(false);
        }
        let Some(name) = self.names.next() else { return Ok(false) };
        let capture = Capture { file: name.clone(), ..Capture::default() };
        self.interfaces = Arc::default();
        match stoppable::open(name, self.stop.as_ref()) {
            Ok(reader) => self.open = Some((reader, capture)),
            // Stopped before the capture said what it is.
            Err(_) if self.stopped() => {
                self.read.captures.push(capture);
                self.read.interrupted = true;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    fn close(&mut self) {
        let Some((reader, capture)) = self.open.take() else { return };
        self.read.interrupted = self.stopped();
        // One that was not read to its end is not whole, and no wonder.
        if !self.read.interrupted {
            self.read.warnings.extend(reader.warning());
        }
        self.read.captures.push(capture);
    }

    /// Keeps the frames that are to be judged, each with its place in the stream.
    fn select(&mut self, batch: &mut Batch, selection: &mut Selection) -> Result<(), Error> {
        let Self { open: Some((_, capture)), ended, start, now, read, .. } = self else {
            return Ok(());
        };
        let arrived = &mut batch.arrived;
        let mut failed = None;
        batch.burst.retain(|frame| {
            if *ended {
                return false;
            }
            let time = frame.meta.timestamp.and_then(|time| u64::try_from(time.as_nanos()).ok());
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
            capture.count(u64::from(frame.meta.wire_length), time);
            arrived.push(Arrived { number: read.frames, time, began: *start });
            // A capture that goes on for ever is not waited for.
            *ended = selection.is_full(read.packets);
            true
        });
        failed.map_or(Ok(()), Err)
    }
}

/// A time that is not before `now`, which becomes it.
fn forward(time: Option<u64>, now: &mut Option<u64>, went_back: &mut u64) -> Option<u64> {
    let time = time?;
    match *now {
        Some(now) if time < now => {
            *went_back += 1;
            Some(now)
        }
        _ => {
            *now = Some(time);
            Some(time)
        }
    }
}

impl ReadOf {
    /// Says it in the report.
    pub(crate) fn report(self, report: &mut Report<'_>) {
        report.captures = self.captures;
        report.warnings.extend(self.warnings);
        report.frames = self.frames;
        report.packets = self.packets;
        report.time_went_back = self.time_went_back;
        report.interrupted = self.interrupted;
    }
}
