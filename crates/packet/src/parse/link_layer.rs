//! Link headers: Ethernet with VLAN tags and SNAP, bare IP, Linux cooked capture, BSD loopback.
//!
//! Source: <https://www.tcpdump.org/linktypes.html>; packet types as Linux `eth_type_trans`
//! (`net/ethernet/eth.c`) gives them.

use crate::bytes::{Read, ReadAt, Snap};
use crate::field::{be16, be32, byte};
use crate::headers::{L3, L3Fault};
use crate::link::{Link, LinkHeader};
use crate::{ethernet, ethertype, vlan};
use std::ops::Range;

/// Tags walked over before a frame counts as neither IP nor ARP, as many as the kernel follows
/// (`VLAN_MAX_DEPTH`).
const MAX_TAGS: usize = 8;

/// Length in bytes of an LLC header with its SNAP extension.
const SNAP_LEN: usize = 8;
/// LLC of a SNAP frame: both service access points 0xaa, unnumbered information.
const SNAP_LLC: [u8; 3] = [0xaa, 0xaa, 0x03];
const SNAP_OUI: Range<usize> = 3..6;
const SNAP_TYPE: Range<usize> = 6..8;

const SLL_LEN: usize = 16;
const SLL_PACKET_TYPE: Range<usize> = 0..2;
const SLL_ARPHRD: Range<usize> = 2..4;
const SLL_ADDRESS: usize = 6;
const SLL_PROTOCOL: Range<usize> = 14..16;

const SLL2_LEN: usize = 20;
const SLL2_PROTOCOL: Range<usize> = 0..2;
const SLL2_IFINDEX: Range<usize> = 4..8;
const SLL2_ARPHRD: Range<usize> = 8..10;
const SLL2_PACKET_TYPE: Range<usize> = 10..11;
const SLL2_ADDRESS: usize = 12;

/// Device type of Ethernet (ARPHRD_ETHER).
const ARPHRD_ETHER: u16 = 1;
/// Device type of a loopback interface (ARPHRD_LOOPBACK).
const ARPHRD_LOOPBACK: u16 = 772;
/// Device type of a netlink monitor (ARPHRD_NETLINK): the protocol field is a netlink family.
const ARPHRD_NETLINK: u16 = 824;

/// Packet types of `linux/if_packet.h`.
const PACKET_HOST: u8 = 0;
const PACKET_BROADCAST: u8 = 1;
const PACKET_MULTICAST: u8 = 2;

/// A link header, and where the network header starts.
pub(super) struct LinkLayer {
    pub(super) header: LinkHeader,
    pub(super) network: usize,
    /// Set where the frame or the capture ends before the link header does.
    pub(super) cut: Option<L3>,
}

impl LinkLayer {
    fn whole(header: LinkHeader, network: usize) -> Self {
        Self { header, network, cut: None }
    }

    /// The link header could not be read: it is not all there, or was not all captured.
    fn cut<T>(header: LinkHeader, network: usize, read: &Read<T>) -> Self {
        let l3 = match read {
            Read::Absent => L3::Fault(L3Fault::Truncated),
            Read::Known(_) | Read::Unknown => L3::Unknown,
        };
        Self { header, network, cut: Some(l3) }
    }
}

/// Reads the link header of a frame.
#[inline]
pub(super) fn parse(link: Link, frame: Snap<'_>) -> LinkLayer {
    match link {
        Link::Ethernet => ethernet(frame),
        Link::Raw => raw(frame),
        Link::Ipv4 => bare(ethertype::IPV4),
        Link::Ipv6 => bare(ethertype::IPV6),
        Link::Sll => sll(frame),
        Link::Sll2 => sll2(frame),
        Link::Null | Link::Loop => family(frame),
    }
}

fn bare(ethertype: u16) -> LinkLayer {
    LinkLayer::whole(LinkHeader { ethertype, ..LinkHeader::default() }, 0)
}

/// A bare packet: the version nibble takes the place of the EtherType.
fn raw(frame: Snap<'_>) -> LinkLayer {
    match frame.read_at::<1>(0) {
        Read::Known([first]) => match first >> 4 {
            4 => bare(ethertype::IPV4),
            6 => bare(ethertype::IPV6),
            _ => LinkLayer {
                header: LinkHeader::default(),
                network: 0,
                cut: Some(L3::Fault(L3Fault::Version)),
            },
        },
        read => LinkLayer::cut(LinkHeader::default(), 0, &read),
    }
}

#[inline]
fn ethernet(frame: Snap<'_>) -> LinkLayer {
    let read = frame.read_at::<{ ethernet::HEADER_LEN }>(0);
    let Read::Known(bytes) = read else {
        return LinkLayer::cut(LinkHeader::default(), 0, &read);
    };
    let addresses: [u8; 12] = bytes.first_chunk().copied().unwrap_or_default();
    let header = LinkHeader {
        ethernet: Some(0),
        source_mac: Some(ethernet::SOURCE.start),
        ethertype: be16(&bytes, ethernet::TYPE),
        packet_type: Some(packet_type(&bytes)),
        loopback: addresses == [0; 12],
        ..LinkHeader::default()
    };
    if header.ethertype == ethertype::IPV4 {
        return LinkLayer::whole(header, ethernet::HEADER_LEN);
    }
    tagged(frame, header, ethernet::HEADER_LEN)
}

fn packet_type(header: &[u8; ethernet::HEADER_LEN]) -> u8 {
    let destination: [u8; 6] = header.first_chunk().copied().unwrap_or_default();
    match destination {
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => PACKET_BROADCAST,
        [first, ..] if first & 1 == 1 => PACKET_MULTICAST,
        _ => PACKET_HOST,
    }
}

/// Walks over VLAN tags, and over SNAP where an 802.3 length stands for the EtherType. `network` is the
/// offset behind the type field that `header.ethertype` was read from.
fn tagged(frame: Snap<'_>, mut header: LinkHeader, mut network: usize) -> LinkLayer {
    for _ in 0..MAX_TAGS {
        if !vlan::is_tag(header.ethertype) {
            break;
        }
        let read = frame.read_at::<{ vlan::HEADER_LEN }>(network);
        let Read::Known(tag) = read else {
            return LinkLayer::cut(header, network, &read);
        };
        push_tag(&mut header, be16(&tag, vlan::TCI));
        header.ethertype = be16(&tag, vlan::TYPE);
        network += vlan::HEADER_LEN;
    }
    if header.ethertype < ethertype::MIN {
        llc(frame, header, network)
    } else {
        LinkLayer::whole(header, network)
    }
}

fn push_tag(header: &mut LinkHeader, tci: u16) {
    if header.vlan.is_none() {
        header.vlan = Some(tci);
    } else if header.inner_vlan.is_none() {
        header.inner_vlan = Some(tci);
    }
}

/// An LLC header: SNAP of the EtherType kind names the network header, all else is LLC.
fn llc(frame: Snap<'_>, mut header: LinkHeader, network: usize) -> LinkLayer {
    header.ethertype = LinkHeader::LLC;
    match frame.read_at::<SNAP_LEN>(network) {
        Read::Known(bytes) if is_snap(&bytes) => {
            header.ethertype = be16(&bytes, SNAP_TYPE);
            LinkLayer::whole(header, network + SNAP_LEN)
        }
        Read::Known(_) | Read::Absent => LinkLayer::whole(header, network),
        Read::Unknown => LinkLayer { header, network, cut: Some(L3::Unknown) },
    }
}

/// SNAP whose OUI says that an EtherType follows: RFC 1042, or 802.1H's bridge tunnel.
fn is_snap(bytes: &[u8; SNAP_LEN]) -> bool {
    bytes.starts_with(&SNAP_LLC) && matches!(bytes.get(SNAP_OUI), Some([0, 0, 0 | 0xf8]))
}

fn sll(frame: Snap<'_>) -> LinkLayer {
    let read = frame.read_at::<SLL_LEN>(0);
    let Read::Known(bytes) = read else {
        return LinkLayer::cut(LinkHeader::default(), 0, &read);
    };
    let header = LinkHeader {
        ethertype: be16(&bytes, SLL_PROTOCOL),
        packet_type: u8::try_from(be16(&bytes, SLL_PACKET_TYPE)).ok(),
        source_mac: is_ethernet(be16(&bytes, SLL_ARPHRD)).then_some(SLL_ADDRESS),
        ..LinkHeader::default()
    };
    cooked(frame, header, be16(&bytes, SLL_ARPHRD), SLL_LEN)
}

fn sll2(frame: Snap<'_>) -> LinkLayer {
    let read = frame.read_at::<SLL2_LEN>(0);
    let Read::Known(bytes) = read else {
        return LinkLayer::cut(LinkHeader::default(), 0, &read);
    };
    let header = LinkHeader {
        ethertype: be16(&bytes, SLL2_PROTOCOL),
        packet_type: Some(byte(&bytes, SLL2_PACKET_TYPE)),
        source_mac: is_ethernet(be16(&bytes, SLL2_ARPHRD)).then_some(SLL2_ADDRESS),
        ifindex: Some(be32(&bytes, SLL2_IFINDEX)).filter(|index| *index != 0),
        ..LinkHeader::default()
    };
    cooked(frame, header, be16(&bytes, SLL2_ARPHRD), SLL2_LEN)
}

fn is_ethernet(arphrd: u16) -> bool {
    arphrd == ARPHRD_ETHER
}

/// Both cooked headers: what the device type says about the protocol field.
fn cooked(frame: Snap<'_>, mut header: LinkHeader, arphrd: u16, network: usize) -> LinkLayer {
    header.loopback = arphrd == ARPHRD_LOOPBACK;
    if arphrd == ARPHRD_NETLINK {
        header.ethertype = 0;
    }
    // Below the EtherTypes stand Linux's own protocol numbers, of which only LLC leads to a network
    // header.
    if header.ethertype < ethertype::MIN && header.ethertype != LinkHeader::LLC {
        return LinkLayer::whole(header, network);
    }
    tagged(frame, header, network)
}

/// BSD loopback: an address family, in the byte order of a host that is not known. Families are small
/// numbers, so only one of the two readings can be one; [`Link::Loop`] files exist in both orders too.
fn family(frame: Snap<'_>) -> LinkLayer {
    let mut header = LinkHeader { loopback: true, ..LinkHeader::default() };
    let read = frame.read_at::<4>(0);
    let Read::Known(bytes) = read else {
        return LinkLayer::cut(header, 0, &read);
    };
    header.ethertype = match u32::from_be_bytes(bytes).min(u32::from_le_bytes(bytes)) {
        2 => ethertype::IPV4,
        10 | 24 | 28 | 30 => ethertype::IPV6,
        _ => 0,
    };
    LinkLayer::whole(header, bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(link: Link, bytes: &[u8]) -> LinkLayer {
        parse(link, Snap::new(bytes, bytes.len()))
    }

    /// An Ethernet header to `destination`, then `rest` from the type field on, then four bytes.
    fn frame(destination: u8, rest: &[u8]) -> Vec<u8> {
        [&[destination; 6], [2; 6].as_slice(), rest, &[0x45, 0, 0, 0]].concat()
    }

    #[test]
    fn the_destination_gives_the_packet_type() {
        for (destination, kind) in [(0xff, 1), (0x01, 2), (0x02, 0)] {
            let found = read(Link::Ethernet, &frame(destination, &[8, 0]));
            assert_eq!(found.header.packet_type, Some(kind));
            assert_eq!((found.header.ethertype, found.network), (0x0800, 14));
            assert_eq!((found.header.ethernet, found.cut), (Some(0), None));
        }
    }

    #[test]
    fn two_tags_are_kept_and_more_are_walked_over() {
        let one = read(Link::Ethernet, &frame(2, &[0x81, 0, 0x20, 5, 8, 0]));
        assert_eq!((one.header.vlan, one.header.inner_vlan), (Some(0x2005), None));
        assert_eq!((one.header.ethertype, one.network), (0x0800, 18));
        let tags = [0x88, 0xa8, 0, 1, 0x91, 0, 0, 2, 0x81, 0, 0, 3, 0x86, 0xdd];
        let three = read(Link::Ethernet, &frame(2, &tags));
        assert_eq!((three.header.vlan, three.header.inner_vlan), (Some(1), Some(2)));
        assert_eq!((three.header.ethertype, three.network), (0x86dd, 26));
    }

    #[test]
    fn endless_tags_end_as_a_tag() {
        let tags = [0x81, 0, 0, 1].repeat(20);
        let found = read(Link::Ethernet, &frame(2, &tags));
        assert_eq!((found.header.ethertype, found.network), (0x8100, 14 + 4 * MAX_TAGS));
    }

    #[test]
    fn snap_names_an_ethertype_and_plain_llc_does_not() {
        let snap = [0, 30, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
        let found = read(Link::Ethernet, &frame(2, &snap));
        assert_eq!((found.header.ethertype, found.network), (0x0800, 22));
        let stp = [0, 30, 0x42, 0x42, 3, 0, 0, 0, 0, 0];
        let found = read(Link::Ethernet, &frame(1, &stp));
        assert_eq!((found.header.ethertype, found.network), (LinkHeader::LLC, 14));
        let cisco = [0, 30, 0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0];
        let found = read(Link::Ethernet, &frame(1, &cisco));
        assert_eq!(found.header.ethertype, LinkHeader::LLC);
    }

    #[test]
    fn a_runt_is_a_fault_and_a_short_capture_is_unknown() {
        let bytes = frame(2, &[0x81, 0, 0, 1, 8, 0]);
        for len in 0..18 {
            let cut = read(Link::Ethernet, &bytes[..len]).cut;
            assert_eq!(cut, Some(L3::Fault(L3Fault::Truncated)), "{len}");
            let cut = parse(Link::Ethernet, Snap::new(&bytes[..len], 60)).cut;
            assert_eq!(cut, Some(L3::Unknown), "{len}");
        }
    }

    #[test]
    fn raw_goes_by_the_version_nibble() {
        assert_eq!(read(Link::Raw, &[0x45]).header.ethertype, 0x0800);
        assert_eq!(read(Link::Raw, &[0x60]).header.ethertype, 0x86dd);
        assert_eq!(read(Link::Raw, &[0x50]).cut, Some(L3::Fault(L3Fault::Version)));
        assert_eq!(read(Link::Ipv4, &[0x60]).header.ethertype, 0x0800);
        assert_eq!(read(Link::Ipv6, &[]).header.ethertype, 0x86dd);
    }

    #[test]
    fn families_are_read_in_either_byte_order() {
        for (bytes, ethertype) in [
            ([2, 0, 0, 0], 0x0800),
            ([0, 0, 0, 2], 0x0800),
            ([30, 0, 0, 0], 0x86dd),
            ([0, 0, 0, 24], 0x86dd),
            ([7, 0, 0, 0], 0),
        ] {
            let found = read(Link::Null, &bytes);
            assert_eq!((found.header.ethertype, found.network), (ethertype, 4));
            assert!(found.header.loopback);
        }
    }

    #[test]
    fn cooked_headers_tell_type_interface_and_loopback() {
        let mut sll = [0u8; 16];
        sll[1] = 4;
        sll[2..4].copy_from_slice(&ARPHRD_LOOPBACK.to_be_bytes());
        sll[14..].copy_from_slice(&[0x86, 0xdd]);
        let found = read(Link::Sll, &sll);
        assert_eq!((found.header.ethertype, found.network), (0x86dd, 16));
        assert_eq!((found.header.packet_type, found.header.loopback), (Some(4), true));

        let mut sll2 = [0u8; 20];
        sll2[..2].copy_from_slice(&[0x81, 0x00]);
        sll2[7] = 3;
        sll2[9] = 1;
        sll2[10] = 2;
        let found = read(Link::Sll2, &[&sll2[..], &[0, 9, 8, 0]].concat());
        assert_eq!((found.header.ethertype, found.network), (0x0800, 24));
        assert_eq!((found.header.vlan, found.header.ifindex), (Some(9), Some(3)));
        assert_eq!((found.header.packet_type, found.header.loopback), (Some(2), false));
    }

    #[test]
    fn a_netlink_family_is_no_ethertype() {
        let mut sll = [0u8; 16];
        sll[2..4].copy_from_slice(&ARPHRD_NETLINK.to_be_bytes());
        sll[14..].copy_from_slice(&[0x08, 0x00]);
        assert_eq!(read(Link::Sll, &sll).header.ethertype, 0);
    }
}
