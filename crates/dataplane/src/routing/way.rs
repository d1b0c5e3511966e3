//! [`Way`]: a path through the host with its interfaces, and how sure it is. [`crate::routing::course`] finds a packet's way.

use std::net::IpAddr;

use host::{Assumed, Refused};
use packet::{L3, Packet, Read};
use rules::Iface;

use crate::disposition::Why;
use crate::routing::path::Path;

/// The decision of routing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The packet goes its way.
    Sure,
    /// Local delivery or forwarding is undecided; `Why` names the missing input.
    Open(Why),
    /// Routing refuses the packet.
    Refused(Refused),
    /// Routing may refuse the packet so; `Why` names the missing input.
    Perhaps(Refused, Why),
}

/// How a packet crosses a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crossed {
    /// A bridge passes the packet on.
    Bridged,
    /// A router forwards the packet: it ages, and its length is checked.
    Aged,
}

/// A path, and the interfaces on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way<'a> {
    pub(crate) path: Path,
    pub(crate) input: Iface<'a>,
    pub(crate) output: Iface<'a>,
    pub(crate) fate: Decision,
    /// The longest packet on the output link, in bytes.
    pub(crate) mtu: Option<u32>,
    /// How the packet crosses a wire, if it does: nothing on a wire is routed.
    pub(crate) wire: Option<Crossed>,
    /// What routing took as usual, because it is not given.
    pub(crate) assumed: Assumed,
}

impl Way<'_> {
    /// Whether the path is certain, and the packet is not refused on it.
    pub(crate) fn is_sure(&self) -> bool {
        self.fate == Decision::Sure
    }

    /// Whether the packet is passed on as by a bridge.
    pub(crate) fn is_bridged(&self) -> bool {
        self.wire == Some(Crossed::Bridged)
    }

    /// Whether the packet ends in this host; `None` where that is not known.
    pub(crate) fn ends_here(&self) -> Option<bool> {
        self.is_sure().then_some(self.path != Path::Forward)
    }
}

/// Destination address, if it is known.
pub(crate) fn destination(packet: &Packet<'_>) -> Option<IpAddr> {
    match packet.headers().l3 {
        L3::Ipv4 { .. } => match packet.net::<4>(16) {
            Read::Known(addr) => Some(IpAddr::from(addr)),
            _ => None,
        },
        L3::Ipv6 => match packet.net::<16>(24) {
            Read::Known(addr) => Some(IpAddr::from(addr)),
            _ => None,
        },
        _ => None,
    }
}

/// Source and destination address, if both are known.
#[must_use]
pub fn addresses(packet: &Packet<'_>) -> Option<(IpAddr, IpAddr)> {
    match packet.headers().l3 {
        L3::Ipv4 { .. } => match packet.net::<8>(12) {
            Read::Known([a, b, c, d, e, f, g, h]) => {
                Some((IpAddr::from([a, b, c, d]), IpAddr::from([e, f, g, h])))
            }
            _ => None,
        },
        L3::Ipv6 => {
            let at = |offset| match packet.net::<16>(offset) {
                Read::Known(addr) => Some(IpAddr::from(addr)),
                _ => None,
            };
            Some((at(8)?, at(24)?))
        }
        _ => None,
    }
}
