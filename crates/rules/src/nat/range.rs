//! [`Range`]: what a NAT target lets the kernel choose from.
//!
//! Source: `struct nf_nat_range2` of `include/uapi/linux/netfilter/nf_nat.h`.

use conntrack::{Side, Tuple};
use packet::{icmpv4, icmpv6};
use std::net::IpAddr;

/// Addresses and ports to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    /// First and last address; without, the address stays.
    pub addresses: Option<[IpAddr; 2]>,
    /// Ports, or ICMP identifiers; without, the port stays where it can.
    pub ports: Option<Ports>,
    /// The port is drawn at random (`--random`, `--random-fully`).
    pub random: bool,
    /// The address depends on the source alone (`--persistent`).
    pub persistent: bool,
}

/// Ports `first` to `last`; `base` is the port that `first` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// First port.
    pub first: u16,
    /// Last port, not below the first.
    pub last: u16,
    /// The port that is shifted to the first one, where the range is a shift.
    pub base: Option<u16>,
}

impl Range {
    /// One address, and the port stays where it can.
    #[must_use]
    pub fn address(address: IpAddr) -> Self {
        Self { addresses: Some([address, address]), ..Self::default() }
    }

    /// Whether a tuple's source is one that the range allows.
    pub(super) fn holds_source(&self, tuple: &Tuple) -> bool {
        let source = tuple.source();
        self.addresses.is_none_or(|[first, last]| (first..=last).contains(&source))
            && self.ports.is_none_or(|ports| ports.hold(tuple, Side::Source))
    }
}

impl Ports {
    /// How many there are.
    pub(super) fn len(self) -> u32 {
        u32::from(self.last.saturating_sub(self.first)) + 1
    }

    /// Whether this end's port is in the range; protocols without ports are in any.
    pub(super) fn hold(self, tuple: &Tuple, side: Side) -> bool {
        match part(tuple, side) {
            Some(port) => (self.first..=self.last).contains(&port),
            None => true,
        }
    }
}

/// The port of this end, or the identifier of an ICMP query; `None` in protocols without.
pub(super) fn part(tuple: &Tuple, side: Side) -> Option<u16> {
    match (tuple.protocol(), side) {
        (icmpv4::PROTOCOL | icmpv6::PROTOCOL, _) => Some(tuple.source_part()),
        (protocol, _) if !has_ports(protocol) => None,
        (_, Side::Source) => Some(tuple.source_part()),
        (_, Side::Destination) => Some(tuple.destination_part()),
    }
}

/// The tuple with another address and port, or identifier, at this end.
pub(super) fn with_end(tuple: &Tuple, side: Side, address: IpAddr, port: Option<u16>) -> Tuple {
    let port = port.filter(|_| part(tuple, side).is_some());
    match (tuple.protocol(), side) {
        (icmpv4::PROTOCOL | icmpv6::PROTOCOL, Side::Destination) => {
            let tuple = tuple.with_destination(address, tuple.destination_part());
            tuple.with_source(tuple.source(), port.unwrap_or(tuple.source_part()))
        }
        (_, Side::Source) => tuple.with_source(address, port.unwrap_or(tuple.source_part())),
        (_, Side::Destination) => {
            tuple.with_destination(address, port.unwrap_or(tuple.destination_part()))
        }
    }
}

/// The address of this end.
pub(super) fn address(tuple: &Tuple, side: Side) -> IpAddr {
    match side {
        Side::Source => tuple.source(),
        Side::Destination => tuple.destination(),
    }
}

/// TCP, UDP, UDP-Lite, SCTP. DCCP has no tracker in this kernel any more, and so no ports.
pub(super) fn has_ports(protocol: u8) -> bool {
    matches!(
        protocol,
        packet::tcp::PROTOCOL
            | packet::udp::PROTOCOL
            | packet::udp::PROTOCOL_LITE
            | packet::sctp::PROTOCOL
    )
}
