//! Finds the second copy of a packet in a capture taken on all interfaces (`tcpdump -i any`): once as it
//! came in, once as it went out.
//!
//! A copy has the same bytes but for the time to live and the checksum that covers it, the other
//! direction, and comes soon after. Only cooked captures tell the direction, so only they are looked at.
//! Bounded: the last [`KEPT`] packets.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use packet::{L3, Packet};

use crate::interfaces::OUTGOING;

/// Packets remembered.
const KEPT: usize = 1024;
/// Longest time between both copies, in nanoseconds.
const WITHIN: u64 = 1_000_000_000;

/// The packets seen of late.
#[derive(Debug, Default)]
pub struct Copies {
    seen: Vec<Seen>,
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    hash: u64,
    time: u64,
    outgoing: bool,
}

impl Copies {
    /// Whether this packet is a copy of one seen before; if not, it is remembered.
    pub(crate) fn is_copy(&mut self, packet: &Packet<'_>, time: Option<u64>) -> bool {
        let Some(kind) = packet.headers().link.packet_type else { return false };
        let this = Seen { hash: hash(packet), time: time.unwrap_or(0), outgoing: kind == OUTGOING };
        let found = self.seen.iter_mut().find(|seen| {
            seen.hash == this.hash
                && seen.outgoing != this.outgoing
                && this.time.abs_diff(seen.time) <= WITHIN
        });
        if let Some(seen) = found {
            // A pair is complete: a third one is a packet of its own.
            seen.hash = !seen.hash;
            return true;
        }
        self.remember(this);
        false
    }

    fn remember(&mut self, this: Seen) {
        if self.seen.len() < KEPT {
            self.seen.push(this);
        } else {
            self.seen[self.next] = this;
            self.next = (self.next + 1) % KEPT;
        }
    }
}

/// A hash of the packet from its network header on, without what forwarding changes.
fn hash(packet: &Packet<'_>) -> u64 {
    let network = packet.headers().network;
    let bytes = packet.frame().get(network..).unwrap_or_default();
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    match packet.headers().l3 {
        L3::Ipv4 { .. } if bytes.len() >= 12 => {
            hasher.hash_one((&bytes[..8], bytes[9], &bytes[12..]))
        }
        L3::Ipv6 if bytes.len() >= 8 => hasher.hash_one((&bytes[..7], &bytes[8..])),
        _ => hasher.hash_one(bytes),
    }
}
