//! A packet's way over a bridge ([`Bridge`](crate::Bridge) is what is known of it), and the note of it that the kernel
//! keeps.
//!
//! A bridge hands what comes in by its ports to the rules of PREROUTING with the bridge as the interface. What it
//! passes on between its ports sees FORWARD and POSTROUTING once for each port that it leaves by, is not routed, and
//! keeps its time to live. What is for the host goes on as any other packet, and the rules may still ask for the port.
//!
//! Source: Linux 6.18 `net/bridge/br_netfilter_hooks.c`. Without sysctl.txt the bridge is taken to hand packets over.

use host::{Host, LinkKind};
use rules::model::Family;
use rules::{BridgeNote, Iface};

use crate::arrival::{Arrival, Origin};
use crate::observer::Observer;
use crate::path::Path;
use crate::walk::Walk;
use crate::way::Way;

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
pub(crate) fn hands_over(host: &Host, family: Family) -> Option<bool> {
    let Some(sysctl) = &host.sysctl else { return Some(true) };
    let name = match family {
        Family::Ipv6 => "net.bridge.bridge-nf-call-ip6tables",
        _ => "net.bridge.bridge-nf-call-iptables",
    };
    sysctl.number(name).map(|value| value != 0)
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
            let port = arrival.bridge.port.filter(of_bridge);
            BridgeNote::Ports {
                input: port.map_or(Iface::Unknown, Iface::Named),
                output: Iface::Absent,
            }
        }
        _ => BridgeNote::Unknown,
    }
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
    } else if way.path != Path::Input || hands_over(host, walk.family()) == Some(false) {
        return;
    }
    walk.passed_on(copies, way.input, observer);
}
