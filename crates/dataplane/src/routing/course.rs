//! The route of a packet through the host, and the family whose rules evaluate it.
//!
//! Where a capture says that a frame was received, or that the host sent it, that decides first, else whether its
//! source is the host's own. A received packet is delivered locally or forwarded: as routing decides, else by the
//! host's own addresses. With nothing given, rules that stand only on one path are meant for it; with rules on both the
//! packet may take either.

use std::net::{IpAddr, Ipv4Addr};

use host::{Assumed, FrameKind, Host, Incoming, Missing, Outgoing, Refused, Routed};
use packet::{Headers, L3, L4, Link, Mark, Packet, Read, ethertype};
use rules::Iface;
use rules::model::{Family, Hook};

use crate::answers::Found;
use crate::arrival::{Arrival, Origin};
use crate::config::Config;
use crate::disposition::Why;
use crate::routing::bridge;
use crate::routing::interfaces;
use crate::routing::path::Path;
use crate::routing::way::{Crossed, Decision, Way, addresses};
use crate::walk::Tables;
use crate::within_link::is_within;

/// The part of a packet's way besides its interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Course<'a> {
    pub(crate) path: Path,
    pub(crate) fate: Decision,
    /// The output interface of the routes.
    pub(crate) output: Option<&'a str>,
    pub(crate) mtu: Option<u32>,
    pub(crate) assumed: Assumed,
}

impl<'a> Course<'a> {
    #[inline]
    pub(crate) fn sure(path: Path) -> Self {
        Self::of(path, Decision::Sure)
    }

    #[inline]
    pub(crate) fn of(path: Path, fate: Decision) -> Self {
        Self { path, fate, output: None, mtu: None, assumed: Assumed::default() }
    }

    /// Adds the interfaces of a packet.
    #[inline]
    pub(crate) fn by(
        self,
        packet: &Packet<'_>,
        arrival: &Arrival<'a>,
        config: &'a Config,
    ) -> Way<'a> {
        let Self { path, fate, mtu, assumed, .. } = self;
        let (input, output) = interfaces::of(packet, arrival, path, self.output, config);
        let (wire, mtu) = crossed(packet, arrival, mtu);
        Way { path, input, output, fate, mtu, wire, assumed }
    }

    /// Where received packets go, when nothing is given of the host. A host that has no rules for forwarded packets is
    /// taken to forward nothing, whatever the policy there.
    pub(crate) fn of_rules(tables: &Tables) -> Self {
        match (tables.has_rules(Hook::Forward), tables.has_rules(Hook::Input)) {
            (false, true) => Self::sure(Path::Input),
            (true, true) if tables.family().is_ip() => {
                Self::of(Path::Forward, Decision::Open(Why::Way))
            }
            _ => Self::sure(Path::Forward),
        }
    }
}

/// How a packet crosses its wire, if it was received on one, and the longest packet that leaves; `mtu` where there is
/// no wire.
#[inline]
pub(crate) fn crossed(
    packet: &Packet<'_>,
    arrival: &Arrival<'_>,
    mtu: Option<u32>,
) -> (Option<Crossed>, Option<u32>) {
    match arrival.wire {
        None => (None, mtu),
        Some(crossing) if crossing.ages && !is_within(packet) => {
            (Some(Crossed::Aged), crossing.mtu)
        }
        Some(_) => (Some(Crossed::Bridged), None),
    }
}

/// What decided a packet's way when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Before {
    pub(crate) addresses: Option<(IpAddr, IpAddr)>,
    /// Its type of service, where routes may look at it.
    pub(crate) tos: Option<u8>,
}

impl Before {
    pub(crate) fn of(packet: &Packet<'_>, config: &Config) -> Self {
        let tos = config.host.routes.as_ref().and_then(|_| tos_of(packet));
        Self { addresses: addresses(packet), tos }
    }
}

/// Routes a packet: by what is given, by the host's routes and addresses, or by where rules stand; `None` where the way depends on
/// bytes that are not known.
#[inline(always)]
pub(crate) fn route<'a>(
    packet: &Packet<'_>,
    before: &Before,
    found: Found,
    arrival: &Arrival<'a>,
    (family, of_rules): (Family, Course<'a>),
    config: &'a Config,
) -> Option<Course<'a>> {
    let addresses = before.addresses;
    match (arrival.given_path(config), family) {
        (Some(path), Family::Ipv4 | Family::Ipv6) => {
            Some(given(path, packet, addresses, arrival, config))
        }
        (Some(path), _) => Some(Course::sure(path)),
        (None, Family::Arp) => {
            let is_own = match arrival.origin {
                Origin::Host => true,
                Origin::Wire => false,
                Origin::Addresses => interfaces::is_outbound(packet, arrival),
            };
            Some(Course::sure(of_host(is_own)))
        }
        (None, Family::Bridge) => Some(of_rules),
        (None, Family::Ipv4 | Family::Ipv6) => {
            let is_answer = matches!(found, Found::Refused(_));
            let origin = if is_answer { Origin::Host } else { arrival.origin };
            route_ip(packet, addresses, arrival, origin, config, of_rules)
        }
    }
}

/// The route of an IP packet: `None` if it depends on address bytes that are not known.
fn route_ip<'a>(
    packet: &Packet<'_>,
    addresses: Option<(IpAddr, IpAddr)>,
    arrival: &Arrival<'a>,
    origin: Origin,
    config: &'a Config,
    of_rules: Course<'a>,
) -> Option<Course<'a>> {
    let host = &config.host;
    if interfaces::is_on_loopback(packet, arrival) {
        return Some(Course::sure(Path::Loopback));
    }
    let Some((source, destination)) = addresses else {
        return match origin {
            Origin::Host => Some(Course::sure(Path::Output)),
            _ => (!is_told(host)).then_some(of_rules),
        };
    };
    let is_own = match origin {
        Origin::Host => true,
        Origin::Wire => false,
        Origin::Addresses => {
            interfaces::may_be_own(arrival) && is_told(host) && host.is_local(source) == Some(true)
        }
    };
    if !is_own && bridge::passes_on(arrival, host) {
        return Some(Course { output: arrival.interface, ..Course::sure(Path::Forward) });
    }
    if !is_own {
        let addresses = (source, destination);
        return Some(arrived(packet, addresses, arrival, arrival.came_with(), config, of_rules));
    }
    Some(match host.is_local(destination) {
        Some(true) => Course::sure(Path::Loopback),
        _ => sent(packet, (source, destination), arrival, config),
    })
}

/// The route of a packet whose path is given: what the host sends is routed all the same, and leaves where that leads.
#[inline]
fn given<'a>(
    path: Path,
    packet: &Packet<'_>,
    addresses: Option<(IpAddr, IpAddr)>,
    arrival: &Arrival<'a>,
    config: &'a Config,
) -> Course<'a> {
    match (path, addresses) {
        (Path::Output, Some(addresses)) => sent(packet, addresses, arrival, config),
        _ => Course::sure(path),
    }
}

/// The route of a packet that the host sends elsewhere.
fn sent<'a>(
    packet: &Packet<'_>,
    addresses: (IpAddr, IpAddr),
    arrival: &Arrival<'a>,
    config: &'a Config,
) -> Course<'a> {
    match config.host.routes.is_none() || interfaces::names_output(packet, arrival, config) {
        true => Course::sure(Path::Output),
        // A packet that exists had a route.
        false => Course {
            fate: Decision::Sure,
            ..routed_out(packet, addresses, first_mark(arrival), config)
        },
    }
}

/// The source of a program that binds to none: the address of the output interface of the first route.
pub(crate) fn first_source(
    packet: &Packet<'_>,
    arrival: &Arrival<'_>,
    config: &Config,
) -> Option<IpAddr> {
    let addresses = addresses(packet)?;
    config.host.routes.as_ref()?;
    let output = routed_out(packet, addresses, arrival.came_with(), config).output?;
    config.host.address_of(output, addresses.1.is_ipv6())
}

/// The mark of an own packet when it is routed first. No capture shows the mark that its socket gave it.
pub(crate) fn first_mark(arrival: &Arrival<'_>) -> Mark {
    let is_known = arrival.mark_given || arrival.origin != Origin::Host || arrival.mark != 0;
    Mark { unknown: if is_known { 0 } else { u32::MAX }, ..arrival.came_with() }
}

/// The route of a packet that the host sends elsewhere, as routes and policy rules say.
pub(crate) fn routed_out<'a>(
    packet: &Packet<'_>,
    (source, destination): (IpAddr, IpAddr),
    mark: Mark,
    config: &'a Config,
) -> Course<'a> {
    let course = Course::sure(Path::Output);
    let (protocol, ports) = upper_of(packet);
    let outgoing = Outgoing {
        source,
        destination,
        output: None,
        tos: tos_of(packet),
        mark: (mark.unknown == 0).then_some(mark.value),
        protocol,
        ports,
    };
    match config.host.route_out(&outgoing) {
        Routed::Forward { output, mtu } => Course { output, mtu, ..course },
        Routed::Refused(why) => Course { fate: Decision::Refused(why), ..course },
        Routed::Input(_) | Routed::Unknown(_) => course,
    }
}

/// The route of a received packet, with the mark that it has now.
pub(crate) fn arrived<'a>(
    packet: &Packet<'_>,
    addresses: (IpAddr, IpAddr),
    arrival: &Arrival<'a>,
    mark: Mark,
    config: &'a Config,
    of_rules: Course<'a>,
) -> Course<'a> {
    let (source, destination) = addresses;
    let host = &config.host;
    if arrival.left.is_some() {
        return Course::sure(Path::Forward);
    }
    let is_group = destination.is_multicast() || destination == IpAddr::V4(Ipv4Addr::BROADCAST);
    if !is_told(host) && !is_group && arrival.origin == Origin::Addresses {
        return not_given(destination, arrival, config, of_rules);
    }
    let (input, _) = interfaces::of(packet, arrival, Path::Input, None, config);
    let (protocol, ports) = upper_of(packet);
    let incoming = Incoming {
        source,
        destination,
        input: match input {
            Iface::Named(name) => Some(name),
            Iface::Absent | Iface::Unknown => None,
        },
        tos: tos_of(packet),
        mark: (mark.unknown == 0).then_some(mark.value),
        protocol,
        ports,
        frame: frame_kind(packet),
        source_route: has_source_route(packet),
    };
    let (routed, assumed) = host.route_in_assuming(&incoming);
    let course = match (routed, host.is_local(destination)) {
        (Routed::Input(_), _) => Course::sure(Path::Input),
        (Routed::Forward { output, mtu }, _) => {
            Course { output, mtu, ..Course::sure(Path::Forward) }
        }
        (Routed::Refused(Refused::NotJoined), _) if arrival.is_joined => Course::of(
            Path::Input,
            Decision::Perhaps(Refused::NotJoined, Why::Host(Missing::Groups)),
        ),
        (Routed::Refused(why), _) => Course::of(Path::Input, Decision::Refused(why)),
        (Routed::Unknown(missing @ Missing::Groups), _) => {
            Course::of(Path::Input, Decision::Perhaps(Refused::NotJoined, Why::Host(missing)))
        }
        (Routed::Unknown(_), Some(true)) => Course::sure(Path::Input),
        // A rule that may or may not match may lead to the host (`local default dev lo` for TPROXY).
        (Routed::Unknown(missing), Some(false)) if host.may_turn_inward(&incoming) => {
            Course::of(Path::Forward, Decision::Open(Why::Host(missing)))
        }
        (Routed::Unknown(_), Some(false)) => Course::sure(Path::Forward),
        (Routed::Unknown(_), None) => not_given(destination, arrival, config, of_rules),
    };
    Course { assumed, ..course }
}

/// The route of a packet when the host's own addresses are not given.
fn not_given<'a>(
    destination: IpAddr,
    arrival: &Arrival<'_>,
    config: &Config,
    of_rules: Course<'a>,
) -> Course<'a> {
    match (config.host.is_local(destination), of_rules.fate) {
        (Some(true), _) => Course::sure(Path::Input),
        (_, Decision::Open(_)) if is_told_forward(destination, arrival, config) => {
            Course::sure(Path::Forward)
        }
        _ => of_rules,
    }
}

/// Whether anything is given of the host that shows its addresses.
pub(crate) fn is_told(host: &Host) -> bool {
    host.local.is_some() || host.assigned.is_some() || host.routes.is_some()
}

/// Whether the given interfaces send a packet on: the output interface of packets, or a network of an interface.
fn is_told_forward(destination: IpAddr, arrival: &Arrival<'_>, config: &Config) -> bool {
    arrival.output.is_some()
        || config.output.is_some()
        || interfaces::behind(&config.nets, destination).is_some()
}

/// Type of service or traffic class, if it is known.
pub(crate) fn tos_of(packet: &Packet<'_>) -> Option<u8> {
    match (packet.headers().l3, packet.net::<2>(0)) {
        (L3::Ipv4 { .. }, Read::Known([_, tos])) => Some(tos),
        (L3::Ipv6, Read::Known([first, second])) => Some(first << 4 | second >> 4),
        _ => None,
    }
}

/// Protocol and ports, as far as they are known.
fn upper_of(packet: &Packet<'_>) -> (Option<u8>, Option<[u16; 2]>) {
    let L4::Upper(upper) = packet.headers().l4 else { return (None, None) };
    let ports = match (upper.protocol, packet.upper::<4>(&upper, 0)) {
        (6 | 17 | 33 | 132 | 136, Read::Known([a, b, c, d])) => {
            Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
        }
        _ => None,
    };
    (Some(upper.protocol), ports)
}

fn frame_kind(packet: &Packet<'_>) -> FrameKind {
    match packet.headers().link.packet_type {
        Some(0) => FrameKind::Unicast,
        Some(1) => FrameKind::Broadcast,
        Some(2) => FrameKind::Multicast,
        _ => FrameKind::Unknown,
    }
}

/// Whether IPv4 options hold a source route, loose or strict.
fn has_source_route(packet: &Packet<'_>) -> bool {
    const FIXED: usize = 20;
    const LOOSE: u8 = 131;
    const STRICT: u8 = 137;
    let L3::Ipv4 { header_len } = packet.headers().l3 else { return false };
    let at = packet.network_offset() + FIXED;
    let options = packet.read_slice(at, header_len.saturating_sub(FIXED));
    let Read::Known(mut options) = options else { return false };
    while let [kind, rest @ ..] = options {
        options = match (kind, rest) {
            (0, _) => return false,
            (1, rest) => rest,
            (&LOOSE | &STRICT, _) => return true,
            (_, [len, ..]) => options.get(usize::from(*len).max(2)..).unwrap_or_default(),
            _ => return false,
        };
    }
    false
}

/// The path of a frame that no bridge or router passes on.
pub(crate) fn of_host(outbound: bool) -> Path {
    if outbound { Path::Output } else { Path::Input }
}

/// The family of bridge rules, which evaluate every frame of Ethernet.
pub(crate) fn bridged(link: Link) -> Option<Family> {
    link.is_ethernet().then_some(Family::Bridge)
}

/// The family whose rules evaluate a packet with these headers.
#[inline]
pub(crate) fn family_of(headers: &Headers) -> Option<Family> {
    family_of_type(headers.link.ethertype)
}

/// The family whose rules evaluate frames of this EtherType.
#[inline]
pub(crate) fn family_of_type(ethertype: u16) -> Option<Family> {
    match ethertype {
        ethertype::IPV4 => Some(Family::Ipv4),
        ethertype::IPV6 => Some(Family::Ipv6),
        ethertype::ARP => Some(Family::Arp),
        _ => None,
    }
}
