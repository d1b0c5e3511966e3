//! IPv6: one queue for each source, destination and identification.
//!
//! Source: Linux 6.18 `net/ipv6/netfilter/nf_conntrack_reasm.c`; RFC 5722, RFC 8200 section 4.5.

use super::outcome::{Carried, Defragged, Refusal, Whole};
use super::queue::{Fit, Queue, Queues, Span, copy, ecn};
use packet::ipv6_ext::{self, ChainFault};
use packet::{Packet, Read, ReadAt, icmpv6, ipv6, tcp, udp};

/// What fragments of one packet have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Source and destination.
    addresses: [u8; 32],
    id: u32,
    zone: u16,
}

const FRAGMENT_HEADER_LEN: usize = 8;
const MAX_PAYLOAD: usize = 65_535;

/// A fragment header.
struct Fragment {
    key: Key,
    /// Offset of the fragment header in the frame.
    at: usize,
    /// Offset of the byte that names the fragment header as the next one.
    named_at: usize,
    next: u8,
    traffic_class: u8,
    more: bool,
    span: Span,
}

/// Where the fragment header is.
enum Search {
    Found { at: usize, named_at: usize },
    None,
    Unknown,
}

impl Queues<Key> {
    /// Takes a packet: see [`Defrag::push_with`](super::Defrag::push_with).
    pub(super) fn push(
        &mut self,
        packet: &Packet<'_>,
        now: u64,
        zone: u16,
        carried: Carried,
    ) -> Defragged {
        let network = packet.network_offset();
        let Read::Known(header) = packet.net::<{ ipv6::HEADER_LEN }>(0) else {
            return Defragged::Unknown;
        };
        let [_, _, _, _, len_high, len_low, ..] = header;
        let payload_len = usize::from(u16::from_be_bytes([len_high, len_low]));
        let (at, named_at) = match search(packet, network) {
            // A jumbo payload has no fragments.
            _ if payload_len == 0 => return Defragged::Pass,
            Search::None => return Defragged::Pass,
            Search::Unknown => return Defragged::Unknown,
            Search::Found { at, named_at } => (at, named_at),
        };
        // Of a header that is cut the kernel still looks at what follows in vain: measured.
        let begins = match packet.read::<4>(at) {
            Read::Known(begins) => begins,
            Read::Unknown => return Defragged::Unknown,
            Read::Absent => return Defragged::Dropped(Refusal::Malformed),
        };
        match lacks_headers(packet, at, begins) {
            Read::Known(false) => {}
            Read::Known(true) | Read::Absent => return Defragged::Pass,
            Read::Unknown => return Defragged::Unknown,
        }
        let field = match packet.read::<FRAGMENT_HEADER_LEN>(at) {
            Read::Known(field) => field,
            Read::Unknown => return Defragged::Unknown,
            Read::Absent => return Defragged::Dropped(Refusal::Malformed),
        };
        let fragment = fragment(&header, at, named_at, &field, network, zone);
        match fragment {
            Some(fragment) => self.queue(packet, &fragment, now, carried),
            None => Defragged::Dropped(Refusal::Malformed),
        }
    }

    fn queue(
        &mut self,
        packet: &Packet<'_>,
        fragment: &Fragment,
        now: u64,
        carried: Carried,
    ) -> Defragged {
        let key = fragment.key;
        let Some(mut queue) = self.take(key, now) else {
            return Defragged::Dropped(Refusal::Memory);
        };
        if fragment.more && !fragment.span.end.is_multiple_of(8) {
            // The kernel drops what it holds and leaves the answer to the host: the packet goes on.
            return Defragged::Pass;
        }
        if !ends(&mut queue, fragment) {
            self.put(key, queue);
            return Defragged::Dropped(Refusal::Inconsistent);
        }
        let from = fragment.at + FRAGMENT_HEADER_LEN;
        match queue.add(packet, from, fragment.span) {
            Fit::Overlap => return Defragged::Dropped(Refusal::Inconsistent),
            Fit::Duplicate => {
                self.put(key, queue);
                return Defragged::Dropped(Refusal::Duplicate);
            }
            Fit::Added => queue.carry(fragment.span.start, carried),
        }
        queue.ecn |= 1 << (fragment.traffic_class & 3);
        queue.longest = queue.longest.max(packet.len());
        if fragment.span.start == 0 {
            (queue.head, queue.head_unknown) = copy(packet, 0, fragment.at);
            // The kernel keeps this place in one byte: behind 255 it writes into another header.
            let network = packet.network_offset();
            let named_at = network + (fragment.named_at.saturating_sub(network) & 0xff);
            if let Some(next) = queue.head.get_mut(named_at) {
                *next = fragment.next;
            }
        }
        if !queue.is_complete() {
            self.put(key, queue);
            return Defragged::Held;
        }
        let whole = whole(queue, packet.network_offset(), key.id);
        whole.map_or_else(Defragged::Dropped, Defragged::Whole)
    }
}

/// The first fragment header, after headers that may precede one.
fn search(packet: &Packet<'_>, network: usize) -> Search {
    let mut named_at = network + ipv6::NEXT_HEADER.start;
    for header in ipv6_ext::headers(packet, network) {
        match header {
            Ok(header) if header.kind == ipv6_ext::FRAGMENT => {
                return Search::Found { at: header.offset, named_at };
            }
            Ok(header) => named_at = header.offset,
            Err(ChainFault::Truncated) => return cut(packet, network),
            Err(ChainFault::Unknown) => return Search::Unknown,
        }
    }
    Search::None
}

/// A chain that ends too early: if it ends in a fragment header, that is what is malformed.
fn cut(packet: &Packet<'_>, network: usize) -> Search {
    let mut chain = ipv6_ext::headers(packet, network);
    let mut named_at = network + ipv6::NEXT_HEADER.start;
    let mut position = chain.position();
    while let Some(Ok(header)) = chain.next() {
        named_at = header.offset;
        position = chain.position();
    }
    match position {
        Some((ipv6_ext::FRAGMENT, at)) if at <= packet.headers().end => {
            Search::Found { at, named_at }
        }
        _ => Search::None,
    }
}

/// Whether a first fragment ends before the upper-layer header does: the kernel leaves it alone, for the
/// host to refuse.
fn lacks_headers(packet: &Packet<'_>, at: usize, begins: [u8; 4]) -> Read<bool> {
    let [next, _, high, low] = begins;
    if u16::from_be_bytes([high, low]) & ipv6_ext::OFFSET_MASK != 0 {
        return Read::Known(false);
    }
    let (mut kind, mut offset) = (next, at + FRAGMENT_HEADER_LEN);
    while ipv6_ext::is_extension(kind) {
        if kind == ipv6_ext::NO_NEXT {
            return Read::Known(false);
        }
        let [next, len] = match packet.read_at::<2>(offset) {
            Read::Known(header) => header,
            Read::Absent => return Read::Known(false),
            Read::Unknown => return Read::Unknown,
        };
        if kind == ipv6_ext::FRAGMENT {
            let later = packet.read_at::<2>(offset + ipv6_ext::FRAGMENT_OFFSET.start);
            match later.map(|field| u16::from_be_bytes(field) & ipv6_ext::OFFSET_MASK) {
                Read::Known(0) => {}
                // What follows is no header.
                Read::Known(_) | Read::Absent => return Read::Known(false),
                Read::Unknown => return Read::Unknown,
            }
        }
        offset += match kind {
            ipv6_ext::FRAGMENT => 8,
            ipv6_ext::AUTH => (usize::from(len) + 2) * 4,
            _ => (usize::from(len) + 1) * 8,
        };
        kind = next;
    }
    let needed = match kind {
        tcp::PROTOCOL => tcp::MIN_HEADER_LEN,
        udp::PROTOCOL => udp::HEADER_LEN,
        icmpv6::PROTOCOL => icmpv6::HEADER_LEN,
        _ => 1,
    };
    Read::Known(offset + needed > packet.headers().end)
}

/// `None` where it would end beyond what a packet may hold.
fn fragment(
    header: &[u8; ipv6::HEADER_LEN],
    at: usize,
    named_at: usize,
    field: &[u8; 8],
    network: usize,
    zone: u16,
) -> Option<Fragment> {
    let [first, second, _, _, len_high, len_low, _, _, addresses @ ..] = header;
    let [next, _, high, low, a, b, c, d] = *field;
    let offset = u16::from_be_bytes([high, low]);
    let start = usize::from(offset & ipv6_ext::OFFSET_MASK);
    let payload_len = usize::from(u16::from_be_bytes([*len_high, *len_low]));
    let before = at + FRAGMENT_HEADER_LEN - network - ipv6::HEADER_LEN;
    let end = start + payload_len.checked_sub(before)?;
    let id = u32::from_be_bytes([a, b, c, d]);
    (end <= MAX_PAYLOAD).then_some(Fragment {
        key: Key { addresses: *addresses, id, zone },
        at,
        named_at,
        next,
        traffic_class: first << 4 | second >> 4,
        more: offset & ipv6_ext::MORE_FRAGMENTS != 0,
        span: Span { start, end },
    })
}

/// Whether the fragment's end agrees with what is known of the packet's.
fn ends(queue: &mut Queue, fragment: &Fragment) -> bool {
    let span = fragment.span;
    if !fragment.more {
        if span.end < queue.len || (queue.has_last && span.end != queue.len) {
            return false;
        }
        queue.has_last = true;
        queue.len = span.end;
    } else if span.end > queue.len {
        if queue.has_last {
            return false;
        }
        queue.len = span.end;
    }
    span.end > span.start
}

/// Puts the packet together, without a fragment header; `network` is the offset of its header.
fn whole(mut queue: Queue, network: usize, id: u32) -> Result<Whole, Refusal> {
    let ecn = ecn(queue.ecn).ok_or(Refusal::Impossible)?;
    let before = queue.head.len().saturating_sub(network + ipv6::HEADER_LEN);
    let payload_len = u16::try_from(before + queue.len).map_err(|_| Refusal::Impossible)?;
    // Every router would have to leave them as they are.
    let longest = queue.longest as u32;
    let header = queue.head.get_mut(network..).unwrap_or_default();
    if let Some(place) = header.get_mut(ipv6::PAYLOAD_LEN) {
        place.copy_from_slice(&payload_len.to_be_bytes());
    }
    if let Some(second) = header.get_mut(1) {
        *second |= ecn << 4;
    }
    let carried = queue.carried;
    let (frame, unknown, pieces) = queue.assemble();
    Ok(Whole { frame, unknown, pieces, longest, largest: longest, id, carried })
}
