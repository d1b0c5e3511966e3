//! [`Way`]: a path through the host with its interfaces, and how sure it is. [`crate::course`] finds a packet's.

use std::net::IpAddr;

use host::{Assumed, Refused};
use packet::{L3, Packet, Read};
use rules::Iface;

use crate::disposition::Why;
use crate::path::Path;

/// What routing decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes its way.
    Sure,
    /// It goes to the host or on, and this would tell.
    Open(Why),
    /// Routing refuses it.
    Refused(Refused),
    /// Routing may refuse it so, and this would tell.
    Perhaps(Refused, Why),
}

/// How a packet crosses a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crossed {
    /// As a bridge passes it on.
    Bridged,
    /// It ages, and is measured, as a router forwards it.
    Aged,
}

/// A path, and the interfaces on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way<'a> {
    pub(crate) path: Path,
    pub(crate) input: Iface<'a>,
    pub(crate) output: Iface<'a>,
    pub(crate) fate: Fate,
    /// The longest packet that goes out, in bytes.
    pub(crate) mtu: Option<u32>,
    /// It is that of a wire: nothing on it is routed.
    pub(crate) wire: Option<Crossed>,
    /// What was taken as usual.
    pub(crate) assumed: Assumed,
}

impl Way<'_> {
    /// Whether the path is certain, and the packet is not refused on it.
    pub(crate) fn is_sure(&self) -> bool {
        self.fate == Fate::Sure
    }

    /// Whether it is passed on as by a bridge.
    pub(crate) fn is_bridged(&self) -> bool {
        self.wire == Some(Crossed::Bridged)
    }

    /// Whether it ends in this host; `None` where that is not known.
    pub(crate) fn ends_here(&self) -> Option<bool> {
        self.is_sure().then_some(self.path != Path::Forward)
    }
}

/// Source and destination address, if both are known.
pub(crate) fn addresses(packet: &Packet<'_>) -> Option<(IpAddr, IpAddr)> {
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
