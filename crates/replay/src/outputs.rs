//! What a replay writes packet by packet, beside its report.

use std::io::{self, Write};

use conntrack::States;
use dataplane::Disposition;
use host::sighting::Sighting;
use packet::{Checksums, FlowKey, Link, Packet, Read};
use pktio::{Frame, FrameMeta, Interface};

use crate::annotate::Annotation;
use crate::decider::{Decider, Place};
use crate::error::Error;
use crate::packets;
use crate::source::Numbers;
use crate::split::Split;

/// One packet and what became of it.
pub(crate) struct Judged<'a> {
    /// Its number in the captures, from 1.
    pub(crate) frame: u64,
    /// How that is printed.
    pub(crate) numbers: &'a Numbers,
    /// Its bytes as captured.
    pub(crate) bytes: &'a [u8],
    pub(crate) meta: &'a FrameMeta,
    /// When it arrived, on a clock that only runs forward.
    pub(crate) time: Option<u64>,
    /// The interface that captured it.
    pub(crate) interface: Option<&'a Interface>,
    /// Itself in one line, and its addresses and ports.
    pub(crate) words: Option<Words>,
    pub(crate) end: &'a Disposition,
    pub(crate) decider: Decider,
    pub(crate) place: &'a Place<'a>,
    /// The interfaces that it came in and goes out by, where known.
    pub(crate) sides: [Option<&'a str>; 2],
    /// The states that its connection may be in, where one is tracked.
    pub(crate) states: Option<States>,
    /// What its frame is.
    pub(crate) sighting: Sighting,
    /// Rules that may have recorded it.
    pub(crate) logged_by: Vec<&'a str>,
    /// What becomes of it under the rules of `--vs`.
    pub(crate) new: Option<(&'a Disposition, &'a Place<'a>)>,
}

impl Judged<'_> {
    /// The frame as captured.
    pub(crate) fn as_captured(&self) -> Frame<'_> {
        Frame { bytes: self.bytes, meta: self.meta }
    }
}

/// A packet in words.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    pub(crate) line: String,
    pub(crate) flow: Option<FlowKey>,
}

impl Words {
    /// Reads a frame; its bytes stay as they are.
    pub(crate) fn of(bytes: &mut [u8], wire_len: usize, link: Link) -> Self {
        let packet = Packet::parse(bytes, wire_len, link, Checksums::Ignore);
        let flow = match FlowKey::of(&packet) {
            Read::Known(flow) => Some(flow),
            Read::Unknown | Read::Absent => None,
        };
        Self { line: packet.to_string(), flow }
    }
}

/// The files of `--packets`, `--split` and `--annotate`.
#[derive(Default)]
pub(crate) struct Outputs<'w> {
    pub(crate) packets: Option<&'w mut dyn Write>,
    pub(crate) split: Option<Split>,
    pub(crate) annotation: Option<Annotation<'w>>,
}

impl Outputs<'_> {
    pub(crate) fn is_none(&self) -> bool {
        self.packets.is_none() && self.split.is_none() && self.annotation.is_none()
    }

    /// Whether packets are wanted in words.
    pub(crate) fn wants_words(&self) -> bool {
        self.packets.is_some()
    }

    /// Writes a packet wherever it belongs.
    pub(crate) fn write(&mut self, judged: &Judged<'_>) -> Result<(), Error> {
        if let Some(to) = &mut self.packets {
            packets::write(*to, judged).map_err(failed("--packets"))?;
        }
        if let Some(annotation) = &mut self.annotation {
            annotation.write(judged).map_err(failed("--annotate"))?;
        }
        match &mut self.split {
            Some(split) => split.write(judged),
            None => Ok(()),
        }
    }

    /// Ends every file.
    pub(crate) fn finish(self) -> Result<(), Error> {
        if let Some(annotation) = self.annotation {
            annotation.finish().map_err(failed("--annotate"))?;
        }
        if let Some(to) = self.packets {
            to.flush().map_err(failed("--packets"))?;
        }
        self.split.map_or(Ok(()), Split::finish)
    }
}

/// An error of the file that an option names.
pub(crate) fn failed(option: &str) -> impl Fn(io::Error) -> Error {
    move |source| Error::File { file: option.to_owned(), source }
}
