//! Where a packet goes: [`Host::route_in`] for a received packet, after PREROUTING, and [`Host::route_out`] for a
//! packet that the host sends.
//!
//! Compared with `ip route get … from … iif …` of a real kernel. Source: kernel `ip_route_input_slow`,
//! `__fib_validate_source`, `ip_forward`, `ip6_forward`, `ip6_mc_input`; `include/linux/inetdevice.h` says how the
//! settings of an interface combine with those of `all`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Host;
use crate::policy::Flow;
use crate::route::{DEFAULT, LOCAL, MAIN, Route, RouteKind};
use crate::routed::{
    Assumed, FrameKind, Incoming, Missing, Reached, Refused, Routed, Verdict, refuse,
};
use crate::search::{Found, Narrow};
use crate::source::Back;
use crate::sysctl::Key;

impl Host {
    /// Where a packet that came in goes after PREROUTING.
    #[must_use]
    pub fn route_in(&self, packet: &Incoming<'_>) -> Routed<'_> {
        self.route_in_assuming(packet).0
    }

    /// [`Self::route_in`] with the assumptions behind it.
    #[must_use]
    pub fn route_in_assuming(&self, packet: &Incoming<'_>) -> (Routed<'_>, Assumed) {
        let mut assumed = Assumed::default();
        let routed = match (packet.source, packet.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.route_in_v4(packet, source, destination, &mut assumed)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.route_in_v6(packet, source, destination, &mut assumed)
            }
            _ => refuse(Refused::Martian),
        };
        let routed = routed.unwrap_or_else(|other| other);
        assumed.forwarding &= matches!(routed, Routed::Forward { .. });
        (routed, assumed)
    }

    /// Whether a table that only rules of their own ask leads a packet to the host, whose address is none of its own.
    #[must_use]
    pub fn may_turn_inward(&self, packet: &Incoming<'_>) -> bool {
        let Some(routes) = &self.routes else { return false };
        let (tables, is_v6) = (routes.tables(), packet.destination.is_ipv6());
        let others = tables.names(is_v6).filter(|name| !matches!(*name, LOCAL | MAIN | DEFAULT));
        let mut found = others.filter_map(|name| {
            let table = tables.of_name(is_v6, name)?;
            Some(self.in_table(table, &packet.flow(), Narrow::default()))
        });
        found.any(|found| match found {
            Found::Route { route, .. } => {
                matches!(route.kind, RouteKind::Local | RouteKind::Broadcast | RouteKind::Anycast)
            }
            _ => false,
        })
    }

    fn route_in_v4<'h>(
        &'h self,
        packet: &Incoming<'_>,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        assumed: &mut Assumed,
    ) -> Verdict<Routed<'h>> {
        if packet.input == Some("lo") {
            return Ok(Routed::Input(self.reached(packet.destination)));
        }
        if destination.is_multicast() {
            return self.group_v4(packet, source, destination, assumed);
        }
        if source.is_multicast() || source.is_broadcast() {
            return refuse(Refused::Martian);
        }
        let nowhere = source.is_unspecified() && destination.is_unspecified();
        if destination.is_broadcast() || nowhere {
            if !source.is_unspecified() {
                self.validate(packet, Back::ToMany, assumed)?;
            }
            return Ok(Routed::Input(Reached::Broadcast));
        }
        let loops = destination.is_loopback() || source.is_loopback();
        if source.is_unspecified()
            || destination.is_unspecified()
            || loops && !self.flag(false, packet.input, Key::RouteLocalnet)?
        {
            return refuse(Refused::Martian);
        }
        let routed = self.route_found_v4(packet, assumed)?;
        self.source_route(packet, &routed)?;
        Ok(routed)
    }

    fn route_found_v4<'h>(
        &'h self,
        packet: &Incoming<'_>,
        assumed: &mut Assumed,
    ) -> Verdict<Routed<'h>> {
        let forwards = || self.forwarding(false, packet.input);
        let refused = |why: Refused| match forwards() {
            Some(false) => Refused::ForwardingOff,
            _ => why,
        };
        let (route, tied) = match self.searched(&packet.flow())? {
            Found::Route { route, tied } => (route, tied),
            Found::Refused(why) => return refuse(refused(why.into())),
            Found::Nothing => return refuse(refused(Refused::NoRoute)),
            Found::Open(missing) => return Err(Routed::Unknown(missing)),
        };
        let reached = match route.kind {
            RouteKind::Broadcast => Some(Reached::Broadcast),
            RouteKind::Local => Some(Reached::Local),
            _ => None,
        };
        if let Some(reached) = reached {
            let by = if reached == Reached::Local { Back::ToHost } else { Back::ToMany };
            self.validate(packet, by, assumed)?;
            let drops = reached == Reached::Local
                && packet.is_flooded()
                && self.flag(false, packet.input, Key::DropUnicast)?;
            return if drops {
                refuse(Refused::UnicastInBroadcast)
            } else {
                Ok(Routed::Input(reached))
            };
        }
        self.check_forwarding(false, packet.input, assumed)?;
        if route.kind != RouteKind::Unicast {
            return refuse(Refused::Martian);
        }
        let leaves = self.leaves(route, tied);
        let Routed::Forward { output, .. } = leaves else { return Ok(leaves) };
        self.validate(packet, Back::Through(output), assumed)?;
        if packet.is_flooded() { refuse(Refused::UnicastInBroadcast) } else { Ok(leaves) }
    }

    fn group_v4<'h>(
        &'h self,
        packet: &Incoming<'_>,
        source: Ipv4Addr,
        group: Ipv4Addr,
        assumed: &mut Assumed,
    ) -> Verdict<Routed<'h>> {
        if !self.is_joined(packet.input, group.into())? {
            return refuse(Refused::NotJoined);
        }
        if source.is_multicast() || source.is_broadcast() {
            return refuse(Refused::Martian);
        }
        if source.is_loopback() && !self.flag(false, packet.input, Key::RouteLocalnet)? {
            return refuse(Refused::Martian);
        }
        if source.is_unspecified() {
            const IGMP: u8 = 2;
            let is_near = group.octets()[..3] == [224, 0, 0];
            if !is_near && packet.protocol != Some(IGMP) {
                return refuse(Refused::Martian);
            }
        } else {
            self.validate(packet, Back::ToMany, assumed)?;
        }
        Ok(Routed::Input(Reached::Multicast))
    }

    fn route_in_v6<'h>(
        &'h self,
        packet: &Incoming<'_>,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        assumed: &mut Assumed,
    ) -> Verdict<Routed<'h>> {
        if packet.input == Some("lo") {
            return Ok(Routed::Input(self.reached(packet.destination)));
        }
        if destination.is_multicast() {
            let joined = self.is_joined(packet.input, destination.into())?;
            return if joined {
                Ok(Routed::Input(Reached::Multicast))
            } else {
                refuse(Refused::NotJoined)
            };
        }
        let is_narrow = destination.is_unicast_link_local() || destination.is_loopback();
        if is_narrow && packet.input.is_none() {
            return Err(Routed::Unknown(Missing::Input));
        }
        let (route, tied) = match self.searched(&packet.flow())? {
            Found::Route { route, tied } => (route, tied),
            Found::Refused(why) => return refuse(why.into()),
            Found::Nothing => return refuse(Refused::NoRoute),
            Found::Open(missing) => return Err(Routed::Unknown(missing)),
        };
        match route.kind {
            RouteKind::Local => return Ok(Routed::Input(Reached::Local)),
            RouteKind::Anycast => return Ok(Routed::Input(Reached::Anycast)),
            _ => {}
        }
        let forwards = self.forwarding(true, packet.input);
        // A router answers for the first address of each of its subnets, which the local table says.
        let is_first = route.connected_v6() && route.destination.addr == packet.destination;
        if is_first && forwards == Some(true) && !self.has_local_table(packet.destination) {
            return Ok(Routed::Input(Reached::Anycast));
        }
        self.check_forwarding(true, packet.input, assumed)?;
        if packet.is_flooded() {
            return refuse(Refused::UnicastInBroadcast);
        }
        let leaves = self.leaves(route, tied);
        let Routed::Forward { output, .. } = leaves else { return Ok(leaves) };
        let (is_local, is_wrong) = (
            source.is_unicast_link_local(),
            source.is_unspecified() || source.is_multicast() || source.is_loopback(),
        );
        if is_local || is_wrong {
            match (packet.input, output) {
                (Some(input), Some(output)) if input == output => {}
                (Some(_), Some(_)) if is_local => return refuse(Refused::Scope),
                (Some(_), Some(_)) => return refuse(Refused::Martian),
                _ => return Err(Routed::Unknown(Missing::Input)),
            }
        }
        Ok(leaves)
    }

    /// A route as a way out.
    pub(crate) fn leaves<'h>(&'h self, route: &'h Route, tied: bool) -> Routed<'h> {
        let mut devices = route.devices();
        let first = devices.next();
        let output = first.filter(|first| !tied && devices.all(|other| other == *first));
        let of_link = output.and_then(|name| self.links.named(name)?.mtu);
        Routed::Forward { output, mtu: route.mtu.or(of_link) }
    }

    /// A search whose answer needs the local table, or what stands for it.
    fn searched<'h>(&'h self, flow: &Flow<'_>) -> Verdict<Found<'h>> {
        let is_narrow = matches!(flow.destination, IpAddr::V6(v6) if v6.is_unicast_link_local() || v6.is_loopback());
        let found = self.search(flow, Narrow { strict: is_narrow, ..Narrow::default() });
        if self.has_local_table(flow.destination) || matches!(found, Found::Open(_)) {
            return Ok(found);
        }
        // Without it, addresses tell what is local and what is broadcast.
        match self.reached_by_addresses(flow.destination) {
            Some(None) => Ok(found),
            Some(Some(reached)) => Err(Routed::Input(reached)),
            None => Err(Routed::Unknown(Missing::Addresses)),
        }
    }

    /// What a source route means: packets that carry one are dropped, or go on by their route.
    fn source_route(&self, packet: &Incoming<'_>, routed: &Routed<'_>) -> Verdict<()> {
        if !packet.source_route || matches!(routed, Routed::Refused(_) | Routed::Unknown(_)) {
            return Ok(());
        }
        let accepts = |name| {
            let given =
                self.sysctl.as_ref().and_then(|all| all.of(false, name, Key::AcceptSourceRoute));
            given.is_some_and(|value| value != 0)
        };
        let input = packet.input.ok_or(Routed::Unknown(Missing::Input))?;
        match routed {
            _ if !accepts("all") || !accepts(input) => refuse(Refused::SourceRoute),
            Routed::Forward { .. } => Ok(()),
            _ => Err(Routed::Unknown(Missing::SourceRoute)),
        }
    }

    fn check_forwarding(
        &self,
        is_v6: bool,
        input: Option<&str>,
        assumed: &mut Assumed,
    ) -> Verdict<()> {
        match self.forwarding(is_v6, input) {
            Some(true) => Ok(()),
            Some(false) => refuse(Refused::ForwardingOff),
            None if self.sysctl.is_some() && input.is_none() => {
                Err(Routed::Unknown(Missing::Input))
            }
            None => {
                assumed.forwarding = true;
                Ok(())
            }
        }
    }
}

impl<'a> Incoming<'a> {
    /// A packet of which only addresses and the input interface are known; its mark is 0.
    #[must_use]
    pub fn new(source: IpAddr, destination: IpAddr, input: Option<&'a str>) -> Self {
        Self {
            source,
            destination,
            input,
            tos: None,
            mark: Some(0),
            protocol: None,
            ports: None,
            frame: FrameKind::default(),
            source_route: false,
        }
    }

    pub(crate) fn flow(&self) -> Flow<'a> {
        Flow {
            source: self.source,
            destination: self.destination,
            input: self.input,
            output: None,
            tos: self.tos,
            mark: self.mark,
            protocol: self.protocol,
            ports: self.ports,
        }
    }

    /// Whether the packet's frame was for others, too.
    fn is_flooded(&self) -> bool {
        matches!(self.frame, FrameKind::Broadcast | FrameKind::Multicast)
    }
}
