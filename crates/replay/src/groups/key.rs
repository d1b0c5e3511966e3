//! [`GroupKey`]: what the packets of a group have in common, by what is asked for ([`GroupBy`]); and in words.

use crate::decider::Decider;
use dataplane::Disposition;
use packet::FlowKey;
use rules::eval::RuleRef;
use rules::protocol_name;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// What packets of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupBy {
    /// What decided, and the jumps that led there.
    Path,
    /// The connection: addresses, ports and protocol, in either direction.
    Flow,
    /// The source address.
    Source,
    /// The destination address.
    Destination,
    /// The protocol and the destination port.
    Port,
}

impl GroupBy {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Path, Self::Flow, Self::Source, Self::Destination, Self::Port];

    /// The kinds that a page shows.
    pub(crate) const ON_PAGE: [Self; 3] = [Self::Source, Self::Destination, Self::Port];

    /// The name of the kind for `--by`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Flow => "flow",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::Port => "port",
        }
    }
}

/// The jumps by which a packet came to what decided.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallPath {
    /// The rules that jumped, the outermost first.
    pub jumps: Vec<RuleRef>,
    /// Whether they are known; none are given where they are not.
    pub sure: bool,
}

impl CallPath {
    /// No jump: what decided stands in a built-in chain, or in none.
    pub(crate) const NONE: Self = Self { jumps: Vec::new(), sure: true };
}

/// One packet, for those who group it.
pub(crate) struct Grouped<'p> {
    pub(crate) number: u64,
    pub(crate) time: Option<u64>,
    pub(crate) end: &'p Disposition,
    pub(crate) by: Decider,
    /// The jumps by which the packet came there, where they were noted.
    pub(crate) path: Option<&'p CallPath>,
    /// The packet's addresses and ports, as far as they are known.
    pub(crate) flow: Option<FlowKey>,
    /// Whether it is listed.
    pub(crate) listed: bool,
}

/// What the packets of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GroupKey {
    /// What decided, and by which jumps they came there.
    Path(Decider, CallPath),
    /// Their connection, as its first packet has it.
    Flow(Ends),
    /// An address.
    Address(IpAddr),
    /// A protocol, and the destination port where it has ports.
    Port(u8, Option<u16>),
    /// The packets have no such thing, or it was not captured.
    Nothing,
}

/// A connection: both directions are one.
#[derive(Debug, Clone, Copy)]
pub struct Ends(pub FlowKey);

impl PartialEq for Ends {
    fn eq(&self, other: &Self) -> bool {
        self.0.canonical() == other.0.canonical()
    }
}

impl Eq for Ends {}

impl std::hash::Hash for Ends {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.canonical().hash(state);
    }
}

impl GroupKey {
    /// The group of a packet.
    pub(super) fn of(by: GroupBy, packet: &Grouped<'_>) -> Self {
        if by == GroupBy::Path {
            let path = packet.path.cloned().unwrap_or(CallPath::NONE);
            return Self::Path(packet.by, path);
        }
        let Some(flow) = packet.flow else { return Self::Nothing };
        match by {
            GroupBy::Flow => Self::Flow(Ends(flow)),
            GroupBy::Source => Self::Address(flow.source),
            GroupBy::Destination => Self::Address(flow.destination),
            _ => {
                let port = has_ports(flow.protocol).then_some(flow.destination_port);
                Self::Port(flow.protocol, port.filter(|port| *port > 0))
            }
        }
    }
}

/// Whether packets of a protocol have ports.
pub(crate) fn has_ports(protocol: u8) -> bool {
    matches!(protocol, 6 | 17 | 33 | 132 | 136)
}

/// A protocol by its name, or number.
pub(crate) fn protocol_text(number: u8) -> String {
    protocol_name(number).map_or_else(|| format!("protocol {number}"), str::to_owned)
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FlowKey { source, destination, protocol, source_port, destination_port } = self.0;
        let protocol = protocol_text(protocol);
        if !has_ports(self.0.protocol) {
            return write!(f, "{protocol} {source} > {destination}");
        }
        let [source, destination] =
            [(source, source_port), (destination, destination_port)].map(SocketAddr::from);
        write!(f, "{protocol} {source} > {destination}")
    }
}

/// All but a path, which stands in the rules.
impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(..) => f.write_str("a path"),
            Self::Flow(ends) => ends.fmt(f),
            Self::Address(address) => address.fmt(f),
            Self::Port(protocol, Some(port)) => write!(f, "{} {port}", protocol_text(*protocol)),
            Self::Port(protocol, None) => f.write_str(&protocol_text(*protocol)),
            Self::Nothing => f.write_str("no IP addresses, or not captured"),
        }
    }
}
