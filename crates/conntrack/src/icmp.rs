//! ICMP and ICMPv6 before flows are looked up: what is malformed, what is exempt, and which flow an error
//! message is about.
//!
//! Source: Linux 6.18 `nf_conntrack_proto_icmp.c` (`nf_conntrack_inet_error`, `nf_conntrack_icmpv4_error`),
//! `nf_conntrack_proto_icmpv6.c`.

use crate::dissect::{Layer, Unparsable, known};
use crate::key::Tuple;
use crate::{dissect, verify};
use packet::{Packet, Read, icmpv4, icmpv6, ipv4, ipv6};
use std::net::{IpAddr, Ipv6Addr};

/// What an ICMP message is to tracking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// A query or an answer: tracked like other packets.
    Query,
    /// Never tracked (neighbour discovery, multicast listeners).
    Exempt,
    /// Multicast routers look for each other: exempt, on kernels that say so.
    Discovery,
    /// An error about the flow of which this is a tuple, as it would come back.
    Error {
        /// The quoted packet's tuple, inverted, in zone 0.
        about: Tuple,
        /// Where the message goes: the flow's own side must be there.
        destination: IpAddr,
    },
}

/// What the message at `layer` is. With `verify` its checksum must hold.
pub(crate) fn read(
    packet: &Packet<'_>,
    layer: &Layer,
    verify: bool,
) -> Result<Message, Unparsable> {
    match (layer.protocol, layer.is_v6) {
        (icmpv4::PROTOCOL, false) => read_v4(packet, layer, verify),
        (icmpv6::PROTOCOL, true) => read_v6(packet, layer, verify),
        // ICMP of the other family is INVALID, but only once its flow is looked up.
        _ => Ok(Message::Query),
    }
}

fn header(packet: &Packet<'_>, layer: &Layer, verify: bool) -> Result<[u8; 8], Unparsable> {
    let header = known(packet.read::<8>(layer.offset))?;
    if verify {
        match verify::whole(packet, layer) {
            Read::Known(true) => {}
            Read::Unknown => return Err(Unparsable::Unknown),
            Read::Known(false) | Read::Absent => return Err(Unparsable::Invalid),
        }
    }
    Ok(header)
}

fn read_v4(packet: &Packet<'_>, layer: &Layer, verify: bool) -> Result<Message, Unparsable> {
    const HIGHEST: u8 = 18;
    let [kind, ..] = header(packet, layer, verify)?;
    match kind {
        3 | 4 | 5 | 11 | 12 => {
            let at = layer.network + ipv4::DESTINATION.start;
            let destination = known(packet.read::<4>(at))?;
            about(packet, layer, layer.offset + 8, destination.into())
        }
        0..=HIGHEST => Ok(Message::Query),
        _ => Err(Unparsable::Invalid),
    }
}

fn read_v6(packet: &Packet<'_>, layer: &Layer, verify: bool) -> Result<Message, Unparsable> {
    const REDIRECT: u8 = 137;
    let [kind, code, ..] = header(packet, layer, verify)?;
    let at = layer.network + ipv6::DESTINATION.start;
    let destination = IpAddr::from(known(packet.read::<16>(at))?);
    match kind {
        130..=136 | 143 => Ok(Message::Exempt),
        // Multicast router discovery (RFC 4286), its termination excepted.
        151 | 152 => Ok(Message::Discovery),
        REDIRECT if code == 0 => about(packet, layer, redirected(packet, layer)?, destination),
        0..128 => about(packet, layer, layer.offset + 8, destination),
        _ => Ok(Message::Query),
    }
}

/// Where a redirect quotes the packet that it is about.
fn redirected(packet: &Packet<'_>, layer: &Layer) -> Result<usize, Unparsable> {
    const MESSAGE_LEN: usize = 40;
    const REDIRECTED_HEADER: u8 = 4;
    let [hop_limit] = known(packet.read::<1>(layer.network + ipv6::HOP_LIMIT.start))?;
    let source = known(packet.read::<16>(layer.network + ipv6::SOURCE.start))?;
    known(packet.read::<MESSAGE_LEN>(layer.offset))?;
    if hop_limit != 255 || !Ipv6Addr::from(source).is_unicast_link_local() {
        return Err(Unparsable::Invalid);
    }
    let option = layer.offset + MESSAGE_LEN;
    match known(packet.read::<2>(option))? {
        [REDIRECTED_HEADER, len] if len != 0 => Ok(option + 8),
        _ => Err(Unparsable::Invalid),
    }
}

fn about(
    packet: &Packet<'_>,
    layer: &Layer,
    quoted: usize,
    destination: IpAddr,
) -> Result<Message, Unparsable> {
    let quoted = dissect::quoted_layer(packet, quoted, layer.is_v6)?;
    let about = dissect::tuple(packet, &quoted)?.inverse().ok_or(Unparsable::Invalid)?;
    Ok(Message::Error { about, destination })
}
