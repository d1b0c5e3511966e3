//! One capture of a stream.
//!
//! Contract: frames come numbered and with a time, if any frame before them had one: that of the one before
//! where the capture has none, else that of the first that has one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use packet::nflog::Record;
use pktio::{Burst, CaptureReader, Direction, Frame, LinkType, Port, PortError};

use super::argument::CaptureName;
use super::interfaces::Table;
use super::numbers::number;
use crate::batch::{Arrived, Batch};
use crate::report::Soundness;
use crate::stoppable;

/// Buffer for a first look: as small as a burst may be.
const LOOK_BYTES: usize = 4096;

/// A capture that was looked into, and is to be opened when its time has come.
pub(super) struct Waiting {
    pub(super) capture: usize,
    pub(super) name: CaptureName,
    /// Time of its first frame that has one.
    pub(super) first: Option<u64>,
    /// What was read of a capture that cannot be opened twice.
    begun: Option<(CaptureReader, Burst)>,
}

/// A capture that is being read.
pub(super) struct Feed {
    pub(super) capture: usize,
    name: CaptureName,
    reader: CaptureReader,
    begun: Option<Burst>,
    /// Numbers of its interfaces in the stream's table.
    interfaces: Vec<u32>,
    /// Numbers in the stream's table differ from the capture's own.
    renumbers: bool,
    /// Some interfaces record the firewall's log (NFLOG).
    holds_records: bool,
    /// Some interfaces are cooked: their frames say which way they went.
    is_cooked: bool,
    /// Time of the frame that was read last; frames without one have it.
    pub(super) now: Option<u64>,
    /// The capture may keep its reader waiting.
    pub(super) is_live: bool,
    /// Frames read.
    frames: u64,
}

impl Waiting {
    /// Makes a capture that is opened as soon as frames are wanted.
    pub(super) fn new(capture: usize, name: CaptureName) -> Self {
        Self { capture, name, first: None, begun: None }
    }

    /// Looks for the time at which it begins.
    pub(super) fn look(&mut self, stop: Option<&Arc<AtomicBool>>) -> Result<(), PortError> {
        let is_live = stoppable::may_wait(&self.name.file);
        let mut reader = stoppable::open(&self.name.file, stop)?;
        let mut burst =
            if is_live { Batch::default().burst } else { Burst::with_capacity(LOOK_BYTES) };
        reader.rx_burst(&mut burst)?;
        self.first = burst.metas().find_map(nanos);
        self.begun = is_live.then_some((reader, burst));
        Ok(())
    }

    /// Where it stands among captures that follow each other: those without times come last.
    pub(super) fn order(&self) -> (u64, usize) {
        (self.first.unwrap_or(u64::MAX), self.capture)
    }

    /// Opens it. Frames before its first time are as old as `now`.
    pub(super) fn open(
        self,
        stop: Option<&Arc<AtomicBool>>,
        now: Option<u64>,
    ) -> Result<Feed, PortError> {
        let is_live = stoppable::may_wait(&self.name.file);
        let (reader, begun) = match self.begun {
            Some((reader, burst)) => (reader, Some(burst)),
            None => (stoppable::open(&self.name.file, stop)?, None),
        };
        Ok(Feed {
            capture: self.capture,
            name: self.name,
            reader,
            begun,
            interfaces: Vec::new(),
            renumbers: false,
            holds_records: false,
            is_cooked: false,
            now: self.first.or(now),
            is_live,
            frames: 0,
        })
    }
}

impl Feed {
    /// Reads the next frames; how many of them are older than one before, or `None` at the end.
    pub(super) fn read(
        &mut self,
        batch: &mut Batch,
        table: &mut Table,
    ) -> Result<Option<u64>, PortError> {
        match self.begun.take() {
            Some(burst) => batch.burst = burst,
            None => {
                self.reader.rx_burst(&mut batch.burst)?;
            }
        }
        if batch.burst.is_empty() {
            return Ok(None);
        }
        self.frames += batch.burst.len() as u64;
        self.number_interfaces(batch, table);
        if self.holds_records {
            mend_lengths(&mut batch.burst);
        }
        Ok(Some(self.arrive(batch)))
    }

    /// Says of each frame when it arrived; returns how many are older than the frame before.
    fn arrive(&mut self, batch: &mut Batch) -> u64 {
        let Self { capture, now, .. } = self;
        let Batch { burst, arrived, .. } = batch;
        // Frames before the first frame that has a time take that time.
        *now = now.or_else(|| burst.metas().find_map(nanos));
        let (has_time, mut last) = (now.is_some(), now.unwrap_or(0));
        let (mut backwards, mut bytes, mut tells) = (0, 0, self.is_cooked);
        arrived.extend(burst.metas().map(|meta| {
            let time = nanos(meta).unwrap_or(last);
            backwards += u64::from(time < last);
            last = time;
            bytes += u64::from(meta.wire_length);
            tells |= meta.direction != Direction::Unknown;
            Arrived { number: number(*capture, meta.number), time: has_time.then_some(time) }
        }));
        *now = has_time.then_some(last);
        batch.tells = tells;
        batch.run = (backwards == 0).then_some(bytes);
        backwards
    }

    /// Interfaces are counted over all captures from here on.
    fn number_interfaces(&mut self, batch: &mut Batch, table: &mut Table) {
        let known = self.interfaces.len();
        for interface in &self.reader.interfaces()[known..] {
            let mut interface = interface.clone();
            interface.name = interface.name.or_else(|| self.name.interface.clone());
            let link_type = interface.link_type;
            let number = table.number(interface);
            self.renumbers |= number as usize != self.interfaces.len();
            self.holds_records |= link_type == LinkType::NFLOG;
            self.is_cooked |= matches!(link_type, LinkType::LINUX_SLL | LinkType::LINUX_SLL2);
            self.interfaces.push(number);
        }
        if self.renumbers {
            for meta in batch.burst.metas_mut() {
                let ours = self.interfaces.get(meta.interface as usize);
                meta.interface = ours.copied().unwrap_or(meta.interface);
            }
        }
        batch.stream.interfaces = table.all();
    }

    /// Whether it holds what it should, once it was read to its end.
    pub(super) fn soundness(&self) -> Soundness {
        match (self.reader.warning(), self.frames) {
            (Some(_), _) => Soundness::Damaged,
            (None, 0) => Soundness::Empty,
            (None, _) => Soundness::Whole,
        }
    }

    pub(super) fn reader(&self) -> &CaptureReader {
        &self.reader
    }
}

#[inline]
fn nanos(meta: &pktio::FrameMeta) -> Option<u64> {
    meta.timestamp.and_then(|time| u64::try_from(time.as_nanos()).ok())
}

/// A packet of which a rule recorded its beginning alone (`--nflog-size`) was as long as its own header says: its
/// record's length is not that of the wire.
fn mend_lengths(burst: &mut Burst) {
    let lengths: Vec<u32> = burst.iter().map(|frame| whole_length(frame).unwrap_or(0)).collect();
    for (meta, length) in burst.metas_mut().zip(lengths) {
        meta.wire_length = meta.wire_length.max(length);
    }
}

/// Where the packet of a record ends, by its own header.
fn whole_length(frame: Frame<'_>) -> Option<u32> {
    let record = (frame.meta.link_type == LinkType::NFLOG).then(|| Record::read(frame.bytes))??;
    let packet = frame.bytes.get(record.packet.clone())?;
    let field = |at: usize| packet.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes);
    let length = match packet.first()? >> 4 {
        4 => u32::from(field(2)?),
        6 => 40 + u32::from(field(4)?),
        _ => 0,
    };
    Some(record.packet.start as u32 + length)
}
