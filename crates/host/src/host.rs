//! [`Host`]: what is known of a host, and what it says of addresses and links.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use crate::addresses::{Addresses, only};
use crate::fingerprints::Fingerprints;
use crate::foreign::Foreign;
use crate::geoip::Geoip;
use crate::groups::Groups;
use crate::kernel::{Change, Kernel};
use crate::links::{Link, Links};
use crate::neighbours::{Neighbour, Port};
use crate::network::Network;
use crate::policy::Policy;
use crate::queues::Queues;
use crate::route::{LOCAL, Route, RouteKind};
use crate::routes::Routes;
use crate::sysctl::Sysctl;
use crate::xfrm::Xfrm;
use crate::zone::Zone;

/// The host as the command line and the files of a folder describe it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// The host's own addresses and networks, as `--local` gives them; `None` if not given.
    pub local: Option<Vec<Network>>,
    /// The host's routes; `None` if not given.
    pub routes: Option<Routes>,
    /// The bridge that the rules stand on: `--bridge`, or the only bridge of the host.
    pub bridge: Option<String>,
    /// Addresses of interfaces, as `--addr` gives them.
    pub addresses: Vec<(String, IpAddr)>,
    /// Addresses of interfaces, as `ip addr` prints them; `None` if not given.
    pub assigned: Option<Addresses>,
    /// Links; none if not given.
    pub links: Links,
    /// Policy rules; `None` if not given.
    pub policy: Option<Policy>,
    /// Groups that interfaces joined; `None` if not given.
    pub groups: Option<Groups>,
    /// Neighbours.
    pub neighbours: Vec<Neighbour>,
    /// Ports of bridges.
    pub ports: Vec<Port>,
    /// Settings; `None` if not given.
    pub sysctl: Option<Sysctl>,
    /// The version of its kernel; `None` if not given.
    pub kernel: Option<Kernel>,
    /// What SYNs of operating systems look like; `None` if not given.
    pub fingerprints: Option<Arc<Fingerprints>>,
    /// Which addresses are which country's; `None` if not given.
    pub geoip: Option<Arc<Geoip>>,
    /// What the programs answer that packets are queued for.
    pub queues: Queues,
    /// The time zone that its kernel holds; `None` if not given.
    pub zone: Option<Zone>,
    /// IPsec policies; `None` if not given.
    pub xfrm: Option<Xfrm>,
    /// Chains of rulesets that are not evaluated, which the host's packets meet, too.
    pub foreign: Foreign,
}

impl Host {
    /// Whether its kernel has a change of answers; `None` where that is not known. What is not given is [`Kernel::default`].
    #[inline]
    #[must_use]
    pub fn has(&self, change: Change) -> Option<bool> {
        self.kernel.unwrap_or_default().has(change)
    }

    /// Whether an IPv4 packet may have a routing realm other than 0: a route or a policy rule names one. `None` where
    /// either is not known: without policy rules, routes beyond the usual tables tell of some.
    #[must_use]
    pub fn has_realms(&self) -> Option<bool> {
        let routes = self.routes.as_ref()?;
        let policy = self.policy.as_ref().map(Policy::has_realms);
        match (routes.all().iter().any(|route| route.realm), policy) {
            (true, _) | (_, Some(true)) => Some(true),
            (false, Some(false)) => Some(false),
            (false, None) => None,
        }
    }

    /// Returns the host's links.
    #[must_use]
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The device that takes what this one receives: see [`Links::upper`]. A port that only `bridge link` names has its
    /// bridge, if that is among the links.
    #[must_use]
    pub fn upper(&self, name: &str, vlan: Option<u16>) -> Option<&Link> {
        let bridge = || {
            let port = self.ports.iter().find(|port| &*port.name == name)?;
            self.links.named(port.bridge.as_deref()?)
        };
        self.links.upper(name, vlan).or_else(bridge)
    }

    /// Whether one of its links has this address.
    #[must_use]
    pub fn is_own_mac(&self, mac: [u8; 6]) -> bool {
        self.links.with_mac(mac).is_some()
    }

    /// Whether an address is the host's own: as `--local` and `--addr` say, else as its interfaces and its local routes
    /// do; `None` if not given.
    #[must_use]
    pub fn is_local(&self, addr: IpAddr) -> Option<bool> {
        if addr.is_loopback() || self.addresses.iter().any(|(_, own)| *own == addr) {
            return Some(true);
        }
        if let Some(local) = &self.local {
            return Some(local.iter().any(|network| network.holds(addr)));
        }
        if self.assigned.as_ref().is_some_and(|assigned| assigned.has(addr)) {
            return Some(true);
        }
        let is_for_many = addr.is_multicast() || addr == IpAddr::V4(Ipv4Addr::BROADCAST);
        if is_for_many || !self.has_local_table(addr) {
            let is_told = self.assigned.is_some() || self.has_local_table(addr);
            return is_told.then_some(false);
        }
        Some(self.local_route(addr).is_some_and(|route| route.kind == RouteKind::Local))
    }

    /// The route to an address in the local table, which tells its type. Until somebody makes policy rules, IPv4's tables
    /// `local` and `main` are one, and a route that leads on may be longer. One that refuses gives no type.
    #[must_use]
    pub fn local_route(&self, addr: IpAddr) -> Option<&Route> {
        let routes = self.routes.as_ref()?;
        let is_merged = addr.is_ipv4() && !self.is_policy_custom();
        let named = || routes.tables().of_name(addr.is_ipv6(), LOCAL);
        let table = if is_merged { Some(routes.tables().merged()) } else { named() };
        let mut places = table?.holding(addr).flatten();
        let route = places.find_map(|place| {
            let route = &routes.all()[*place as usize];
            (route.tos.unwrap_or(0) == 0).then_some(route)
        });
        route.filter(|route| !matches!(route.kind, RouteKind::Refused(_)))
    }

    /// Returns the address of an interface: the only one given for it, else the only one that the routes name.
    #[must_use]
    pub fn address_of(&self, interface: &str, is_v6: bool) -> Option<IpAddr> {
        let named = self.addresses.iter().filter(|(name, _)| name == interface);
        let given = only(named.map(|(_, addr)| *addr).filter(|addr| addr.is_ipv6() == is_v6));
        let assigned = || self.assigned.as_ref()?.source_for(interface, is_v6);
        let routes = self.routes.iter().flat_map(Routes::all);
        given.or_else(assigned).unwrap_or_else(|| {
            let own = routes.filter(|route| route.device.as_deref() == Some(interface));
            let addresses = own.filter_map(Route::own_address);
            only(addresses.filter(|addr| addr.is_ipv6() == is_v6)).flatten()
        })
    }
}
