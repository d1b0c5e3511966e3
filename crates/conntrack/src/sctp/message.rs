//! A packet of SCTP as its verification tag and its chunks.
//!
//! Source: RFC 9260 section 3; which chunks may stand together: Linux 6.18 `nf_conntrack_proto_sctp.c`.

use crate::dissect::{Layer, Unparsable, known};
use crate::verify;
use packet::{Packet, Read, sctp};

/// Kinds of chunks.
pub(super) mod kind {
    pub(in crate::sctp) const DATA: u8 = 0;
    pub(in crate::sctp) const INIT: u8 = 1;
    pub(in crate::sctp) const INIT_ACK: u8 = 2;
    pub(in crate::sctp) const HEARTBEAT: u8 = 4;
    pub(in crate::sctp) const HEARTBEAT_ACK: u8 = 5;
    pub(in crate::sctp) const ABORT: u8 = 6;
    pub(in crate::sctp) const SHUTDOWN: u8 = 7;
    pub(in crate::sctp) const SHUTDOWN_ACK: u8 = 8;
    pub(in crate::sctp) const ERROR: u8 = 9;
    pub(in crate::sctp) const COOKIE_ECHO: u8 = 10;
    pub(in crate::sctp) const COOKIE_ACK: u8 = 11;
    pub(in crate::sctp) const SHUTDOWN_COMPLETE: u8 = 14;
}

/// Chunk flag T: the tag is the other side's.
pub(super) const TAG_REFLECTED: u8 = 1;

/// One chunk: its header, and the tag in an INIT or its acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    pub(super) kind: u8,
    pub(super) flags: u8,
    len: u16,
    pub(super) init_tag: Option<u32>,
}

/// A packet: its tag and its chunks.
#[derive(Debug)]
pub(crate) struct Message {
    pub(super) tag: u32,
    pub(super) chunks: Vec<Chunk>,
}

impl Message {
    /// The packet at the layer; with `verify` its checksum must hold.
    pub(crate) fn read(
        packet: &Packet<'_>,
        layer: &Layer,
        verify: bool,
    ) -> Result<Self, Unparsable> {
        let header = known(packet.read::<{ sctp::HEADER_LEN }>(layer.offset))?;
        if verify {
            match verify::sctp(packet, layer.offset) {
                Read::Known(true) => {}
                Read::Unknown => return Err(Unparsable::Unknown),
                Read::Known(false) | Read::Absent => return Err(Unparsable::Invalid),
            }
        }
        let [_, _, _, _, a, b, c, d, ..] = header;
        let mut message = Self { tag: u32::from_be_bytes([a, b, c, d]), chunks: Vec::new() };
        message.read_chunks(packet, layer.offset + sctp::HEADER_LEN)?;
        if message.is_sensible() { Ok(message) } else { Err(Unparsable::Invalid) }
    }

    /// Whether an association begins with it.
    pub(crate) fn begins(&self) -> bool {
        self.chunks.first().is_some_and(|chunk| chunk.kind == kind::INIT)
    }

    /// The chunks up to the end, or to a header that is cut. One of length 0 is the last: it is refused
    /// afterwards, and the walk must end.
    fn read_chunks(&mut self, packet: &Packet<'_>, mut at: usize) -> Result<(), Unparsable> {
        while at < packet.headers().end {
            let [kind, flags, high, low] = match packet.read::<4>(at) {
                Read::Known(header) => header,
                Read::Absent => break,
                Read::Unknown => return Err(Unparsable::Unknown),
            };
            let len = u16::from_be_bytes([high, low]);
            // The tag stands first of the 16 bytes that an INIT must have.
            let init_tag = match packet.read::<16>(at + 4) {
                _ if !matches!(kind, kind::INIT | kind::INIT_ACK) => None,
                Read::Known([a, b, c, d, ..]) => Some(u32::from_be_bytes([a, b, c, d])),
                Read::Absent => None,
                Read::Unknown => return Err(Unparsable::Unknown),
            };
            self.chunks.push(Chunk { kind, flags, len, init_tag });
            if len == 0 {
                break;
            }
            at += usize::from(len).next_multiple_of(4);
        }
        if packet.is_open() { Err(Unparsable::Unknown) } else { Ok(()) }
    }

    /// Some chunks stand alone, some first, none is empty.
    fn is_sensible(&self) -> bool {
        let mut alone = false;
        for (count, chunk) in self.chunks.iter().enumerate() {
            alone |= matches!(chunk.kind, kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE);
            let first = matches!(chunk.kind, kind::COOKIE_ACK | kind::COOKIE_ECHO);
            if ((alone || first) && count != 0) || chunk.len == 0 {
                return false;
            }
        }
        !self.chunks.is_empty()
    }

    pub(super) fn has(&self, kinds: &[u8]) -> bool {
        self.chunks.iter().any(|chunk| kinds.contains(&chunk.kind))
    }
}
