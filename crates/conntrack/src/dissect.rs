//! Which tuple a packet has, the packet itself or the one quoted in an ICMP error.
//!
//! Source: Linux 6.18 `nf_conntrack_core.c` (`nf_ct_get_tuple`, `ipv4_get_l4proto`, `ipv6_get_l4proto`),
//! `nf_conntrack_proto_gre.c`. DCCP has no tracker of its own in this kernel any more: it is generic.

use crate::key::{Tuple, has_ports};
use packet::ipv6_ext::{self, Find};
use packet::{Headers, L3, L4, Packet, Read, ReadAt, gre, icmpv4, icmpv6, ipv4, ipv6};

/// An upper layer: its protocol and where it starts in the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// Offset of the network header before it.
    pub network: usize,
    /// Whether it is of IPv6.
    pub is_v6: bool,
    /// Protocol number of the upper layer.
    pub protocol: u8,
    /// Offset of its own header in the frame.
    pub offset: usize,
}

/// Why a packet cannot be tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unparsable {
    /// The packet is malformed: INVALID.
    Invalid,
    /// Bytes that decide were not captured.
    Unknown,
}

/// Bytes without which a packet is malformed.
#[inline]
pub(crate) fn known<T>(read: Read<T>) -> Result<T, Unparsable> {
    match read {
        Read::Known(bytes) => Ok(bytes),
        Read::Absent => Err(Unparsable::Invalid),
        Read::Unknown => Err(Unparsable::Unknown),
    }
}

/// Everything from `offset` to the end of the packet.
pub(crate) fn rest<'p>(packet: &'p Packet<'_>, offset: usize) -> Read<&'p [u8]> {
    let len = packet.headers().end.saturating_sub(offset);
    packet.read_slice(offset, len)
}

/// The upper layer of the packet.
pub fn layer(packet: &Packet<'_>) -> Result<Layer, Unparsable> {
    match (packet.headers().l3, packet.headers().l4) {
        (L3::Ipv6, L4::Broken { .. }) => broken(packet),
        _ => layer_of(packet.headers()),
    }
}

/// The upper layer of a packet whose chain of extension headers rules cannot follow to its end: tracking asks no more of a
/// header than its first two bytes (`ipv6_skip_exthdr`, where rules have `ipv6_find_hdr`).
#[cold]
fn broken(packet: &Packet<'_>) -> Result<Layer, Unparsable> {
    let network = packet.network_offset();
    let [mut protocol] = known(packet.net::<1>(ipv6::NEXT_HEADER.start))?;
    let mut offset = network + ipv6::HEADER_LEN;
    while ipv6_ext::is_extension(protocol) {
        if protocol == ipv6_ext::NO_NEXT {
            return Err(Unparsable::Invalid);
        }
        let [next, len] = known(packet.read_at::<2>(offset))?;
        offset += match protocol {
            ipv6_ext::FRAGMENT => {
                let at = offset + ipv6_ext::FRAGMENT_OFFSET.start;
                let field = u16::from_be_bytes(known(packet.read_at::<2>(at))?);
                if field & ipv6_ext::OFFSET_MASK != 0 {
                    return Err(Unparsable::Invalid);
                }
                8
            }
            ipv6_ext::AUTH => (usize::from(len) + 2) * 4,
            _ => (usize::from(len) + 1) * 8,
        };
        protocol = next;
    }
    Ok(Layer { network, is_v6: true, protocol, offset })
}

/// The upper layer of a packet with these headers.
#[inline]
pub(crate) fn layer_of(headers: &Headers) -> Result<Layer, Unparsable> {
    let is_v6 = match headers.l3 {
        L3::Ipv4 { .. } => false,
        L3::Ipv6 => true,
        L3::Unknown => return Err(Unparsable::Unknown),
        L3::Arp | L3::Other | L3::Fault(_) => return Err(Unparsable::Invalid),
    };
    match headers.l4 {
        L4::Upper(upper) if is_v6 && upper.protocol == ipv6_ext::NO_NEXT => {
            Err(Unparsable::Invalid)
        }
        L4::Upper(upper) => Ok(Layer {
            network: headers.network,
            is_v6,
            protocol: upper.protocol,
            offset: upper.offset,
        }),
        L4::Unknown => Err(Unparsable::Unknown),
        L4::Fragment { .. } | L4::Broken { .. } | L4::None => Err(Unparsable::Invalid),
    }
}

/// The upper layer of a packet quoted at `network`.
pub fn quoted_layer(packet: &Packet<'_>, network: usize, is_v6: bool) -> Result<Layer, Unparsable> {
    if is_v6 { quoted_v6(packet, network) } else { quoted_v4(packet, network) }
}

fn quoted_v4(packet: &Packet<'_>, network: usize) -> Result<Layer, Unparsable> {
    let header = known(packet.read::<{ ipv4::MIN_HEADER_LEN }>(network))?;
    let [first, _, _, _, _, _, high, low, _, protocol, ..] = header;
    let fragment = u16::from_be_bytes([high, low]) & ipv4::OFFSET_MASK;
    let offset = network + usize::from(first & 0x0f) * 4;
    if fragment != 0 || offset > packet.headers().end {
        return Err(Unparsable::Invalid);
    }
    Ok(Layer { network, is_v6: false, protocol, offset })
}

fn quoted_v6(packet: &Packet<'_>, network: usize) -> Result<Layer, Unparsable> {
    match ipv6_ext::find(packet, network, None) {
        Find::Found { protocol, offset, fragment_offset: 0 } if protocol != ipv6_ext::NO_NEXT => {
            Ok(Layer { network, is_v6: true, protocol, offset })
        }
        Find::Found { .. } | Find::Missing | Find::Truncated => Err(Unparsable::Invalid),
        Find::Unknown => Err(Unparsable::Unknown),
    }
}

/// The tuple of a layer's packet, in zone 0.
#[inline(never)]
pub fn tuple(packet: &impl ReadAt, layer: &Layer) -> Result<Tuple, Unparsable> {
    tuple_here(packet, layer)
}

/// `tuple` inlined, for the frame path.
#[inline(always)]
pub(crate) fn tuple_here(packet: &impl ReadAt, layer: &Layer) -> Result<Tuple, Unparsable> {
    let parts = parts(packet, layer)?;
    if layer.is_v6 {
        let at = layer.network + ipv6::SOURCE.start;
        return Ok(Tuple::from_v6(&known(packet.read_at::<32>(at))?, layer.protocol, parts));
    }
    let at = layer.network + ipv4::SOURCE.start;
    Ok(Tuple::from_v4(known(packet.read_at::<8>(at))?, layer.protocol, parts))
}

/// Ports, or what stands for them.
#[inline(always)]
fn parts(packet: &impl ReadAt, layer: &Layer) -> Result<[u16; 2], Unparsable> {
    if !has_ports(layer.protocol) {
        return other_parts(packet, layer);
    }
    let [a, b, c, d] = known(packet.read_at::<4>(layer.offset))?;
    Ok([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

/// What stands for ports.
#[inline(never)]
fn other_parts(packet: &impl ReadAt, layer: &Layer) -> Result<[u16; 2], Unparsable> {
    match layer.protocol {
        icmpv4::PROTOCOL | icmpv6::PROTOCOL => {
            let [kind, code, _, _, a, b, _, _] = known(packet.read_at::<8>(layer.offset))?;
            Ok([u16::from_be_bytes([a, b]), u16::from_be_bytes([kind, code])])
        }
        gre::PROTOCOL => gre_keys(packet, layer.offset),
        _ => Ok([0, 0]),
    }
}

/// The call of a PPTP tunnel; other tunnels have one flow between two hosts. The call of the source is
/// known only from the tunnel's control connection, which is not followed: it is 0.
fn gre_keys(packet: &impl ReadAt, offset: usize) -> Result<[u16; 2], Unparsable> {
    const PPP: u16 = 0x880b;
    let fixed = match packet.read_at::<4>(offset) {
        Read::Known(fixed) => fixed,
        Read::Absent => return Ok([0, 0]),
        Read::Unknown => return Err(Unparsable::Unknown),
    };
    let [_, version, high, low] = fixed;
    if version & 0x07 != 1 {
        return Ok([0, 0]);
    }
    match packet.read_at::<8>(offset) {
        Read::Absent => Ok([0, 0]),
        Read::Unknown => Err(Unparsable::Unknown),
        Read::Known(_) if u16::from_be_bytes([high, low]) != PPP => Err(Unparsable::Invalid),
        Read::Known([_, _, _, _, _, _, a, b]) => Ok([0, u16::from_be_bytes([a, b])]),
    }
}

/// A segment's sequence number and payload. Its ports may not be known any more.
pub(crate) fn segment<'p>(
    packet: &'p Packet<'_>,
    offset: usize,
) -> Result<(u32, &'p [u8]), Unparsable> {
    const SEQUENCE: usize = 4;
    const DATA_OFFSET: usize = 12;
    let sequence = known(packet.read::<4>(offset + SEQUENCE))?;
    let [words] = known(packet.read::<1>(offset + DATA_OFFSET))?;
    let payload = known(rest(packet, offset + usize::from(words >> 4) * 4))?;
    Ok((u32::from_be_bytes(sequence), payload))
}
