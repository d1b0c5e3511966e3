//! [`Tuple`]: what identifies one direction of a flow, its inverse, and [`Zone`].
//!
//! Contract: plain values, hashed with a [`HashKey`] that every table draws for itself, so that nobody makes packets
//! whose hashes collide. Ports and identifiers are in host byte order.
//!
//! Source: Linux `nf_conntrack_core.c` (tuples, inversion, zones), `nf_conntrack_proto_icmp.c` and
//! `_icmpv6.c` (which ICMP types answer which).

use packet::{icmpv4, icmpv6};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which way a packet of a flow goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// As the packet that created the flow.
    Original,
    /// Against it.
    Reply,
}

impl Direction {
    /// The other one.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Original => Self::Reply,
            Self::Reply => Self::Original,
        }
    }
}

/// What separates flows with equal tuples: `-j CT --zone`, `--zone-orig`, `--zone-reply`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Zone {
    /// The zone's number.
    pub id: u16,
    /// Whether the zone separates original tuples.
    pub original: bool,
    /// Whether the zone separates reply tuples.
    pub reply: bool,
}

impl Zone {
    /// A zone of both directions.
    #[must_use]
    pub const fn both(id: u16) -> Self {
        Self { id, original: true, reply: true }
    }

    /// The number in one direction: 0 where the zone does not separate.
    #[must_use]
    pub fn id_in(self, direction: Direction) -> u16 {
        let applies = match direction {
            Direction::Original => self.original,
            Direction::Reply => self.reply,
        };
        if applies { self.id } else { 0 }
    }
}

impl Default for Zone {
    /// Zone 0.
    fn default() -> Self {
        Self::both(0)
    }
}

/// Addresses, protocol and the protocol's own identifiers of one direction of a flow, and its zone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Everything else, first, as it differs most: tuples are compared and hashed as five words. From the highest bits
    /// down: source port, ICMP identifier, or key of the GRE source; destination port, ICMP type (high byte) and code,
    /// or GRE key; the zone; the protocol; whether it is IPv6.
    parts: u64,
    source: [u64; 2],
    destination: [u64; 2],
}

/// Where the parts of a tuple begin in their word.
const SOURCE_PART: u32 = 48;
const DESTINATION_PART: u32 = 32;
const ZONE: u32 = 16;
const PROTOCOL: u32 = 8;

/// The word of a tuple's parts, in zone 0.
#[inline]
fn packed([source, destination]: [u16; 2], protocol: u8, is_v6: bool) -> u64 {
    u64::from(source) << SOURCE_PART
        | u64::from(destination) << DESTINATION_PART
        | u64::from(protocol) << PROTOCOL
        | u64::from(is_v6)
}

impl Tuple {
    /// A tuple in zone 0. `parts` are source and destination port, or what stands for them: identifier
    /// and `type << 8 | code` in ICMP, the two keys in GRE, 0 in protocols without any. Two addresses of
    /// different families give the IPv6 form of both.
    #[must_use]
    pub fn new(source: IpAddr, destination: IpAddr, protocol: u8, parts: [u16; 2]) -> Self {
        let is_v6 = source.is_ipv6() || destination.is_ipv6();
        Self {
            source: words(source, is_v6),
            destination: words(destination, is_v6),
            parts: packed(parts, protocol, is_v6),
        }
    }

    /// From the address bytes of an IPv4 header: source, then destination.
    #[inline]
    pub(crate) fn from_v4(addresses: [u8; 8], protocol: u8, parts: [u16; 2]) -> Self {
        let both = u64::from_be_bytes(addresses);
        Self {
            source: [both >> 32, 0],
            destination: [both & 0xffff_ffff, 0],
            parts: packed(parts, protocol, false),
        }
    }

    /// From the address bytes of an IPv6 header: source, then destination.
    pub(crate) fn from_v6(addresses: &[u8; 32], protocol: u8, parts: [u16; 2]) -> Self {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(addresses.as_chunks::<8>().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        let [a, b, c, d] = words;
        Self { source: [a, b], destination: [c, d], parts: packed(parts, protocol, true) }
    }

    /// Source address.
    #[must_use]
    pub fn source(&self) -> IpAddr {
        address(self.source, self.is_ipv6())
    }

    /// Destination address.
    #[must_use]
    pub fn destination(&self) -> IpAddr {
        address(self.destination, self.is_ipv6())
    }

    /// Source port, ICMP identifier, or GRE source key.
    #[must_use]
    pub fn source_part(&self) -> u16 {
        (self.parts >> SOURCE_PART) as u16
    }

    /// Destination port, ICMP `type << 8 | code`, or GRE key.
    #[must_use]
    pub fn destination_part(&self) -> u16 {
        (self.parts >> DESTINATION_PART) as u16
    }

    /// Upper-layer protocol number.
    #[inline]
    #[must_use]
    pub fn protocol(&self) -> u8 {
        (self.parts >> PROTOCOL) as u8
    }

    /// Whether the addresses are IPv6.
    #[must_use]
    pub fn is_ipv6(&self) -> bool {
        self.parts & 1 == 1
    }

    /// Number of the zone in this direction.
    #[inline]
    #[must_use]
    pub fn zone(&self) -> u16 {
        (self.parts >> ZONE) as u16
    }

    /// Returns the tuple moved to another zone.
    #[inline]
    #[must_use]
    pub fn in_zone(mut self, zone: u16) -> Self {
        self.parts = self.parts & !(0xffff << ZONE) | u64::from(zone) << ZONE;
        self
    }

    /// Returns the tuple with another source, as source translation gives it.
    #[must_use]
    pub fn with_source(mut self, address: IpAddr, part: u16) -> Self {
        self.source = words(address, self.is_ipv6());
        self.with_parts(part, self.destination_part())
    }

    /// Returns the tuple with another destination, as destination translation gives it.
    #[must_use]
    pub fn with_destination(mut self, address: IpAddr, part: u16) -> Self {
        self.destination = words(address, self.is_ipv6());
        self.with_parts(self.source_part(), part)
    }

    #[inline]
    fn with_parts(mut self, source: u16, destination: u16) -> Self {
        let rest = self.parts & 0xffff_ffff;
        self.parts = packed([source, destination], 0, false) | rest;
        self
    }

    /// The tuple of an answer; `None` for ICMP types that have none. The zone is kept.
    #[inline]
    #[must_use]
    pub fn inverse(&self) -> Option<Self> {
        let (source, destination) = match self.protocol() {
            icmpv4::PROTOCOL => (self.source_part(), self.answer(icmp_answer)?),
            icmpv6::PROTOCOL => (self.source_part(), self.answer(icmpv6_answer)?),
            _ => (self.destination_part(), self.source_part()),
        };
        let turned = Self { source: self.destination, destination: self.source, parts: self.parts };
        Some(turned.with_parts(source, destination))
    }

    /// Type and code of the message that answers.
    fn answer(&self, of: fn(u8) -> Option<u8>) -> Option<u16> {
        let [kind, code] = self.destination_part().to_be_bytes();
        Some(u16::from_be_bytes([of(kind)?, code]))
    }

    /// A hash of everything in it, the zone included.
    #[inline]
    #[must_use]
    pub fn hash(&self, HashKey([k0, k1, k2, k3, k4]): &HashKey) -> u64 {
        let [s0, s1] = self.source;
        let [d0, d1] = self.destination;
        let high = mix(s0 ^ k0, d0 ^ k1);
        let low = mix(s1 ^ k2, d1 ^ k3);
        mix(high ^ self.parts, low ^ k4)
    }
}

/// What a table hashes tuples with: a factor is 0 only for who knows it.
#[derive(Debug, Clone, Copy)]
pub struct HashKey([u64; 5]);

impl HashKey {
    /// One that is drawn from a seed, or at random where there is none.
    #[must_use]
    pub fn new(seed: Option<u64>) -> Self {
        let random = RandomState::new();
        Self(std::array::from_fn(|at| match seed {
            Some(seed) => {
                mix(seed ^ 0x9e37_79b9_7f4a_7c15, (at as u64 + 1) ^ 0xa076_1d64_78bd_642f)
            }
            None => random.hash_one(at),
        }))
    }
}

/// `ADDRESS:PART > ADDRESS:PART proto N`, and the zone where it is not 0.
impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source(), self.source_part())?;
        write!(f, " > {}:{}", self.destination(), self.destination_part())?;
        write!(f, " proto {}", self.protocol())?;
        if self.zone() != 0 { write!(f, " zone {}", self.zone()) } else { Ok(()) }
    }
}

impl fmt::Debug for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Folded product: every bit of both numbers reaches every bit of the result.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

fn words(address: IpAddr, is_v6: bool) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(v4) if is_v6 => u128::from(v4.to_ipv6_mapped()),
        IpAddr::V4(v4) => return [u64::from(u32::from(v4)), 0],
        IpAddr::V6(v6) => u128::from(v6),
    };
    [(bits >> 64) as u64, bits as u64]
}

fn address(words: [u64; 2], is_v6: bool) -> IpAddr {
    if is_v6 {
        Ipv6Addr::from(u128::from(words[0]) << 64 | u128::from(words[1])).into()
    } else {
        Ipv4Addr::from(words[0] as u32).into()
    }
}

/// Whether a protocol is ICMP of either family.
pub(crate) fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, icmpv4::PROTOCOL | icmpv6::PROTOCOL)
}

/// Whether flows of a protocol have ports: TCP, UDP, UDP-Lite, SCTP. DCCP has no tracker in this kernel any more, and so
/// none.
#[inline]
#[must_use]
pub fn has_ports(protocol: u8) -> bool {
    matches!(
        protocol,
        packet::tcp::PROTOCOL
            | packet::udp::PROTOCOL
            | packet::udp::PROTOCOL_LITE
            | packet::sctp::PROTOCOL
    )
}

/// The ICMP type that answers a query, and the query of an answer.
fn icmp_answer(kind: u8) -> Option<u8> {
    Some(match kind {
        0 => 8,
        8 => 0,
        13 => 14,
        14 => 13,
        15 => 16,
        16 => 15,
        17 => 18,
        18 => 17,
        _ => return None,
    })
}

/// Returns the ICMPv6 type that answers this one: echo, and node information.
fn icmpv6_answer(kind: u8) -> Option<u8> {
    Some(match kind {
        128 => 129,
        129 => 128,
        139 => 140,
        140 => 139,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(protocol: u8, parts: [u16; 2]) -> Tuple {
        Tuple::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), protocol, parts)
    }

    #[test]
    fn the_inverse_of_the_inverse_is_the_tuple() {
        let v6 = Tuple::new([1u8; 16].into(), [2u8; 16].into(), 17, [5, 6]);
        for tuple in [tuple(6, [1, 2]), tuple(1, [7, 0x0800]), tuple(47, [0, 9]), v6] {
            let inverse = tuple.inverse().unwrap();
            assert_ne!(inverse, tuple);
            assert_eq!(inverse.inverse(), Some(tuple));
        }
    }

    #[test]
    fn icmp_keeps_its_identifier_and_errors_have_no_inverse() {
        let inverse = tuple(1, [7, 0x0800]).inverse().unwrap();
        assert_eq!((inverse.source_part(), inverse.destination_part()), (7, 0));
        for kind in [3u16, 5, 9, 11, 30, 128] {
            assert_eq!(tuple(1, [7, kind << 8]).inverse(), None, "{kind}");
        }
        for kind in [1u16, 127, 130, 135, 137, 143] {
            assert_eq!(tuple(58, [7, kind << 8]).inverse(), None, "{kind}");
        }
        let node = tuple(58, [7, 140 << 8]).inverse().unwrap();
        assert_eq!(node.destination_part(), 139 << 8);
    }

    #[test]
    fn header_bytes_and_addresses_give_the_same_tuple() {
        let bytes = [10, 0, 0, 1, 10, 0, 0, 2];
        assert_eq!(Tuple::from_v4(bytes, 6, [1, 2]), tuple(6, [1, 2]));
        let bytes: [u8; 32] = std::array::from_fn(|i| i as u8);
        let (source, destination) = bytes.split_at(16);
        let addresses = [source, destination].map(|half| {
            let half: [u8; 16] = half.try_into().unwrap();
            IpAddr::from(half)
        });
        let whole = Tuple::new(addresses[0], addresses[1], 17, [3, 4]);
        assert_eq!(Tuple::from_v6(&bytes, 17, [3, 4]), whole);
        assert_eq!((whole.source(), whole.destination()), (addresses[0], addresses[1]));
    }

    #[test]
    fn zones_separate_by_direction() {
        let original = Zone { id: 5, original: true, reply: false };
        assert_eq!(original.id_in(Direction::Original), 5);
        assert_eq!(original.id_in(Direction::Reply), 0);
        let plain = tuple(6, [1, 2]);
        assert_ne!(plain.in_zone(5), plain);
        let key = HashKey::new(Some(1));
        assert_ne!(plain.in_zone(5).hash(&key), plain.hash(&key));
    }

    #[test]
    fn hashes_spread() {
        let mut buckets = [0u32; 16];
        for port in 0..16_000 {
            buckets[(tuple(6, [port, 80]).hash(&HashKey::new(Some(1))) & 15) as usize] += 1;
        }
        assert!(buckets.iter().all(|count| (850..1150).contains(count)), "{buckets:?}");
    }
}
