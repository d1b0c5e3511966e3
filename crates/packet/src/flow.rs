//! [`FlowKey`]: the 5-tuple of a packet, its symmetric form, and a hash that is the same in both
//! directions.
//!
//! The hash is fixed (no seed): the same capture is spread over the same shards in every run. It is for
//! sharding, not for tables that an attacker can fill at will.

use crate::bytes::{Packet, Read};
use crate::field::array;
use crate::headers::{L3, L4};
use crate::{dccp, icmpv4, icmpv6, ipv4, ipv6, sctp, tcp, udp};
use std::net::IpAddr;

/// Addresses, ports and protocol of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Upper-layer protocol number; 0 where the IPv6 chain does not lead to one.
    pub protocol: u8,
    /// Source port; the identifier of ICMP echo messages; 0 in other protocols and later fragments.
    pub source_port: u16,
    /// Destination port, or the same as `source_port` in ICMP echo messages.
    pub destination_port: u16,
}

impl FlowKey {
    /// The key of an IP packet. `Absent` for anything else; `Unknown` where the ports or addresses are
    /// not known. A packet that ends before its ports has ports 0.
    #[must_use]
    pub fn of(packet: &Packet<'_>) -> Read<Self> {
        let addresses = match packet.headers().l3 {
            L3::Ipv4 { .. } => packet.net::<8>(ipv4::SOURCE.start).map(addresses_v4),
            L3::Ipv6 => packet.net::<32>(ipv6::SOURCE.start).map(addresses_v6),
            L3::Unknown => Read::Unknown,
            L3::Arp | L3::Other | L3::Fault(_) => Read::Absent,
        };
        let ((source, destination), (protocol, ports)) = match (addresses, upper(packet)) {
            (Read::Known(addresses), Read::Known(upper)) => (addresses, upper),
            (Read::Absent, _) => return Read::Absent,
            _ => return Read::Unknown,
        };
        let [source_port, destination_port] = ports;
        Read::Known(Self { source, destination, protocol, source_port, destination_port })
    }

    /// The key of the opposite direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            protocol: self.protocol,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }

    /// The one of the two directions whose source is the smaller: equal for both.
    #[must_use]
    pub fn canonical(self) -> Self {
        let forward = (self.source, self.source_port) <= (self.destination, self.destination_port);
        if forward { self } else { self.reversed() }
    }
}

fn addresses_v4(bytes: [u8; 8]) -> (IpAddr, IpAddr) {
    (array::<4>(&bytes, 0..4).into(), array::<4>(&bytes, 4..8).into())
}

fn addresses_v6(bytes: [u8; 32]) -> (IpAddr, IpAddr) {
    (array::<16>(&bytes, 0..16).into(), array::<16>(&bytes, 16..32).into())
}

/// Protocol and ports.
fn upper(packet: &Packet<'_>) -> Read<(u8, [u16; 2])> {
    let upper = match packet.headers().l4 {
        L4::Upper(upper) => upper,
        L4::Fragment { protocol, .. } => return Read::Known((protocol, [0, 0])),
        L4::Broken { .. } | L4::None => return Read::Known((0, [0, 0])),
        L4::Unknown => return Read::Unknown,
    };
    let ports = match upper.protocol {
        tcp::PROTOCOL | udp::PROTOCOL | udp::PROTOCOL_LITE | sctp::PROTOCOL | dccp::PROTOCOL => {
            packet.upper::<4>(&upper, 0).map(|[a, b, c, d]| [be(a, b), be(c, d)])
        }
        icmpv4::PROTOCOL => packet
            .upper::<6>(&upper, 0)
            .map(|header| echo_id(header, [icmpv4::ECHO_REQUEST, icmpv4::ECHO_REPLY])),
        icmpv6::PROTOCOL => packet
            .upper::<6>(&upper, 0)
            .map(|header| echo_id(header, [icmpv6::ECHO_REQUEST, icmpv6::ECHO_REPLY])),
        _ => Read::Known([0, 0]),
    };
    match ports {
        Read::Absent => Read::Known((upper.protocol, [0, 0])),
        ports => ports.map(|ports| (upper.protocol, ports)),
    }
}

fn be(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low])
}

/// Identifier of an echo message, in place of both ports.
fn echo_id([kind, _, _, _, high, low]: [u8; 6], echo: [u8; 2]) -> [u16; 2] {
    if echo.contains(&kind) { [be(high, low); 2] } else { [0, 0] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::{Addresses, Craft, Message};
    use crate::{Checksums, Link};

    const V4: Addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };

    fn key(craft: &Craft, captured: usize) -> Read<FlowKey> {
        let mut frame = craft.frame();
        let wire_len = frame.len();
        let captured = captured.min(wire_len);
        let packet =
            Packet::parse(&mut frame[..captured], wire_len, Link::Ethernet, Checksums::Verify);
        FlowKey::of(&packet)
    }

    #[test]
    fn both_directions_have_one_canonical_form() {
        let key = key(&Craft::new(V4, Message::udp(4000, 53)), 100).known().unwrap();
        assert_eq!((key.source_port, key.destination_port, key.protocol), (4000, 53, 17));
        assert_eq!(key.source, IpAddr::from([10, 0, 0, 1]));
        assert_ne!(key, key.reversed());
        assert_eq!(key.canonical(), key.reversed().canonical());
    }

    #[test]
    fn echo_messages_are_told_apart_by_their_identifier() {
        let echo = |kind, id| {
            let message = Message::Icmp { kind, code: 0, id, sequence: 1 };
            key(&Craft::new(V4, message), 100).known().unwrap()
        };
        let request = echo(icmpv4::ECHO_REQUEST, 7);
        assert_eq!((request.source_port, request.destination_port), (7, 7));
        assert_eq!(echo(icmpv4::ECHO_REPLY, 7).canonical(), request.canonical());
        assert_eq!(echo(3, 7).source_port, 0);
    }

    #[test]
    fn ports_that_were_not_captured_are_unknown() {
        let craft = Craft::new(V4, Message::udp(4000, 53));
        assert_eq!(key(&craft, 14 + 20 + 3), Read::Unknown);
        assert_eq!(key(&craft, 14 + 19), Read::Unknown);
    }
}
