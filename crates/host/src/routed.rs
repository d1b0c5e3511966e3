//! What is asked of routing, and what it answers: where a packet goes, why nowhere, or what would have to be known.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::route::Refusal;

/// A packet that came in, as far as its way depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// The source address.
    pub source: IpAddr,
    /// The destination address, after PREROUTING.
    pub destination: IpAddr,
    /// The input interface.
    pub input: Option<&'a str>,
    /// Type of service or traffic class; `None` if it is not known.
    pub tos: Option<u8>,
    /// The mark; `None` if some bits are not known.
    pub mark: Option<u32>,
    /// The protocol number; `None` if it is not known.
    pub protocol: Option<u8>,
    /// Source and destination port; `None` if there are none, or they are not known.
    pub ports: Option<[u16; 2]>,
    /// The addressee of the frame.
    pub frame: FrameKind,
    /// Whether the packet carries a loose or strict source route.
    pub source_route: bool,
}

/// The addressee of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameKind {
    /// This host.
    Unicast,
    /// Everybody.
    Broadcast,
    /// A group.
    Multicast,
    /// Nobody says: taken as this host, as where there are no such addresses.
    #[default]
    Unknown,
}

/// A packet of the host's own.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// The source address; unspecified if there is none yet.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The interface that it is bound to.
    pub output: Option<&'a str>,
    /// Type of service or traffic class; `None` if it is not known.
    pub tos: Option<u8>,
    /// The mark; `None` if some bits are not known.
    pub mark: Option<u32>,
    /// The protocol number; `None` if it is not known.
    pub protocol: Option<u8>,
    /// Source and destination port; `None` if there are none, or they are not known.
    pub ports: Option<[u16; 2]>,
}

impl Outgoing<'_> {
    /// A packet to `destination` of which nothing else is known, without a source yet.
    #[must_use]
    pub fn to(destination: IpAddr) -> Self {
        let source = match destination {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let (output, tos, mark, protocol, ports) = (None, None, None, None, None);
        Self { source, destination, output, tos, mark, protocol, ports }
    }
}

/// Where a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routed<'h> {
    /// To the host itself.
    Input(Reached),
    /// Out again.
    Forward {
        /// By this interface; `None` if it may be one of several.
        output: Option<&'h str>,
        /// The longest packet that goes there, in bytes, if that is known.
        mtu: Option<u32>,
    },
    /// Nowhere.
    Refused(Refused),
    /// The answer depends on what is not known.
    Unknown(Missing),
}

/// As what a packet reached the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// An address of its own.
    Local,
    /// A broadcast address.
    Broadcast,
    /// A group that it joined.
    Multicast,
    /// An anycast address of its own.
    Anycast,
}

/// Why a packet goes nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refused {
    /// An address that cannot arrive this way.
    Martian,
    /// The way back to the source leads through another interface.
    RpFilter,
    /// A group that nobody joined.
    NotJoined,
    /// No route.
    NoRoute,
    /// A route that drops in silence.
    Blackhole,
    /// A route that is unreachable.
    Unreachable,
    /// A route that is prohibited.
    Prohibit,
    /// The input interface does not forward.
    ForwardingOff,
    /// A packet to forward in a frame for everybody or a group.
    UnicastInBroadcast,
    /// A source route, which this host does not take.
    SourceRoute,
    /// A source that is valid on its own link only, and the way leads to another.
    Scope,
    /// The bridge would have to send it back out of the port it arrived on, whose hairpin mode is off.
    Hairpin,
}

impl Refused {
    /// Whether the host tells the sender by an ICMP error, as far as it is not limited in how many it sends.
    #[must_use]
    pub fn answers(self) -> bool {
        matches!(self, Self::NoRoute | Self::Unreachable | Self::Prohibit | Self::Scope)
    }

    /// What it is called in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Martian => "martian",
            Self::RpFilter => "rp_filter",
            Self::NotJoined => "group not joined",
            Self::NoRoute => "no route",
            Self::Blackhole => "blackhole route",
            Self::Unreachable => "unreachable route",
            Self::Prohibit => "prohibited route",
            Self::ForwardingOff => "forwarding is off",
            Self::UnicastInBroadcast => "unicast packet in a broadcast frame",
            Self::SourceRoute => "source route",
            Self::Scope => "source beyond its scope",
            Self::Hairpin => "back by its bridge port, whose hairpin is off",
        }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Blackhole => Self::Blackhole,
            Refusal::Unreachable => Self::Unreachable,
            Refusal::Prohibit => Self::Prohibit,
            Refusal::Throw => Self::NoRoute,
        }
    }
}

/// What would have to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Missing {
    /// Routes of its family.
    Routes,
    /// The host's own addresses: the local table, or `addresses.txt`.
    Addresses,
    /// Which groups are joined.
    Groups,
    /// Policy rules: there are tables that only they ask.
    Rules,
    /// A policy rule tests or does what is not modelled.
    Policy,
    /// Bits of the mark, ports or another field that a policy rule tests.
    Mark,
    /// The type of service, which a route tests.
    Service,
    /// The input interface.
    Input,
    /// The next address of a source route.
    SourceRoute,
    /// The hairpin mode of the bridge port that the packet arrived on.
    Hairpin,
    /// Whether bridges hand what they pass on to iptables.
    BridgeCalls,
}

impl Missing {
    /// What is missing, by the name of the file that would tell it where there is one.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Routes => "routes.txt",
            Self::Addresses => "addresses.txt",
            Self::Groups => "maddr.txt",
            Self::Rules => "rule.txt",
            Self::Policy => "a policy rule of rule.txt that tamis does not model",
            Self::Mark => "a mark or port that rule.txt tests",
            Self::Service => "the type of service that a route tests",
            Self::Input => "the input interface",
            Self::SourceRoute => "the next address of a source route",
            Self::Hairpin => "whether the port of the bridge is a hairpin",
            Self::BridgeCalls => "whether bridges hand packets to iptables",
        }
    }
}

/// What was taken as usual, because sysctl.txt does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Assumed {
    /// The packet was taken to be forwarded, because forwarding was taken to be on.
    pub forwarding: bool,
    /// The packet would be dropped, were `rp_filter` strict.
    pub rp_filter: bool,
}

pub(crate) type Verdict<T> = Result<T, Routed<'static>>;

pub(crate) fn refuse<T>(why: Refused) -> Verdict<T> {
    Err(Routed::Refused(why))
}
