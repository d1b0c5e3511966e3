//! Link headers: Ethernet with VLAN tags, SNAP and PPPoE, bare IP, Linux cooked capture, BSD loopback,
//! NFLOG.
//!
//! Source: <https://www.tcpdump.org/linktypes.html>; packet types as Linux `eth_type_trans`
//! (`net/ethernet/eth.c`) gives them.

use super::checks::whole;
use crate::bytes::{Read, ReadAt, Snap};
use crate::field::{array, be16, be32, byte};
use crate::headers::{Headers, L3, L3Fault};
use crate::link::{Link, LinkHeader};
use crate::nflog::Record;
use crate::{ethernet, ethertype, pppoe, vlan};
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

/// Reads the link header of a frame into `headers.link`, and sets `headers.network` after it. The error
/// is what stands for the network layer where the frame or the capture ends before.
#[inline]
pub(super) fn parse(link: Link, frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    match link {
        Link::Ethernet => ethernet(frame, headers),
        Link::Wire => wire(frame, headers),
        Link::Raw => raw(frame, headers),
        Link::Ipv4 => bare(ethertype::IPV4, headers),
        Link::Ipv6 => bare(ethertype::IPV6, headers),
        Link::Sll => sll(frame, headers),
        Link::Sll2 => sll2(frame, headers),
        Link::Null | Link::Loop => family(frame, headers),
        Link::Nflog => nflog(frame, headers),
    }
}

fn bare(ethertype: u16, headers: &mut Headers) -> Result<(), L3> {
    headers.link.ethertype = ethertype;
    Ok(())
}

/// A bare packet: the version nibble takes the place of the EtherType.
fn raw(frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    let [first] = whole(frame.read_at(0))?;
    match first >> 4 {
        4 => bare(ethertype::IPV4, headers),
        6 => bare(ethertype::IPV6, headers),
        _ => Err(L3::Fault(L3Fault::Version)),
    }
}

#[inline]
fn ethernet(frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    let bytes = whole(frame.read_at::<{ ethernet::HEADER_LEN }>(0))?;
    let addresses: [u8; 12] = array(&bytes, ethernet::DESTINATION.start..ethernet::SOURCE.end);
    headers.link.ethernet = Some(0);
    headers.link.source_mac = Some(ethernet::SOURCE.start);
    headers.link.ethertype = be16(&bytes, ethernet::TYPE);
    headers.link.packet_type = Some(packet_type(array(&bytes, ethernet::DESTINATION)));
    headers.link.loopback = addresses == [0; 12];
    headers.network = ethernet::HEADER_LEN;
    if headers.link.ethertype == ethertype::IPV4 {
        return Ok(());
    }
    tagged(frame, headers)
}

/// An Ethernet header, its tags, and the header of a PPPoE session that carries IP. Any other session is one.
fn wire(frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    ethernet(frame, headers)?;
    if headers.link.ethertype != ethertype::PPPOE {
        return Ok(());
    }
    let header = whole(frame.read_at::<{ pppoe::HEADER_LEN }>(headers.network))?;
    let protocol = whole(frame.read_at::<1>(headers.network + pppoe::HEADER_LEN))?;
    let (protocol, len) = match protocol {
        [short] if short & 1 == 1 => (u16::from(short), 1),
        _ => {
            let [high, low] = whole(frame.read_at::<2>(headers.network + pppoe::HEADER_LEN))?;
            (u16::from_be_bytes([high, low]), 2)
        }
    };
    if let Some(ethertype) = pppoe::ethertype_of(&header, protocol) {
        headers.link.ethertype = ethertype;
        headers.network += pppoe::HEADER_LEN + len;
    }
    Ok(())
}

/// The EtherType of an Ethernet frame, as [`crate::parse()`] finds it on a [`Link::Wire`], where nothing but its
/// addresses stands before it; `None` where more is to be looked at: tags, SNAP, a PPPoE session, or too few bytes.
#[inline]
#[must_use]
pub fn plain_ethertype(frame: &[u8]) -> Option<u16> {
    let (header, after) = frame.split_at_checked(ethernet::HEADER_LEN)?;
    let llc = after.first_chunk()?;
    match be16(header.first_chunk::<{ ethernet::HEADER_LEN }>()?, ethernet::TYPE) {
        tag if vlan::is_tag(tag) => None,
        ethertype::PPPOE => None,
        length if length < ethertype::MIN => (*llc != SNAP_LLC).then_some(LinkHeader::LLC),
        plain => Some(plain),
    }
}

/// An Ethernet header with its first tag, which the kernel takes off a frame before a bridge gets it.
///
/// Source: Linux `br_handle_frame` (`net/bridge/br_input.c`), `skb_vlan_untag`.
pub(super) fn bridged(frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    let bytes = whole(frame.read_at::<{ ethernet::HEADER_LEN }>(0))?;
    let source: [u8; 6] = array(&bytes, ethernet::SOURCE);
    headers.link.ethernet = Some(0);
    headers.link.source_mac = Some(ethernet::SOURCE.start);
    headers.link.packet_type = Some(packet_type(array(&bytes, ethernet::DESTINATION)));
    headers.link.ethertype = be16(&bytes, ethernet::TYPE);
    headers.network = ethernet::HEADER_LEN;
    if matches!(headers.link.ethertype, ethertype::VLAN | ethertype::QINQ) {
        // The tag and the type after it, and two bytes more.
        let tag = whole(frame.read_at::<{ vlan::HEADER_LEN + 2 }>(headers.network))?;
        push_tag(&mut headers.link, be16(&tag, vlan::TCI));
        headers.network += vlan::HEADER_LEN;
    }
    if headers.link.ethertype < ethertype::MIN {
        headers.link.ethertype = LinkHeader::LLC;
    }
    if source[0] & 1 == 1 || source == [0; 6] {
        return Err(L3::Fault(L3Fault::Address));
    }
    Ok(())
}

#[inline]
pub(super) fn packet_type(destination: [u8; 6]) -> u8 {
    match destination {
        [first, ..] if first & 1 == 0 => PACKET_HOST,
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => PACKET_BROADCAST,
        _ => PACKET_MULTICAST,
    }
}

/// Walks over VLAN tags, and over SNAP where an 802.3 length stands for the EtherType.
/// `headers.network` is the offset after the type field that the EtherType was read from.
fn tagged(frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    for _ in 0..MAX_TAGS {
        if !vlan::is_tag(headers.link.ethertype) {
            break;
        }
        let tag = whole(frame.read_at::<{ vlan::HEADER_LEN }>(headers.network))?;
        push_tag(&mut headers.link, be16(&tag, vlan::TCI));
        headers.link.ethertype = be16(&tag, vlan::TYPE);
        headers.network += vlan::HEADER_LEN;
    }
    if headers.link.ethertype < ethertype::MIN { llc(frame, headers) } else { Ok(()) }
}

fn push_tag(header: &mut LinkHeader, tci: u16) {
    if header.vlan.is_none() {
        header.vlan = Some(tci);
    } else if header.inner_vlan.is_none() {
        header.inner_vlan = Some(tci);
    }
}

/// An LLC header: SNAP of the EtherType kind names the network header, all else is LLC.
fn llc(frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    headers.link.ethertype = LinkHeader::LLC;
    match frame.read_at::<SNAP_LEN>(headers.network) {
        Read::Known(bytes) if is_snap(&bytes) => {
            headers.link.ethertype = be16(&bytes, SNAP_TYPE);
            headers.network += SNAP_LEN;
            Ok(())
        }
        Read::Known(_) | Read::Absent => Ok(()),
        Read::Unknown => Err(L3::Unknown),
    }
}

/// SNAP whose OUI says that an EtherType follows: RFC 1042, or 802.1H's bridge tunnel.
fn is_snap(bytes: &[u8; SNAP_LEN]) -> bool {
    bytes.starts_with(&SNAP_LLC) && matches!(bytes.get(SNAP_OUI), Some([0, 0, 0 | 0xf8]))
}

fn sll(frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    let bytes = whole(frame.read_at::<SLL_LEN>(0))?;
    headers.network = SLL_LEN;
    headers.link.source_mac = source_mac(be16(&bytes, SLL_ARPHRD), SLL_ADDRESS);
    headers.link.ethertype = be16(&bytes, SLL_PROTOCOL);
    headers.link.packet_type = u8::try_from(be16(&bytes, SLL_PACKET_TYPE)).ok();
    cooked(frame, be16(&bytes, SLL_ARPHRD), headers)
}

fn sll2(frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    let bytes = whole(frame.read_at::<SLL2_LEN>(0))?;
    headers.network = SLL2_LEN;
    headers.link.source_mac = source_mac(be16(&bytes, SLL2_ARPHRD), SLL2_ADDRESS);
    headers.link.ethertype = be16(&bytes, SLL2_PROTOCOL);
    headers.link.packet_type = Some(byte(&bytes, SLL2_PACKET_TYPE));
    headers.link.ifindex = Some(be32(&bytes, SLL2_IFINDEX)).filter(|index| *index != 0);
    cooked(frame, be16(&bytes, SLL2_ARPHRD), headers)
}

/// Where the sender's address stands, if the device was Ethernet.
fn source_mac(arphrd: u16, offset: usize) -> Option<usize> {
    (arphrd == ARPHRD_ETHER).then_some(offset)
}

/// Both cooked headers: what the device type says about the protocol field.
fn cooked(frame: Snap<'_>, arphrd: u16, headers: &mut Headers) -> Result<(), L3> {
    headers.link.loopback = arphrd == ARPHRD_LOOPBACK;
    if arphrd == ARPHRD_NETLINK {
        headers.link.ethertype = 0;
    }
    // Below the EtherTypes stand Linux's own protocol numbers, of which only LLC leads to a network
    // header.
    let ethertype = headers.link.ethertype;
    let is_linux_only = ethertype < ethertype::MIN && ethertype != LinkHeader::LLC;
    if is_linux_only { Ok(()) } else { tagged(frame, headers) }
}

/// A record of the firewall's: the packet in it.
fn nflog(frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    let record = Record::read(frame.captured()).ok_or(L3::Unknown)?;
    headers.network = record.packet.start;
    headers.link.source_mac = record.source_mac;
    // The kernel took it, from whatever link.
    headers.link.loopback = true;
    headers.link.ethertype =
        record.ethertype.filter(|ethertype| *ethertype != 0).unwrap_or(match record.family {
            2 => ethertype::IPV4,
            10 => ethertype::IPV6,
            _ => 0,
        });
    Ok(())
}

/// BSD loopback: an address family, in the byte order of a host that is not known. Families are small
/// numbers, so only one of the two readings can be one; [`Link::Loop`] files exist in both orders too.
fn family(frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    headers.link.loopback = true;
    let bytes = whole(frame.read_at::<4>(0))?;
    headers.network = bytes.len();
    headers.link.ethertype = match u32::from_be_bytes(bytes).min(u32::from_le_bytes(bytes)) {
        2 => ethertype::IPV4,
        10 | 24 | 28 | 30 => ethertype::IPV6,
        _ => 0,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::L4;

    /// What the link header says, where the network header starts, and what stands for the network
    /// layer where the link header is cut.
    struct Found {
        header: LinkHeader,
        network: usize,
        cut: Option<L3>,
    }

    fn read_cut(link: Link, bytes: &[u8], wire_len: usize) -> Found {
        let mut headers = Headers {
            link: LinkHeader::default(),
            network: 0,
            end: wire_len,
            l3: L3::Other,
            l4: L4::None,
            offload: false,
            overrun: false,
        };
        let cut = parse(link, Snap::new(bytes, wire_len), &mut headers).err();
        Found { header: headers.link, network: headers.network, cut }
    }

    fn read(link: Link, bytes: &[u8]) -> Found {
        read_cut(link, bytes, bytes.len())
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
            let cut = read_cut(Link::Ethernet, &bytes[..len], 60).cut;
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
