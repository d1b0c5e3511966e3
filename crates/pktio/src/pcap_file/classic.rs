//! Classic pcap: a file header of 24 bytes, then packet records.
//!
//! Contract: parses in place and keeps nothing but what the file header says. Both byte orders, times in
//! microseconds and nanoseconds, the longer record header of Kuznetzov's patched libpcap, and the swapped
//! lengths of versions before 2.4.
//!
//! Source: draft-ietf-opsawg-pcap, `pcap-savefile(5)`; for the old versions the behaviour of libpcap's
//! `sf-pcap.c`.

use super::end::{Damage, MAX_CAPTURED};
use super::fields::ByteOrder;
use super::piece::{Interface, Piece};
use crate::frame::{Direction, FrameMeta};
use crate::link::LinkType;
use crate::timestamp::Timestamp;

/// Magic numbers as the writing host's 32-bit value.
pub(super) const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
pub(super) const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
const MAGIC_PATCHED: u32 = 0xa1b2_cd34;

/// Bytes of the file header.
pub(super) const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// Kuznetzov's records add interface index (4), protocol (2), packet type (1) and padding (1).
const PATCHED_RECORD_HEADER: usize = 24;
/// Byte of the packet type in such a record: Linux `PACKET_HOST` (0) to `PACKET_OUTGOING` (4).
const PATCHED_PACKET_TYPE: usize = 22;

/// The upper bits of the link-type field tell whether frames end in a check sequence.
const LINK_TYPE_MASK: u32 = 0x03ff_ffff;

/// Which of the two lengths in a record is the captured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    WireFirst,
    /// Version 2.3 was written both ways; a captured length cannot exceed that on the wire.
    SmallerIsCaptured,
}

/// How the records of one file are laid out.
#[derive(Debug)]
pub(super) struct Classic {
    order: ByteOrder,
    nanos_per_tick: i64,
    record_header: usize,
    lengths: Lengths,
    link_type: LinkType,
    snaplen: u32,
}

/// A pcap version that nobody writes any more, or that does not exist.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnreadVersion {
    pub(super) major: u16,
    pub(super) minor: u16,
}

/// The byte order in which `bytes` begin with a pcap magic number, and that number.
pub(super) fn magic(bytes: &[u8]) -> Option<(ByteOrder, u32)> {
    [ByteOrder::Little, ByteOrder::Big]
        .into_iter()
        .filter_map(|order| Some((order, order.u32(bytes, 0)?)))
        .find(|(_, magic)| matches!(*magic, MAGIC_MICROS | MAGIC_NANOS | MAGIC_PATCHED))
}

impl Classic {
    /// Reads the file header; `None` if `bytes` do not hold all of one.
    pub(super) fn from_header(bytes: &[u8]) -> Option<Result<Self, UnreadVersion>> {
        let (order, magic) = magic(bytes)?;
        let (major, minor) = (order.u16(bytes, 4)?, order.u16(bytes, 6)?);
        let snaplen = order.u32(bytes, 16)?;
        let link_type = LinkType(order.u32(bytes, 20)? & LINK_TYPE_MASK);
        let lengths = match (major, minor) {
            (2, 0..=2) => Lengths::WireFirst,
            (2, 3) => Lengths::SmallerIsCaptured,
            // 543.0 is what DG/UX wrote.
            (2, 4) | (543, 0) => Lengths::CapturedFirst,
            _ => return Some(Err(UnreadVersion { major, minor })),
        };
        Some(Ok(Self {
            order,
            nanos_per_tick: if magic == MAGIC_NANOS { 1 } else { 1000 },
            record_header: if magic == MAGIC_PATCHED {
                PATCHED_RECORD_HEADER
            } else {
                RECORD_HEADER
            },
            lengths,
            link_type,
            snaplen,
        }))
    }

    /// The one interface that a classic file is about.
    pub(super) fn interface(&self) -> Interface {
        Interface { name: None, link_type: self.link_type, snaplen: self.snaplen }
    }

    /// What stands at the start of `bytes`.
    #[inline]
    pub(super) fn next(&self, bytes: &[u8]) -> Piece {
        let header = bytes.first_chunk::<RECORD_HEADER>();
        let Some(header) = header.filter(|_| bytes.len() >= self.record_header) else {
            return Piece::Part { needed: self.record_header, what: "a packet record header" };
        };
        let [seconds, ticks, first, second] = self.order.words(header);
        let (captured, wire_length) = self.lengths(first, second);
        let length = captured as usize;
        if length > MAX_CAPTURED {
            return Piece::Damaged(Damage::PacketTooLong { captured });
        }
        let total = self.record_header + length;
        if bytes.len() < total {
            return Piece::Part { needed: total, what: "a packet record" };
        }
        // 2^32 seconds and 2^32 microseconds stay below 2^63 nanoseconds.
        let nanos = i64::from(seconds) * 1_000_000_000 + i64::from(ticks) * self.nanos_per_tick;
        let meta = FrameMeta {
            number: 0,
            timestamp: Some(Timestamp::from_nanos(nanos)),
            wire_length,
            link_type: self.link_type,
            interface: 0,
            direction: self.direction(bytes),
        };
        Piece::Packet { total, start: self.record_header, length, meta }
    }

    /// Captured length and length on the wire.
    #[inline]
    fn lengths(&self, first: u32, second: u32) -> (u32, u32) {
        match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::WireFirst => (second, first),
            Lengths::SmallerIsCaptured => (first.min(second), first.max(second)),
        }
    }

    /// Which way the packet went whose record this is, if records of this file say so.
    #[inline]
    fn direction(&self, record: &[u8]) -> Direction {
        if self.record_header != PATCHED_RECORD_HEADER {
            return Direction::Unknown;
        }
        match record.get(PATCHED_PACKET_TYPE) {
            Some(0..=2) => Direction::Inbound,
            Some(4) => Direction::Outbound,
            _ => Direction::Unknown,
        }
    }
}
