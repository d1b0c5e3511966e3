//! [`Range`]: what a NAT target lets the kernel choose from.
//!
//! Source: `struct nf_nat_range2` of `include/uapi/linux/netfilter/nf_nat.h`.

use conntrack::{Side, Tuple, has_ports};
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

/// Which ports flows have that a target translates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// Their own, as long as no other flow has them.
    Own,
    /// Another destination port: this one.
    Destination(u16),
    /// What other flows leave: one port of several, or an address that an earlier flow of the same source has.
    Left,
}

impl Range {
    /// Which ports flows have that are given a mapping of the range at this end.
    #[must_use]
    pub fn gives(&self, side: Side) -> Gives {
        match (side, self.ports) {
            (Side::Source, _) if !self.random && self.is_one_address() => Gives::Own,
            (Side::Source, _) => Gives::Left,
            (Side::Destination, None) => Gives::Own,
            (Side::Destination, Some(ports)) if ports.len() == 1 => Gives::Destination(ports.first),
            (Side::Destination, Some(_)) => Gives::Left,
        }
    }

    /// One address, and the port stays where it can.
    #[must_use]
    pub fn address(address: IpAddr) -> Self {
        Self { addresses: Some([address, address]), ..Self::default() }
    }

    /// Whether there is one address, and no choice of ports.
    pub(super) fn is_one_address(&self) -> bool {
        self.ports.is_none() && self.addresses.is_some_and(|[first, last]| first == last)
    }

    /// Whether the range allows a tuple's source.
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
