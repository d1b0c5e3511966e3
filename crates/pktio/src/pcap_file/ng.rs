//! pcapng: blocks in sections. Sections and interfaces describe; enhanced, simple and the obsolete packet blocks hold
//! packets; statistics say what was lost; every other block is ignored.
//!
//! Contract: parses in place and keeps the interfaces described, at most [`MAX_INTERFACES`] of them in a
//! file. An interface's number in the file starts again at 0 with each section; here it is an index over
//! the whole file. The length of a section is not used: its blocks tell it.
//!
//! Source: draft-ietf-opsawg-pcapng.

use super::clock::Clock;
use super::end::{Damage, MAX_CAPTURED};
use super::fields::ByteOrder;
use super::piece::{Interface, Piece};
use crate::frame::{Direction, FrameMeta};
use crate::link::LinkType;
use crate::timestamp::Timestamp;

/// The first four bytes of a section, the same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
pub(super) const INTERFACE_STATISTICS: u32 = 5;
pub(super) const ENHANCED_PACKET: u32 = 6;

pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Block type and length before a block's body.
pub(super) const BLOCK_HEADER: usize = 8;
/// The length again, after it.
pub(super) const BLOCK_TRAILER: usize = 4;
/// A packet's fixed fields, options and padding: far more than anyone writes.
const MAX_BLOCK: usize = MAX_CAPTURED + 64 * 1024;
/// Fixed fields of an enhanced or obsolete packet block.
const PACKET_FIELDS: usize = 20;

/// Interfaces read from one file.
const MAX_INTERFACES: usize = 65_536;
/// Bytes kept of an interface's name.
pub(super) const MAX_NAME: usize = 256;

pub(super) const OPTION_END: u16 = 0;
pub(super) const COMMENT: u16 = 1;
pub(super) const IF_NAME: u16 = 2;
pub(super) const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
/// Packets lost for want of room: by the interface, and by the system.
pub(super) const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;
/// `epb_flags` and the obsolete block's `pack_flags`.
pub(super) const PACKET_FLAGS: u16 = 2;

/// What the blocks read so far tell.
#[derive(Debug)]
pub(super) struct Sections {
    order: ByteOrder,
    /// All interfaces of the file, with their clocks.
    interfaces: Vec<Interface>,
    clocks: Vec<Clock>,
    /// Packets that each of them lost, as far as its latest statistics say.
    dropped: Vec<Option<u64>>,
    /// Index of this section's interface 0.
    first: usize,
}

/// What a block says about its packet.
struct PacketFields {
    interface: usize,
    timestamp: Option<Timestamp>,
    wire_length: u32,
    /// Offset of the captured bytes in the block's body, and their number.
    start: usize,
    length: usize,
    direction: Direction,
}

impl Sections {
    /// Before the first section.
    pub(super) fn new() -> Self {
        Self {
            order: ByteOrder::Little,
            interfaces: Vec::new(),
            clocks: Vec::new(),
            dropped: Vec::new(),
            first: 0,
        }
    }

    /// Interfaces described so far.
    pub(super) fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// What stands at the start of `bytes`.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Piece {
        self.block(bytes).unwrap_or_else(|piece| piece)
    }

    /// [`Self::next`] as a result: `Ok` for a complete block, `Err` for anything else.
    fn block(&mut self, bytes: &[u8]) -> Result<Piece, Piece> {
        let (kind, length) = self.block_header(bytes)?;
        let total = length as usize;
        if !length.is_multiple_of(4) || !(12..=MAX_BLOCK).contains(&total) {
            return Err(Piece::Damaged(Damage::BlockLength { length }));
        }
        let Some(block) = bytes.get(..total) else {
            return Err(Piece::Part { needed: total, what: "a block" });
        };
        let trailer = self.order.u32(block, total - BLOCK_TRAILER).unwrap_or(0);
        if trailer != length {
            return Err(Piece::Damaged(Damage::BlockTrailer { length, trailer }));
        }
        let body = &block[BLOCK_HEADER..total - BLOCK_TRAILER];
        let packet = match kind {
            SECTION_HEADER => self.section(body, length).map(|()| None),
            INTERFACE_DESCRIPTION => self.interface(body, length).map(|()| None),
            ENHANCED_PACKET => self.enhanced_packet(body, length).map(Some),
            PACKET => self.obsolete_packet(body, length).map(Some),
            SIMPLE_PACKET => self.simple_packet(body, length).map(Some),
            INTERFACE_STATISTICS => {
                self.statistics(body);
                Ok(None)
            }
            _ => Ok(None),
        };
        match packet.map_err(Piece::Damaged)? {
            Some(fields) => Ok(self.packet(total, fields)),
            None => Ok(Piece::Other { total }),
        }
    }

    /// Type and length of the block, after turning to the byte order of a new section.
    fn block_header(&mut self, bytes: &[u8]) -> Result<(u32, u32), Piece> {
        let needed = |needed| Piece::Part { needed, what: "a block header" };
        let kind = self.order.u32(bytes, 0).ok_or_else(|| needed(BLOCK_HEADER))?;
        if kind == SECTION_HEADER {
            let found = *bytes
                .get(BLOCK_HEADER..)
                .and_then(|rest| rest.first_chunk())
                .ok_or_else(|| needed(BLOCK_HEADER + 4))?;
            self.order = match (u32::from_le_bytes(found), u32::from_be_bytes(found)) {
                (BYTE_ORDER_MAGIC, _) => ByteOrder::Little,
                (_, BYTE_ORDER_MAGIC) => ByteOrder::Big,
                _ => return Err(Piece::Damaged(Damage::ByteOrderMagic { found })),
            };
        }
        let length = self.order.u32(bytes, 4).ok_or_else(|| needed(BLOCK_HEADER))?;
        Ok((kind, length))
    }

    fn packet(&self, total: usize, fields: PacketFields) -> Piece {
        let index = self.first + fields.interface;
        let meta = FrameMeta {
            number: 0,
            timestamp: fields.timestamp,
            wire_length: fields.wire_length,
            link_type: self.interfaces[index].link_type,
            interface: index as u32,
            direction: fields.direction,
        };
        Piece::Packet { total, start: BLOCK_HEADER + fields.start, length: fields.length, meta }
    }

    fn section(&mut self, body: &[u8], length: u32) -> Result<(), Damage> {
        let short = Damage::BlockLength { length };
        let (Some(major), Some(minor), Some(_section_length)) =
            (self.order.u16(body, 4), self.order.u16(body, 6), self.order.u64(body, 8))
        else {
            return Err(short);
        };
        if major != 1 {
            return Err(Damage::SectionVersion { major, minor });
        }
        self.first = self.interfaces.len();
        Ok(())
    }

    fn interface(&mut self, body: &[u8], length: u32) -> Result<(), Damage> {
        let (Some(link_type), Some(snaplen)) = (self.order.u16(body, 0), self.order.u32(body, 4))
        else {
            return Err(Damage::BlockLength { length });
        };
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(Damage::TooManyInterfaces { limit: MAX_INTERFACES });
        }
        let mut interface =
            Interface { name: None, link_type: LinkType(link_type.into()), snaplen };
        let mut clock = Clock::default();
        for (code, value) in self.options(&body[8..]) {
            match code {
                IF_NAME => interface.name = Some(name(value)),
                IF_TSRESOL if !value.is_empty() => clock.set_resolution(value[0]),
                IF_TSOFFSET => {
                    clock.set_offset(self.order.u64(value, 0).unwrap_or(0).cast_signed());
                }
                _ => {}
            }
        }
        self.interfaces.push(interface);
        self.clocks.push(clock);
        self.dropped.push(None);
        Ok(())
    }

    fn enhanced_packet(&self, body: &[u8], length: u32) -> Result<PacketFields, Damage> {
        let id = self.order.u32(body, 0).ok_or(Damage::BlockLength { length })?;
        self.timed_packet(body, length, id)
    }

    fn obsolete_packet(&self, body: &[u8], length: u32) -> Result<PacketFields, Damage> {
        let id = self.order.u16(body, 0).ok_or(Damage::BlockLength { length })?;
        self.timed_packet(body, length, id.into())
    }

    /// Fields from byte 4 on, the same in enhanced and obsolete packet blocks.
    fn timed_packet(&self, body: &[u8], length: u32, id: u32) -> Result<PacketFields, Damage> {
        let field = |at| self.order.u32(body, at).ok_or(Damage::BlockLength { length });
        let ticks = u64::from(field(4)?) << 32 | u64::from(field(8)?);
        let (captured, wire_length) = (field(12)?, field(16)?);
        let clock =
            self.clocks[self.first..].get(id as usize).ok_or_else(|| self.unknown_interface(id))?;
        let room = body.len() - PACKET_FIELDS;
        let length = captured as usize;
        if length > room {
            return Err(Damage::CapturedLength { captured, room });
        }
        let options = body.get(PACKET_FIELDS + length.next_multiple_of(4)..).unwrap_or_default();
        Ok(PacketFields {
            interface: id as usize,
            timestamp: Some(clock.at(ticks)),
            wire_length,
            start: PACKET_FIELDS,
            length,
            direction: self.direction(options),
        })
    }

    /// A packet of the section's first interface, without time and captured length of its own.
    fn simple_packet(&self, body: &[u8], length: u32) -> Result<PacketFields, Damage> {
        let wire_length = self.order.u32(body, 0).ok_or(Damage::BlockLength { length })?;
        let interface =
            self.interfaces[self.first..].first().ok_or_else(|| self.unknown_interface(0))?;
        let kept = match interface.snaplen {
            0 => wire_length,
            snaplen => wire_length.min(snaplen),
        };
        let room = body.len() - 4;
        if kept as usize > room {
            return Err(Damage::CapturedLength { captured: kept, room });
        }
        Ok(PacketFields {
            interface: 0,
            timestamp: None,
            wire_length,
            start: 4,
            length: kept as usize,
            direction: Direction::Unknown,
        })
    }

    /// Reads statistics. Those of an interface that is not described say nothing.
    fn statistics(&mut self, body: &[u8]) {
        let (Some(id), Some(options)) = (self.order.u32(body, 0), body.get(12..)) else { return };
        let is_drop = |code: u16| matches!(code, ISB_IFDROP | ISB_OSDROP);
        let counts = self.options(options).filter(|(code, _)| is_drop(*code));
        let counts: Vec<u64> = counts.filter_map(|(_, value)| self.order.u64(value, 0)).collect();
        let dropped = self.first.checked_add(id as usize).and_then(|at| self.dropped.get_mut(at));
        if let Some(dropped) = dropped.filter(|_| !counts.is_empty()) {
            *dropped = Some(counts.into_iter().fold(0, u64::saturating_add));
        }
    }

    /// Packets that the recorder lost, where it says so.
    pub(super) fn dropped(&self) -> Option<u64> {
        self.dropped.iter().flatten().copied().reduce(u64::saturating_add)
    }

    fn unknown_interface(&self, id: u32) -> Damage {
        Damage::UnknownInterface { id, described: self.interfaces.len() - self.first }
    }

    fn direction(&self, options: &[u8]) -> Direction {
        if options.is_empty() {
            return Direction::Unknown;
        }
        let flags = self
            .options(options)
            .find(|(code, _)| *code == PACKET_FLAGS)
            .and_then(|(_, value)| self.order.u32(value, 0));
        match flags.map(|flags| flags & 3) {
            Some(1) => Direction::Inbound,
            Some(2) => Direction::Outbound,
            _ => Direction::Unknown,
        }
    }

    /// Code and value of each option, up to the end of the list or the first that does not fit.
    fn options<'a>(&self, mut bytes: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let order = self.order;
        std::iter::from_fn(move || {
            let (code, length) = (order.u16(bytes, 0)?, usize::from(order.u16(bytes, 2)?));
            if code == OPTION_END {
                return None;
            }
            let value = bytes.get(4..4 + length)?;
            bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
            Some((code, value))
        })
    }
}

/// An interface's name, some writers of which add a terminating zero.
fn name(value: &[u8]) -> String {
    let value = &value[..value.len().min(MAX_NAME)];
    String::from_utf8_lossy(value).trim_end_matches('\0').to_string()
}
