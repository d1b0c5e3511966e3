//! What the decisions ask of the host: its settings, its own addresses, its groups, and whether a source is valid.

use std::net::{IpAddr, Ipv6Addr};

use crate::Host;
use crate::addresses::only;
use crate::policy::{Flow, Policy};
use crate::route::{LOCAL, Route, RouteKind};
use crate::routed::{Assumed, Incoming, Missing, Reached, Refused, Routed, Verdict, refuse};
use crate::routes::Routes;
use crate::search::{Found, Narrow};
use crate::sysctl::Key;

/// How the way back to a source is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Back<'a> {
    /// For a packet that reached an address of the host: from there.
    ToHost,
    /// For a packet that reached many hosts: from nowhere in particular.
    ToMany,
    /// For a packet that is forwarded through this interface, if that is known: from its destination.
    Through(Option<&'a str>),
}

/// The modes of `rp_filter`.
const STRICT: i32 = 1;

impl<'a> Back<'a> {
    fn output(self) -> Option<&'a str> {
        match self {
            Self::Through(output) => output,
            Self::ToHost | Self::ToMany => None,
        }
    }
}

impl Host {
    /// A setting that holds where it is set for the interface or for all; `None` where that depends on the interface.
    pub(crate) fn either(&self, is_v6: bool, name: Option<&str>, key: Key) -> Option<bool> {
        let Some(sysctl) = &self.sysctl else { return Some(false) };
        let is_set = |value: Option<i32>| value.unwrap_or(0) != 0;
        if is_set(sysctl.of(is_v6, "all", key)) {
            return Some(true);
        }
        self.of_interface(is_v6, name, key).map(is_set)
    }

    /// The setting of an interface, of `default` where it is not named; `None` where that depends on the interface.
    fn of_interface(&self, is_v6: bool, name: Option<&str>, key: Key) -> Option<Option<i32>> {
        let sysctl = self.sysctl.as_ref()?;
        match name {
            Some(name) => {
                Some(sysctl.of(is_v6, name, key).or_else(|| sysctl.of(is_v6, "default", key)))
            }
            None => sysctl.of_all(is_v6, key),
        }
    }

    pub(crate) fn flag(&self, is_v6: bool, name: Option<&str>, key: Key) -> Verdict<bool> {
        self.either(is_v6, name, key).ok_or(Routed::Unknown(Missing::Input))
    }

    /// Whether an interface forwards the packets that it receives; `None` where nobody says.
    #[must_use]
    pub fn forwarding(&self, is_v6: bool, input: Option<&str>) -> Option<bool> {
        let sysctl = self.sysctl.as_ref()?;
        if is_v6 {
            // The setting of all interfaces is what counts; an interface may only be added.
            let forced = self.of_interface(true, input, Key::ForceForwarding).flatten() == Some(1);
            let all = sysctl.of(true, "all", Key::Forwarding);
            return if forced { Some(true) } else { all.map(|value| value != 0) };
        }
        let value = self.of_interface(false, input, Key::Forwarding)?;
        value.map(|value| value != 0)
    }

    /// The mode of `rp_filter`: the greater one of all and the interface.
    fn rp_filter(&self, input: Option<&str>) -> Verdict<i32> {
        let Some(sysctl) = &self.sysctl else { return Ok(0) };
        let all = sysctl.of(false, "all", Key::RpFilter).unwrap_or(0);
        let own = self.of_interface(false, input, Key::RpFilter);
        let own = own.ok_or(Routed::Unknown(Missing::Input))?;
        Ok(own.unwrap_or(0).max(all))
    }

    /// Whether a packet with this IPv4 source may come in.
    pub(crate) fn validate(
        &self,
        packet: &Incoming<'_>,
        back: Back<'_>,
        assumed: &mut Assumed,
    ) -> Verdict<()> {
        let mode = self.rp_filter(packet.input)?;
        let output = back.output();
        let turns = output.is_some() && output == packet.input;
        let redirects =
            self.sysctl.is_none() || turns && self.flag(false, packet.input, Key::SendRedirects)?;
        let accepts_local = self.flag(false, packet.input, Key::AcceptLocal)?;
        if mode == 0 && !(turns && redirects) {
            let is_odd = self.is_policy_custom() || self.has_custom_local_routes();
            if !accepts_local && is_odd {
                self.check_source(packet, back, mode, false)?;
            } else if !accepts_local {
                match self.is_assigned(packet.source) {
                    Some(true) => return refuse(Refused::Martian),
                    Some(false) => {}
                    None => return Err(Routed::Unknown(Missing::Addresses)),
                }
            }
        } else {
            self.check_source(packet, back, mode, accepts_local)?;
        }
        if self.sysctl.is_none() {
            let strict = self.check_source(packet, back, STRICT, accepts_local);
            assumed.rp_filter = matches!(strict, Err(Routed::Refused(_)));
        }
        Ok(())
    }

    /// The way back to a source: whether there is one, and in strict mode by the same interface.
    fn check_source(
        &self,
        packet: &Incoming<'_>,
        by: Back<'_>,
        mode: i32,
        accepts_local: bool,
    ) -> Verdict<()> {
        let unspecified = IpAddr::from([0, 0, 0, 0]);
        let uses_mark = self.flag(false, packet.input, Key::SrcValidMark)?;
        let back = Flow {
            source: if by == Back::ToMany { unspecified } else { packet.destination },
            destination: packet.source,
            input: by.output().or(Some("lo")),
            output: None,
            mark: if uses_mark { packet.mark } else { Some(0) },
            ports: packet.ports.map(|[source, destination]| [destination, source]),
            ..packet.flow()
        };
        let last = if mode == 0 { Ok(()) } else { refuse(Refused::RpFilter) };
        let route = match self.search(&back, Narrow::default()) {
            Found::Route { route, .. } => route,
            Found::Refused(_) | Found::Nothing => return last,
            Found::Open(missing) => return Err(Routed::Unknown(missing)),
        };
        match route.kind {
            RouteKind::Unicast => {}
            RouteKind::Local if accepts_local => {}
            _ => return refuse(Refused::Martian),
        }
        if mode == 0 {
            return Ok(());
        }
        let input = packet.input.ok_or(Routed::Unknown(Missing::Input))?;
        let device = route.device.as_deref().filter(|_| route.ways.is_empty());
        let mut ways = route.ways.iter().map(|way| way.device.as_deref());
        if device == Some(input) || ways.any(|way| way == Some(input)) {
            return Ok(());
        }
        if mode == STRICT || !self.has_v4(input) { last } else { Ok(()) }
    }

    /// Whether an interface has an IPv4 address, as far as that is known.
    fn has_v4(&self, name: &str) -> bool {
        match &self.assigned {
            Some(all) => all.all().iter().any(|one| &*one.interface == name && one.addr.is_ipv4()),
            None => true,
        }
    }

    pub(crate) fn is_policy_custom(&self) -> bool {
        self.policy.as_ref().is_some_and(Policy::is_custom_v4)
    }

    fn has_custom_local_routes(&self) -> bool {
        self.routes.as_ref().is_some_and(|routes| routes.tables().has_custom_local())
    }

    pub(crate) fn has_local_table(&self, addr: IpAddr) -> bool {
        self.routes.as_ref().is_some_and(|routes| routes.has_local_table(addr))
    }

    /// Whether an address is that of an interface: local routes may hold others.
    pub(crate) fn is_assigned(&self, addr: IpAddr) -> Option<bool> {
        if self.addresses.iter().any(|(_, own)| *own == addr) {
            return Some(true);
        }
        if let Some(assigned) = &self.assigned {
            return Some(assigned.has(addr));
        }
        let whole = if addr.is_ipv4() { 32 } else { 128 };
        let is_own =
            |route: &Route| route.kind == RouteKind::Local && route.destination.bits == whole;
        if self.has_local_table(addr) {
            let routes = self.routes.as_ref()?;
            return Some(routes.in_table(LOCAL, addr, is_own).is_some());
        }
        self.is_local(addr)
    }

    /// What an address is to the host, where the local table was not given: `Some(None)` is another host's.
    pub(crate) fn reached_by_addresses(&self, addr: IpAddr) -> Option<Option<Reached>> {
        if self.is_local(addr) == Some(true) {
            return Some(Some(Reached::Local));
        }
        let mut subnets = self.routes.iter().flat_map(Routes::all).filter(|route| route.connected);
        let is_broadcast = match &self.assigned {
            Some(assigned) => assigned.broadcasts(addr),
            None => {
                addr.is_ipv4()
                    && subnets.any(|route| {
                        route.destination.bits < 31 && route.destination.last() == addr
                    })
            }
        };
        if is_broadcast {
            return Some(Some(Reached::Broadcast));
        }
        (self.assigned.is_some() || self.local.is_some()).then_some(None)
    }

    /// What a packet on `lo` reached: it was routed when it was sent.
    pub(crate) fn reached(&self, addr: IpAddr) -> Reached {
        let route = self.routes.as_ref().and_then(|routes| routes.in_table(LOCAL, addr, |_| true));
        match (addr.is_multicast(), route.map(|route| route.kind)) {
            (true, _) => Reached::Multicast,
            (false, Some(RouteKind::Broadcast)) => Reached::Broadcast,
            (false, Some(RouteKind::Anycast)) => Reached::Anycast,
            (false, _) if addr == IpAddr::from([255, 255, 255, 255]) => Reached::Broadcast,
            (false, _) => Reached::Local,
        }
    }

    /// Whether the host takes packets to a group. Without `ip maddr` that is certain of few groups.
    pub(crate) fn is_joined(&self, input: Option<&str>, group: IpAddr) -> Verdict<bool> {
        if let Some(groups) = &self.groups {
            let joined = match input {
                Some(name) => groups.joined(name, group),
                None => groups.joined_by_all(group),
            };
            match joined {
                Some(joined) => return Ok(joined),
                None if input.is_none() => return Err(Routed::Unknown(Missing::Input)),
                None => {}
            }
        }
        let routers = IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2));
        let is_certain = match group {
            IpAddr::V4(v4) => v4.octets() == [224, 0, 0, 1],
            IpAddr::V6(v6) => {
                let all = [0xff01, 0xff02].map(|scope| Ipv6Addr::new(scope, 0, 0, 0, 0, 0, 0, 1));
                all.contains(&v6)
                    || group == routers && self.forwarding(true, input) == Some(true)
                    || self.is_solicited(v6)
            }
        };
        if is_certain { Ok(true) } else { Err(Routed::Unknown(Missing::Groups)) }
    }

    /// Whether a group is the solicited-node group of an address of the host.
    fn is_solicited(&self, group: Ipv6Addr) -> bool {
        let bytes = group.octets();
        let prefix = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff];
        if bytes[..13] != prefix {
            return false;
        }
        let is_of =
            |addr: IpAddr| matches!(addr, IpAddr::V6(v6) if v6.octets()[13..] == bytes[13..]);
        let local = self.routes.iter().flat_map(Routes::all);
        let local = local
            .filter(|route| route.kind == RouteKind::Local)
            .map(|route| route.destination.addr);
        let assigned = self.assigned.iter().flat_map(|all| all.all().iter().map(|one| one.addr));
        assigned.chain(local).any(is_of)
    }

    /// The only interface that has an address.
    pub(crate) fn interface_of(&self, addr: IpAddr) -> Option<&str> {
        let assigned = self.assigned.iter().flat_map(|all| all.all());
        let assigned = assigned.filter(|one| one.addr == addr).map(|one| &*one.interface);
        let routes = self.routes.iter().flat_map(Routes::all);
        let local =
            routes.filter(|route| route.kind == RouteKind::Local && route.destination.addr == addr);
        only(assigned).or_else(|| {
            only(local.filter_map(|route| route.device.as_deref()).filter(|name| *name != "lo"))
        })?
    }
}
