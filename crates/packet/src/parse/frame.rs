//! [`parse()`] and its like: layer after layer of a frame.

use super::checks::{Checksums, whole};
use super::{ip4, ip6, link_layer, plain};
use crate::bytes::{Packet, ReadAt, Snap};
use crate::headers::{Headers, L3, L3Fault};
use crate::link::Link;
use crate::{arp, ethertype};

/// Finds the headers of a frame of which `bytes` were captured. `wire_len` is the length of the frame on
/// the wire; one below the captured length is taken as the captured length.
#[inline]
#[must_use]
pub fn parse(link: Link, bytes: &[u8], wire_len: usize, checksums: Checksums) -> Headers {
    let mut headers = Headers::default();
    parse_into(&mut headers, link, bytes, wire_len, checksums);
    headers
}

/// Writes what [`parse()`] returns where it is to stay: moving headers costs as much as finding them. So each layer
/// writes into the caller's, too.
#[inline]
pub fn parse_into(
    headers: &mut Headers,
    link: Link,
    bytes: &[u8],
    wire_len: usize,
    checksums: Checksums,
) {
    let wire_len = wire_len.max(bytes.len());
    if !link.is_ethernet() || !plain::parse(bytes, wire_len, checksums, headers) {
        find(headers, link, bytes, wire_len, checksums);
    }
}

impl<'a> Packet<'a> {
    /// Finds the headers of a frame of which `bytes` were captured. `wire_len` is the length of the
    /// frame on the wire; one below the captured length is taken as the captured length.
    #[inline]
    #[must_use]
    pub fn parse(bytes: &'a mut [u8], wire_len: usize, link: Link, checksums: Checksums) -> Self {
        let headers = parse(link, bytes, wire_len, checksums);
        Self::with_headers(bytes, headers)
    }

    /// Finds the headers of a packet that the host has put together of fragments, as [`Packet::parse`] does but for what is
    /// tested of frames that arrive alone.
    #[must_use]
    pub fn put_together(bytes: &'a mut [u8], link: Link, checksums: Checksums) -> Self {
        let len = bytes.len();
        let mut headers = parse(link, bytes, len, checksums);
        if headers.l3 == L3::Fault(L3Fault::HopByHop) {
            ip6::put_together(Snap::new(bytes, len), &mut headers);
        }
        Self::with_headers(bytes, headers)
    }
}

/// Finds the headers of an Ethernet frame as a bridge sees it: the link header with one VLAN tag, and after
/// it whatever the frame holds, to its end. `link.ethertype` is that of the tag where there is one. The
/// network header is [`L3::Other`], or a fault where a bridge takes no such frame.
#[must_use]
pub fn parse_frame(bytes: &[u8], wire_len: usize) -> Headers {
    let wire_len = wire_len.max(bytes.len());
    let mut headers = Headers { end: wire_len, ..Headers::default() };
    if let Err(l3) = link_layer::bridged(Snap::new(bytes, wire_len), &mut headers) {
        headers.l3 = l3;
    }
    headers
}

#[inline(never)]
pub(super) fn find(
    headers: &mut Headers,
    link: Link,
    bytes: &[u8],
    wire_len: usize,
    checksums: Checksums,
) {
    *headers = Headers { end: wire_len, ..Headers::default() };
    if let Err(l3) = layers(link, Snap::new(bytes, wire_len), checksums, headers) {
        headers.l3 = l3;
    }
}

/// Reads layer after layer, up to a faulty or uncaptured one: the error is then what stands for the network layer.
#[inline]
fn layers(
    link: Link,
    frame: Snap<'_>,
    checksums: Checksums,
    headers: &mut Headers,
) -> Result<(), L3> {
    link_layer::parse(link, frame, headers)?;
    match headers.link.ethertype {
        ethertype::IPV4 => ip4::parse(frame, checksums, headers),
        ethertype::IPV6 => ip6::parse(frame, link != Link::Wire, headers),
        ethertype::ARP => arp_rcv(frame, headers),
        _ => Ok(()),
    }
}

/// The entry tests of `net/ipv4/arp.c`, `arp_rcv`, for a device with 6-byte addresses.
fn arp_rcv(frame: Snap<'_>, headers: &mut Headers) -> Result<(), L3> {
    let header = whole(frame.read_at::<{ arp::HEADER_LEN }>(headers.network))?;
    if !arp::has_ethernet_lengths(&header) {
        return Err(L3::Fault(L3Fault::HeaderLength));
    }
    headers.l3 = L3::Arp;
    // What the rules count, padding or not.
    headers.end = headers.network + arp::HEADER_LEN;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::L4;
    use crate::link::LinkHeader;

    fn arp(lengths: [u8; 2], len: usize) -> Vec<u8> {
        let mut bytes = vec![0xff; 12];
        bytes.extend_from_slice(&[0x08, 0x06, 0, 1, 8, 0, lengths[0], lengths[1], 0, 1]);
        bytes.resize(len, 0);
        bytes
    }

    fn l3(bytes: &[u8], wire_len: usize) -> L3 {
        parse(Link::Ethernet, bytes, wire_len, Checksums::Ignore).l3
    }

    #[test]
    fn arp_needs_28_bytes_and_ethernet_lengths() {
        assert_eq!(l3(&arp([6, 4], 42), 42), L3::Arp);
        assert_eq!(l3(&arp([6, 4], 41), 41), L3::Fault(L3Fault::Truncated));
        assert_eq!(l3(&arp([6, 4], 41), 42), L3::Unknown);
        assert_eq!(l3(&arp([8, 4], 60), 60), L3::Fault(L3Fault::HeaderLength));
        assert_eq!(l3(&arp([6, 16], 60), 60), L3::Fault(L3Fault::HeaderLength));
    }

    #[test]
    fn a_bridge_sees_one_tag_and_trims_nothing() {
        let mut frame = vec![2; 60];
        frame[12..18].copy_from_slice(&[0x81, 0, 0x60, 5, 8, 0]);
        let headers = parse_frame(&frame, 64);
        assert_eq!((headers.link.ethertype, headers.link.vlan), (0x8100, Some(0x6005)));
        assert_eq!((headers.network, headers.end, headers.l3), (18, 64, L3::Other));
        frame[12..14].copy_from_slice(&[0, 46]);
        assert_eq!(parse_frame(&frame, 60).link.ethertype, LinkHeader::LLC);
        frame[6] = 1;
        assert_eq!(parse_frame(&frame, 60).l3, L3::Fault(L3Fault::Address));
        assert_eq!(parse_frame(&frame[..13], 13).l3, L3::Fault(L3Fault::Truncated));
        assert_eq!(parse_frame(&frame[..13], 60).l3, L3::Unknown);
    }

    #[test]
    fn an_unknown_ethertype_ends_with_the_frame() {
        let mut frame = vec![2; 60];
        frame[12..14].copy_from_slice(&[0x88, 0xcc]);
        let headers = parse(Link::Ethernet, &frame, 90, Checksums::Verify);
        assert_eq!((headers.l3, headers.l4), (L3::Other, L4::None));
        assert_eq!((headers.network, headers.end), (14, 90));
    }
}
