//! [`Tap`]: where a worker writes down the frames of a wire that watchers want to see.
//!
//! Contract: a worker's own. While nobody watches it costs one relaxed load for a burst, and a comparison for a frame
//! that is dropped, of which one for each reason is written down every [`BETWEEN`]. Nothing waits, and nothing is
//! allocated once its buffer has grown: what the rings, or the rate, have no room for is lost, and counted. A frame
//! that is watched is copied before the rules see it, so that it is as it came; a sample is as it was when it was
//! dropped.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use packet::{Checksums, FlowKey, Link, Packet};
use pktio::{Frame, FrameMeta};
use rtrb::{Consumer, Producer, RingBuffer};

use super::filter::Sight;
use super::record::{Decision, Judged, Record, verdict};
use super::switch::{Switch, Wanted};
use crate::forward::account::Reason;
use dataplane::link_of;

/// Records on their way from a worker, for each wire.
const RECORDS: usize = 1024;

/// Bytes of the frames of these records.
const BYTES: usize = 2 * 1024 * 1024;

/// Bytes of a frame, at most.
const LONGEST: usize = u16::MAX as usize;

/// Nanoseconds between two samples of a reason.
const BETWEEN: u64 = 100_000_000;

/// The worker's end.
pub(crate) struct Tap {
    switch: Arc<Switch>,
    names: [Arc<str>; 2],
    records: Producer<Record>,
    bytes: Producer<u8>,
    lost: Arc<AtomicU64>,
    /// What is wanted, as of this burst.
    wanted: Wanted,
    now: u64,
    /// A frame as it came, and its place in the burst.
    came: Vec<u8>,
    came_at: Option<usize>,
    /// Keeps `came` while something else is written down.
    aside: Vec<u8>,
    /// The rules' verdict on the present frame.
    judged: Option<Judged>,
    /// When the next sample of each reason is taken.
    next: [u64; Reason::ALL.len()],
}

/// The reader's end.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) names: [Arc<str>; 2],
    pub(super) records: Consumer<Record>,
    pub(super) bytes: Consumer<u8>,
    /// The number of frames that were wanted and are not there.
    pub(super) lost: Arc<AtomicU64>,
}

impl Tap {
    /// Makes both ends, for a wire between ports of these names.
    pub(super) fn new(switch: &Arc<Switch>, names: [Arc<str>; 2]) -> (Self, Source) {
        let (records, of_records) = RingBuffer::new(RECORDS);
        let (bytes, of_bytes) = RingBuffer::new(BYTES);
        let lost = Arc::<AtomicU64>::default();
        let source = Source {
            names: names.clone(),
            records: of_records,
            bytes: of_bytes,
            lost: Arc::clone(&lost),
        };
        let tap = Self {
            switch: Arc::clone(switch),
            names,
            records,
            bytes,
            lost,
            wanted: Wanted::Nothing,
            now: 0,
            came: Vec::new(),
            came_at: None,
            aside: Vec::new(),
            judged: None,
            next: [0; Reason::ALL.len()],
        };
        (tap, source)
    }

    /// Begins a burst, at `now` in nanoseconds since the Unix epoch.
    #[inline]
    pub(crate) fn begins(&mut self, now: u64) {
        self.wanted = self.switch.wanted();
        self.now = now;
        self.came_at = None;
    }

    /// Keeps a frame as it came, by its place in the burst, if anybody watches.
    #[inline]
    pub(crate) fn came(&mut self, at: usize, bytes: &[u8]) {
        if self.wanted != Wanted::Nothing {
            self.keep(bytes);
            self.came_at = Some(at);
        }
    }

    #[cold]
    fn keep(&mut self, bytes: &[u8]) {
        self.came.clear();
        self.came.extend_from_slice(&bytes[..bytes.len().min(LONGEST)]);
    }

    /// Notes what rules said of the present frame; needed where [`Tap::wants`] it.
    #[inline]
    pub(crate) fn judged(&mut self, judged: Judged) {
        self.judged = Some(judged);
    }

    /// Whether a frame with this fate may be wanted: dropped for a reason, or not dropped.
    #[inline]
    pub(crate) fn wants(&self, reason: Option<Reason>) -> bool {
        match reason {
            Some(reason) => self.wanted != Wanted::Nothing || self.is_sampled(reason),
            None => self.wanted == Wanted::All,
        }
    }

    #[inline]
    fn is_sampled(&self, reason: Reason) -> bool {
        self.next.get(reason as usize).is_some_and(|next| self.now >= *next)
    }

    /// Writes down the frame of the burst at this place, if it is wanted; `decision` adds the rules to what they said.
    #[cold]
    #[inline(never)]
    pub(crate) fn decided(
        &mut self,
        from: usize,
        at: usize,
        frame: Frame<'_>,
        reason: Option<Reason>,
        decision: impl FnOnce(Judged) -> Decision,
    ) {
        let judged = self.judged.take();
        if self.came_at.take_if(|came| *came == at).is_none() {
            self.keep(frame.bytes);
        }
        self.write(from, frame.meta, reason, judged.map(decision));
    }

    /// Writes down a frame that is dropped after, or without, the rules, if it is wanted.
    pub(crate) fn dropped(&mut self, from: usize, reason: Reason, frame: Option<Frame<'_>>) {
        if !self.wants(Some(reason)) {
            return;
        }
        self.keep(frame.map_or(&[], |frame| frame.bytes));
        let meta = frame.map_or_else(FrameMeta::default, |frame| *frame.meta);
        self.write(from, &meta, Some(reason), None);
    }

    /// Writes down a reply that was made and exceeds the rate of replies; its metadata are like `like`.
    pub(crate) fn reply(&mut self, from: usize, bytes: &[u8], like: &FrameMeta) {
        // The frame that it answers is still to be written down.
        mem::swap(&mut self.came, &mut self.aside);
        let meta = FrameMeta { wire_length: bytes.len() as u32, ..*like };
        self.dropped(from, Reason::ReplyRate, Some(Frame { bytes, meta: &meta }));
        mem::swap(&mut self.came, &mut self.aside);
    }

    /// Counts frames that were dropped and are no longer at hand.
    pub(crate) fn lose(&self, frames: usize) {
        if self.wanted != Wanted::Nothing {
            // The counter has one writer.
            self.lost.store(self.lost.load(Ordering::Relaxed) + frames as u64, Ordering::Relaxed);
        }
    }

    /// Writes down the frame that is kept.
    fn write(
        &mut self,
        from: usize,
        meta: &FrameMeta,
        reason: Option<Reason>,
        decision: Option<Decision>,
    ) {
        let is_watched = self.is_watched(from, meta, reason, decision.as_ref());
        let sampled = reason.filter(|reason| self.is_sampled(*reason));
        if !is_watched && sampled.is_none() {
            return;
        }
        if is_watched && !self.switch.has_room() {
            return self.lose(1);
        }
        if let Some(next) = sampled.and_then(|reason| self.next.get_mut(reason as usize)) {
            *next = self.now.saturating_add(BETWEEN);
        }
        let given = meta.timestamp.and_then(|time| u64::try_from(time.as_nanos()).ok());
        let record = Record {
            time: given.unwrap_or(self.now),
            from: from as u8,
            reason,
            decision,
            link_type: meta.link_type,
            wire_length: meta.wire_length,
            captured: self.came.len() as u32,
            is_sample: !is_watched,
        };
        // The bytes first: the reader of the record finds them there.
        let is_room = !self.records.is_full() && self.bytes.push_entire_slice(&self.came).is_ok();
        if !(is_room && self.records.push(record).is_ok()) && is_watched {
            self.lose(1);
        }
    }

    /// Whether a watcher wants the frame that is kept.
    fn is_watched(
        &mut self,
        from: usize,
        meta: &FrameMeta,
        reason: Option<Reason>,
        decision: Option<&Decision>,
    ) -> bool {
        if self.wanted == Wanted::Nothing {
            return false;
        }
        let [input, output] = directed(&self.names, from);
        let sight = Sight {
            input,
            output,
            reason,
            verdict: verdict(reason, decision.map(|decision| &decision.judged)),
            flow: flow(&mut self.came, meta),
        };
        self.switch.filters().iter().any(|filter| filter.wants(&sight))
    }
}

/// The port of arrival, and the output port.
pub(super) fn directed(names: &[Arc<str>; 2], from: usize) -> [&Arc<str>; 2] {
    let [first, second] = names;
    if from == 0 { [first, second] } else { [second, first] }
}

/// How the first header of a frame on a wire is read.
pub(super) fn link(meta: &FrameMeta) -> Option<Link> {
    match link_of(meta.link_type)? {
        Link::Ethernet => Some(Link::Wire),
        link => Some(link),
    }
}

/// Addresses and ports of a frame, whose bytes stay as they are.
pub(super) fn flow(bytes: &mut [u8], meta: &FrameMeta) -> Option<FlowKey> {
    let len = (meta.wire_length as usize).max(bytes.len());
    let packet = Packet::parse(bytes, len, link(meta)?, Checksums::Ignore);
    FlowKey::of(&packet).known()
}
