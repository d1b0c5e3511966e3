//! What a router does not send further: packets to a group or to everybody, packets from or to a link-local address,
//! and IPv6 neighbour discovery, which no host accepts once its hop limit was lowered (RFC 4861, 7.1). On a wire they
//! cross as at a bridge, and do not age: the hosts on both sides are on one link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use packet::{L4, Packet, Read, icmpv6};

use crate::routing::way::addresses;

/// ICMPv6 types of neighbour discovery: solicitations, advertisements and redirects (RFC 4861, section 4).
const NEIGHBOUR_DISCOVERY: RangeInclusive<u8> = 133..=137;

/// Whether a packet stays on its link. So does what is no IP, and what has addresses that are not known.
pub(crate) fn is_within(packet: &Packet<'_>) -> bool {
    match addresses(packet) {
        Some((IpAddr::V4(source), IpAddr::V4(destination))) => {
            is_narrow_v4(source) || is_narrow_v4(destination)
        }
        Some((IpAddr::V6(source), IpAddr::V6(destination))) => {
            is_narrow_v6(source) || is_narrow_v6(destination) || finds_neighbours(packet)
        }
        _ => true,
    }
}

fn is_narrow_v4(address: Ipv4Addr) -> bool {
    address.is_unspecified()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_loopback()
}

fn is_narrow_v6(address: Ipv6Addr) -> bool {
    address.is_unspecified()
        || address.is_multicast()
        || address.is_loopback()
        || address.is_unicast_link_local()
}

fn finds_neighbours(packet: &Packet<'_>) -> bool {
    let L4::Upper(upper) = packet.headers().l4 else { return false };
    let kind = || packet.upper::<1>(&upper, 0);
    upper.protocol == icmpv6::PROTOCOL
        && matches!(kind(), Read::Known([kind]) if NEIGHBOUR_DISCOVERY.contains(&kind))
}
