//! The input and output interface of a packet: as the command line says, else as the capture does, else by the network
//! that its addresses lie in.

use std::net::IpAddr;

use host::{LinkKind, Network, Outgoing, Routed};
use packet::{Headers, Link, Packet};
use rules::Iface;

use crate::arrival::{Arrival, Origin};
use crate::config::Config;
use crate::routing::path::Path;
use crate::routing::way::addresses;

/// Links stacked on each other, at most.
const MOST_ON_EACH_OTHER: usize = 8;

/// Packet type of a frame that was addressed to another host (`PACKET_OTHERHOST`).
pub(crate) const OTHER_HOST: u8 = 3;
/// Packet type of a cooked capture for frames that the host sent (`PACKET_OUTGOING`).
pub(crate) const OUTGOING: u8 = 4;

/// Finds the interfaces of one packet. A side that its path does not have is [`Iface::Absent`]; `routed` is the output
/// interface of the routes.
#[inline]
pub(crate) fn of<'a>(
    packet: &Packet<'_>,
    arrival: &Arrival<'a>,
    path: Path,
    routed: Option<&'a str>,
    config: &'a Config,
) -> (Iface<'a>, Iface<'a>) {
    match (path, given_both(packet.headers(), arrival, config)) {
        (Path::Forward, Some((input, output))) => (Iface::Named(input), Iface::Named(output)),
        _ => found(packet, arrival, path, routed, config),
    }
}

/// Both interfaces of a packet that is forwarded, where they are given and its capture names none, which may say that
/// it went the other way. Nothing else is asked for them then.
#[inline(always)]
pub(crate) fn given_both<'a>(
    headers: &Headers,
    arrival: &Arrival<'a>,
    config: &'a Config,
) -> Option<(&'a str, &'a str)> {
    if let (Some(input), Some(output)) = (arrival.input, arrival.output) {
        return Some((input, output));
    }
    let input = arrival.input.or(config.input.as_deref())?;
    let output = arrival.output.or(config.output.as_deref())?;
    captured(headers, arrival, config).is_none().then_some((input, output))
}

/// Finds the interfaces by everything that may name them.
fn found<'a>(
    packet: &Packet<'_>,
    arrival: &Arrival<'a>,
    path: Path,
    routed: Option<&'a str>,
    config: &'a Config,
) -> (Iface<'a>, Iface<'a>) {
    let is_told = !config.nets.is_empty() || config.host.routes.is_some();
    let addresses = if is_told { addresses(packet) } else { None };
    let captured = captured(packet.headers(), arrival, config);
    let nets = addresses.map(|(source, destination)| {
        (behind(&config.nets, source), behind(&config.nets, destination))
    });
    let (net_in, net_out) = nets.unwrap_or_default();
    let outbound = match arrival.origin {
        Origin::Wire => false,
        Origin::Host => true,
        // A capture without directions shows both.
        Origin::Addresses if is_silent(packet, arrival) => {
            captured.is_some() && net_out == captured && net_in.is_some() && net_in != captured
        }
        Origin::Addresses => is_outbound(packet, arrival),
    };
    let (given_in, given_out) = given(config, captured, outbound);
    let seen = |outwards: bool| captured.filter(|_| outbound == outwards);
    let named = |name: Option<&'a str>| name.map_or(Iface::Unknown, Iface::Named);
    let routed_back = || back_to(addresses?.0, config);
    let input = || {
        let given = arrival
            .input
            .map(|name| of_rules(name, config))
            .or(given_in)
            .or(seen(false))
            .or(net_in);
        named(given.or_else(routed_back))
    };
    let left = arrival.left.as_ref().and_then(|left| left.interface);
    let sent = || arrival.output.map(|name| of_rules(name, config));
    let output = || named(sent().or(given_out).or(left).or(seen(true)).or(routed).or(net_out));
    match path {
        Path::Forward => (input(), output()),
        Path::Input => (input(), Iface::Absent),
        Path::Output => (Iface::Absent, output()),
        Path::Loopback => (Iface::Named("lo"), Iface::Named("lo")),
    }
}

/// The interface that rules see instead of this one: the bridge or bond that it is a port of.
fn of_rules<'a>(name: &'a str, config: &'a Config) -> &'a str {
    let mut at = name;
    // A bond may be a port of a bridge. A cycle of links ends the search.
    for _ in 0..MOST_ON_EACH_OTHER {
        let above = config.host.upper(at, None);
        match above.filter(|link| matches!(link.kind, LinkKind::Bridge | LinkKind::Bond)) {
            Some(link) if link.kind == LinkKind::Bond => at = &link.name,
            // No bridge is a port of another.
            Some(bridge) => return &bridge.name,
            None => break,
        }
    }
    at
}

/// Whether a packet may be the host's own, as far as its input interface is given.
pub(crate) fn may_be_own(arrival: &Arrival<'_>) -> bool {
    arrival.input.is_none_or(|name| name == "lo")
}

/// The interface that the capture names, or numbers.
fn captured<'a>(headers: &Headers, arrival: &Arrival<'a>, config: &'a Config) -> Option<&'a str> {
    let by_number = || Some(&*config.host.links.at(headers.link.ifindex?)?.name);
    arrival.interface.filter(|name| *name != "any").or_else(by_number)
}

/// Whether something nearer than routes names the output interface of an own packet.
pub(crate) fn names_output(packet: &Packet<'_>, arrival: &Arrival<'_>, config: &Config) -> bool {
    gives_output(arrival, config) || shows_output(packet, arrival, config)
}

/// Whether the output interface of packets is given.
pub(crate) fn gives_output(arrival: &Arrival<'_>, config: &Config) -> bool {
    arrival.output.is_some() || config.output.is_some()
}

/// Whether the capture shows the interface through which an own packet left in the end.
pub(crate) fn shows_output(packet: &Packet<'_>, arrival: &Arrival<'_>, config: &Config) -> bool {
    let left = arrival.left.as_ref().and_then(|left| left.interface);
    left.is_some() || captured(packet.headers(), arrival, config).is_some()
}

/// The output interface of the routes back to a source.
fn back_to(source: IpAddr, config: &Config) -> Option<&str> {
    config.host.routes.as_ref()?;
    match config.host.route_out(&Outgoing::to(source)) {
        Routed::Forward { output, .. } => output.filter(|name| *name != "lo"),
        Routed::Input(_) | Routed::Refused(_) | Routed::Unknown(_) => None,
    }
}

/// Whether the capture says that the host sent the frame.
pub(crate) fn is_outbound(packet: &Packet<'_>, arrival: &Arrival<'_>) -> bool {
    match arrival.direction {
        pktio::Direction::Outbound => true,
        pktio::Direction::Inbound => false,
        pktio::Direction::Unknown => packet.headers().link.packet_type == Some(OUTGOING),
    }
}

/// Whether the capture does not give the direction of the frame.
pub(crate) fn is_silent(packet: &Packet<'_>, arrival: &Arrival<'_>) -> bool {
    arrival.direction == pktio::Direction::Unknown
        && (packet.headers().link.ethernet.is_some() || packet.headers().link.packet_type.is_none())
}

/// Whether the frame was captured on `lo`.
pub(crate) fn is_on_loopback(packet: &Packet<'_>, arrival: &Arrival<'_>) -> bool {
    match arrival.interface {
        Some(name) if name != "any" => name == "lo",
        // BSD's loopback header precedes packets of tunnels, too.
        _ => {
            packet.headers().link.loopback
                && !matches!(arrival.link, Link::Null | Link::Loop | Link::Nflog)
        }
    }
}

/// `--in` and `--out`, exchanged for a packet that the capture saw going the other way.
fn given<'a>(
    config: &'a Config,
    captured: Option<&str>,
    outbound: bool,
) -> (Option<&'a str>, Option<&'a str>) {
    let (input, output) = (config.input.as_deref(), config.output.as_deref());
    let other_way = match (input, output, captured) {
        (Some(input), Some(output), Some(captured)) => {
            captured == if outbound { input } else { output }
        }
        _ => false,
    };
    if other_way { (output, input) } else { (input, output) }
}

/// The interface whose network holds the address; the longest prefix wins.
pub(crate) fn behind(nets: &[(String, Network)], addr: IpAddr) -> Option<&str> {
    let holding = nets.iter().filter(|(_, net)| net.holds(addr));
    holding.max_by_key(|(_, net)| net.bits).map(|(name, _)| &**name)
}
