//! Packets that the kernel drops rather than translates: redirects, what has too few bytes to write to, and
//! GRE of a version that it does not know.
//!
//! Source: Linux 6.18 `nf_nat_proto.c` (`l4proto_manip_pkt` and what it calls, `nf_nat_icmp_reply_translation`).

use conntrack::dissect::{self, Layer};
use conntrack::{Side, has_ports};
use packet::{Packet, Read, gre, icmpv4, icmpv6};

/// Whether the kernel drops this packet if this end of its flow is translated.
pub(super) fn passes_only_untranslated(packet: &Packet<'_>, side: Side) -> bool {
    let Ok(layer) = dissect::layer(packet) else { return false };
    if is_untranslatable(packet, &layer, side) {
        return true;
    }
    let is_icmp = matches!(layer.protocol, icmpv4::PROTOCOL | icmpv6::PROTOCOL);
    if !is_icmp || is_query(packet, layer.protocol, layer.offset) {
        return false;
    }
    let quoted = || dissect::quoted_layer(packet, layer.offset + 8, layer.is_v6);
    is_redirect(packet, &layer)
        || quoted().is_ok_and(|quoted| is_untranslatable(packet, &quoted, side.opposite()))
}

/// Whether the kernel cannot write this end to this upper layer, be it quoted or not: where it knows the protocol, it
/// expects the first eight bytes of the header, and before the destination of GRE a version that it knows.
pub(super) fn is_untranslatable(packet: &Packet<'_>, layer: &Layer, side: Side) -> bool {
    const EXPECTED: usize = 8;
    let is_known = match layer.protocol {
        icmpv4::PROTOCOL | icmpv6::PROTOCOL | gre::PROTOCOL => true,
        protocol => has_ports(protocol),
    };
    let is_too_short = is_known && packet.read::<EXPECTED>(layer.offset) == Read::Absent;
    let is_other_gre = || match packet.read::<2>(layer.offset) {
        Read::Known([_, version]) => version & 0x07 > 1,
        Read::Unknown | Read::Absent => false,
    };
    let is_gre = layer.protocol == gre::PROTOCOL && side == Side::Destination;
    is_too_short || is_gre && is_other_gre()
}

/// An ICMP message that tells its receiver of another way.
pub(super) fn is_redirect(packet: &Packet<'_>, layer: &Layer) -> bool {
    let kind = if layer.is_v6 { 137 } else { 5 };
    packet.read::<1>(layer.offset) == Read::Known([kind])
}

/// An ICMP message, with its header at `offset`, that certainly quotes no packet.
pub(super) fn is_query(packet: &Packet<'_>, protocol: u8, offset: usize) -> bool {
    match (protocol, packet.read::<1>(offset)) {
        (icmpv4::PROTOCOL, Read::Known([kind])) => !matches!(kind, 3 | 4 | 5 | 11 | 12),
        (icmpv6::PROTOCOL, Read::Known([kind])) => kind >= 128 && kind != 137,
        _ => false,
    }
}
