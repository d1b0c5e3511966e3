//! Keys of a `[[port]]` besides its kind: its addresses, the number of its queues, the length of its packets, and the
//! pace of a capture; and whether the two ports of a wire can carry each other's frames.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use host::Network;
use pktio::{Pace, Speed};
use toml::de::DeValue;

use super::{Kind, PortSettings, work};
use dataplane::keys::{Section, Value, Wrong, found, string};

/// The range of a port's MTU: what IPv4 asks of every link (RFC 791), and the longest packet that there is.
const MTU: RangeInclusive<u64> = 68..=65_535;

/// The addresses of a port, at most one of each family. Their prefix lengths are read and mean nothing: a wire routes
/// nothing.
pub(super) fn addresses(section: &Section<'_, '_>) -> Result<Vec<IpAddr>, Wrong> {
    let Some(list) = section.get("address") else { return Ok(Vec::new()) };
    let what = "a list of addresses such as \"192.0.2.1/24\"";
    let values = list.get_ref().as_array().ok_or_else(|| found(list, what))?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for value in values {
        let addr = address(value)?;
        if addresses.iter().any(|other| other.is_ipv6() == addr.is_ipv6()) {
            let what = format!("expected one address of each family, found \"{addr}\" as well");
            return Err((value.span(), what));
        }
        addresses.push(addr);
    }
    Ok(addresses)
}

fn address(value: &Value<'_>) -> Result<IpAddr, Wrong> {
    let text = string(value)?;
    let addr = text.split('/').next().and_then(|addr| addr.parse().ok());
    let is_one_host = |addr: &IpAddr| !addr.is_unspecified() && !addr.is_multicast();
    match (Network::parse(text), addr.filter(is_one_host)) {
        (Some(_), Some(addr)) => Ok(addr),
        _ => {
            let what = "expected the address of a host, such as 192.0.2.1/24 or 2001:db8::1/64";
            Err((value.span(), format!("{what}, found \"{text}\"")))
        }
    }
}

/// Queues to receive on, at most: by default as many as there may be workers.
pub(super) fn queues(section: &Section<'_, '_>) -> Result<u16, Wrong> {
    let queues = work::one_or_more(section, "queues", work::MOST_WORKERS)?;
    Ok(queues.map_or(work::MOST_WORKERS as u16, |queues| queues as u16))
}

/// Refuses a wire between a tunnel, which carries packets of IP alone, and a port whose frames are all Ethernet's.
pub(super) fn all_carried(
    ports: &[PortSettings],
    places: [usize; 2],
    names: [&Value<'_>; 2],
) -> Result<(), Wrong> {
    let [first, second] = places.map(|place| innermost(ports, place));
    for (one, other, name) in [(first, second, names[1]), (second, first, names[0])] {
        let (Some(Kind::Tunnel { .. }), Some(kind)) = (one, other.and_then(of_ethernet)) else {
            continue;
        };
        let what =
            "expected a port of kind tun beside a tunnel, which carries no frames of Ethernet";
        return Err((name.span(), format!("{what}, found \"{}\" of kind {kind}", string(name)?)));
    }
    Ok(())
}

/// The kind of the port at a place, or of the port that it wraps, however deep.
pub(crate) fn innermost(ports: &[PortSettings], place: usize) -> Option<&Kind> {
    match &ports.get(place)?.kind {
        Kind::Fault { of, .. } => innermost(ports, *of),
        kind => Some(kind),
    }
}

/// The kind of a port that receives frames of Ethernet, whatever it is given.
fn of_ethernet(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::AfPacket { .. } => Some("af_packet"),
        Kind::AfXdp { .. } => Some("af_xdp"),
        Kind::Dpdk { .. } => Some("dpdk"),
        Kind::Tun { .. }
        | Kind::Pcap { .. }
        | Kind::Loopback
        | Kind::Tunnel { .. }
        | Kind::Fault { .. } => None,
    }
}

/// Bytes of the longest packet, if the port has a limit.
pub(super) fn mtu(section: &Section<'_, '_>) -> Result<Option<u32>, Wrong> {
    let Some(value) = section.get("mtu") else { return Ok(None) };
    match section.number("mtu", *MTU.end())? {
        Some(bytes) if bytes < *MTU.start() => {
            let what = format!("expected at least {}, found {bytes}", MTU.start());
            Err((value.span(), what))
        }
        bytes => Ok(bytes.map(|bytes| bytes as u32)),
    }
}

/// When the frames of a capture come.
pub(super) fn pace(section: &Section<'_, '_>) -> Result<Pace, Wrong> {
    let words = [("flat", false), ("capture", true)];
    let is_timed = section.choice("pace", &words, &[])?.unwrap_or_default();
    let Some(value) = section.get("speed") else {
        return Ok(if is_timed { Pace::Timed(Speed::AS_CAPTURED) } else { Pace::FlatOut });
    };
    let what = "a number above 0";
    let text = match value.get_ref() {
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        _ => return Err(found(value, what)),
    };
    let speed = text.replace('_', "").parse().ok().and_then(Speed::new);
    let speed = speed.ok_or_else(|| (value.span(), format!("expected {what}, found {text}")))?;
    if !is_timed {
        return Err((value.span(), "expected pace = \"capture\" beside speed".to_owned()));
    }
    Ok(Pace::Timed(speed))
}
