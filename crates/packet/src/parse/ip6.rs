//! IPv6: the tests of Linux `net/ipv6/ip6_input.c`, `ip6_rcv_core`, in its order, and of
//! `net/ipv6/exthdrs.c`, `ipv6_parse_hopopts`, which runs before the first hook.
//!
//! Two tests of the kernel depend on its configuration: a CALIPSO option is good if a domain of interpretation has been set
//! up for it (`net/ipv6/calipso.c`, `calipso_validate`), which nobody does without labelled networking, so that it is
//! refused; and IOAM is ignored as on an interface without it.

use super::checks::whole;
use crate::bytes::{Read, ReadAt, Snap};
use crate::field::{array, be16, byte};
use crate::headers::{Headers, L3, L3Fault, L4, Upper};
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

/// Finds the IPv6 header at `headers.network` and the upper-layer header at the end of its chain. A host refuses
/// some addresses; who passes packets on (`br_validate_ipv6`) refuses none.
pub(super) fn parse(frame: Snap<'_>, is_host: bool, headers: &mut Headers) -> Result<(), L3> {
    let network = headers.network;
    let header = match frame.read_at::<HEADER_LEN>(network) {
        Read::Unknown => return Err(first_byte(frame, network)),
        read => whole(read)?,
    };
    if byte(&header, 0..1) >> 4 != 6 {
        return Err(L3::Fault(L3Fault::Version));
    }
    if is_host && refuses_addresses(&header, headers.link.loopback) {
        return Err(L3::Fault(L3Fault::Address));
    }
    found(trimmed(frame, network, &header)?, headers);
    Ok(())
}

/// Finds the headers of a packet that was put together of fragments and begins with hop-by-hop options: they came after a
/// fragment header, where nobody tests them.
pub(super) fn put_together(packet: Snap<'_>, headers: &mut Headers) {
    found(packet, headers);
}

fn found(packet: Snap<'_>, headers: &mut Headers) {
    headers.end = packet.end();
    headers.l3 = L3::Ipv6;
    (headers.l4, headers.overrun) = upper(packet, headers.network);
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

/// The packet without what lies after its payload, its hop-by-hop options found good.
fn trimmed<'a>(frame: Snap<'a>, network: usize, header: &[u8; HEADER_LEN]) -> Result<Snap<'a>, L3> {
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
        end = hop_by_hop(frame.trim(end), network, payload_len)?;
    }
    Ok(frame.trim(end))
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

/// Bytes of the options header: without them it is malformed, or cannot be checked.
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
    /// Bytes of the packet after its fixed header.
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
            CALIPSO => false,
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

/// The upper layer, and whether the chain that leads to it claims more bytes than there are: kernels of old then find it
/// as absent as at the end of the packet.
fn upper(packet: Snap<'_>, network: usize) -> (L4, bool) {
    let end = packet.end();
    match ipv6_ext::find(&packet, network, None) {
        Find::Found { protocol, offset, fragment_offset: 0 } => {
            (L4::Upper(Upper { protocol, offset: offset.min(end) }), offset > end)
        }
        Find::Found { protocol, fragment_offset, .. } => {
            (L4::Fragment { protocol, offset: fragment_offset }, false)
        }
        // The kernel's search leaves the fragment offset at 0 whenever it fails.
        Find::Missing | Find::Truncated => (L4::Broken { fragment: false }, false),
        Find::Unknown => (L4::Unknown, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Link;
    use crate::{Checksums, Packet, parse as parse_frame};

    /// A packet from 2001:db8::1 to 2001:db8::2 with this next header and payload.
    fn packet(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
        for last in [1, 2] {
            bytes.extend_from_slice(&Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last).octets());
        }
        bytes.extend_from_slice(payload);
        bytes
    }

    fn headers(bytes: &[u8], wire_len: usize) -> Headers {
        parse_frame(Link::Ipv6, bytes, wire_len, Checksums::Ignore)
    }

    fn l3(bytes: &[u8]) -> L3 {
        headers(bytes, bytes.len()).l3
    }

    fn between(source: &str, destination: &str) -> Vec<u8> {
        let mut bytes = packet(59, &[]);
        let octets = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
        bytes[ipv6::SOURCE].copy_from_slice(&octets(source));
        bytes[ipv6::DESTINATION].copy_from_slice(&octets(destination));
        bytes
    }

    /// The layer found in a packet whose hop-by-hop header holds these options, then 8 bytes of UDP.
    fn with_options(options: &[u8]) -> L3 {
        assert_eq!((options.len() + 2) % 8, 0);
        let header = [17, (options.len() / 8) as u8];
        l3(&packet(HOP_BY_HOP, &[&header, options, &[0; 8]].concat()))
    }

    const REFUSED: L3 = L3::Fault(L3Fault::HopByHop);

    #[test]
    fn padding_after_the_payload_is_trimmed() {
        let mut bytes = packet(17, &[0; 12]);
        bytes.resize(60, 0);
        let found = headers(&bytes, 60);
        assert_eq!((found.l3, found.end), (L3::Ipv6, 52));
        assert_eq!(found.l4, L4::Upper(Upper { protocol: 17, offset: 40 }));
        let found = headers(&packet(17, &[]), 60);
        assert_eq!((found.end, found.l4), (40, L4::Upper(Upper { protocol: 17, offset: 40 })));
    }

    #[test]
    fn options_are_not_tested_in_a_packet_that_was_put_together() {
        let mut bytes =
            packet(HOP_BY_HOP, &[17, 0, CALIPSO, 4, 0, 0, 0, 0, 0, 5, 0, 6, 0, 8, 0, 0]);
        assert_eq!(l3(&bytes), REFUSED);
        let len = bytes.len();
        let whole = Packet::put_together(&mut bytes, Link::Raw, Checksums::Ignore);
        let found = (whole.headers().l3, whole.headers().l4, whole.headers().end);
        assert_eq!(found, (L3::Ipv6, L4::Upper(Upper { protocol: 17, offset: 48 }), len));
    }

    #[test]
    fn length_and_version_are_faults() {
        let bytes = packet(17, &[0; 12]);
        assert_eq!(l3(&bytes[..51]), L3::Fault(L3Fault::Length));
        for len in 0..40 {
            assert_eq!(l3(&bytes[..len]), L3::Fault(L3Fault::Truncated), "{len}");
            assert_eq!(headers(&bytes[..len], 52).l3, L3::Unknown, "{len}");
        }
        assert_eq!(l3(&[0x45; 40]), L3::Fault(L3Fault::Version));
        assert_eq!(headers(&[0x45], 40).l3, L3::Fault(L3Fault::Version));
    }

    #[test]
    fn addresses_that_the_kernel_refuses_from_a_device() {
        for (source, destination) in [
            ("::1", "2001:db8::2"),
            ("2001:db8::1", "::1"),
            ("ff02::1", "2001:db8::2"),
            ("2001:db8::1", "ff01::1"),
            ("2001:db8::1", "ff00::1"),
        ] {
            let bytes = between(source, destination);
            assert_eq!(l3(&bytes), L3::Fault(L3Fault::Address), "{source} {destination}");
        }
        for (source, destination) in
            [("::", "ff02::1"), ("fe80::1", "2001:db8::2"), ("::ffff:10.0.0.1", "2001:db8::2")]
        {
            assert_eq!(l3(&between(source, destination)), L3::Ipv6, "{source} {destination}");
        }
    }

    #[test]
    fn loopback_links_may_carry_loopback_addresses() {
        let on_lo = |packet: &[u8]| {
            let mut frame = vec![0; 12];
            frame.extend_from_slice(&[0x86, 0xdd]);
            frame.extend_from_slice(packet);
            parse_frame(Link::Ethernet, &frame, frame.len(), Checksums::Ignore).l3
        };
        assert_eq!(on_lo(&between("::1", "::1")), L3::Ipv6);
        assert_eq!(on_lo(&between("::1", "ff01::1")), L3::Ipv6);
        assert_eq!(on_lo(&between("ff02::1", "::1")), L3::Fault(L3Fault::Address));
        assert_eq!(on_lo(&between("::1", "ff00::1")), L3::Fault(L3Fault::Address));
    }

    #[test]
    fn hop_by_hop_options_are_checked_one_by_one() {
        let router_alert = [ROUTER_ALERT, 2, 0, 0];
        assert_eq!(with_options(&[&router_alert[..], &[PADN, 0]].concat()), L3::Ipv6);
        assert_eq!(with_options(&[PADN, 4, 0, 0, 0, 0]), L3::Ipv6);
        assert_eq!(with_options(&[0x1e, 4, 1, 2, 3, 4]), L3::Ipv6);
        assert_eq!(with_options(&[IOAM, 4, 1, 2, 3, 4]), REFUSED);
        assert_eq!(with_options(&[0, 0, IOAM, 2, 1, 2]), L3::Ipv6);
        for discard in [0x40, 0x80, 0xde] {
            assert_eq!(with_options(&[discard, 4, 1, 2, 3, 4]), REFUSED, "{discard:#x}");
        }
        assert_eq!(with_options(&[ROUTER_ALERT, 1, 0, 0, 0, 0]), REFUSED);
        assert_eq!(with_options(&[PADN, 5, 0, 0, 0, 0]), REFUSED);
        assert_eq!(with_options(&[PADN, 4, 0, 1, 0, 0]), REFUSED);
        assert_eq!(with_options(&[0, 0, 0, 0, 0, 0x1e]), REFUSED);
    }

    #[test]
    fn padding_and_options_are_limited() {
        assert_eq!(with_options(&[PADN, 4, 0, 0, 0, 0, 0, 0x1e, 0, 0, 0, 0, 0, 0]), L3::Ipv6);
        assert_eq!(with_options(&[PADN, 4, 0, 0, 0, 0, 0, 0, 0x1e, 0, 0, 0, 0, 0]), REFUSED);
        assert_eq!(with_options(&[&[0x1e, 0].repeat(8)[..], &[0; 6]].concat()), L3::Ipv6);
        assert_eq!(with_options(&[&[0x1e, 0].repeat(9)[..], &[0; 4]].concat()), REFUSED);
    }

    /// The second one has the checksum that `calipso_validate` asks for.
    #[test]
    fn a_label_is_refused_without_a_domain() {
        for checksum in [[0, 0], [0x03, 0xd3]] {
            let [low, high] = checksum;
            let option = [CALIPSO, 8, 0, 0, 0, 1, 0, 0, low, high, 0, 0, 0, 0];
            assert_eq!(with_options(&option), REFUSED);
        }
    }

    #[test]
    fn a_cut_options_header_is_a_fault_on_the_wire_and_unknown_in_the_capture() {
        let mut bytes = packet(HOP_BY_HOP, &[17, 1, 1, 4, 0, 0, 0, 0]);
        assert_eq!(l3(&bytes), REFUSED);
        bytes[41] = 0;
        assert_eq!(l3(&bytes), L3::Ipv6);
        assert_eq!(headers(&bytes[..47], 48).l3, L3::Unknown);
        bytes[5] = 7;
        assert_eq!(l3(&bytes), REFUSED);
    }

    #[test]
    fn a_jumbo_option_gives_the_length() {
        let jumbo = |len: u32, payload: usize| {
            let mut bytes = packet(HOP_BY_HOP, &[17, 0, JUMBO, 4]);
            bytes.extend_from_slice(&len.to_be_bytes());
            bytes.resize(40 + payload, 0);
            bytes[5] = 0;
            headers(&bytes, bytes.len())
        };
        let found = jumbo(70_000, 70_010);
        assert_eq!((found.l3, found.end), (L3::Ipv6, 70_040));
        assert_eq!(found.l4, L4::Upper(Upper { protocol: 17, offset: 48 }));
        assert_eq!(jumbo(70_000, 69_999).l3, REFUSED);
        assert_eq!(jumbo(65_535, 70_000).l3, REFUSED);
        assert_eq!(with_options(&[JUMBO, 4, 0, 1, 0x11, 0x70]), REFUSED);
    }

    #[test]
    fn without_a_jumbo_option_a_zero_length_keeps_the_frame() {
        let mut bytes = packet(HOP_BY_HOP, &[17, 0, 1, 4, 0, 0, 0, 0, 0, 0]);
        bytes[5] = 0;
        assert_eq!(headers(&bytes, 60).end, 60);
    }

    #[test]
    fn an_extension_header_that_claims_too_much_is_told() {
        let found = |units| headers(&packet(60, &[6, units, 1, 4, 0, 0, 0, 0]), 48);
        let at_end = L4::Upper(Upper { protocol: 6, offset: 48 });
        assert_eq!((found(0).l4, found(0).overrun), (at_end, false));
        assert_eq!((found(1).l4, found(1).overrun), (at_end, true));
    }

    #[test]
    fn the_upper_layer_is_told_by_the_chain() {
        let l4 = |next, payload: &[u8]| {
            let bytes = packet(next, payload);
            headers(&bytes, bytes.len()).l4
        };
        assert_eq!(l4(59, &[]), L4::Upper(Upper { protocol: 59, offset: 40 }));
        assert_eq!(l4(60, &[6, 9, 0, 0]), L4::Upper(Upper { protocol: 6, offset: 44 }));
        assert_eq!(l4(43, &[6, 0, 0]), L4::Broken { fragment: false });
        let fragment = [17, 0, 0x01, 0x01, 0, 0, 0, 1];
        assert_eq!(l4(44, &fragment), L4::Fragment { protocol: 17, offset: 0x100 });
        let hidden = [60, 0, 0x01, 0x01, 0, 0, 0, 1];
        assert_eq!(l4(44, &hidden), L4::Broken { fragment: false });
        let bytes = packet(60, &[6, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(headers(&bytes[..41], 48).l4, L4::Unknown);
    }
}
