//! [`FrameEvent`]: a frame as it is reported to watchers.

use std::sync::Arc;

use packet::{Checksums, FlowKey, Packet};
use pktio::{FrameMeta, LinkType, Timestamp};

use super::filter::Sight;
use super::place::Texts;
use super::record::Record;
use super::tap;
use crate::answers::{self, Decider, Frame};
use crate::forward::account::Reason;

/// A frame and its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameEvent {
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// The port of arrival.
    pub input: Arc<str>,
    /// The port through which the frame leaves, or would leave.
    pub output: Arc<str>,
    /// `accept`, `drop`, `reject` or `unknown`.
    pub verdict: &'static str,
    /// Why it was dropped, if it was.
    pub reason: Option<Reason>,
    /// Number of the program whose rules decided.
    pub program: Option<u64>,
    /// The packet in the words of a packet spec.
    pub packet: String,
    /// Length on the wire in bytes.
    pub wire_length: u32,
    /// How the first header is to be read.
    pub link_type: LinkType,
    /// The frame's bytes, or the first 65,535 of them.
    pub bytes: Vec<u8>,
    flow: Option<FlowKey>,
    by: Decider,
}

impl FrameEvent {
    pub(super) fn new(
        record: &Record,
        names: &[Arc<str>; 2],
        mut bytes: Vec<u8>,
        texts: &mut Texts,
    ) -> Self {
        let Record { time, reason, ref decision, link_type, wire_length, .. } = *record;
        let [input, output] = tap::directed(names, record.from.into()).map(Arc::clone);
        let meta = FrameMeta { link_type, wire_length, ..FrameMeta::default() };
        Self {
            time,
            input,
            output,
            verdict: record.verdict(),
            reason,
            program: decision.as_ref().map(|decision| decision.program.number()),
            packet: match reason {
                Some(Reason::UnknownSession | Reason::Forged | Reason::Replayed) => {
                    format!("a sealed datagram of {wire_length} bytes")
                }
                _ => packet(&mut bytes, &meta),
            },
            wire_length,
            link_type,
            flow: tap::flow(&mut bytes, &meta),
            bytes,
            by: decision.as_ref().map_or_else(Decider::default, |decision| texts.place(decision)),
        }
    }

    /// The packet's addresses and ports, where they can be read.
    pub(crate) fn flow(&self) -> Option<FlowKey> {
        self.flow
    }

    pub(super) fn sight(&self) -> Sight<'_> {
        let Self { input, output, reason, verdict, flow, .. } = self;
        Sight { input, output, reason: *reason, verdict, flow: *flow }
    }

    /// The event in an answer, with the frame's bytes if they are wanted.
    #[must_use]
    pub fn answer(&self, with_bytes: bool) -> Frame {
        let time = Timestamp::from_nanos(i64::try_from(self.time).unwrap_or(i64::MAX));
        Frame {
            time: time.to_string(),
            input: self.input.to_string(),
            output: self.output.to_string(),
            packet: self.packet.clone(),
            length: self.wire_length,
            verdict: self.verdict.to_owned(),
            reason: self.reason.map(|reason| reason.name().to_owned()),
            program: self.program,
            by: self.by.clone(),
            link_type: with_bytes.then_some(self.link_type.0),
            frame: with_bytes.then(|| answers::hex(&self.bytes)),
            ..Frame::default()
        }
    }
}

/// Formats a frame in a line.
fn packet(bytes: &mut [u8], meta: &FrameMeta) -> String {
    let len = (meta.wire_length as usize).max(bytes.len());
    match tap::link(meta) {
        _ if bytes.is_empty() => "a frame that is gone".to_owned(),
        Some(link) => Packet::parse(bytes, len, link, Checksums::Ignore).to_string(),
        None => format!("a frame of link type {}", meta.link_type.0),
    }
}
