//! Rewrites a packet as its flow is translated, checksums included.
//!
//! Contract: checksums are updated from what changes (RFC 1624), so a wrong checksum stays wrong, as in the kernel;
//! only the CRC32c of SCTP is recomputed. A checksum that was not captured is left unknown.
//!
//! Source: Linux 6.18 `nf_nat_proto.c` (`nf_nat_manip_pkt` and what it calls).

use super::Translated;
use super::forget::{forget, forget_address};
use super::range::{address, part};
use super::untranslatable::is_untranslatable;
use crate::transit::Transit;
use conntrack::dissect::{self, Layer};
use conntrack::verify::{SCTP_CHECKSUM, sctp_sum};
use conntrack::{Direction, Side, Tuple, has_ports};
use packet::{Packet, Read, checksum, icmpv4, icmpv6, ipv4, ipv6, sctp, tcp, udp};
use std::net::IpAddr;

/// Rewrites this end of the packet as its flow has it. Where the mapping is not known, what it may change is
/// forgotten.
pub fn packet(transit: &mut Transit<'_, '_>, side: Side) -> Translated {
    let ct = &transit.ct;
    let flow = ct.tracker.as_ref().zip(ct.view.flow).and_then(|(t, at)| t.flow(at));
    let Some(flow) = flow else { return Translated::No };
    let end = side.seen_from(ct.view.direction);
    if flow.is_hidden(end) && ct.view.direction == Direction::Reply {
        // A source keeps its port where no other flow has it.
        if end == Side::Destination {
            return forget(transit, side);
        }
        forget_address(transit, side);
        return Translated::Unknown;
    }
    if !flow.is_indeterminate(end) && !flow.status().contains(end.translated()) {
        return Translated::No;
    }
    let target =
        flow.tuple(ct.view.direction.opposite()).inverse().filter(|_| !flow.is_indeterminate(end));
    let (Some(target), Ok(layer)) = (target, dissect::layer(transit.packet)) else {
        return forget(transit, side);
    };
    if is_untranslatable(transit.packet, &layer, side) {
        return Translated::Dropped;
    }
    end_of(transit.packet, &layer, &target, side);
    Translated::To(address(&target, side), part(&target, side))
}

/// Writes the source of this tuple into the packet, and the port where it has one.
pub fn source(packet: &mut Packet<'_>, tuple: &Tuple) {
    if let Ok(layer) = dissect::layer(packet) {
        end_of(packet, &layer, tuple, Side::Source);
    }
}

/// Writes the destination of this tuple into the packet, and the port where it has one.
pub fn destination(packet: &mut Packet<'_>, tuple: &Tuple) {
    if let Ok(layer) = dissect::layer(packet) {
        end_of(packet, &layer, tuple, Side::Destination);
    }
}

/// Writes one end of a tuple into the packet whose upper layer this is, be it quoted or not.
pub(super) fn end_of(packet: &mut Packet<'_>, layer: &Layer, to: &Tuple, side: Side) {
    let sums = Sums::of(packet, layer);
    port_of(packet, layer, to, side, &sums);
    let (v4, v6);
    let (bytes, offset): (&[u8], usize) = match (address(to, side), side) {
        (IpAddr::V4(addr), side) => {
            v4 = addr.octets();
            (&v4, if side == Side::Source { ipv4::SOURCE.start } else { ipv4::DESTINATION.start })
        }
        (IpAddr::V6(addr), side) => {
            v6 = addr.octets();
            (&v6, if side == Side::Source { ipv6::SOURCE.start } else { ipv6::DESTINATION.start })
        }
    };
    let at = layer.network + offset;
    let mut covering: [Option<usize>; 2] = [None; 2];
    if sums.covers_addresses {
        covering[0] = sums.upper;
    }
    // The header of the packet itself is kept in step by the write.
    if !layer.is_v6 && layer.network != packet.network_offset() {
        covering[1] = Some(layer.network + ipv4::CHECKSUM.start);
    }
    replace(packet, at, bytes, covering, sums.may_be_zero);
    if layer.protocol == sctp::PROTOCOL {
        renew_sctp(packet, layer);
    }
}

/// Writes the port or identifier.
fn port_of(packet: &mut Packet<'_>, layer: &Layer, to: &Tuple, side: Side, sums: &Sums) {
    let offset = match layer.protocol {
        icmpv4::PROTOCOL | icmpv6::PROTOCOL if is_query(packet, layer) => 4,
        protocol if has_ports(protocol) && side == Side::Source => 0,
        protocol if has_ports(protocol) => 2,
        _ => return,
    };
    let Some(port) = part(to, side) else { return };
    let at = layer.offset + offset;
    replace(packet, at, &port.to_be_bytes(), [sums.upper, None], sums.may_be_zero);
}

/// ICMP messages with an identifier. Of ICMPv6 the kernel rewrites that of echoes.
fn is_query(packet: &Packet<'_>, layer: &Layer) -> bool {
    match (layer.is_v6, packet.read::<1>(layer.offset)) {
        (false, Read::Known([kind])) => matches!(kind, 0 | 8 | 13..=18),
        (true, Read::Known([kind])) => matches!(kind, 128 | 129),
        _ => false,
    }
}

/// The upper layer's Internet checksum.
struct Sums {
    /// Where it is in the frame; `None` where there is none to update.
    upper: Option<usize>,
    /// Addresses are part of it.
    covers_addresses: bool,
    /// UDP: 0 would say that there is none.
    may_be_zero: bool,
}

impl Sums {
    fn of(packet: &Packet<'_>, layer: &Layer) -> Self {
        let sums = |offset: usize, covers_addresses, may_be_zero| Self {
            upper: Some(layer.offset + offset),
            covers_addresses,
            may_be_zero,
        };
        let none = Self { upper: None, covers_addresses: false, may_be_zero: true };
        match layer.protocol {
            // What an error quotes may end before the checksum.
            tcp::PROTOCOL if packet.read::<20>(layer.offset) == Read::Absent => none,
            tcp::PROTOCOL => sums(16, true, true),
            udp::PROTOCOL if packet.read::<2>(layer.offset + 6) == Read::Known([0; 2]) => none,
            udp::PROTOCOL | udp::PROTOCOL_LITE => sums(6, true, false),
            icmpv4::PROTOCOL => sums(2, false, true),
            icmpv6::PROTOCOL => sums(2, true, true),
            _ => none,
        }
    }
}

/// Writes bytes at an even distance from their header's start and keeps the checksums at these offsets in
/// step.
pub(super) fn replace(
    packet: &mut Packet<'_>,
    at: usize,
    bytes: &[u8],
    checksums: [Option<usize>; 2],
    may_be_zero: bool,
) {
    let Read::Known(old) = packet.read_slice(at, bytes.len()) else { return };
    let (before, after) = (checksum::sum(old), checksum::sum(bytes));
    for (index, place) in checksums.into_iter().enumerate() {
        let Some(place) = place else { continue };
        let Read::Known(stored) = packet.read::<2>(place) else { continue };
        let mut updated = checksum::update(u16::from_be_bytes(stored), before, after);
        if index == 0 && updated == 0 && !may_be_zero {
            updated = u16::MAX;
        }
        write(packet, place, &updated.to_be_bytes());
    }
    write(packet, at, bytes);
}

/// Writes at an offset in the frame; what was not captured stays unknown.
pub(super) fn write(packet: &mut Packet<'_>, at: usize, bytes: &[u8]) {
    if let Some(offset) = at.checked_sub(packet.network_offset())
        && !packet.write_net(offset, bytes)
    {
        packet.forget(at..at.saturating_add(bytes.len()));
    }
}

/// Recomputes the CRC32c of an SCTP packet, where all of it is known.
fn renew_sctp(packet: &mut Packet<'_>, layer: &Layer) {
    let at = layer.offset + SCTP_CHECKSUM.start;
    let len = packet.headers().end.saturating_sub(layer.offset);
    if len < sctp::HEADER_LEN {
        return;
    }
    match packet.read_slice(layer.offset, len).map(sctp_sum) {
        Read::Known(sum) => write(packet, at, &sum.to_le_bytes()),
        _ => packet.forget(at..at + SCTP_CHECKSUM.len()),
    }
}
