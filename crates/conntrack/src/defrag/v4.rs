//! IPv4: one queue for each source, destination, identification and protocol.
//!
//! Source: Linux 6.18 `net/ipv4/ip_fragment.c`.

use super::outcome::{Carried, Defragged, Limits, Refusal, Whole};
use super::queue::{Fit, Queue, Queues, Span, copy, ecn};
use packet::{Packet, Read, checksum, ipv4};
use std::collections::HashMap;

/// Sources whose fragments are counted at most.
const MOST_SOURCES: usize = 65_536;

/// What fragments of one packet have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Source and destination.
    addresses: [u8; 8],
    id: u16,
    protocol: u8,
    zone: u16,
}

/// How many fragments each source has sent.
#[derive(Debug, Default)]
struct Distances(HashMap<[u8; 4], u32>);

impl Distances {
    fn next(&mut self, source: [u8; 4]) -> u32 {
        if self.0.len() >= MOST_SOURCES && !self.0.contains_key(&source) {
            self.0.clear();
        }
        let count = self.0.entry(source).or_default();
        *count = count.wrapping_add(1);
        *count
    }
}

/// A fragment's header.
struct Fragment {
    key: Key,
    flags: u16,
    tos: u8,
    header_len: usize,
    span: Span,
}

/// The fragments that wait.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) queues: Queues<Key>,
    distances: Distances,
    max_distance: u32,
}

impl Waiting {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            queues: Queues::new(limits.v4_lifetime, limits.memory),
            distances: Distances::default(),
            max_distance: limits.max_distance,
        }
    }

    /// Takes a packet: see [`Defrag::push_with`](super::Defrag::push_with).
    pub(super) fn push(
        &mut self,
        packet: &Packet<'_>,
        header_len: usize,
        now: u64,
        zone: u16,
        carried: Carried,
    ) -> Defragged {
        let Read::Known(header) = packet.net::<{ ipv4::MIN_HEADER_LEN }>(0) else {
            return Defragged::Unknown;
        };
        let Some(mut fragment) = fragment(packet, &header, header_len, zone) else {
            return Defragged::Pass;
        };
        let key = fragment.key;
        let Some(mut queue) = self.queues.take(key, now) else {
            return Defragged::Dropped(Refusal::Memory);
        };
        self.keep_distance(&mut queue, key, now);
        let fit = match ends(&mut queue, &mut fragment) {
            true => queue.add(packet, packet.network_offset() + header_len, fragment.span),
            false => Fit::Overlap,
        };
        match fit {
            // One that may not have come spoils nothing for certain.
            Fit::Overlap if !carried.is_certain => {
                queue.carried.is_certain = false;
                self.queues.put(key, queue);
                return Defragged::Dropped(Refusal::Inconsistent);
            }
            Fit::Overlap => return Defragged::Dropped(Refusal::Inconsistent),
            Fit::Duplicate => {
                self.queues.put(key, queue);
                return Defragged::Dropped(Refusal::Duplicate);
            }
            Fit::Added => {
                queue.carry(fragment.span.start, carried);
                note(&mut queue, packet, &fragment);
            }
        }
        if !queue.is_complete() {
            self.queues.put(key, queue);
            return Defragged::Held;
        }
        let whole = whole(queue, packet.network_offset(), key.id);
        whole.map_or_else(Defragged::Dropped, Defragged::Whole)
    }

    /// With too many other fragments of its source in between, an identification was used again: what is
    /// held is of another packet.
    fn keep_distance(&mut self, queue: &mut Queue, key: Key, now: u64) {
        let [a, b, c, d, ..] = key.addresses;
        let end = self.distances.next([a, b, c, d]);
        let start = std::mem::replace(&mut queue.place, end);
        let most = self.max_distance;
        if most != 0 && queue.has_any() && end.wrapping_sub(start) > most {
            *queue = self.queues.begin(key, now);
            queue.place = end;
        }
    }
}

/// The header of a fragment; `None` for a packet that is none.
fn fragment(
    packet: &Packet<'_>,
    header: &[u8; ipv4::MIN_HEADER_LEN],
    header_len: usize,
    zone: u16,
) -> Option<Fragment> {
    let [_, tos, _, _, id_high, id_low, high, low, _, protocol, _, _, addresses @ ..] = header;
    let flags = u16::from_be_bytes([*high, *low]);
    if flags & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET_MASK) == 0 {
        return None;
    }
    let id = u16::from_be_bytes([*id_high, *id_low]);
    let start = usize::from(flags & ipv4::OFFSET_MASK) * 8;
    let end = start + packet.len().saturating_sub(header_len);
    let key = Key { addresses: *addresses, id, protocol: *protocol, zone };
    Some(Fragment { key, flags, tos: *tos, header_len, span: Span { start, end } })
}

/// Whether the fragment's end agrees with what is known of the packet's.
fn ends(queue: &mut Queue, fragment: &mut Fragment) -> bool {
    let span = &mut fragment.span;
    if fragment.flags & ipv4::MORE_FRAGMENTS == 0 {
        if span.end < queue.len || (queue.has_last && span.end != queue.len) {
            return false;
        }
        queue.has_last = true;
        queue.len = span.end;
    } else {
        // All but the last are whole 8-byte units: what is more is cut.
        span.end &= !7;
        if span.end > queue.len {
            if queue.has_last {
                return false;
            }
            queue.len = span.end;
        }
    }
    span.end > span.start
}

/// Remembers what the whole packet's header is made of.
fn note(queue: &mut Queue, packet: &Packet<'_>, fragment: &Fragment) {
    queue.ecn |= 1 << (fragment.tos & 3);
    let len = fragment.span.end - fragment.span.start + fragment.header_len;
    queue.longest = queue.longest.max(len);
    if fragment.flags & ipv4::DONT_FRAGMENT != 0 {
        queue.longest_unfragmentable = queue.longest_unfragmentable.max(len);
    }
    if fragment.span.start == 0 {
        let head_len = packet.network_offset() + fragment.header_len;
        (queue.head, queue.head_unknown) = copy(packet, 0, head_len);
    }
}

/// Puts the packet together; `network` is the offset of its header, the same in all fragments.
fn whole(mut queue: Queue, network: usize, id: u16) -> Result<Whole, Refusal> {
    let ecn = ecn(queue.ecn).ok_or(Refusal::Impossible)?;
    let header_len = queue.head.len().saturating_sub(network);
    let total = u16::try_from(header_len + queue.len).map_err(|_| Refusal::Impossible)?;
    // A sender that forbids fragments yet sends them means to find the path's MTU.
    let keeps_flag = queue.longest_unfragmentable == queue.longest;
    let longest = queue.longest as u32;
    let largest = if keeps_flag { queue.longest_unfragmentable as u32 } else { 0 };
    let header = queue.head.get_mut(network..).unwrap_or_default();
    set(header, ipv4::TOTAL_LEN.start, &total.to_be_bytes());
    let flags = if keeps_flag { ipv4::DONT_FRAGMENT } else { 0 };
    set(header, ipv4::FRAGMENT.start, &flags.to_be_bytes());
    if let Some(tos) = header.get_mut(ipv4::TOS.start) {
        *tos |= ecn;
    }
    set(header, ipv4::CHECKSUM.start, &[0, 0]);
    let sum = !checksum::sum(header);
    set(header, ipv4::CHECKSUM.start, &sum.to_be_bytes());
    let carried = queue.carried;
    let (frame, unknown, pieces) = queue.assemble();
    Ok(Whole { frame, unknown, pieces, longest, largest, id: id.into(), carried })
}

fn set(header: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = header.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
