//! [`Alike`]: what routing cannot tell apart, so that what it says of one packet holds for all that are like it.
//!
//! Contract: two addresses of one class lie in the same networks of policy rules, are the same to the host, and find
//! the same routes in every table, apart from the routes' destinations. Of the other fields, only those that policy
//! rules and routes test are named. One packet of each combination stands for all packets.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::net::IpAddr;

use crate::by_part::ByNetwork;
use crate::policy::PolicyRule;
use crate::route::Route;
use crate::{Host, Network};

/// What routing tells apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alike {
    /// Addresses in classes, each of ranges with both ends, in their order.
    pub addresses: Vec<Vec<[IpAddr; 2]>>,
    /// Marks that policy rules test, as values under masks.
    pub marks: Vec<(u32, u32)>,
    /// Types of service that policy rules and routes test, as values under masks.
    pub services: Vec<(u8, u8)>,
    /// Protocols that policy rules test.
    pub protocols: Vec<u8>,
    /// Source and destination ports that policy rules test, with both ends.
    pub ports: [Vec<(u16, u16)>; 2],
}

impl Host {
    /// What routing of a family tells apart; `None` where no routes of it are given.
    #[must_use]
    pub fn alike(&self, is_v6: bool) -> Option<Alike> {
        let routes = self.routes.as_ref()?;
        routes.tables().names(is_v6).next()?;
        let rules = self.policy.as_ref().and_then(|policy| policy.of(is_v6)).unwrap_or_default();
        let mut alike = Alike { addresses: self.addresses_alike(is_v6, rules), ..Alike::default() };
        for rule in rules {
            alike.marks.extend(rule.mark);
            let service = if is_v6 { 0xfc } else { 0x1c };
            alike.services.extend(rule.tos.filter(|tos| *tos != 0).map(|tos| (tos, service)));
            alike.protocols.extend(rule.protocol);
            for (all, one) in alike.ports.iter_mut().zip(rule.ports) {
                all.extend(one);
            }
        }
        let of_family = routes.all().iter().filter(|it| it.destination.addr.is_ipv6() == is_v6);
        let services = of_family.filter_map(|route| route.tos.filter(|tos| *tos != 0));
        alike.services.extend(services.map(|tos| (tos, 0x1c)));
        Some(alike)
    }

    fn addresses_alike(&self, is_v6: bool, rules: &[PolicyRule]) -> Vec<Vec<[IpAddr; 2]>> {
        let most = if is_v6 { u128::MAX } else { u32::MAX.into() };
        let address = |number: u128| match u32::try_from(number) {
            Ok(number) if !is_v6 => IpAddr::from(number.to_be_bytes()),
            _ => IpAddr::from(number.to_be_bytes()),
        };
        let edges = self.edges(is_v6, rules);
        let prints = Prints::of(self, rules);
        let (mut classes, mut places) = (Vec::<Vec<[IpAddr; 2]>>::new(), HashMap::new());
        for (place, first) in edges.iter().enumerate() {
            let last = edges.get(place + 1).map_or(most, |next| next - 1);
            let new = classes.len();
            let class = *places.entry(prints.print(address(*first))).or_insert(new);
            if class == new {
                classes.push(Vec::new());
            }
            classes[class].push([address(*first), address(last)]);
        }
        classes
    }

    /// Addresses from which on others may be found.
    fn edges(&self, is_v6: bool, rules: &[PolicyRule]) -> Vec<u128> {
        let usual: &[&str] = match is_v6 {
            true => &["::", "::1", "fe80::/10", "ff00::/8", "ff01::1", "ff02::1", "ff02::2"],
            false => &[
                "0.0.0.0",
                "127.0.0.0/8",
                "224.0.0.0/4",
                "224.0.0.0/24",
                "224.0.0.1",
                "255.255.255.255",
            ],
        };
        let whole = |addr: IpAddr| Network { addr, bits: if addr.is_ipv6() { 128 } else { 32 } };
        let mut networks: Vec<Network> =
            usual.iter().filter_map(|text| Network::parse(text)).collect();
        networks.extend(self.local.iter().flatten());
        let named = self.addresses.iter().map(|(_, addr)| *addr);
        let assigned = || self.assigned.iter().flat_map(|all| all.all());
        let own: Vec<IpAddr> = named.chain(assigned().map(|one| one.addr)).collect();
        networks.extend(own.iter().copied().map(whole));
        networks.extend(assigned().flat_map(|one| [whole(one.subnet.last())]));
        networks.extend(assigned().filter_map(|one| one.broadcast.map(whole)));
        for route in self.routes.iter().flat_map(|routes| routes.all()) {
            let Network { addr, .. } = route.destination;
            networks.extend([route.destination, whole(addr), whole(route.destination.last())]);
            networks.extend(route.from);
        }
        networks.extend(rules.iter().flat_map(|rule| [rule.from, rule.to]).flatten());
        networks.extend(self.groups.iter().flat_map(|groups| groups.all()).map(whole));
        let routed = self.routes.iter().flat_map(|routes| routes.all());
        let solicited = own.into_iter().chain(routed.map(|route| route.destination.addr));
        networks.extend(solicited.filter_map(solicited_by).map(whole));
        let mut edges = vec![0];
        for network in networks.iter().filter(|network| network.addr.is_ipv6() == is_v6) {
            edges.push(number(network.addr));
            let most = if is_v6 { u128::MAX } else { u32::MAX.into() };
            edges.extend(number(network.last()).checked_add(1).filter(|next| *next <= most));
        }
        edges.sort_unstable();
        edges.dedup();
        edges
    }
}

/// All that decisions ask of an address: the same for two addresses that routing does not tell apart.
type Print = (String, Vec<u32>);

/// What prints of addresses are made of.
struct Prints<'h> {
    host: &'h Host,
    /// Addresses that may be an interface's, or a network's for all.
    special: HashSet<IpAddr>,
    /// Networks that policy rules and routes ask for: sources of rules, their destinations, and sources of routes.
    asked: [ByNetwork; 3],
    /// Routes by all that they say but for their destinations.
    routes: Vec<u32>,
}

impl<'h> Prints<'h> {
    fn of(host: &'h Host, rules: &[PolicyRule]) -> Self {
        let routes = || host.routes.iter().flat_map(|routes| routes.all());
        let assigned = host.assigned.iter().flat_map(|all| all.all());
        let assigned =
            assigned.flat_map(|one| [Some(one.addr), Some(one.subnet.last()), one.broadcast]);
        let special = routes().flat_map(|route| [route.destination.addr, route.destination.last()]);
        let has_suppressed = rules.iter().any(|rule| rule.suppress.is_some());
        let mut numbers = HashMap::new();
        let number = |route: &Route| {
            let bits = if has_suppressed { route.destination.bits } else { 0 };
            let bits = if route.connected_v6() { bits.max(1) } else { bits };
            let any = Network { addr: IpAddr::from([0; 4]), bits };
            let text = format!("{:?}", Route { destination: any, ..route.clone() });
            let next = numbers.len() as u32;
            *numbers.entry(text).or_insert(next)
        };
        let networks = |networks: &mut dyn Iterator<Item = Network>| {
            ByNetwork::of_networks(networks.map(Some))
        };
        Self {
            host,
            special: special.chain(assigned.flatten()).collect(),
            asked: [
                networks(&mut rules.iter().filter_map(|rule| rule.from)),
                networks(&mut rules.iter().filter_map(|rule| rule.to)),
                networks(&mut routes().filter_map(|route| route.from)),
            ],
            routes: routes().map(number).collect(),
        }
    }

    fn print(&self, addr: IpAddr) -> Print {
        let host = self.host;
        let narrow = match addr {
            IpAddr::V4(v4) => (v4.is_broadcast(), v4.octets()[..3] == [224, 0, 0]),
            IpAddr::V6(v6) => (v6.is_unicast_link_local(), false),
        };
        let kind = (addr.is_multicast(), addr.is_unspecified(), addr.is_loopback(), narrow);
        let mut text = format!("{kind:?}{:?}", (host.is_local(addr), host.is_assigned(addr)));
        // Writing to a String cannot fail.
        if self.special.contains(&addr) {
            let own = (host.interface_of(addr), host.reached_by_addresses(addr));
            let _ = write!(text, "{own:?}");
        }
        if addr.is_multicast() {
            let names = host.groups.iter().flat_map(|groups| groups.interfaces());
            let joined: Vec<_> = names.map(|name| host.is_joined(Some(name), addr)).collect();
            let _ = write!(text, "{joined:?}{:?}", host.is_joined(None, addr));
        }
        let mut places = Vec::new();
        for networks in &self.asked {
            places.extend(std::iter::successors(networks.next(0, addr), |at| {
                networks.next(at + 1, addr)
            }));
            places.push(usize::MAX);
        }
        let mut print: Vec<u32> = places.into_iter().map(|place| place as u32).collect();
        let Some(routes) = &host.routes else { return (text, print) };
        let tables = routes.tables();
        for (number, name) in (0..).zip(tables.names(addr.is_ipv6())) {
            let before = print.len();
            let places = tables.of_name(addr.is_ipv6(), name).into_iter();
            for place in places.flat_map(|table| table.holding(addr)).flatten() {
                let route = &routes.all()[*place as usize];
                let is_first = addr.is_ipv6() && route.destination.addr == addr;
                print.extend([u32::from(is_first), self.routes[*place as usize]]);
            }
            if print.len() > before {
                print.extend([u32::MAX, number]);
            }
        }
        (text, print)
    }
}

/// The group by which neighbours ask for an IPv6 address.
fn solicited_by(addr: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(v6) = addr else { return None };
    let [.., a, b, c] = v6.octets();
    Some(IpAddr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]))
}

fn number(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}
