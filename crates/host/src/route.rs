//! One route, and the names that go with it.

use std::fmt;
use std::net::IpAddr;

use crate::Network;

/// One route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where it leads.
    pub destination: Network,
    /// What becomes of packets to there.
    pub kind: RouteKind,
    /// The route's table: `local`, `main`, `default`, another name or a number.
    pub table: Box<str>,
    /// Priority among routes to one destination: the least metric counts.
    pub metric: u32,
    /// The interface, if it names one.
    pub device: Option<Box<str>>,
    /// Packets go to a gateway rather than straight to their destination.
    pub gateway: bool,
    /// The preferred source address, if it names one.
    pub source: Option<IpAddr>,
    /// Only packets from there take it.
    pub from: Option<Network>,
    /// Only packets of this type of service take it.
    pub tos: Option<u8>,
    /// The longest packet that goes there, in bytes, where that is less than the interface takes.
    pub mtu: Option<u32>,
    /// The destination is a subnet that the host has an address in.
    pub connected: bool,
    /// Whether the kernel made it; `None` where the program that printed the routes does not say.
    pub by_kernel: Option<bool>,
    /// Preference among equal IPv6 routes: 0 low, 1 medium, 2 high.
    pub preference: u8,
    /// It, or one of its ways, names a realm.
    pub realm: bool,
    /// Whether the interface is down (`dead`) or has no carrier (`linkdown`).
    pub state: NextState,
    /// The ways that packets are shared out over, if there are several.
    pub ways: Vec<Way>,
}

/// One of several ways of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The interface.
    pub device: Option<Box<str>>,
    /// See [`Route::state`].
    pub state: NextState,
}

/// What is wrong with a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NextState {
    /// Nothing.
    #[default]
    Good,
    /// The interface has no carrier: it is used unless `ignore_routes_with_linkdown` is set.
    LinkDown,
    /// The interface is down: the way is not used.
    Dead,
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blackhole => "blackhole",
            Self::Unreachable => "unreachable",
            Self::Prohibit => "prohibit",
            Self::Throw => "throw",
        })
    }
}

/// Names of the tables that every host has.
pub(crate) const LOCAL: &str = "local";
pub(crate) const MAIN: &str = "main";
pub(crate) const DEFAULT: &str = "default";

/// Returns a table's name, where every host knows it by one.
pub(crate) fn table_name(text: &str) -> &str {
    match text {
        "255" => LOCAL,
        "254" => MAIN,
        "253" => DEFAULT,
        text => text,
    }
}

impl Route {
    /// Returns the address of the host that the route implies: its destination, or the source of a connected subnet.
    /// Link-local addresses are left out.
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

    /// Returns the interfaces that packets may leave through.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        let one = self.device.as_deref().filter(|_| self.ways.is_empty());
        let live = self.ways.iter().filter(|way| way.state != NextState::Dead);
        one.into_iter().chain(live.filter_map(|way| way.device.as_deref()))
    }

    /// Whether it leads straight to an IPv6 subnet.
    pub(crate) fn connected_v6(&self) -> bool {
        self.destination.bits < 127 && !self.gateway && self.ways.is_empty()
    }

    /// The table that the kernel keeps routes of its kind in.
    pub(crate) fn usual_table(&self) -> &'static str {
        let is_group = self.destination.addr.is_ipv6() && self.destination.addr.is_multicast();
        match self.kind {
            RouteKind::Local | RouteKind::Broadcast | RouteKind::Anycast => LOCAL,
            _ if is_group => LOCAL,
            _ => MAIN,
        }
    }
}
