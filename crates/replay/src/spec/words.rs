//! The way back from a packet to a SPEC: the words that build one like it.
//!
//! What the words leave out is not known of the packet that they build, and more words make more of it known. Users of
//! the words evaluate them and compare.

use std::fmt::Write;
use std::net::SocketAddr;

use packet::tcp::Flags;
use packet::{FlowKey, L3, L4, Packet, Upper, ah, esp, icmpv4, icmpv6, ipv4, tcp, udp};

use super::gaps::header_of;

/// How much to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Protocol, addresses, ports, flags or type, fragment.
    Brief,
    /// Time to live and type of service, too.
    Header,
    /// Length and the sender's hardware address, too.
    Full,
    /// Options, numbers and payload, too.
    Whole,
}

impl Detail {
    /// Every detail, the shortest first.
    pub(crate) const ALL: [Self; 4] = [Self::Brief, Self::Header, Self::Full, Self::Whole];
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
    if matches!(detail, Detail::Full | Detail::Whole) {
        let _ = write!(words, " len={}", packet.len());
        if let Some([a, b, c, d, e, last]) = packet.source_mac().known() {
            let _ = write!(words, " mac={a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{last:02x}");
        }
    }
    if detail == Detail::Whole {
        words.push_str(&network(packet)?);
        words.push_str(&upper.map_or(Some(String::new()), |upper| contents(packet, &upper))?);
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

/// The longest payload that words are made for.
const LONGEST: usize = 2048;

/// What else the network header says.
fn network(packet: &Packet<'_>) -> Option<String> {
    if let L3::Ipv4 { .. } = packet.headers().l3 {
        let id = u16::from_be_bytes(packet.net(ipv4::ID.start).known()?);
        let flags = u16::from_be_bytes(packet.net(ipv4::FRAGMENT.start).known()?);
        let df = if flags & ipv4::DONT_FRAGMENT == 0 { "no" } else { "yes" };
        return Some(format!(" id={id} df={df}"));
    }
    let [_, high, middle, low] = packet.net(0).known()?;
    Some(format!(" label={}", u32::from_be_bytes([0, high & 0x0f, middle, low])))
}

/// Numbers, options and payload after an upper-layer header.
fn contents(packet: &Packet<'_>, upper: &Upper) -> Option<String> {
    let mut words = String::new();
    let of_header = match upper.protocol {
        tcp::PROTOCOL => {
            let header = packet.upper::<{ tcp::MIN_HEADER_LEN }>(upper, 0).known()?;
            let header = tcp::Header::new_checked(&header)?;
            let (seq, ack) = (header.sequence(), header.acknowledgement());
            let _ = write!(words, " seq={seq} ack={ack} win={}", header.window());
            let len = header.header_len().checked_sub(tcp::MIN_HEADER_LEN)?;
            let options = packet.read_slice(upper.offset + tcp::MIN_HEADER_LEN, len).known()?;
            let _ = write!(words, " options={}", bytes(options));
            header.header_len()
        }
        udp::PROTOCOL | icmpv4::PROTOCOL | icmpv6::PROTOCOL => 8,
        esp::PROTOCOL | ah::PROTOCOL => {
            let at = if upper.protocol == esp::PROTOCOL { esp::SPI.start } else { ah::SPI.start };
            let spi = u32::from_be_bytes(packet.upper(upper, at).known()?);
            let _ = write!(words, " spi={spi:#x}");
            header_of(upper.protocol)
        }
        protocol => header_of(protocol),
    };
    let start = upper.offset + of_header;
    let len = packet.headers().end.checked_sub(start).filter(|len| *len <= LONGEST)?;
    let payload = packet.read_slice(start, len).known()?;
    let _ = write!(words, " payload={}", bytes(payload));
    Some(words)
}

/// Bytes as a value.
fn bytes(bytes: &[u8]) -> String {
    match bytes {
        [] => "none".to_owned(),
        _ => bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    }
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
