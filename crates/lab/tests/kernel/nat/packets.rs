//! Random packets of conversations: beginnings, answers to what came out, and errors about it.

use fastrand::Rng;
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use packet::{Checksums, L4, Link, Packet, checksum};
use rules::model::Family;
use std::net::IpAddr;

/// The next packet, and whether it comes in by `t0`. `seen` is what came out so far, and whether by `t0`.
pub(super) fn draw(family: Family, seen: &[(bool, Vec<u8>)], rng: &mut Rng) -> (bool, Vec<u8>) {
    match rng.u8(0..10) {
        0..4 => (true, beginning(family, true, rng)),
        4 => (false, beginning(family, false, rng)),
        kind if !seen.is_empty() => {
            let (by_near, bytes) = &seen[rng.usize(seen.len().saturating_sub(12)..seen.len())];
            let back = if kind < 8 { answer(bytes, rng) } else { error(bytes) };
            (*by_near, back.unwrap_or_else(|| beginning(family, *by_near, rng)))
        }
        _ => (true, beginning(family, true, rng)),
    }
}

fn client(family: Family, rng: &mut Rng) -> IpAddr {
    address(family, 0, rng.u8(2..5))
}

pub(crate) fn address(family: Family, net: u8, host: u8) -> IpAddr {
    let (v4, v6) = match net {
        0 => ([10, 1, 0], [0xfd01, 0, 0]),
        1 => ([198, 51, 100], [0x2001, 0xdb8, 5]),
        _ => ([10, 255, 1], [0xfd00, 0xffff, 1]),
    };
    match family {
        Family::Ipv6 => [v6[0], v6[1], v6[2], 0, 0, 0, 0, u16::from(host)].into(),
        _ => [v4[0], v4[1], v4[2], host].into(),
    }
}

fn beginning(family: Family, from_client: bool, rng: &mut Rng) -> Vec<u8> {
    let server = match rng.u8(0..8) {
        0 => address(family, 2, 1),
        _ => address(family, 1, rng.u8(1..4)),
    };
    let (source, destination) = match from_client {
        true => (client(family, rng), server),
        false if rng.bool() => (address(family, 1, rng.u8(1..4)), address(family, 2, 1)),
        false => (address(family, 1, rng.u8(1..4)), client(family, rng)),
    };
    let (from, to) = (rng.u16(1000..1003), [53, 80, 81][rng.usize(..3)]);
    let message = match rng.u8(0..7) {
        0..3 => Message::udp(from, to),
        3..6 => Message::Tcp {
            source_port: from,
            destination_port: to,
            flags: Flags::SYN,
            sequence: 100,
            acknowledgement: 0,
            window: 1000,
        },
        _ => {
            let kind = if family == Family::Ipv6 { 128 } else { 8 };
            Message::Icmp { kind, code: 0, id: rng.u16(1..3), sequence: 1 }
        }
    };
    frame(source, destination, message, rng.usize(0..9))
}

fn frame(source: IpAddr, destination: IpAddr, message: Message, payload: usize) -> Vec<u8> {
    let mut craft = Craft::new(Addresses::new(source, destination).expect("one family"), message);
    craft.ethernet = None;
    craft.payload_len = payload;
    craft.frame()
}

/// Source, destination, protocol, and the upper-layer bytes.
pub(crate) fn parts(bytes: &[u8]) -> Option<(IpAddr, IpAddr, u8, Vec<u8>)> {
    let mut copy = bytes.to_vec();
    let packet = Packet::parse(&mut copy, bytes.len(), Link::Raw, Checksums::Ignore);
    let L4::Upper(upper) = packet.headers().l4 else { return None };
    let (source, destination): (IpAddr, IpAddr) = if bytes[0] >> 4 == 6 {
        let at = |from: usize| <[u8; 16]>::try_from(&bytes[from..from + 16]).expect("16 bytes");
        (at(8).into(), at(24).into())
    } else {
        let at = |from: usize| <[u8; 4]>::try_from(&bytes[from..from + 4]).expect("4 bytes");
        (at(12).into(), at(16).into())
    };
    Some((source, destination, upper.protocol, bytes[upper.offset..].to_vec()))
}

fn answer(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let (source, destination, protocol, upper) = parts(bytes)?;
    let word = |at: usize| Some(u16::from_be_bytes([*upper.get(at)?, *upper.get(at + 1)?]));
    let message = match protocol {
        17 => Message::udp(word(2)?, word(0)?),
        6 => {
            let flags = *upper.get(13)?;
            let (sequence, flags) = match flags & 0x12 {
                2 => (300, Flags::SYN.union(Flags::ACK)),
                0x12 => (101, Flags::ACK),
                _ => (301, Flags::ACK),
            };
            Message::Tcp {
                source_port: word(2)?,
                destination_port: word(0)?,
                flags,
                sequence,
                acknowledgement: if sequence == 101 { 301 } else { 101 },
                window: 1000,
            }
        }
        1 | 58 => {
            let kind = match upper[0] {
                8 => 0,
                128 => 129,
                _ => return None,
            };
            Message::Icmp { kind, code: 0, id: word(4)?, sequence: 1 }
        }
        _ => return None,
    };
    Some(frame(destination, source, message, rng.usize(0..9)))
}

/// An error of a router beyond about a packet that came out.
pub(crate) fn error(bytes: &[u8]) -> Option<Vec<u8>> {
    let (source, destination, protocol, upper) = parts(bytes)?;
    if matches!((protocol, *upper.first()?), (1, 3) | (58, 1)) {
        return None;
    }
    let (family, icmp, kind) =
        if source.is_ipv6() { (Family::Ipv6, 58, 1) } else { (Family::Ipv4, 1, 3) };
    let _ = destination;
    let router = address(family, 1, 250);
    let mut header = vec![kind, 3, 0, 0, 0, 0, 0, 0];
    header.extend_from_slice(bytes);
    let pseudo = match (router, source) {
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            checksum::pseudo_v6(from.octets(), to.octets(), 58, header.len() as u32)
        }
        _ => 0,
    };
    let sum = !checksum::add(checksum::sum(&header), pseudo);
    header[2..4].copy_from_slice(&sum.to_be_bytes());
    Some(frame(router, source, Message::Other { protocol: icmp, header }, 0))
}
