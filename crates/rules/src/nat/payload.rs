//! [`write()`]: what a helper's connection has rewritten in a packet, and how its TCP numbers move.
//!
//! Contract: as the kernel does it, to the byte: where the payload is rewritten the checksum is recomputed, else
//! updated by what changes; an ICMP error is renumbered as if it were a segment.
//!
//! Source: Linux 6.18 `nf_nat_helper.c` (`nf_nat_mangle_tcp_packet`), `nf_nat_proto.c` (`nf_nat_csum_recalc`),
//! `nf_conntrack_seqadj.c` (`nf_ct_seq_adjust`, `nf_ct_sack_adjust`); RFC 2018.

use super::rewrite::{replace, write as put};
use conntrack::dissect::{self, Layer};
use conntrack::{Edit, Renumbering, Replacement, verify};
use packet::options::{END, NO_OPERATION};
use packet::tcp::Flags;
use packet::{Packet, Read, checksum, tcp};

/// Result of rewriting a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The packet is as the kernel sends it.
    Done,
    /// The kernel drops it: its options cannot be walked.
    Dropped,
    /// What it is now, or whether it is dropped, is not known.
    Unknown,
}

/// Most bytes of options.
const OPTIONS: usize = 40;
const SACK: u8 = 5;
/// Both ends of a block.
const BLOCK: usize = 8;

/// Writes an edit into the packet.
pub fn write(packet: &mut Packet<'_>, edit: &Edit) -> Written {
    let Ok(layer) = dissect::layer(packet) else { return Written::Unknown };
    if let Some(Replacement { start, len, text }) = &edit.text
        && !packet.splice(*start..*start + *len, text.as_bytes())
    {
        return Written::Unknown;
    }
    let written = match &edit.numbers {
        Some(numbers) => renumber(packet, layer.offset, numbers),
        None => Written::Done,
    };
    if edit.text.is_some() && written == Written::Done {
        renew_checksum(packet, &layer);
    }
    written
}

/// Whether the kernel, if it has to, moves the numbers of this packet, or drops it for its options.
#[must_use]
pub fn can_be_renumbered(packet: &Packet<'_>) -> Written {
    let Ok(layer) = dissect::layer(packet) else { return Written::Unknown };
    match header(packet, layer.offset).and_then(|header| options(packet, layer.offset, &header)) {
        Ok((options, len)) => walked(each_block(options.get(..len).unwrap_or_default(), |_| {})),
        Err(written) => written,
    }
}

/// Moves the numbers of the header at this offset, whatever it is a header of. Measured: what it acknowledges moves
/// only where its ACK flag says that it acknowledges anything.
fn renumber(packet: &mut Packet<'_>, at: usize, numbers: &Renumbering) -> Written {
    let header = match header(packet, at) {
        Ok(header) => header,
        Err(written) => return written,
    };
    move_number(packet, at, at + tcp::SEQUENCE.start, |number| numbers.sequence(number));
    let (options, len) = match options(packet, at, &header) {
        Ok(options) => options,
        Err(written) => return written,
    };
    if !acknowledges(&header) {
        return Written::Done;
    }
    let mut acknowledged =
        |place: usize| move_number(packet, at, place, |number| numbers.acknowledged(number));
    acknowledged(at + tcp::ACKNOWLEDGEMENT.start);
    walked(each_block(options.get(..len).unwrap_or_default(), |block| {
        let block = at + tcp::MIN_HEADER_LEN + block;
        acknowledged(block);
        acknowledged(block + BLOCK / 2);
    }))
}

/// Moves the number at this place of the frame, and the checksum of the header at `at` with it.
fn move_number(
    packet: &mut Packet<'_>,
    at: usize,
    place: usize,
    moved: impl FnOnce([u8; 4]) -> [u8; 4],
) {
    if let Read::Known(number) = packet.read::<4>(place) {
        replace(packet, place, &moved(number), [Some(at + tcp::CHECKSUM.start), None], true);
    }
}

fn walked(to_the_end: bool) -> Written {
    if to_the_end { Written::Done } else { Written::Dropped }
}

type Header = [u8; tcp::MIN_HEADER_LEN];

/// The fixed part of a header.
fn header(packet: &Packet<'_>, at: usize) -> Result<Header, Written> {
    match packet.read(at) {
        Read::Known(header) => Ok(header),
        Read::Unknown => Err(Written::Unknown),
        Read::Absent => Err(Written::Dropped),
    }
}

fn acknowledges(header: &Header) -> bool {
    tcp::Header::new_checked(header).is_some_and(|header| header.flags().contains(Flags::ACK))
}

/// A copy of the options of a header that the kernel walks, and how long they are.
fn options(
    packet: &Packet<'_>,
    at: usize,
    header: &Header,
) -> Result<([u8; OPTIONS], usize), Written> {
    let mut copy = [0; OPTIONS];
    let header_len = tcp::Header::new_checked(header).map_or(0, |header| header.header_len());
    let len = header_len.saturating_sub(tcp::MIN_HEADER_LEN);
    if !acknowledges(header) {
        return Ok((copy, 0));
    }
    match packet.read_slice(at + tcp::MIN_HEADER_LEN, len) {
        Read::Known(bytes) => {
            copy.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
            Ok((copy, len))
        }
        Read::Unknown => Err(Written::Unknown),
        Read::Absent => Err(Written::Dropped),
    }
}

/// Walks options, and hands over the offset of each block of selective acknowledgements; false where an option is
/// cut. Blocks before that are handed over all the same.
fn each_block(options: &[u8], mut block: impl FnMut(usize)) -> bool {
    let mut at = 0;
    while let Some(kind) = options.get(at) {
        match *kind {
            END => return true,
            NO_OPERATION => at += 1,
            kind => {
                let len = options.get(at + 1).copied().map_or(0, usize::from);
                if len < 2 || at + len > options.len() {
                    return false;
                }
                let body = len - 2;
                if kind == SACK && body >= BLOCK && body.is_multiple_of(BLOCK) {
                    (at + 2..at + len).step_by(BLOCK).for_each(&mut block);
                }
                at += len;
            }
        }
    }
    true
}

/// Recomputes the checksum of a segment, where all of it is known. Like the kernel's, it is never 0.
fn renew_checksum(packet: &mut Packet<'_>, layer: &Layer) {
    let at = layer.offset + tcp::CHECKSUM.start;
    let len = packet.headers().end.saturating_sub(layer.offset);
    put(packet, at, &[0; 2]);
    let sum = packet.read_slice(layer.offset, len).map(checksum::sum);
    match (sum, verify::pseudo(packet, layer, len)) {
        (Read::Known(sum), Read::Known(pseudo)) => {
            let sum = !checksum::add(sum, pseudo);
            put(packet, at, &(if sum == 0 { u16::MAX } else { sum }).to_be_bytes());
        }
        _ => packet.forget(at..at + 2),
    }
}
