//! [`Evaluated`]: a packet and its result, for outputs with a line or a frame for each packet.

use conntrack::States;
use dataplane::Disposition;
use host::sighting::Sighting;
use packet::{Checksums, FlowKey, Link, Packet, Read};
use pktio::{Frame, FrameMeta, Interface};

use crate::decider::{Decider, DeciderPlace};
use crate::source::Numbers;

/// One packet and its result.
pub(crate) struct Evaluated<'a> {
    /// The packet's number in the captures, from 1.
    pub(crate) frame: u64,
    /// How the number is printed.
    pub(crate) numbers: &'a Numbers,
    /// The packet's bytes as captured.
    pub(crate) bytes: &'a [u8],
    pub(crate) meta: &'a FrameMeta,
    /// When it arrived, on a clock that only runs forward.
    pub(crate) time: Option<u64>,
    /// The interface that captured it.
    pub(crate) interface: Option<&'a Interface>,
    /// The packet in one line, and its addresses and ports.
    pub(crate) words: Option<PacketWords>,
    pub(crate) end: &'a Disposition,
    pub(crate) decider: Decider,
    pub(crate) place: &'a DeciderPlace<'a>,
    /// The interfaces that it came in and goes out by, where known.
    pub(crate) sides: [Option<&'a str>; 2],
    /// The states that its connection may be in, where one is tracked.
    pub(crate) states: Option<States>,
    /// What its frame is.
    pub(crate) sighting: Sighting,
    /// Rules that may have recorded it.
    pub(crate) logged_by: Vec<&'a str>,
    /// The packet's result under the rules of `--vs`.
    pub(crate) new: Option<(&'a Disposition, &'a DeciderPlace<'a>)>,
}

impl Evaluated<'_> {
    /// The frame as captured.
    pub(crate) fn as_captured(&self) -> Frame<'_> {
        Frame { bytes: self.bytes, meta: self.meta }
    }
}

/// A packet as text.
#[derive(Debug, Clone)]
pub(crate) struct PacketWords {
    pub(crate) line: String,
    pub(crate) flow: Option<FlowKey>,
}

impl PacketWords {
    /// Reads a frame; its bytes stay as they are.
    pub(crate) fn of(bytes: &mut [u8], wire_len: usize, link: Link) -> Self {
        let packet = Packet::parse(bytes, wire_len, link, Checksums::Ignore);
        Self { line: packet.to_string(), flow: key_of(&packet) }
    }
}

/// The addresses and ports of a frame, which is read in a copy.
pub(crate) fn flow_of(scratch: &mut Vec<u8>, frame: Frame<'_>, link: Link) -> Option<FlowKey> {
    scratch.clear();
    scratch.extend_from_slice(frame.bytes);
    let wire_len = frame.meta.wire_length as usize;
    key_of(&Packet::parse(scratch, wire_len, link, Checksums::Ignore))
}

fn key_of(packet: &Packet<'_>) -> Option<FlowKey> {
    match FlowKey::of(packet) {
        Read::Known(flow) => Some(flow),
        Read::Unknown | Read::Absent => None,
    }
}
