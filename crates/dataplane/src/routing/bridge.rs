//! A packet's way over a bridge ([`Bridge`](crate::Bridge) is what is known of it), and the note of it that the kernel
//! keeps.
//!
//! A bridge hands what comes in by its ports to the rules of PREROUTING with the bridge as the interface. What it
//! passes on between its ports sees FORWARD and POSTROUTING once for each port that it leaves by, is not routed, and
//! keeps its time to live. What is for the host goes on as any other packet, and the rules may still ask for the port.
//! Where translation gives it a destination beyond the bridge that it came in by, the bridge passes it on, too; what would
//! go back to its sender is dropped before FORWARD unless the port is a hairpin, and its connection never confirmed.
//!
//! Source: Linux 6.18 `net/bridge/br_netfilter_hooks.c`. Without sysctl.txt the bridge is taken to hand packets over;
//! where that file does not say, what it passes on met rules maybe.

use std::net::IpAddr;

use host::{Host, LinkKind, Missing, Refused};
use rules::model::Family;
use rules::{BridgeNote, Iface};

use crate::arrival::{Arrival, Origin, Passed};
use crate::disposition::Why;
use crate::observer::Observer;
use crate::routing::path::Path;
use crate::routing::way::{Crossed, Decision, Way};
use crate::walk::Walk;

/// Whether a bridge passes a packet on between its ports, whatever routes say of its destination.
pub(crate) fn passes_on(arrival: &Arrival<'_>, host: &Host) -> bool {
    let of_bridge = |name| host.links.named(name).is_none_or(|link| link.kind == LinkKind::Bridge);
    arrival.bridge.is_passed_on && arrival.interface.is_some_and(of_bridge)
}

/// Whether a packet on this way is passed on between ports: one whose destination was translated may be routed.
pub(crate) fn crosses(way: &Way<'_>, arrival: &Arrival<'_>, host: &Host) -> bool {
    let was_bridged = arrival.left.is_some_and(|left| left.bridged);
    // Most packets meet no bridge, and no name is compared for them.
    (was_bridged || passes_on(arrival, host))
        && way.path == Path::Forward
        && way.input == way.output
}

/// Whether bridges hand packets of a family to its rules; `None` where that is not known. A bridge's own setting
/// (`ip link … type bridge nf_call_iptables 1`) is not read.
#[must_use]
pub fn hands_over(host: &Host, family: Family) -> Option<bool> {
    let Some(sysctl) = &host.sysctl else { return Some(true) };
    if sysctl.lacks_bridge() {
        return Some(false);
    }
    let name = match family {
        Family::Ipv6 => "net.bridge.bridge-nf-call-ip6tables",
        _ => "net.bridge.bridge-nf-call-iptables",
    };
    sysctl.number(name).map(|value| value != 0)
}

/// Whether a bridge passes a packet on without handing it to the rules of its family; `None` where that is not known.
pub(crate) fn keeps(
    way: &Way<'_>,
    arrival: &Arrival<'_>,
    host: &Host,
    family: Family,
) -> Option<bool> {
    match family.is_ip() && crosses(way, arrival, host) {
        true => hands_over(host, family).map(|hands_over| !hands_over),
        false => Some(false),
    }
}

/// Whether a packet, which a port of a bridge shows leaving and no capture shows coming, may have been passed on between
/// ports without meeting any rule.
pub(crate) fn may_pass_rules_by(arrival: &Arrival<'_>, host: &Host, family: Family) -> bool {
    arrival.bridge.port.is_some() && hands_over(host, family) != Some(true)
}

/// The kernel's note of a packet, before it is known which port it leaves by.
pub(crate) fn note<'a>(
    way: &Way<'a>,
    arrival: &Arrival<'a>,
    host: &Host,
    family: Family,
) -> BridgeNote<'a> {
    if !matches!(way.path, Path::Forward | Path::Input) {
        return BridgeNote::Nothing;
    }
    let Iface::Named(name) = way.input else { return BridgeNote::Unknown };
    let Some(link) = host.links.named(name) else { return BridgeNote::Unknown };
    let kind = |name: &str| host.links.named(name).map(|link| link.kind);
    match link.kind {
        LinkKind::Bridge => {}
        // Whether the bridge below looks into VLANs is a setting of its own.
        _ if link.parent.as_deref().and_then(kind) == Some(LinkKind::Bridge) => {
            return BridgeNote::Unknown;
        }
        _ => return BridgeNote::Nothing,
    }
    let may_cross = arrival.origin == Origin::Addresses && way.input == way.output;
    match hands_over(host, family) {
        Some(false) => BridgeNote::Nothing,
        Some(true) if !may_cross || crosses(way, arrival, host) => {
            let of_bridge = |port: &&str| host.upper(port, None).is_none_or(|up| &*up.name == name);
            let given = arrival.input.filter(|port| *port != name);
            let port = arrival.bridge.port.or(given).filter(of_bridge);
            BridgeNote::Ports {
                input: port.map_or(Iface::Unknown, Iface::Named),
                output: Iface::Absent,
            }
        }
        _ => BridgeNote::Unknown,
    }
}

/// The way of a packet whose destination was translated and lies beyond the bridge that it came in by: where the bridge
/// hands packets over it passes this one on itself, and not back to its sender unless the port is a hairpin.
pub(crate) fn turned_back<'n>(
    way: Way<'n>,
    (source, destination): (IpAddr, IpAddr),
    arrival: &Arrival<'_>,
    host: &Host,
    family: Family,
) -> Way<'n> {
    let Iface::Named(name) = way.input else { return way };
    if way.path != Path::Forward || way.input != way.output || !way.is_sure() || way.wire.is_some()
    {
        return way;
    }
    let is_bridge = |name| host.links.named(name).is_some_and(|link| link.kind == LinkKind::Bridge);
    let hands_over = hands_over(host, family);
    if hands_over == Some(false) || !is_bridge(name) {
        return way;
    }
    let wire = if hands_over.is_some() { Some(Crossed::Bridged) } else { None };
    let sends_back = || host.links.sends_back(name, arrival.bridge.port);
    let fate = match source != destination || arrival.left.is_some() {
        true => way.fate,
        false => match (sends_back(), hands_over) {
            (Some(true), _) => way.fate,
            (Some(false), Some(_)) => Decision::Refused(Refused::Hairpin),
            _ => Decision::Perhaps(Refused::Hairpin, Why::Host(Missing::Hairpin)),
        },
    };
    Way { wire, fate, ..way }
}

/// What a bridge passes on besides what goes its way from here.
pub(crate) fn passed_on<'n: 'a, 'a>(
    walk: &mut Walk<'a, '_, '_>,
    way: &Way<'n>,
    arrival: &Arrival<'n>,
    host: &Host,
    observer: &mut impl Observer,
) {
    let mut copies = arrival.bridge.copies();
    if crosses(way, arrival, host) {
        // One of them stands for the packet: where none was seen, the one that there surely was.
        let first = if arrival.bridge.ports.is_empty() { None } else { copies.next() };
        walk.leaves_by(first.map_or(Iface::Unknown, |first| first.port));
    } else if way.is_bridged() && arrival.wire.is_none() {
        return walk.leaves_by(Iface::Unknown);
    } else if way.path != Path::Input {
        return;
    }
    let hands_over = hands_over(host, walk.family());
    if hands_over == Some(false) {
        return;
    }
    let copies =
        copies.map(|copy| Passed { is_seen: copy.is_seen && hands_over.is_some(), ..copy });
    walk.passed_on(copies, way.input, observer);
}
