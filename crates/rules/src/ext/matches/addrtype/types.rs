//! The types of an address, as far as routes and local addresses tell them.
//!
//! Source: kernel `inet_dev_addr_type` (`net/ipv4/fib_frontend.c`), `__ipv6_addr_type`
//! (`net/ipv6/addrconf_core.c`), `ipv6_anycast_destination` (`include/net/ip6_route.h`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::family::Family;
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Iface;
use host::Host;
use host::Network;
use host::routes::{Refusal, Route, RouteKind};

/// Types by bit.
pub const NAMES: [&str; 12] = [
    "UNSPEC",
    "UNICAST",
    "LOCAL",
    "BROADCAST",
    "ANYCAST",
    "MULTICAST",
    "BLACKHOLE",
    "UNREACHABLE",
    "PROHIBIT",
    "THROW",
    "NAT",
    "XRESOLVE",
];

const UNSPEC: u16 = 1 << 0;
const UNICAST: u16 = 1 << 1;
const LOCAL: u16 = 1 << 2;
const BROADCAST: u16 = 1 << 3;
const ANYCAST: u16 = 1 << 4;
const MULTICAST: u16 = 1 << 5;
const BLACKHOLE: u16 = 1 << 6;
const UNREACHABLE: u16 = 1 << 7;
const PROHIBIT: u16 = 1 << 8;
const THROW: u16 = 1 << 9;

/// What the kernel does not take for IPv6.
pub(super) const NOT_IPV6: u16 = BLACKHOLE | BROADCAST | !(PROHIBIT - 1);

/// What the route to an IPv6 address tells; the address itself tells the others.
pub(super) const TOLD_BY_ROUTE: u16 = LOCAL | ANYCAST | UNREACHABLE;

/// The types of an address, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    /// Types that the address surely has.
    sure: u16,
    /// Types that the address may have, including the sure ones.
    possible: u16,
}

impl Known {
    const fn only(types: u16) -> Self {
        Self { sure: types, possible: types }
    }

    /// Some of these.
    const fn one_of(types: u16) -> Self {
        Self { sure: 0, possible: types }
    }

    /// Narrows the types to those of an address that a packet was forwarded to.
    pub(super) fn of_forwarded(self) -> Self {
        let possible = self.possible & !(LOCAL | BROADCAST);
        let sure = if possible == UNICAST { UNICAST } else { 0 };
        Self { sure: self.sure & possible | sure, possible }
    }

    /// Whether the address has one of the wanted types. With `has_one` it surely has one of the possible types, so it
    /// has a wanted one where all of these are wanted.
    pub(super) fn evaluate(self, wanted: u16, has_one: bool) -> Outcome {
        let is_inside = has_one && self.possible & !wanted == 0;
        if is_inside || self.sure & wanted != 0 {
            Outcome::YES
        } else if self.possible & wanted == 0 {
            Outcome::NO
        } else {
            Outcome::MAYBE
        }
    }
}

/// The bit of a route's type.
fn bit(kind: RouteKind) -> u16 {
    match kind {
        RouteKind::Unicast => UNICAST,
        RouteKind::Local => LOCAL,
        RouteKind::Broadcast => BROADCAST,
        RouteKind::Multicast => MULTICAST,
        RouteKind::Anycast => ANYCAST,
        RouteKind::Refused(Refusal::Blackhole) => BLACKHOLE,
        RouteKind::Refused(Refusal::Unreachable) => UNREACHABLE,
        RouteKind::Refused(Refusal::Prohibit) => PROHIBIT,
        RouteKind::Refused(Refusal::Throw) => THROW,
    }
}

/// A type of the local table, which shows only over the interface of its route: elsewhere the address is
/// plain unicast. `device` is the interface to which the match is limited, if it is.
fn over(kind: u16, route_device: Option<&str>, device: Option<Iface<'_>>) -> Known {
    match (device, route_device) {
        (None | Some(Iface::Absent), _) => Known::only(kind),
        (Some(Iface::Named(name)), Some(of_route)) if name == of_route => Known::only(kind),
        (Some(Iface::Named(_)), Some(_)) => Known::only(UNICAST),
        _ => Known::one_of(kind | UNICAST),
    }
}

/// The type of an IPv4 address.
pub(super) fn types_v4(host: &Host, addr: Ipv4Addr, device: Option<Iface<'_>>) -> Known {
    if addr.is_unspecified() || addr.is_broadcast() {
        return Known::only(BROADCAST);
    }
    if addr.is_multicast() {
        return Known::only(MULTICAST);
    }
    let ip = IpAddr::V4(addr);
    if host.routes.as_ref().is_some_and(|routes| routes.has_local_table(ip)) {
        return match host.local_route(ip) {
            Some(route) if route.kind == RouteKind::Unicast => Known::only(UNICAST),
            Some(route) => over(bit(route.kind), route.device.as_deref(), device),
            None => Known::only(UNICAST),
        };
    }
    if addr == Ipv4Addr::new(127, 255, 255, 255) {
        return over(BROADCAST, Some("lo"), device);
    }
    if addr.is_loopback() {
        return over(LOCAL, Some("lo"), device);
    }
    if host.is_local(ip) == Some(true) {
        return over(LOCAL, None, device);
    }
    types_by_subnets(host, ip, device)
}

/// What the subnets of the main table tell of an IPv4 address that is not given as local.
fn types_by_subnets(host: &Host, ip: IpAddr, device: Option<Iface<'_>>) -> Known {
    let subnets =
        host.routes.iter().flat_map(|routes| routes.all()).filter(|route| route.connected);
    for route in subnets {
        let is_broadcast = route.destination.bits < 31 && route.destination.last() == ip;
        if route.source == Some(ip) || is_broadcast {
            let kind = if is_broadcast { BROADCAST } else { LOCAL };
            return over(kind, route.device.as_deref(), device);
        }
    }
    match (host.is_local(ip), &host.routes) {
        (Some(_), Some(_)) => Known::only(UNICAST),
        (Some(_), None) => Known::one_of(UNICAST | BROADCAST),
        (None, _) => Known::one_of(UNICAST | BROADCAST | LOCAL),
    }
}

/// Whether an IPv6 address is of the kinds that show in the address itself.
pub(super) fn is_of_kinds(addr: Ipv6Addr, types: u16) -> bool {
    let [a, b, c, d, e, f, ..] = addr.segments();
    let is_mapped = [a, b, c, d, e, f] == [0, 0, 0, 0, 0, 0xffff];
    let is_unicast = !addr.is_multicast() && !addr.is_unspecified() && !is_mapped;
    (types & MULTICAST == 0 || addr.is_multicast())
        && (types & UNICAST == 0 || is_unicast)
        && (types & UNSPEC == 0 || addr.is_unspecified())
}

/// Returns the test of [`is_of_kinds`] as predicates.
pub(super) fn of_kinds(types: u16, field: Field) -> Vec<Predicate> {
    let masked = |value, mask| Predicate::Masked { field, value, mask };
    let multicast = || masked(0xff << 120, 0xff << 120);
    let unspecified = || masked(0, u128::MAX);
    let mapped = || masked(0xffff << 32, u128::MAX << 32);
    let unicast = || {
        let others = vec![multicast(), unspecified(), mapped()];
        Predicate::Not(Box::new(Predicate::Any(others)))
    };
    let mut all = Vec::new();
    all.extend((types & MULTICAST != 0).then(multicast));
    all.extend((types & UNICAST != 0).then(unicast));
    all.extend((types & UNSPEC != 0).then(unspecified));
    all
}

/// Which types addresses may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeRange {
    /// The first address.
    pub first: u128,
    /// The last one.
    pub last: u128,
    /// A bit for each type that they may have, by its number.
    pub types: u16,
}

/// What is known of the types of all addresses of a family, in their order: of each of a range the same.
#[must_use]
pub fn type_ranges(host: &Host, family: Family) -> Vec<TypeRange> {
    let most = if family == Family::Ipv6 { u128::MAX } else { u32::MAX.into() };
    let mut starts: Vec<u128> =
        edges(host, family).into_iter().filter(|start| *start <= most).collect();
    starts.sort_unstable();
    starts.dedup();
    let mut ranges: Vec<TypeRange> = Vec::new();
    for (place, first) in starts.iter().enumerate() {
        let last = starts.get(place + 1).map_or(most, |next| next - 1);
        let types = possible(host, family, *first);
        match ranges.last_mut() {
            Some(range) if range.types == types => range.last = last,
            _ => ranges.push(TypeRange { first: *first, last, types }),
        }
    }
    ranges
}

/// The types that an address may have, a bit for each by its number: over one device, if that is asked for; of an address
/// that the packet was forwarded to, none that is the host's own.
#[must_use]
pub fn possible_types(
    host: &Host,
    address: IpAddr,
    device: Option<Iface<'_>>,
    forwarded: bool,
) -> u16 {
    let known = match address {
        IpAddr::V4(address) => types_v4(host, address, device),
        IpAddr::V6(address) => {
            let Known { sure, possible } = types_v6(host, address, device);
            let kinds = match () {
                () if address.is_multicast() => MULTICAST | UNICAST | UNSPEC,
                // Which device's link is meant decides.
                () if address.is_unicast_link_local() => UNICAST | TOLD_BY_ROUTE,
                () if is_of_kinds(address, UNICAST) => UNICAST,
                () => UNSPEC | UNICAST,
            };
            if sure == 0 { Known::one_of(possible | kinds) } else { Known::only(sure) }
        }
    };
    if forwarded { known.of_forwarded().possible } else { known.possible }
}

/// Addresses from which on another answer is possible.
fn edges(host: &Host, family: Family) -> Vec<u128> {
    let number = |address: IpAddr| match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => v6.into(),
    };
    let is_v6 = family == Family::Ipv6;
    let mut networks: Vec<Network> = Vec::new();
    let single =
        |address: IpAddr| Network { addr: address, bits: if address.is_ipv6() { 128 } else { 32 } };
    let usual: &[&str] = match is_v6 {
        true => &["::", "::1", "ff00::/8"],
        false => &["0.0.0.0", "255.255.255.255", "224.0.0.0/4", "127.0.0.0/8", "127.255.255.255"],
    };
    networks.extend(usual.iter().filter_map(|text| Network::parse(text)));
    networks.extend(host.local.iter().flatten());
    networks.extend(host.addresses.iter().map(|(_, address)| single(*address)));
    let assigned = host.assigned.iter().flat_map(|assigned| assigned.all());
    networks.extend(assigned.map(|one| single(one.addr)));
    for route in host.routes.iter().flat_map(|routes| routes.all()) {
        let Network { addr, bits } = route.destination;
        networks.push(route.destination);
        // The first address of a subnet is that of its routers, the last one its broadcast address.
        networks.extend([single(addr), single(route.destination.last())]);
        networks.extend(route.source.map(single).filter(|_| bits > 0));
    }
    let mut edges = vec![0];
    for network in networks.iter().filter(|network| network.addr.is_ipv6() == is_v6) {
        edges.push(number(network.addr));
        edges.extend(number(network.last()).checked_add(1));
    }
    edges
}

fn possible(host: &Host, family: Family, address: u128) -> u16 {
    match family {
        Family::Ipv6 => {
            let known = types_v6(host, address.into(), None);
            // One that has none of the others is unicast.
            if known.sure == 0 { known.possible | UNICAST } else { known.sure }
        }
        _ => types_v4(host, Ipv4Addr::from(address as u32), None).possible,
    }
}

/// Which of [`TOLD_BY_ROUTE`] the route to an IPv6 address tells.
pub(super) fn types_v6(host: &Host, addr: Ipv6Addr, device: Option<Iface<'_>>) -> Known {
    let ip = IpAddr::V6(addr);
    let route = host.routes.as_ref().and_then(|routes| {
        let is_whole = routes.has_local_table(ip) || host.is_local(ip) == Some(false);
        let takes = |route: &Route| route.from.is_none();
        let of_table = |name| routes.in_table(name, ip, takes);
        is_whole.then(|| of_table("local").or_else(|| of_table("main")))
    });
    let is_local = match (host.is_local(ip), route) {
        _ if addr.is_loopback() => Some(true),
        (Some(true), _) => Some(true),
        (_, Some(route)) => Some(route.is_some_and(|route| route.kind == RouteKind::Local)),
        (said, None) => said,
    };
    // A route over one interface is another search, which is not modelled.
    let is_limited = !matches!(device, None | Some(Iface::Absent));
    match (is_local, route) {
        (Some(true), _) if !is_limited => Known::only(LOCAL),
        (Some(false), Some(route)) if !is_limited => Known::only(told_by(route, ip)),
        (Some(false), _) => Known::one_of(ANYCAST | UNREACHABLE),
        _ => Known::one_of(TOLD_BY_ROUTE),
    }
}

/// What the route to a foreign address says; no route at all is unreachable.
fn told_by(route: Option<&Route>, ip: IpAddr) -> u16 {
    let Some(route) = route else { return UNREACHABLE };
    // The first address of a subnet is that of its routers.
    let is_subnet_router =
        route.destination.bits < 127 && !route.gateway && route.destination.addr == ip;
    match route.kind {
        RouteKind::Anycast => ANYCAST,
        RouteKind::Refused(_) => UNREACHABLE,
        _ if is_subnet_router => ANYCAST,
        _ => 0,
    }
}
