//! [`cut`]: a packet that is too long for the link that it leaves by, or that was put together, leaves as fragments.
//!
//! A packet that was put together is cut where it was before, wherever that still fits ([`Cut::pieces`]); any other
//! one into pieces as long as the link allows, each but the last a multiple of 8 bytes.
//!
//! Contract: no allocation once the buffer has grown. The link header stands before each fragment as it stood before
//! the packet. Checksums of IPv4 headers are made anew.
//!
//! Source: Linux 6.18 `ip_do_fragment`, `ip_frag_next` (`net/ipv4/ip_output.c`), `ip_options_fragment`
//! (`net/ipv4/ip_options.c`), `ip6_fragment` (`net/ipv6/ip6_output.c`), `ip6_find_1stfragopt`
//! (`net/ipv6/output_core.c`); RFC 791 section 3.2, RFC 8200 section 4.5.

mod v4;
mod v6;

use crate::{L3, Packet, Read};
use std::ops::Range;

/// Length of the least fragment but the last, and the unit in which offsets count.
const UNIT: usize = 8;

/// How a packet is cut.
#[derive(Debug, Clone, Copy)]
pub struct Cut<'a> {
    /// Bytes that a fragment holds at most, from its network header on.
    pub most: usize,
    /// Bytes of payload of the fragments that it was put together of, from the first to the last; none if it was not.
    pub pieces: &'a [u32],
    /// The fragments of IPv4 say that they must not be fragmented, unless they are the pieces that there were.
    pub dont_fragment: bool,
    /// Identification of the fragments of IPv6; those of IPv4 have that of the packet.
    pub id: u32,
}

/// Frames, one after the other in one buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Frames {
    /// Forgets the frames and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The frames, from the first to the last.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.bytes.get(start..*end).unwrap_or_default())
    }

    /// Appends a frame made of these parts, and lends it.
    pub fn push(&mut self, parts: &[&[u8]]) -> &mut [u8] {
        let start = self.bytes.len();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.ends.push(self.bytes.len());
        self.bytes.get_mut(start..).unwrap_or_default()
    }
}

/// Cuts a packet and appends its fragments to `to`. False, and nothing is appended, where some byte of it is not
/// known, it is no IP packet, or `most` leaves no room for payload.
pub fn cut(packet: &Packet<'_>, cut: &Cut<'_>, to: &mut Frames) -> bool {
    let Read::Known(frame) = packet.read_slice(0, packet.headers().end) else { return false };
    match packet.headers().l3 {
        L3::Ipv4 { header_len } => v4::cut(frame, packet.network_offset(), header_len, cut, to),
        L3::Ipv6 => v6::cut(frame, packet.network_offset(), cut, to),
        _ => false,
    }
}

/// Where each fragment's payload begins and ends.
struct Sizes<'a> {
    at: usize,
    len: usize,
    /// Bytes that a fragment has room for.
    space: usize,
    /// Where it is cut as it was before: the first piece, until it is taken, and those after it.
    kept: Option<(Option<usize>, &'a [u32])>,
}

impl<'a> Sizes<'a> {
    /// For `len` bytes of payload; `None` without room for any.
    fn new(len: usize, space: usize, pieces: &'a [u32]) -> Option<Self> {
        let later = pieces.get(1..).filter(|later| !later.is_empty());
        let kept = later.and_then(|later| Some((Some(kept_first(len, space, later)?), later)));
        (space >= UNIT || kept.is_some()).then_some(Self { at: 0, len, space, kept })
    }
}

/// Bytes of the first piece, if a payload can be cut where it was before. It is what the later ones leave: nothing,
/// where it held no more than headers that stand in every fragment.
fn kept_first(len: usize, space: usize, later: &[u32]) -> Option<usize> {
    let first = len.checked_sub(later.iter().map(|piece| *piece as usize).sum::<usize>())?;
    let before_last = later.split_last().map_or(&[][..], |(_, before)| before);
    let is_whole = |piece: &u32| (*piece as usize).is_multiple_of(UNIT);
    let fits = first <= space
        && first.is_multiple_of(UNIT)
        && later.iter().all(|piece| *piece as usize <= space)
        && before_last.iter().all(is_whole);
    fits.then_some(first)
}

impl Iterator for Sizes<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let left = self.len - self.at;
        let len = match &mut self.kept {
            _ if left == 0 => return None,
            Some((first, later)) => match first.take() {
                Some(first) => first,
                None => *later.split_off_first()? as usize,
            },
            None if left <= self.space => left,
            None => self.space / UNIT * UNIT,
        };
        let start = self.at;
        self.at += len;
        Some(start..self.at)
    }
}

#[cfg(test)]
mod tests;
