//! What `-j HMARK` hashes of a packet: both addresses in any order, both ports in any order, the protocol.
//!
//! An error of ICMP is taken for the packet that it quotes. A read that is `Absent` means that there is nothing to hash,
//! so the packet keeps its mark; a packet of IPv6 whose chain of headers is broken has a tuple of zeros instead.
//! Source: kernel `net/netfilter/xt_HMARK.c`.

use std::net::IpAddr;

use host::Change;
use packet::ipv6_ext::{self, AUTH, FRAGMENT, FRAGMENT_OFFSET, NO_NEXT, OFFSET_MASK, ROUTING};
use packet::{Read, ah, dccp, esp, icmpv4, icmpv6, ipv4, ipv6, sctp, tcp, udp};

use crate::connection::{Connection, KnownFlow};
use crate::nat::jhash::jhash2;
use crate::transit::Transit;
use conntrack::Direction;

/// Length of an ICMP header, before what an error quotes.
const ICMP_LEN: usize = 8;

/// What goes into a tuple.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    /// Bits of the source address.
    pub(super) source_prefix: u8,
    /// Bits of the destination address.
    pub(super) destination_prefix: u8,
    /// Bits of the ports, that of the source first, or of an SPI.
    pub(super) port_mask: u32,
    /// Bits that are set in them.
    pub(super) port_set: u32,
}

/// What is hashed; what stays out is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tuple {
    source: u32,
    destination: u32,
    ports: u32,
    pub(super) protocol: u8,
}

impl Tuple {
    /// Returns a hash that is equal for both directions of a flow.
    pub(super) fn hash(&self, seed: u32) -> u32 {
        let (low, high) = (self.source.min(self.destination), self.source.max(self.destination));
        jhash2(&[low, high, self.ports], seed)
    }
}

/// What counts of a header of IPv4.
struct Header {
    /// Where it ends, as it says.
    end: usize,
    protocol: u8,
    is_fragment: bool,
    addresses: [[u8; 4]; 2],
}

/// The end of a chain of extension headers, or its authentication header, whose SPI counts.
struct End {
    protocol: u8,
    offset: usize,
    is_fragment: bool,
}

impl Fields {
    /// The tuples of the packet's connection.
    pub(super) fn of_connection(&self, ct: &Connection<'_>) -> Read<Tuple> {
        let flow = match ct.flow() {
            KnownFlow::Flow(flow) if flow.has_sure_tuples() => flow,
            KnownFlow::Flow(_) | KnownFlow::Unknown => return Read::Unknown,
            KnownFlow::None => return Read::Absent,
        };
        let (original, reply) = (flow.tuple(Direction::Original), flow.tuple(Direction::Reply));
        let mut tuple = self.addresses(original.source(), reply.source(), original.protocol());
        if tuple.protocol != icmpv4::PROTOCOL {
            let parts = [original.source_part(), reply.source_part()].map(u32::from);
            tuple.ports = self.in_order(parts[0] << 16 | parts[1]);
        }
        Read::Known(tuple)
    }

    /// The tuple of a packet of IPv4.
    pub(super) fn of_ipv4(&self, transit: &Transit<'_, '_>) -> Read<Tuple> {
        let mut header = match Header::at(transit, transit.packet.network_offset()) {
            Read::Known(header) => header,
            Read::Unknown | Read::Absent => return Read::Unknown,
        };
        if header.protocol == icmpv4::PROTOCOL {
            match transit.packet.read::<ICMP_LEN>(header.end) {
                Read::Known([kind, ..]) if icmpv4::is_error(kind) => {
                    header = match Header::at(transit, header.end + ICMP_LEN) {
                        Read::Known(quoted) => quoted,
                        Read::Unknown => return Read::Unknown,
                        Read::Absent => return Read::Absent,
                    };
                }
                Read::Unknown => return Read::Unknown,
                Read::Known(_) | Read::Absent => {}
            }
        }
        let [source, destination] = header.addresses;
        let tuple = self.addresses(source.into(), destination.into(), header.protocol);
        if header.is_fragment {
            return Read::Known(tuple);
        }
        self.with_ports(transit, tuple, header.end)
    }

    /// The tuple of a packet of IPv6.
    pub(super) fn of_ipv6(&self, transit: &Transit<'_, '_>) -> Read<Tuple> {
        let mut network = transit.packet.network_offset();
        let mut end = match end_of_chain(transit, network) {
            Read::Known(end) => end,
            Read::Unknown => return Read::Unknown,
            Read::Absent => return Read::Known(Tuple::default()),
        };
        if end.protocol == icmpv6::PROTOCOL && !end.is_fragment {
            match transit.packet.read::<ICMP_LEN>(end.offset) {
                // An error has a type below 128; 0 is none.
                Read::Known([1..=127, ..]) => {
                    network = end.offset + ICMP_LEN;
                    end = match end_of_chain(transit, network) {
                        Read::Known(end) => end,
                        Read::Unknown => return Read::Unknown,
                        Read::Absent => return Read::Absent,
                    };
                }
                Read::Unknown => return Read::Unknown,
                Read::Known(_) | Read::Absent => {}
            }
        }
        let read = |range: std::ops::Range<usize>| transit.packet.read::<16>(network + range.start);
        let addresses = (read(ipv6::SOURCE), read(ipv6::DESTINATION));
        let (Read::Known(source), Read::Known(destination)) = addresses else {
            return Read::Unknown;
        };
        let tuple = self.addresses(source.into(), destination.into(), end.protocol);
        if end.is_fragment {
            return Read::Known(tuple);
        }
        self.with_ports(transit, tuple, end.offset)
    }

    /// A tuple without ports.
    fn addresses(&self, source: IpAddr, destination: IpAddr, protocol: u8) -> Tuple {
        let (source, destination) =
            (fold(source, self.source_prefix), fold(destination, self.destination_prefix));
        Tuple { source, destination, ports: 0, protocol }
    }

    /// With the ports of the header at an offset, if there is a whole pair of them; ICMP has none.
    fn with_ports(&self, transit: &Transit<'_, '_>, tuple: Tuple, offset: usize) -> Read<Tuple> {
        if self.port_mask == 0 && self.port_set == 0 {
            return Read::Known(tuple);
        }
        let Some(within) = ports_within(tuple.protocol) else { return Read::Known(tuple) };
        match transit.packet.read::<4>(offset.saturating_add(within)) {
            Read::Known(bytes) => {
                let ports = self.in_order(u32::from_be_bytes(bytes));
                Read::Known(Tuple { ports, ..tuple })
            }
            Read::Unknown => Read::Unknown,
            Read::Absent => Read::Known(tuple),
        }
    }

    /// Two ports as they count, the greater first.
    fn in_order(&self, ports: u32) -> u32 {
        let counted = ports & self.port_mask | self.port_set;
        counted.max(counted.rotate_left(16))
    }
}

impl Header {
    /// `Absent` where the packet ends before its 20 bytes do.
    fn at(transit: &Transit<'_, '_>, at: usize) -> Read<Self> {
        let packet = &*transit.packet;
        if packet.read_slice(at, ipv4::MIN_HEADER_LEN) == Read::Absent {
            return Read::Absent;
        }
        let first = packet.read::<1>(at).known();
        let protocol = packet.read::<1>(at + ipv4::PROTOCOL.start).known();
        let fragment = packet.read(at + ipv4::FRAGMENT.start).known();
        let addresses = packet.read::<8>(at + ipv4::SOURCE.start).known();
        let (Some([first]), Some([protocol]), Some(fragment), Some([a, b, c, d, e, f, g, h])) =
            (first, protocol, fragment, addresses)
        else {
            return Read::Unknown;
        };
        let fragment = u16::from_be_bytes(fragment);
        Read::Known(Self {
            end: at + usize::from(first & 0xf) * 4,
            protocol,
            is_fragment: fragment & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET_MASK) != 0,
            addresses: [[a, b, c, d], [e, f, g, h]],
        })
    }
}

/// A prefix of an address, IPv6's four words folded into one.
fn fold(address: IpAddr, prefix: u8) -> u32 {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(address) => {
            address.to_bits() & u32::MAX.checked_shl(32_u32.saturating_sub(prefix)).unwrap_or(0)
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
            let bits = address.to_bits() & mask;
            [96, 64, 32, 0].into_iter().fold(0, |folded, shift| folded ^ (bits >> shift) as u32)
        }
    }
}

/// Where in its header a protocol has its ports, or what stands for them (`proto_ports_offset`).
fn ports_within(protocol: u8) -> Option<usize> {
    match protocol {
        tcp::PROTOCOL | udp::PROTOCOL | udp::PROTOCOL_LITE => Some(0),
        dccp::PROTOCOL | esp::PROTOCOL | sctp::PROTOCOL => Some(0),
        ah::PROTOCOL => Some(4),
        _ => None,
    }
}

/// `ipv6_find_hdr` without a target, which stops at an authentication header. `Absent` where it fails.
fn end_of_chain(transit: &Transit<'_, '_>, network: usize) -> Read<End> {
    if transit.packet.read_slice(network, ipv6::HEADER_LEN) == Read::Absent {
        return Read::Absent;
    }
    match transit.packet.read::<1>(network) {
        Read::Known([first]) if first >> 4 == 6 => {}
        Read::Unknown => return Read::Unknown,
        Read::Known(_) | Read::Absent => return Read::Absent,
    }
    let mut chain = ipv6_ext::headers(&*transit.packet, network);
    let mut is_fragment = false;
    for header in chain.by_ref() {
        let header = match header {
            Ok(header) => header,
            Err(ipv6_ext::ChainFault::Truncated) => return Read::Absent,
            Err(ipv6_ext::ChainFault::Unknown) => return Read::Unknown,
        };
        let field = match header.kind {
            AUTH => return Read::Known(End { protocol: AUTH, offset: header.offset, is_fragment }),
            ROUTING => transit.packet.read::<4>(header.offset).map(|_| 0),
            FRAGMENT => {
                is_fragment = true;
                let field = transit.packet.read(header.offset + FRAGMENT_OFFSET.start);
                field.map(|field| u16::from_be_bytes(field) & OFFSET_MASK)
            }
            _ => Read::Known(0),
        };
        match field {
            Read::Known(0) => {}
            // A later fragment names its upper layer only where no extension header follows.
            Read::Known(_) if ipv6_ext::is_extension(header.next) && header.next != NO_NEXT => {
                return Read::Absent;
            }
            Read::Known(_) => {
                let (protocol, offset) = (header.next, header.offset);
                return Read::Known(End { protocol, offset, is_fragment });
            }
            Read::Unknown => return Read::Unknown,
            Read::Absent => return Read::Absent,
        }
    }
    let Some((protocol, offset)) = chain.position() else { return Read::Unknown };
    let is_within = offset <= transit.packet.headers().end;
    match is_within || transit.host.has(Change::UpperLayerWithinPacket) == Some(false) {
        true => Read::Known(End { protocol, offset, is_fragment }),
        false if transit.host.has(Change::UpperLayerWithinPacket).is_none() => Read::Unknown,
        false => Read::Absent,
    }
}
