//! The way back from a packet to a SPEC: the words that build one like it.
//!
//! A SPEC has no payload, options or sequence numbers, so what it builds need not come to the same verdict. Whoever
//! uses these words evaluates them and compares.

use std::fmt::Write;
use std::net::SocketAddr;

use packet::tcp::Flags;
use packet::{FlowKey, L3, L4, Packet, Upper, icmpv4, icmpv6, ipv4, tcp, udp};

/// How much to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Protocol, addresses, ports, flags or type, fragment.
    Brief,
    /// Time to live and type of service, too.
    Header,
    /// Length and the sender's hardware address, too.
    Full,
}

impl Detail {
    /// Every detail, the shortest first.
    pub(crate) const ALL: [Self; 3] = [Self::Brief, Self::Header, Self::Full];
}

/// A packet as a SPEC, without its interfaces. `None` if it is no IP packet, or not all that the words
/// need was captured.
pub(crate) fn of_packet(packet: &Packet<'_>, detail: Detail) -> Option<String> {
    let key = FlowKey::of(packet).known()?;
    let upper = match packet.headers().l4 {
        L4::Upper(upper) => Some(upper),
        L4::Fragment { .. } => None,
        L4::Broken { .. } | L4::Unknown | L4::None => return None,
    };
    let mut words = String::new();
    // Writing to a String cannot fail.
    let _ = match key.protocol {
        tcp::PROTOCOL | udp::PROTOCOL => {
            let name = if key.protocol == tcp::PROTOCOL { "tcp" } else { "udp" };
            let source = SocketAddr::new(key.source, key.source_port);
            write!(
                words,
                "{name} {source} > {}",
                SocketAddr::new(key.destination, key.destination_port)
            )
        }
        icmpv4::PROTOCOL => write!(words, "icmp {} > {}", key.source, key.destination),
        icmpv6::PROTOCOL => write!(words, "icmpv6 {} > {}", key.source, key.destination),
        number => write!(words, "{number} {} > {}", key.source, key.destination),
    };
    if let Some(upper) = upper {
        words.push_str(&message(packet, &upper)?);
    }
    words.push_str(&fragment(packet));
    if detail != Detail::Brief {
        words.push_str(&header(packet)?);
    }
    if detail == Detail::Full {
        let _ = write!(words, " len={}", packet.len());
        if let Some([a, b, c, d, e, last]) = packet.source_mac().known() {
            let _ = write!(words, " mac={a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{last:02x}");
        }
    }
    Some(words)
}

/// TCP flags, or ICMP type and code.
fn message(packet: &Packet<'_>, upper: &Upper) -> Option<String> {
    let icmp = |name: fn(u8) -> Option<&'static str>| {
        let [kind, code] = packet.upper::<2>(upper, icmpv4::TYPE.start).known()?;
        let kind = name(kind).map_or_else(|| kind.to_string(), str::to_owned);
        Some(if code == 0 { format!(" {kind}") } else { format!(" {kind}/{code}") })
    };
    match upper.protocol {
        tcp::PROTOCOL => {
            let [flags] = packet.upper::<1>(upper, tcp::FLAGS.start).known()?;
            Some(format!(" {}", Flags(flags)))
        }
        icmpv4::PROTOCOL => icmp(icmpv4::type_name),
        icmpv6::PROTOCOL => icmp(icmpv6::type_name),
        _ => Some(String::new()),
    }
}

/// `frag=`, as a packet's own line ends with it.
fn fragment(packet: &Packet<'_>) -> String {
    let line = packet.to_string();
    line.rfind(" frag=").map_or_else(String::new, |at| line[at..].to_owned())
}

/// Time to live and type of service.
fn header(packet: &Packet<'_>) -> Option<String> {
    let (ttl, tos) = match packet.headers().l3 {
        L3::Ipv4 { .. } => {
            let [tos] = packet.net::<1>(ipv4::TOS.start).known()?;
            let [ttl] = packet.net::<1>(ipv4::TTL.start).known()?;
            (ttl, tos)
        }
        _ => {
            let [first, second] = packet.net::<2>(0).known()?;
            let [ttl] = packet.net::<1>(packet::ipv6::HOP_LIMIT.start).known()?;
            (ttl, first << 4 | second >> 4)
        }
    };
    Some(format!(" ttl={ttl} tos={tos}"))
}
