//! [`Host::way_back`]: whether an answer to a received packet would leave through its input interface, and by which device.
//!
//! IPv4 finds the route first and then looks at its interfaces; IPv6 searches for a route through the interface, and of
//! the routes to one prefix, a route through the interface precedes routes of lesser metric. Source: kernel
//! `net/ipv4/netfilter/ipt_rpfilter.c`, `net/ipv6/netfilter/ip6t_rpfilter.c`; `rt6_device_match` (`net/ipv6/route.c`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::policy::Flow;
use crate::route::{Route, RouteKind};
use crate::routed::{Incoming, Missing, Reached};
use crate::search::{Found, Narrow};
use crate::{Host, LinkKind};

/// What is asked of the way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WayBack {
    /// Any interface will do.
    pub loose: bool,
    /// A source that is the host's own is valid.
    pub accepts_local: bool,
    /// The way on to the destination is asked for, rather than that back to the source.
    pub onward: bool,
}

/// What the search for a way finds.
enum Back<'h> {
    /// The input interface, without a search.
    Input,
    /// The host itself.
    Local,
    /// A route; `tied` with another one as good by another interface.
    Route { route: &'h Route, tied: bool },
    /// No valid way.
    None,
}

impl Host {
    /// Whether there is such a way back to the source of a packet at PREROUTING. Its ports do not count, and of the
    /// protocol only what the IPv6 header itself names.
    ///
    /// # Errors
    /// What is missing, where that decides.
    pub fn way_back(&self, packet: &Incoming<'_>, wanted: WayBack) -> Result<bool, Missing> {
        Ok(!matches!(self.search_back(packet, wanted)?, Back::None))
    }

    /// The device of the way that [`Self::way_back`] finds; `None` if there is none.
    ///
    /// # Errors
    /// What is missing, where that decides: of several devices of a route the kernel chooses.
    pub fn device_back<'a>(
        &'a self,
        packet: &Incoming<'a>,
        wanted: WayBack,
    ) -> Result<Option<&'a str>, Missing> {
        match self.search_back(packet, wanted)? {
            Back::None => Ok(None),
            Back::Input => packet.input.map(Some).ok_or(Missing::Input),
            Back::Route { route, tied: false } if route.devices().count() == 1 => {
                Ok(route.devices().next())
            }
            Back::Route { .. } | Back::Local => Err(Missing::Routes),
        }
    }

    fn search_back(&self, packet: &Incoming<'_>, wanted: WayBack) -> Result<Back<'_>, Missing> {
        if self.needs_no_way_back(packet) {
            return Ok(Back::Input);
        }
        let (asked, other) = match wanted.onward {
            true => (packet.destination, packet.source),
            false => (packet.source, packet.destination),
        };
        let is_v6 = asked.is_ipv6();
        let is_narrow = matches!(asked, IpAddr::V6(v6) if v6.is_unicast_link_local());
        if packet.input.is_none() && (is_narrow || !wanted.loose) {
            return Err(Missing::Input);
        }
        if packet.input.is_some_and(|input| self.is_in_domain(input)) {
            return Err(Missing::Policy);
        }
        let is_bound = is_v6 && (is_narrow || !wanted.loose);
        let back = Flow {
            source: sender_of_answers(other),
            destination: asked,
            input: Some("lo"),
            output: packet.input.filter(|_| is_bound),
            tos: packet.tos,
            mark: packet.mark,
            protocol: if is_v6 { packet.protocol } else { Some(0) },
            ports: Some([0, 0]),
        };
        let narrow = Narrow { strict: is_narrow, ignore_carrier: true, by_device: true };
        let found = match (self.search(&back, narrow), self.instead_of_local_table(asked)?) {
            (Found::Open(missing), _) => return Err(missing),
            (_, Some(Reached::Local)) if wanted.accepts_local && (is_v6 || wanted.loose) => {
                Back::Local
            }
            (_, Some(Reached::Local)) if wanted.accepts_local => return Err(Missing::Routes),
            (Found::Route { route, tied }, None) if is_way_back(route, packet, wanted) => {
                Back::Route { route, tied }
            }
            _ => Back::None,
        };
        match (packet.input, found) {
            // The loopback may have received it, where every source is valid.
            (None, Back::None) => Err(Missing::Input),
            (_, found) => Ok(found),
        }
    }

    /// Whether a packet is valid whatever its source: on the loopback, or from a host without an address yet.
    fn needs_no_way_back(&self, packet: &Incoming<'_>) -> bool {
        let is_loopback = packet.input.is_some_and(|input| {
            let link = self.links.named(input);
            input == "lo" || link.is_some_and(|link| link.kind == LinkKind::Loopback)
        });
        is_loopback
            || match (packet.source, packet.destination) {
                (IpAddr::V4(source), IpAddr::V4(destination)) => {
                    let is_near = destination.octets()[..3] == [224, 0, 0];
                    source.is_unspecified() && (destination.is_broadcast() || is_near)
                }
                (source, _) => source.is_ipv6() && source.is_unspecified(),
            }
    }

    /// Whether an interface is or belongs to a routing domain, which has tables of its own.
    fn is_in_domain(&self, input: &str) -> bool {
        let is_domain =
            |name: &str| self.links.named(name).is_some_and(|link| link.kind == LinkKind::Vrf);
        let master = self.links.named(input).and_then(|link| link.master.as_deref());
        is_domain(input) || master.is_some_and(is_domain)
    }

    /// What an address is to the host, where the local table was not given.
    fn instead_of_local_table(&self, addr: IpAddr) -> Result<Option<Reached>, Missing> {
        if self.has_local_table(addr) {
            return Ok(None);
        }
        self.reached_by_addresses(addr).ok_or(Missing::Addresses)
    }
}

/// The source that answers would have, as the search sees it.
fn sender_of_answers(destination: IpAddr) -> IpAddr {
    match destination {
        IpAddr::V4(v4) if v4.is_multicast() || v4.is_broadcast() => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(v6) if v6.is_multicast() => Ipv6Addr::UNSPECIFIED.into(),
        other => other,
    }
}

fn is_way_back(route: &Route, packet: &Incoming<'_>, wanted: WayBack) -> bool {
    let is_v6 = packet.source.is_ipv6();
    let is_by_input = || {
        let alone = route.device.as_deref().filter(|_| route.ways.is_empty());
        let mut all =
            alone.into_iter().chain(route.ways.iter().filter_map(|w| w.device.as_deref()));
        all.any(|device| Some(device) == packet.input)
    };
    match route.kind {
        RouteKind::Local if !wanted.accepts_local => return false,
        RouteKind::Local if is_v6 => return true,
        RouteKind::Anycast if is_v6 && route.by_kernel == Some(false) => {}
        RouteKind::Multicast if is_v6 => {}
        RouteKind::Local | RouteKind::Unicast => {}
        _ => return false,
    }
    wanted.loose || is_by_input()
}
