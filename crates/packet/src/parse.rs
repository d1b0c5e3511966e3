//! [`parse`]: finds every header of a frame once.
//!
//! Contract: no allocation, no panic, and no verdict. What the kernel's stack would refuse before any
//! hook is recorded as [`L3Fault`]; what the capture does not hold is `Unknown`, never a fault. All
//! offsets of the result lie in `0..=end`.
//!
//! Source: the receive functions of Linux, named in each of the modules below.

mod ip4;
mod ip6;
mod link_layer;

use crate::bytes::{Read, ReadAt, Snap};
use crate::headers::{Headers, L3, L3Fault, L4};
use crate::link::Link;
use crate::{arp, ethertype};

/// What to do about IPv4 header checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Checksums {
    /// Take them as correct: a capture made on the sending host holds unfinished ones.
    #[default]
    Ignore,
    /// A wrong one is [`L3Fault::Checksum`].
    Verify,
}

/// What a network layer's parser found.
struct Network {
    l3: L3,
    l4: L4,
    end: usize,
    offload: bool,
}

impl Network {
    /// A network layer behind which nothing is looked for.
    fn only(l3: L3, end: usize) -> Self {
        Self { l3, l4: L4::None, end, offload: false }
    }

    fn fault(fault: L3Fault, end: usize) -> Self {
        Self::only(L3::Fault(fault), end)
    }
}

/// Finds the headers of a frame of which `bytes` were captured. `wire_len` is the length of the frame on
/// the wire; one below the captured length is taken as the captured length.
#[must_use]
pub fn parse(link: Link, bytes: &[u8], wire_len: usize, checksums: Checksums) -> Headers {
    let wire_len = wire_len.max(bytes.len());
    let frame = Snap::new(bytes, wire_len);
    let found = link_layer::parse(link, frame);
    let network = match found.cut {
        Some(l3) => Network::only(l3, wire_len),
        None => match found.header.ethertype {
            ethertype::IPV4 => ip4::parse(frame, found.network, checksums),
            ethertype::IPV6 => ip6::parse(bytes, frame, found.network, found.header.loopback),
            ethertype::ARP => Network::only(arp_rcv(frame, found.network), wire_len),
            _ => Network::only(L3::Other, wire_len),
        },
    };
    Headers {
        link: found.header,
        network: found.network,
        end: network.end,
        l3: network.l3,
        l4: network.l4,
        offload: network.offload,
    }
}

/// The entry tests of `net/ipv4/arp.c`, `arp_rcv`, for a device with 6-byte addresses.
fn arp_rcv(frame: Snap<'_>, network: usize) -> L3 {
    match frame.read_at::<{ arp::HEADER_LEN }>(network) {
        Read::Absent => L3::Fault(L3Fault::Truncated),
        Read::Unknown => L3::Unknown,
        Read::Known(header) if arp::has_ethernet_lengths(&header) => L3::Arp,
        Read::Known(_) => L3::Fault(L3Fault::HeaderLength),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn an_unknown_ethertype_ends_with_the_frame() {
        let mut frame = vec![2; 60];
        frame[12..14].copy_from_slice(&[0x88, 0xcc]);
        let headers = parse(Link::Ethernet, &frame, 90, Checksums::Verify);
        assert_eq!((headers.l3, headers.l4), (L3::Other, L4::None));
        assert_eq!((headers.network, headers.end), (14, 90));
    }
}
