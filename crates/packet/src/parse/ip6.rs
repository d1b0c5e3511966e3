//! IPv6: the tests of Linux `net/ipv6/ip6_input.c`, `ip6_rcv_core`, in its order, and of
//! `net/ipv6/exthdrs.c`, `ipv6_parse_hopopts`, which runs before the first hook.
//!
//! Two tests of the kernel hang on its configuration and are left out as their default leaves them: the
//! CALIPSO option is taken by its lengths alone, and IOAM is ignored as on an interface without it.

use super::Network;
use crate::bytes::{Read, ReadAt, Snap};
use crate::field::{array, be16, byte};
use crate::headers::{L3, L3Fault, L4, Upper};
use crate::ipv6::{self, HEADER_LEN};
use crate::ipv6_ext::{self, Find, HOP_BY_HOP};
use std::net::Ipv6Addr;

/// Options of a hop-by-hop header, paddings not counted, beyond which the kernel drops
/// (`net.ipv6.max_hbh_opts_number`).
const MAX_OPTIONS: usize = 8;
/// Bytes of padding in a row beyond which the kernel drops.
const MAX_PADDING: usize = 7;

const PAD1: u8 = 0;
const PADN: u8 = 1;
const ROUTER_ALERT: u8 = 5;
const CALIPSO: u8 = 7;
const IOAM: u8 = 0x31;
const JUMBO: u8 = 0xc2;
/// Bits of an option type that say what to do with an unknown option: 0 is to skip it.
const UNKNOWN_ACTION: u8 = 0xc0;

/// Finds the IPv6 header at `network` and the upper-layer header at the end of its chain.
pub(super) fn parse(bytes: &[u8], frame: Snap<'_>, network: usize, loopback: bool) -> Network {
    let wire_end = frame.end();
    let header = match frame.read_at::<HEADER_LEN>(network) {
        Read::Known(header) => header,
        Read::Unknown => return Network::only(first_byte(frame, network), wire_end),
        Read::Absent => return Network::fault(L3Fault::Truncated, wire_end),
    };
    if byte(&header, 0..1) >> 4 != 6 {
        return Network::fault(L3Fault::Version, wire_end);
    }
    if refuses_addresses(&header, loopback) {
        return Network::fault(L3Fault::Address, wire_end);
    }
    match trimmed(bytes, frame, network, &header) {
        Ok(packet) => {
            let l4 = upper(packet, network);
            Network { l3: L3::Ipv6, l4, end: packet.end(), offload: false }
        }
        Err(l3) => Network::only(l3, wire_end),
    }
}

/// The header was on the wire but is not all captured; its first byte may still refuse it.
fn first_byte(frame: Snap<'_>, network: usize) -> L3 {
    match frame.read_at::<1>(network) {
        Read::Known([first]) if first >> 4 != 6 => L3::Fault(L3Fault::Version),
        _ => L3::Unknown,
    }
}

fn refuses_addresses(header: &[u8; HEADER_LEN], loopback: bool) -> bool {
    let source = Ipv6Addr::from(array::<16>(header, ipv6::SOURCE));
    let destination = Ipv6Addr::from(array::<16>(header, ipv6::DESTINATION));
    let scope = destination.is_multicast().then(|| destination.octets()[1] & 0x0f);
    let from_outside = source.is_loopback() || destination.is_loopback() || scope == Some(1);
    (from_outside && !loopback) || scope == Some(0) || source.is_multicast()
}

/// The packet without what lies behind its payload, its hop-by-hop options found good.
fn trimmed<'a>(
    bytes: &'a [u8],
    frame: Snap<'a>,
    network: usize,
    header: &[u8; HEADER_LEN],
) -> Result<Snap<'a>, L3> {
    let payload_len = usize::from(be16(header, ipv6::PAYLOAD_LEN));
    let has_hop_by_hop = byte(header, ipv6::NEXT_HEADER) == HOP_BY_HOP;
    let mut end = frame.end();
    // With a hop-by-hop header, 0 may announce a jumbo payload: then the option tells the length.
    if payload_len > 0 || !has_hop_by_hop {
        let stop = network + HEADER_LEN + payload_len;
        if stop > end {
            return Err(L3::Fault(L3Fault::Length));
        }
        end = stop;
    }
    if has_hop_by_hop {
        end = hop_by_hop(Snap::new(bytes, end), network, payload_len)?;
    }
    Ok(Snap::new(bytes, end))
}

/// Where the packet ends, after the tests of its hop-by-hop options.
fn hop_by_hop(packet: Snap<'_>, network: usize, payload_len: usize) -> Result<usize, L3> {
    let start = network + HEADER_LEN;
    let [_, units, ..] = known(packet.read_at::<8>(start))?;
    let len = (usize::from(units) + 1) * 8;
    let header = known(packet.slice(start, len))?;
    let mut options = HopByHop { payload_len, available: packet.end() - start, jumbo: None };
    if !options.accepts(header) {
        return Err(L3::Fault(L3Fault::HopByHop));
    }
    Ok(options.jumbo.map_or(packet.end(), |jumbo| start + jumbo))
}

/// Bytes of the options header: without them it is malformed, or cannot be judged.
fn known<T>(read: Read<T>) -> Result<T, L3> {
    match read {
        Read::Known(bytes) => Ok(bytes),
        Read::Absent => Err(L3::Fault(L3Fault::HopByHop)),
        Read::Unknown => Err(L3::Unknown),
    }
}

/// The walk over the options of one hop-by-hop header.
struct HopByHop {
    payload_len: usize,
    /// Bytes of the packet behind its fixed header.
    available: usize,
    /// Payload length in bytes of a jumbo option.
    jumbo: Option<usize>,
}

impl HopByHop {
    /// Whether every option is well formed and none asks for the packet to be dropped.
    fn accepts(&mut self, header: &[u8]) -> bool {
        let (mut at, mut padding, mut count) = (2, 0, 0);
        while let Some(&kind) = header.get(at) {
            if kind == PAD1 {
                (at, padding) = (at + 1, padding + 1);
            } else {
                let Some(body) = body(header, at) else { return false };
                if kind == PADN {
                    padding += 2 + body.len();
                    if body.iter().any(|byte| *byte != 0) {
                        return false;
                    }
                } else {
                    (padding, count) = (0, count + 1);
                    if count > MAX_OPTIONS || !self.accepts_option(kind, body, at) {
                        return false;
                    }
                }
                at += 2 + body.len();
            }
            if padding > MAX_PADDING {
                return false;
            }
        }
        true
    }

    /// `at` is the option's offset in the options header; alignments count from the fixed header, whose
    /// 40 bytes change nothing about them.
    fn accepts_option(&mut self, kind: u8, body: &[u8], at: usize) -> bool {
        match kind {
            ROUTER_ALERT => body.len() == 2,
            IOAM => at.is_multiple_of(4),
            CALIPSO => body
                .get(4)
                .is_some_and(|words| body.len() >= 8 && usize::from(*words) * 4 + 8 <= body.len()),
            JUMBO => at % 4 == 2 && self.accepts_jumbo(body),
            _ => kind & UNKNOWN_ACTION == 0,
        }
    }

    fn accepts_jumbo(&mut self, body: &[u8]) -> bool {
        let Ok(bytes) = <[u8; 4]>::try_from(body) else { return false };
        let len = u32::from_be_bytes(bytes) as usize;
        self.jumbo = Some(len);
        len > usize::from(u16::MAX) && self.payload_len == 0 && len <= self.available
    }
}

/// What follows the type and length bytes of the option at `at`.
fn body(header: &[u8], at: usize) -> Option<&[u8]> {
    let len = usize::from(*header.get(at + 1)?);
    header.get(at + 2..at + 2 + len)
}

fn upper(packet: Snap<'_>, network: usize) -> L4 {
    match ipv6_ext::find(&packet, network, None) {
        Find::Found { protocol, offset, fragment_offset: 0 } => {
            // A last extension header may claim more bytes than there are: the kernel then looks for
            // the upper layer beyond the end and finds it as absent as at the end.
            L4::Upper(Upper { protocol, offset: offset.min(packet.end()) })
        }
        Find::Found { protocol, fragment_offset, .. } => {
            L4::Fragment { protocol, offset: fragment_offset }
        }
        // The kernel's search leaves the fragment offset at 0 whenever it fails.
        Find::Missing | Find::Truncated => L4::Broken { fragment: false },
        Find::Unknown => L4::Unknown,
    }
}
