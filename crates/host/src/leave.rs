//! [`Host::route_out`]: by which interface a packet of the host's own leaves.

use std::net::IpAddr;

use crate::Host;
use crate::policy::Flow;
use crate::route::{Route, RouteKind};
use crate::routed::{Missing, Outgoing, Refused, Routed};
use crate::search::{Found, Narrow};

/// Whether a route leads to the host itself; an anycast one does unless somebody made it by hand.
fn is_own_route(route: &Route) -> bool {
    match route.kind {
        RouteKind::Local => true,
        RouteKind::Anycast => route.by_kernel != Some(false),
        _ => false,
    }
}

impl Host {
    /// The interface that a packet is routed out of, be it the host's own or not; `None` where more would have to be known of
    /// it, such as the interface on which it arrived.
    #[must_use]
    pub fn leaves_by(&self, source: IpAddr, destination: IpAddr) -> Option<&str> {
        if self.is_local(destination) == Some(true) {
            return Some("lo");
        }
        let flow = Flow {
            source,
            destination,
            input: None,
            output: None,
            tos: None,
            mark: None,
            protocol: None,
            ports: None,
        };
        match self.search(&flow, Narrow::default()) {
            Found::Route { route, .. } if is_own_route(route) => Some("lo"),
            Found::Route { route, tied } => match self.leaves(route, tied) {
                Routed::Forward { output, .. } => output,
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a copy of what the host sends through an interface to this address may come back to it without a wire:
    /// copies of broadcasts, and of packets to a group that the interface joined. Programs join groups that routers
    /// forward at any time.
    ///
    /// Source: Linux 6.18 `ip_output.c` (`ip_mc_output`, `ip_dev_loopback_xmit`), `ip6_output.c`.
    #[must_use]
    pub fn may_come_back(&self, output: &str, destination: IpAddr) -> bool {
        let joined = || self.groups.as_ref().and_then(|all| all.joined(output, destination));
        let broadcasts = || self.assigned.as_ref().is_some_and(|all| all.broadcasts(destination));
        match destination {
            IpAddr::V4(v4) if v4.is_broadcast() => true,
            IpAddr::V4(v4) if v4.is_multicast() => {
                v4.octets()[..3] != [224, 0, 0] || joined() != Some(false)
            }
            IpAddr::V6(v6) if v6.is_multicast() => {
                v6.segments()[0] & 0xf > 2 || joined() != Some(false)
            }
            IpAddr::V4(_) => broadcasts(),
            IpAddr::V6(_) => false,
        }
    }

    /// By which interface a packet of the host's own leaves; `lo` if it is for the host itself.
    #[must_use]
    pub fn route_out<'a>(&'a self, packet: &Outgoing<'a>) -> Routed<'a> {
        let destination = packet.destination;
        let by = |output: Option<&'a str>| {
            let mtu = output.and_then(|name| self.links().named(name)?.mtu);
            Routed::Forward { output, mtu }
        };
        let is_own = destination.is_loopback() || destination.is_unspecified();
        if is_own || self.is_local(destination) == Some(true) {
            return by(Some("lo"));
        }
        let is_narrow = match destination {
            IpAddr::V4(v4) => v4.is_multicast() || v4.is_broadcast(),
            IpAddr::V6(v6) => v6.is_multicast() || v6.is_unicast_link_local(),
        };
        // The interface that it is bound to, or whose address it bears, takes it as it is.
        let bound = packet.output.or_else(|| {
            let source = packet.source;
            // An IPv6 address that is good on several links binds to none.
            let binds = match source {
                IpAddr::V4(v4) => !v4.is_unspecified(),
                IpAddr::V6(v6) => v6.is_unicast_link_local(),
            };
            if is_narrow && binds { self.interface_of(source) } else { None }
        });
        if is_narrow && bound.is_some() {
            return by(bound);
        }
        if is_narrow && destination.is_ipv6() {
            return by(None);
        }
        let flow = Flow {
            source: packet.source,
            destination,
            input: Some("lo"),
            output: bound,
            tos: packet.tos,
            mark: packet.mark,
            protocol: packet.protocol,
            ports: packet.ports,
        };
        match self.search(&flow, Narrow::default()) {
            Found::Route { route, .. } if is_own_route(route) => by(Some("lo")),
            Found::Route { route, tied } => self.leaves(route, tied),
            Found::Nothing if bound.is_some() && destination.is_ipv4() => by(bound),
            Found::Refused(why) => Routed::Refused(why.into()),
            Found::Nothing => Routed::Refused(Refused::NoRoute),
            Found::Open(Missing::Routes) if bound.is_some() => by(bound),
            Found::Open(missing) => Routed::Unknown(missing),
        }
    }
}
