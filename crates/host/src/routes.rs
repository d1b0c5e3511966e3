//! Routes as ip-route(8) prints them: what `-m addrtype` needs to know of the host.
//!
//! Best given with the local table (`ip route show table all`), which says outright which addresses are
//! local and which are broadcast. Without it the connected subnets (`scope link src ADDRESS`) tell of some.
//! Routes of all tables are taken together: policy routing is not modelled.

use std::fmt;
use std::net::IpAddr;

use crate::Network;

/// The routes of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routes(Vec<Route>);

/// One route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where it leads.
    pub destination: Network,
    /// What becomes of packets to there.
    pub kind: RouteKind,
    /// The interface, if it names one.
    pub device: Option<Box<str>>,
    /// Packets go to a gateway rather than straight to their destination.
    pub gateway: bool,
    /// The preferred source address, if it names one.
    pub source: Option<IpAddr>,
    /// The destination is a subnet that the host has an address in.
    pub connected: bool,
}

/// Route types (`RTN_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteKind {
    /// Leads on.
    Unicast,
    /// An address of the host.
    Local,
    /// A broadcast address.
    Broadcast,
    /// A group.
    Multicast,
    /// An anycast address of the host.
    Anycast,
    /// Dropped, unreachable, prohibited or thrown out of the table.
    Refused(Refusal),
}

/// Ways in which a route leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Dropped in silence.
    Blackhole,
    /// Dropped with an error.
    Unreachable,
    /// Dropped with another error.
    Prohibit,
    /// The search goes on in the next table.
    Throw,
}

/// A line that is no route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteError {
    /// Line, from 1.
    pub line: u32,
    /// The word that should have been a destination.
    pub found: String,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: expected an address, a prefix or default, found \"{}\"",
            self.line, self.found
        )
    }
}

impl std::error::Error for RouteError {}

const KINDS: [(&str, RouteKind); 9] = [
    ("unicast", RouteKind::Unicast),
    ("local", RouteKind::Local),
    ("broadcast", RouteKind::Broadcast),
    ("multicast", RouteKind::Multicast),
    ("anycast", RouteKind::Anycast),
    ("blackhole", RouteKind::Refused(Refusal::Blackhole)),
    ("unreachable", RouteKind::Refused(Refusal::Unreachable)),
    ("prohibit", RouteKind::Refused(Refusal::Prohibit)),
    ("throw", RouteKind::Refused(Refusal::Throw)),
];

impl Routes {
    /// Reads the text of `ip route` or `ip -6 route`, or both after one another.
    pub fn parse(text: &str) -> Result<Self, RouteError> {
        let mut routes: Vec<Route> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            match text.split_whitespace().next() {
                None => {}
                // A path of the route before it.
                Some("nexthop") => {
                    if let Some(route) = routes.last_mut() {
                        route.gateway |= text.split_whitespace().any(|word| word == "via");
                    }
                }
                Some(found) => routes.push(
                    parse_route(text)
                        .ok_or_else(|| RouteError { line, found: found.to_owned() })?,
                ),
            }
        }
        Ok(Self(routes))
    }

    /// Every route.
    #[must_use]
    pub fn all(&self) -> &[Route] {
        &self.0
    }

    /// Whether the local table of this address's family was given.
    #[must_use]
    pub fn has_local_table(&self, addr: IpAddr) -> bool {
        let of_family = |route: &&Route| route.destination.addr.is_ipv4() == addr.is_ipv4();
        self.0.iter().filter(of_family).any(Route::is_of_local_table)
    }

    /// The route of the longest prefix among those that `wanted` picks.
    pub fn best(&self, addr: IpAddr, wanted: impl Fn(&Route) -> bool) -> Option<&Route> {
        let holds = |route: &&Route| route.destination.holds(addr) && wanted(route);
        self.0.iter().filter(holds).max_by_key(|route| route.destination.bits)
    }
}

impl Route {
    /// The address of its interface that it tells of: itself, or the source of its connected subnet. Those of
    /// a single link are left out.
    #[must_use]
    pub fn own_address(&self) -> Option<IpAddr> {
        let host = if self.destination.addr.is_ipv6() { 128 } else { 32 };
        let addr = match self.kind {
            RouteKind::Local if self.destination.bits == host => Some(self.destination.addr),
            RouteKind::Unicast if self.connected => self.source,
            _ => None,
        };
        addr.filter(|addr| !matches!(addr, IpAddr::V6(v6) if v6.is_unicast_link_local()))
    }

    /// Whether it is of a kind that the kernel keeps in the local table.
    #[must_use]
    pub fn is_of_local_table(&self) -> bool {
        matches!(self.kind, RouteKind::Local | RouteKind::Broadcast | RouteKind::Anycast)
    }
}

fn parse_route(text: &str) -> Option<Route> {
    let mut words = text.split_whitespace().peekable();
    let first = words.peek()?;
    let kind = KINDS.iter().find(|(name, _)| name == first).map(|(_, kind)| *kind);
    if kind.is_some() {
        words.next();
    }
    let destination = words.next()?;
    let rest: Vec<&str> = words.collect();
    let after = |name: &str| {
        let place = rest.iter().position(|word| *word == name)?;
        rest.get(place + 1).copied()
    };
    let source: Option<IpAddr> = after("src").and_then(|text| text.parse().ok());
    let gateway = after("via").map(|via| if via == "inet6" { after("inet6") } else { Some(via) });
    let v6 = || {
        let named = gateway.flatten().map_or(source, |via| via.parse().ok());
        // Only IPv6 routes have a preference.
        named.map_or(rest.contains(&"pref"), |addr| addr.is_ipv6())
    };
    let destination = match destination {
        "default" => Network::parse(if v6() { "::/0" } else { "0.0.0.0/0" }),
        text => Network::parse(text),
    };
    Some(Route {
        destination: destination?,
        kind: kind.unwrap_or(RouteKind::Unicast),
        device: after("dev").map(Into::into),
        gateway: gateway.is_some(),
        source,
        connected: after("scope") == Some("link") && after("proto") == Some("kernel"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
default via 192.0.2.1 dev eth0 proto dhcp metric 100
10.0.0.0/24 dev eth1 proto kernel scope link src 10.0.0.5
unreachable 10.9.0.0/16
198.51.100.0/24 proto static
\tnexthop via 10.0.0.7 dev eth1 weight 1
local 10.0.0.5 dev eth1 table local proto kernel scope host src 10.0.0.5

default dev ppp0 metric 1024 pref medium
2001:db8::/64 dev eth1 proto kernel metric 256 pref medium
";

    #[test]
    fn lines_of_ip_route() {
        let routes = Routes::parse(TEXT).unwrap();
        assert_eq!(routes.all().len(), 7);
        let find = |addr: &str| routes.best(addr.parse().unwrap(), |_| true).unwrap();
        assert!(find("8.8.8.8").gateway);
        assert!(find("10.0.0.9").connected);
        assert_eq!(find("10.0.0.5").kind, RouteKind::Local);
        assert_eq!(find("10.9.1.1").kind, RouteKind::Refused(Refusal::Unreachable));
        assert!(find("198.51.100.1").gateway);
        assert_eq!(find("2001:db9::1").device.as_deref(), Some("ppp0"));
        assert!(routes.has_local_table("1.1.1.1".parse().unwrap()));
        assert!(!routes.has_local_table("::1".parse().unwrap()));
    }

    #[test]
    fn a_line_that_is_no_route_is_told() {
        let error = Routes::parse("10.0.0.0/8 dev a\n\nRTNETLINK answers: no").unwrap_err();
        assert_eq!((error.line, error.found.as_str()), (3, "RTNETLINK"));
        assert!(Routes::parse("local").is_err());
    }
}
