//! Packets that open a connection: from a packet spec, of a region, or drawn; and how they came out.

use std::net::IpAddr;

use fastrand::Rng;
use lint::{Part, Piece};
use packet::craft::{Addresses, Craft, Ethernet, Message};
use packet::tcp::Flags;
use packet::{icmpv4, icmpv6, tcp, udp};
use rules::predicate::Field;

/// A packet that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) input: String,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    pub(super) ports: [u16; 2],
    pub(super) flags: u8,
    pub(super) icmp: [u8; 2],
    pub(super) tos: u8,
    pub(super) ttl: u8,
}

/// A packet that was seen behind all rules of INPUT or POSTROUTING.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) to_host: bool,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    pub(super) ports: [u16; 2],
    flags: u8,
    icmp: u8,
}

/// Protocols whose first packet has more in it than is made here: DCCP, SCTP, UDP-Lite.
const BEYOND: [u8; 3] = [33, 132, 136];
/// Those that IPv6 takes for extension headers, or for none.
const OF_IPV6: [u8; 8] = [0, 43, 44, 50, 51, 59, 60, 135];
pub(super) const GRE: u8 = 47;

fn icmp_of(is_v6: bool) -> u8 {
    if is_v6 { icmpv6::PROTOCOL } else { icmpv4::PROTOCOL }
}

pub(super) fn number(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

pub(super) fn address(number: u128, is_v6: bool) -> IpAddr {
    if is_v6 { number.to_be_bytes().into() } else { (number as u32).to_be_bytes().into() }
}

impl End {
    /// Reads a packet from its network header on.
    pub(super) fn of(bytes: &[u8], to_host: bool) -> Option<Self> {
        let is_v6 = bytes.first()? >> 4 == 6;
        let address = |at: usize, len: usize| -> Option<IpAddr> {
            let bytes = bytes.get(at..at + len)?;
            Some(match len {
                4 => <[u8; 4]>::try_from(bytes).ok()?.into(),
                _ => <[u8; 16]>::try_from(bytes).ok()?.into(),
            })
        };
        let (source, destination, protocol, upper) = match is_v6 {
            true => (address(8, 16)?, address(24, 16)?, *bytes.get(6)?, 40),
            false => {
                let len = usize::from(bytes[0] & 15) * 4;
                (address(12, 4)?, address(16, 4)?, *bytes.get(9)?, len)
            }
        };
        let upper = bytes.get(upper..)?;
        let port = |at: usize| {
            let has_ports = [tcp::PROTOCOL, udp::PROTOCOL].contains(&protocol);
            let bytes = upper.get(at..at + 2).filter(|_| has_ports);
            bytes.map_or(0, |it| u16::from_be_bytes([it[0], it[1]]))
        };
        let flags = upper.get(13).copied().filter(|_| protocol == tcp::PROTOCOL).unwrap_or(0);
        let icmp = upper.first().copied().filter(|_| protocol == icmp_of(is_v6)).unwrap_or(0);
        let ports = [port(0), port(2)];
        Some(Self { to_host, source, destination, protocol, ports, flags, icmp })
    }
}

impl Sent {
    /// The packet of a packet spec, if it comes in by a link.
    pub(super) fn of_words(words: &str) -> Option<Self> {
        let spec = replay::spec::parse(words).unwrap_or_else(|error| panic!("{words}: {error}"));
        let bytes = spec.frame.get(14..)?;
        let end = End::of(bytes, false)?;
        let is_v6 = end.source.is_ipv6();
        let at = if is_v6 { 40 } else { usize::from(bytes[0] & 15) * 4 };
        let icmp = match end.protocol == icmp_of(is_v6) {
            true => [*bytes.get(at)?, *bytes.get(at + 1)?],
            false => [0; 2],
        };
        let (tos, ttl) = match is_v6 {
            true => (bytes[0] << 4 | bytes[1] >> 4, bytes[7]),
            false => (bytes[1], bytes[8]),
        };
        Some(Self {
            input: spec.input?,
            source: end.source,
            destination: end.destination,
            protocol: end.protocol,
            ports: end.ports,
            flags: end.flags,
            icmp,
            tos,
            ttl,
        })
    }

    pub(super) fn is_v6(&self) -> bool {
        self.source.is_ipv6()
    }

    /// As it comes in by a link with this address.
    pub(super) fn frame(&self, mac: [u8; 6]) -> Vec<u8> {
        let addresses = Addresses::new(self.source, self.destination).expect("one family");
        let message = match self.protocol {
            tcp::PROTOCOL => Message::tcp(self.ports[0], self.ports[1], Flags(self.flags)),
            udp::PROTOCOL => Message::udp(self.ports[0], self.ports[1]),
            icmp if icmp == icmp_of(self.is_v6()) => {
                Message::Icmp { kind: self.icmp[0], code: self.icmp[1], id: 1, sequence: 1 }
            }
            protocol => Message::Other { protocol, header: vec![0; 12] },
        };
        let mut craft = Craft::new(addresses, message);
        craft.ethernet = Some(Ethernet { destination: mac, ..Ethernet::default() });
        (craft.tos, craft.ttl, craft.payload_len) = (self.tos, self.ttl, 12);
        craft.frame()
    }

    /// Whether what was seen may be this packet, and is no answer to it.
    pub(super) fn may_be(&self, end: &End) -> bool {
        end.protocol == self.protocol && end.flags == self.flags && end.icmp == self.icmp[0]
    }

    fn number(&self, field: Field) -> u128 {
        let is_tcp = self.protocol == tcp::PROTOCOL;
        match field {
            Field::Source => number(self.source),
            Field::Destination => number(self.destination),
            Field::Protocol => self.protocol.into(),
            Field::SourcePort => self.ports[0].into(),
            Field::DestinationPort => self.ports[1].into(),
            Field::TcpFlags if is_tcp => self.flags.into(),
            Field::IcmpType => self.icmp[0].into(),
            Field::IcmpCode => self.icmp[1].into(),
            Field::Tos => self.tos.into(),
            Field::Ttl => self.ttl.into(),
            Field::SourceMac => 0x0200_0000_0001,
            _ => 0,
        }
    }

    fn set(&mut self, field: Field, to: u128) {
        let is_v6 = self.is_v6();
        match field {
            Field::Source => self.source = address(to, is_v6),
            Field::Destination => self.destination = address(to, is_v6),
            Field::Protocol => self.protocol = to as u8,
            Field::SourcePort => self.ports[0] = to as u16,
            Field::DestinationPort => self.ports[1] = to as u16,
            Field::TcpFlags => self.flags = to as u8,
            Field::IcmpType => self.icmp[0] = to as u8,
            Field::IcmpCode => self.icmp[1] = to as u8,
            Field::Tos => self.tos = to as u8,
            _ => {}
        }
    }

    /// The same with numbers of a piece where it says any.
    pub(super) fn within(mut self, piece: &Piece, inputs: &[String], rng: &mut Rng) -> Self {
        for (part, ranges) in piece.ranges() {
            let Part::Field(field) = part else { continue };
            let (low, high) = ranges[rng.usize(..ranges.len())];
            let now = self.number(*field);
            let is_in = ranges.iter().any(|(low, high)| (*low..=*high).contains(&now));
            if is_in && rng.bool() {
                continue;
            }
            let wide = u128::from(rng.u64(..)) << 64 | u128::from(rng.u64(..));
            let number = match (rng.u8(..4), (high - low).checked_add(1)) {
                (0, _) => low,
                (1, _) => high,
                (_, Some(count)) => low + wide % count,
                (_, None) => wide,
            };
            self.set(*field, number);
        }
        let names: Vec<&String> = inputs.iter().filter(|name| is_by(piece, name)).collect();
        if let Some(name) = rng.choice(names) {
            self.input.clone_from(name);
        }
        self.settled()
    }

    /// The same with what its protocol has, and without what it has not.
    pub(super) fn settled(mut self) -> Self {
        let icmp = icmp_of(self.is_v6());
        let is_others = self.protocol == icmp_of(!self.is_v6());
        let is_header = self.is_v6() && OF_IPV6.contains(&self.protocol);
        if BEYOND.contains(&self.protocol) || is_others || is_header {
            self.protocol = GRE;
        }
        if self.protocol != tcp::PROTOCOL {
            self.flags = 0;
        } else if self.flags & 0x17 != 2 {
            self.flags = 2;
        }
        if ![tcp::PROTOCOL, udp::PROTOCOL].contains(&self.protocol) {
            self.ports = [0; 2];
        }
        if self.protocol != icmp {
            self.icmp = [0; 2];
        } else {
            let requests: &[u8] = if self.is_v6() { &[128] } else { &[8, 13, 15, 17] };
            let first = requests[0];
            self.icmp[0] = if requests.contains(&self.icmp[0]) { self.icmp[0] } else { first };
        }
        self
    }

    /// Whether a piece has it.
    pub(super) fn is_of(&self, piece: &Piece) -> bool {
        let holds = |(part, ranges): &(Part, Vec<(u128, u128)>)| {
            let Part::Field(field) = part else { return true };
            let number = self.number(*field);
            ranges.iter().any(|(low, high)| (*low..=*high).contains(&number))
        };
        piece.ranges().iter().all(holds) && is_by(piece, &self.input)
    }
}

/// Whether packets of a piece come in by an interface.
fn is_by(piece: &Piece, name: &str) -> bool {
    let of_input = piece.fields.iter().find(|(part, _)| *part == Part::Input);
    of_input.is_none_or(|(_, words)| {
        let is_without = words.first().is_some_and(|word| word.starts_with('!'));
        words.iter().any(|word| word.trim_start_matches('!') == name) != is_without
    })
}
