//! Routes as ip-route(8) prints them: `ip -4 route show table all; ip -6 route show table all`.
//!
//! Best given with the local table, which says outright which addresses are local and which are broadcast. Without it
//! the connected subnets (`scope link src ADDRESS`) show some. Unknown words are ignored.

use std::net::IpAddr;

use crate::Network;
use crate::route::{LOCAL, MAIN, table_name};
pub use crate::route::{NextState, Refusal, Route, RouteKind, Way};
use crate::tables::Tables;
use crate::text::{Line, TextError, Word, lines};

/// The routes of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routes {
    all: Vec<Route>,
    tables: Tables,
}

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
    ///
    /// # Errors
    /// A line that begins with no destination, or whose destination is none, with its place.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let mut all: Vec<Route> = Vec::new();
        // A print of all tables names them but for main; a print of one table names none.
        let names_local =
            |line: Line<'_>| line.after("table").is_some_and(|name| table_name(name.text) == LOCAL);
        let usual =
            if lines(text).any(names_local) { |_: &Route| MAIN } else { Route::usual_table };
        for line in lines(text) {
            match (line.at(0).text, all.last_mut()) {
                ("nexthop", Some(route)) => add_way(route, &line),
                ("cache", _) => {}
                _ => {
                    let after_v6 = all.last().is_some_and(|last| last.destination.addr.is_ipv6());
                    let mut route = read_route(&line, after_v6)?;
                    if route.table.is_empty() {
                        route.table = usual(&route).into();
                    }
                    all.push(route);
                }
            }
        }
        // Where the origin of routes is printed, that of those made by hand is left out.
        if all.iter().any(|route| route.by_kernel == Some(true)) {
            all.iter_mut().for_each(|route| route.by_kernel = route.by_kernel.or(Some(false)));
        }
        Ok(Self::of(all))
    }

    /// Lays out these routes.
    #[must_use]
    pub fn of(all: Vec<Route>) -> Self {
        let tables = Tables::of(&all);
        Self { all, tables }
    }

    /// Every route.
    #[must_use]
    pub fn all(&self) -> &[Route] {
        &self.all
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Whether the local table of this address's family was given.
    #[must_use]
    pub fn has_local_table(&self, addr: IpAddr) -> bool {
        self.tables.has_local(addr.is_ipv6())
    }

    /// Returns the route to an address in one table, of the longest prefix among the routes that `wanted` picks; of
    /// several to one destination, the route of the least metric.
    pub fn in_table(
        &self,
        table: &str,
        addr: IpAddr,
        wanted: impl Fn(&Route) -> bool,
    ) -> Option<&Route> {
        let table = self.tables.of_name(addr.is_ipv6(), table)?;
        let holding = table.holding(addr).flat_map(|places| places.iter());
        holding.map(|place| &self.all[*place as usize]).find(|route| wanted(route))
    }
}

fn add_way(route: &mut Route, line: &Line<'_>) {
    route.gateway |= line.has("via");
    route.realm |= has_realm(line);
    let device = line.after("dev").map(|word| word.text.into());
    route.ways.push(Way { device, state: state(line) });
}

fn has_realm(line: &Line<'_>) -> bool {
    line.has("realm") || line.has("realms")
}

fn state(line: &Line<'_>) -> NextState {
    match (line.has("dead"), line.has("linkdown")) {
        (true, _) => NextState::Dead,
        (_, true) => NextState::LinkDown,
        _ => NextState::Good,
    }
}

/// The value of `metric 5` or `mtu lock 1400`.
fn number(line: &Line<'_>, name: &str) -> Option<u32> {
    let place = line.words.iter().position(|word| word.text == name)?;
    let skip = usize::from(line.at(place + 1).text == "lock");
    line.at(place + 1 + skip).text.parse().ok()
}

fn read_route(line: &Line<'_>, after_v6: bool) -> Result<Route, TextError> {
    let first = line.at(0);
    let kind = KINDS.iter().find(|(name, _)| *name == first.text).map(|(_, kind)| *kind);
    let destination = if kind.is_some() { line.at(1) } else { first };
    let word = |name: &str| line.after(name).map(|word| word.text);
    let source: Option<IpAddr> = word("src").and_then(|text| text.parse().ok());
    let gateway = word("via").map(|via| match via {
        "inet" | "inet6" => word(via),
        via => Some(via),
    });
    let v6 = || match (gateway.flatten().and_then(|via| via.parse().ok()), source) {
        // An IPv4 route may use an IPv6 gateway, which is then named.
        _ if word("via") == Some("inet6") => false,
        (Some(addr), _) | (None, Some(addr)) => addr.is_ipv6(),
        // Only IPv6 routes have a preference, and refuse on an interface.
        _ => {
            line.has("pref")
                || after_v6
                || matches!(kind, Some(RouteKind::Refused(_))) && line.has("dev")
        }
    };
    let network = destination_of(destination, v6)
        .ok_or_else(|| destination.not("an address, a prefix or default"))?;
    let kind = kind.unwrap_or(RouteKind::Unicast);
    let protocol = word("proto");
    Ok(Route {
        destination: network,
        kind,
        table: word("table").map_or("", table_name).into(),
        metric: number(line, "metric").unwrap_or(0),
        device: word("dev").map(Into::into),
        gateway: gateway.is_some(),
        source,
        from: word("from").and_then(Network::parse),
        tos: line.after("tos").or(line.after("dsfield")).and_then(tos),
        mtu: number(line, "mtu"),
        connected: word("scope") == Some("link")
            && gateway.is_none()
            && source.is_some()
            && protocol.is_none_or(|name| name == "kernel"),
        by_kernel: protocol.map(|name| name == "kernel"),
        preference: match word("pref") {
            Some("low") => 0,
            Some("high") => 2,
            _ => 1,
        },
        realm: has_realm(line),
        state: state(line),
        ways: Vec::new(),
    })
}

fn destination_of(word: Word<'_>, is_v6: impl Fn() -> bool) -> Option<Network> {
    match word.text {
        "default" => Network::parse(if is_v6() { "::/0" } else { "0.0.0.0/0" }),
        text => Network::parse(text),
    }
}

/// A type of service: a number, in hexadecimal with or without `0x`, or a name.
pub(crate) fn tos(word: Word<'_>) -> Option<u8> {
    match word.text {
        "lowdelay" => Some(0x10),
        "throughput" => Some(0x08),
        "reliability" => Some(0x04),
        text => match text.strip_prefix("0x") {
            Some(hex) => u8::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        },
    }
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
\tnexthop via 10.0.1.7 dev eth2 weight 1 dead linkdown
10.5.0.0/16 via 10.0.0.3 dev br0 table 100 metric 5 mtu lock 1400
10.7.0.0/16 via inet6 2001:db8::9 dev br0 tos 0x10
local 10.0.0.5 dev eth1 table local proto kernel scope host src 10.0.0.5
local 10.99.0.0/16 dev lo table 7

default dev ppp0 metric 1024 pref medium
2001:db8::/64 dev eth1 proto kernel metric 256 pref medium
2001:db8:9::/48 from 2001:db8:a::/48 dev br0 metric 1024 pref high
unreachable default dev lo metric 1024
";

    #[test]
    fn lines_of_ip_route() {
        let routes = Routes::parse(TEXT).unwrap();
        assert_eq!(routes.all().len(), 12);
        let find = |table: &str, addr: &str| {
            routes.in_table(table, addr.parse().unwrap(), |_| true).unwrap()
        };
        assert!(find(MAIN, "8.8.8.8").gateway);
        assert!(find(MAIN, "10.0.0.9").connected);
        assert_eq!(find(LOCAL, "10.0.0.5").kind, RouteKind::Local);
        assert_eq!(find(MAIN, "10.9.1.1").kind, RouteKind::Refused(Refusal::Unreachable));
        let shared = find(MAIN, "198.51.100.1");
        assert!(shared.gateway && shared.devices().eq(["eth1"]));
        let other = find("100", "10.5.1.1");
        assert_eq!(
            (other.metric, other.mtu, other.device.as_deref()),
            (5, Some(1400), Some("br0"))
        );
        assert_eq!(find(MAIN, "10.7.0.1").tos, Some(16));
        assert_eq!(find("7", "10.99.0.1").kind, RouteKind::Local);
        assert_eq!(find(MAIN, "2001:db9::1").device.as_deref(), Some("ppp0"));
        let from = find(MAIN, "2001:db8:9::1");
        assert_eq!((from.from, from.preference), (Network::parse("2001:db8:a::/48"), 2));
        assert!(routes.has_local_table("1.1.1.1".parse().unwrap()));
        assert!(!routes.has_local_table("::1".parse().unwrap()));
        assert!(routes.in_table(LOCAL, "10.99.0.1".parse().unwrap(), |_| true).is_none());
    }

    #[test]
    fn what_an_openwrt_router_prints() {
        let text = "10.0.0.0/24 dev br0 scope link  src 10.0.0.1 \nlocal 10.0.0.1 dev br0 table 255 scope host  src 10.0.0.1 \n\
                    default via fe80::1 dev br0  metric 1024 \ndefault dev ppp0  metric 1024 \nff00::/8 dev br0 table local  metric 256 \n";
        let routes = Routes::parse(text).unwrap();
        assert!(routes.all()[0].connected && routes.all()[0].by_kernel.is_none());
        assert_eq!(&*routes.all()[1].table, LOCAL);
        assert!(routes.all()[2..].iter().all(|route| route.destination.addr.is_ipv6()));
    }

    #[test]
    fn a_line_that_is_no_route_is_told() {
        let error = Routes::parse("10.0.0.0/8 dev a\n\nRTNETLINK answers: no").unwrap_err();
        assert_eq!((error.line, error.found.as_str()), (3, "RTNETLINK"));
        assert_eq!(Routes::parse("local").unwrap_err().column, 6);
    }
}
