//! Gathering: consecutive datagrams to one destination become one message, which the kernel or the device cuts.
//!
//! Contract: pure. Order is kept, and so are the bounds of every datagram: all of a message's datagrams are equally
//! long but the last one, which may be shorter and ends it. A datagram without bytes is a message of its own.
//!
//! Source: `udp(7)` (`UDP_SEGMENT`); Linux `net/ipv4/udp.c` (`udp_send_skb`).

use std::net::SocketAddr;
use std::ops::Range;

use super::address::Address;
use super::control::Control;
use super::message::{Message, Source};

/// Datagrams of a message, at most: what Linux before 6.9 takes.
pub(super) const MOST_DATAGRAMS: usize = 64;
/// Bytes of a message, at most: with the headers of UDP, IPv6 and Ethernet, and a VLAN tag, less than the 65,536 from which
/// on the kernel cuts it before the device (`gso_features_check` in Linux `net/core/dev.c`).
pub const MOST_BYTES: usize = 65_535 - 8 - 40 - 14 - 4;

/// A message for the kernel: one datagram or more.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) to: SocketAddr,
    pub(super) from: Option<Source>,
    pub(super) tos: u8,
    /// Bytes of each datagram but the last.
    pub(super) segment: usize,
    /// Bytes of all datagrams.
    pub(super) bytes: usize,
    /// Which pieces its bytes are.
    pub(super) pieces: Range<usize>,
    /// Which of its pieces are the last ones of given messages, a bit for each: there are no more than datagrams.
    pub(super) ends: u64,
    pub(super) address: Address,
    pub(super) control: Control,
}

impl Outgoing {
    /// One of `part`, which is piece `piece`. A source of the other family than `to` is none.
    pub(super) fn new(message: &Message<'_>, part: &[u8], piece: usize) -> Self {
        let Message { to, from, tos, .. } = *message;
        Self {
            to,
            from: from.filter(|from| from.address.is_ipv4() == to.is_ipv4()),
            tos,
            segment: segment_of(message, part),
            bytes: part.len(),
            pieces: piece..piece + 1,
            ends: 0,
            address: Address::EMPTY,
            control: Control::EMPTY,
        }
    }

    /// Returns the number of datagrams in it.
    pub(super) fn count(&self) -> usize {
        if self.bytes == 0 { 1 } else { self.bytes.div_ceil(self.segment) }
    }

    /// Whether `part` of a message goes on with it.
    pub(super) fn takes(&self, message: &Message<'_>, part: &[u8]) -> bool {
        let segment = segment_of(message, part);
        let is_alone = part.len() <= segment;
        let fits = if is_alone { segment <= self.segment } else { segment == self.segment };
        let bytes = self.bytes + part.len();
        fits && !part.is_empty()
            && self.bytes > 0
            && self.bytes.is_multiple_of(self.segment)
            && bytes <= MOST_BYTES
            && bytes.div_ceil(self.segment) <= MOST_DATAGRAMS
            && (self.to, self.from, self.tos) == (message.to, message.from, message.tos)
    }

    /// A given message ends with its last piece.
    pub(super) fn end(&mut self) {
        self.ends |= 1 << (self.pieces.len() - 1);
    }

    /// Counts the given messages that end within its first `pieces` pieces.
    pub(super) fn ended(&self, pieces: usize) -> usize {
        let first = 1_u64.checked_shl(pieces as u32).map_or(u64::MAX, |end| end - 1);
        (self.ends & first).count_ones() as usize
    }

    /// Appends `part`.
    pub(super) fn take(&mut self, part: &[u8]) {
        self.bytes += part.len();
        self.pieces.end += 1;
    }

    /// Writes what the kernel is to know of it.
    pub(super) fn encode(&mut self, is_both: bool) {
        self.address = Address::new(self.to, is_both);
        let segment = if self.count() > 1 { u16::try_from(self.segment).ok() } else { None };
        self.control = Control::new(self.to.is_ipv4(), self.from, self.tos, segment);
    }
}

/// Bytes of each datagram of `part` but the last.
fn segment_of(message: &Message<'_>, part: &[u8]) -> usize {
    match message.segment {
        0 => part.len(),
        segment => part.len().min(segment.into()),
    }
}

/// A message's bytes in parts that the kernel takes: as many datagrams as it may have, or one by one.
pub(super) fn parts<'a>(
    message: &Message<'a>,
    is_together: bool,
) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let bytes = message.bytes;
    let segment = segment_of(message, bytes).max(1);
    let datagrams = if is_together { (MOST_BYTES / segment).clamp(1, MOST_DATAGRAMS) } else { 1 };
    let empty = bytes.is_empty().then_some(bytes);
    empty.into_iter().chain(bytes.chunks(segment * datagrams))
}
