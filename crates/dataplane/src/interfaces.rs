//! Which interfaces a packet came in and goes out by: as the command line says, else by the network its
//! addresses lie in, else as the capture says.

use std::net::IpAddr;

use host::Network;
use packet::Packet;
use rules::Iface;

use crate::arrival::Arrival;
use crate::config::Config;
use crate::path::{Path, addresses};

/// Packet type of a cooked capture for frames that the host sent (`PACKET_OUTGOING`).
pub(crate) const OUTGOING: u8 = 4;

/// The interfaces of one packet. A side that its path does not have is [`Iface::Absent`].
pub(crate) fn of<'a>(
    packet: &Packet<'_>,
    arrival: &Arrival<'a>,
    path: Path,
    config: &'a Config,
) -> (Iface<'a>, Iface<'a>) {
    let addresses = if config.nets.is_empty() { None } else { addresses(packet) };
    let outbound = is_outbound(packet, arrival);
    let captured = arrival.interface.filter(|name| *name != "any");
    let (given_in, given_out) = given(config, captured, outbound);
    let pick = |spec: Option<&'a str>, given: Option<&'a str>, addr: Option<IpAddr>, seen: bool| {
        let by_net = || addr.and_then(|addr| behind(&config.nets, addr));
        let name = spec.or(given).or_else(by_net).or(captured.filter(|_| seen));
        name.map_or(Iface::Unknown, Iface::Named)
    };
    let input = pick(arrival.input, given_in, addresses.map(|both| both.0), !outbound);
    let output = pick(arrival.output, given_out, addresses.map(|both| both.1), outbound);
    match path {
        Path::Forward => (input, output),
        Path::Input => (input, Iface::Absent),
        Path::Output => (Iface::Absent, output),
        Path::Loopback => (Iface::Named("lo"), Iface::Named("lo")),
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
fn behind(nets: &[(String, Network)], addr: IpAddr) -> Option<&str> {
    let holding = nets.iter().filter(|(_, net)| net.holds(addr));
    holding.max_by_key(|(_, net)| net.bits).map(|(name, _)| &**name)
}
