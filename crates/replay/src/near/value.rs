//! What a packet has where a test looks, in the words of the test.

use conntrack::CtState;
use packet::tcp::Flags;
use packet::{FlowKey, L3, L4, Read, icmpv4, icmpv6, tcp};
use rules::model::Family;
use rules::{Iface, Transit, protocol_name};

/// What the packet has where a test looks, in the words of the test.
pub(super) fn value_at(test: &str, transit: &Transit<'_, '_>) -> Option<String> {
    let option = test.split(' ').find(|word| *word != "!")?;
    let value = value(option, transit)?;
    // The plural is what a rule asks for; a packet has one.
    let option = match option {
        "--sports" => "--sport",
        "--dports" => "--dport",
        "--src-range" => "-s",
        "--dst-range" => "-d",
        "--ttl-lt" | "--ttl-gt" => "--ttl-eq",
        "--hl-lt" | "--hl-gt" => "--hl-eq",
        "--ports" | "--tcp-flags" | "--syn" => return Some(value),
        option => option,
    };
    Some(format!("{option} {value}"))
}

fn value(option: &str, transit: &Transit<'_, '_>) -> Option<String> {
    let key = || FlowKey::of(transit.packet).known();
    Some(match option {
        "-s" | "--src-range" => key()?.source.to_string(),
        "-d" | "--dst-range" => key()?.destination.to_string(),
        "-i" => iface(transit.input)?,
        "-o" => iface(transit.output)?,
        "-p" => {
            let number = key()?.protocol;
            protocol_name(number).map_or_else(|| number.to_string(), str::to_owned)
        }
        "--sport" | "--sports" => port(transit, 0)?.to_string(),
        "--dport" | "--dports" => port(transit, 2)?.to_string(),
        "--ports" => format!("--sport {} --dport {}", port(transit, 0)?, port(transit, 2)?),
        "--tcp-flags" | "--syn" => {
            format!("flags {}", Flags(upper::<1>(transit, tcp::FLAGS.start)?[0]))
        }
        "--icmp-type" => icmp(upper(transit, icmpv4::TYPE.start)?, icmpv4::type_name),
        "--icmpv6-type" => icmp(upper(transit, icmpv6::TYPE.start)?, icmpv6::type_name),
        "--ctstate" | "--state" => match transit.ct.view.state()? {
            CtState::Invalid => "INVALID",
            CtState::New => "NEW",
            CtState::Related => "RELATED",
            CtState::Established => "ESTABLISHED",
            CtState::Untracked => "UNTRACKED",
        }
        .to_owned(),
        "--mark" if transit.mark.unknown == 0 => format!("{:#x}", transit.mark.value),
        "--mac-source" => mac(transit.packet.source_mac())?,
        "--ttl-eq" | "--ttl-lt" | "--ttl-gt" | "--hl-eq" | "--hl-lt" | "--hl-gt" => {
            let offset = if transit.family == Family::Ipv6 { 7 } else { 8 };
            transit.net::<1>(offset).known()?[0].to_string()
        }
        "--length" if !transit.packet.is_open() => transit.packet.len().to_string(),
        "--tos" => format!("{:#04x}", tos(transit)?),
        "--dscp" => format!("{:#04x}", tos(transit)? >> 2),
        _ => return None,
    })
}

fn iface(iface: Iface<'_>) -> Option<String> {
    match iface {
        Iface::Named(name) => Some(name.to_owned()),
        Iface::Absent => Some("none".to_owned()),
        Iface::Unknown => None,
    }
}

/// Bytes of the upper-layer header.
fn upper<const N: usize>(transit: &Transit<'_, '_>, offset: usize) -> Option<[u8; N]> {
    match transit.packet.headers().l4 {
        L4::Upper(upper) => transit.packet.upper(&upper, offset).known(),
        L4::Fragment { .. } | L4::Broken { .. } | L4::Unknown | L4::None => None,
    }
}

/// The port at an offset of a header that has ports in front.
fn port(transit: &Transit<'_, '_>, offset: usize) -> Option<u16> {
    upper(transit, offset).map(u16::from_be_bytes)
}

fn icmp([kind, code]: [u8; 2], name: fn(u8) -> Option<&'static str>) -> String {
    let kind = name(kind).map_or_else(|| kind.to_string(), str::to_owned);
    if code == 0 { kind } else { format!("{kind}/{code}") }
}

fn mac(address: Read<[u8; 6]>) -> Option<String> {
    let hex = address.known()?.map(|byte| format!("{byte:02x}"));
    Some(hex.join(":"))
}

/// Type of service of IPv4, traffic class of IPv6.
fn tos(transit: &Transit<'_, '_>) -> Option<u8> {
    let [first, second] = transit.net::<2>(0).known()?;
    match transit.packet.headers().l3 {
        L3::Ipv6 => Some(first << 4 | second >> 4),
        _ => Some(second),
    }
}

/// Whether a packet looks like one of a connection that began before: it does not ask for one.
pub(super) fn is_answer(transit: &Transit<'_, '_>) -> bool {
    let Some(key) = FlowKey::of(transit.packet).known() else { return false };
    match key.protocol {
        tcp::PROTOCOL => upper::<1>(transit, tcp::FLAGS.start).is_some_and(|[flags]| {
            let flags = Flags(flags);
            flags.contains(Flags::ACK) || flags.contains(Flags::RST)
        }),
        icmpv4::PROTOCOL => icmp_type(transit).is_some_and(|kind| kind != icmpv4::ECHO_REQUEST),
        icmpv6::PROTOCOL => icmp_type(transit).is_some_and(|kind| kind != icmpv6::ECHO_REQUEST),
        // From a service to its client.
        _ => key.source_port < 1024 && key.destination_port >= 1024 && key.source_port > 0,
    }
}

fn icmp_type(transit: &Transit<'_, '_>) -> Option<u8> {
    upper::<1>(transit, icmpv4::TYPE.start).map(|[kind]| kind)
}
