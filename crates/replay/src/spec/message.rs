//! The part of a SPEC after its protocol: `SOURCE > DESTINATION`, then flags or a type.

use std::net::IpAddr;

use packet::craft::Message;
use packet::tcp::Flags;
use packet::{icmpv4, icmpv6};
use rules::{port_number, protocol_number};

use super::gaps::header_of;
use super::word::{SpecError, Word, expected, number};

/// The source port of a packet whose words give none: the first that hosts draw from (RFC 6335).
pub(super) const DRAWN: u16 = 49152;

/// An address, and its port where one stands after it.
pub(super) struct Endpoint {
    column: usize,
    pub(super) addr: IpAddr,
    port: Option<u16>,
}

impl Endpoint {
    pub(super) fn has_port(&self) -> bool {
        self.port.is_some()
    }
}

/// `A[:PORT] > B[:PORT]` and the words after.
pub(super) fn endpoints<'w, 'a>(
    words: &'w [Word<'a>],
    end: usize,
) -> Result<(Endpoint, Endpoint, &'w [Word<'a>]), SpecError> {
    match words {
        [source, (_, ">" | "->"), destination, rest @ ..] => {
            Ok((endpoint(*source)?, endpoint(*destination)?, rest))
        }
        [_, (column, _), ..] => Err(expected(*column, "> between the addresses")),
        _ => Err(expected(end, "SOURCE > DESTINATION")),
    }
}

fn endpoint((column, text): Word<'_>) -> Result<Endpoint, SpecError> {
    let wrong = || expected(column, format!("an address or address:port, found \"{text}\""));
    if let Ok(addr) = text.parse() {
        return Ok(Endpoint { column, addr, port: None });
    }
    let (addr, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let bare = addr.strip_prefix('[').and_then(|addr| addr.strip_suffix(']')).unwrap_or(addr);
    Ok(Endpoint {
        column,
        addr: bare.parse().map_err(|_| wrong())?,
        port: Some(port_number(port).filter(|_| !port.starts_with('+')).ok_or_else(wrong)?),
    })
}

/// The message of the protocol of this name; `rest` are its flags or type.
pub(super) fn message(
    (column, name): Word<'_>,
    source: &Endpoint,
    destination: &Endpoint,
    rest: &[Word<'_>],
    end: usize,
) -> Result<Message, SpecError> {
    let port = |endpoint: &Endpoint| {
        endpoint.port.ok_or_else(|| expected(endpoint.column, format!("address:port for {name}")))
    };
    let nothing_more = |message| match rest.first() {
        None => Ok(message),
        Some((column, word)) => Err(expected(*column, format!("no more words, found \"{word}\""))),
    };
    let icmp = |words: &[Word<'_>]| match [source, destination].iter().find(|end| end.has_port()) {
        Some(of) => Err(expected(of.column, format!("an address without a port for {name}"))),
        None => icmp(words, source.addr.is_ipv6(), end),
    };
    let drawn = source.port.unwrap_or(DRAWN);
    let lower = name.to_ascii_lowercase();
    match &*lower {
        "tcp" => Ok(Message::tcp(drawn, port(destination)?, flags(rest)?)),
        "udp" => nothing_more(Message::udp(drawn, port(destination)?)),
        "icmp" | "icmpv6" | "icmp6" => icmp(rest),
        "ping" => nothing_more(icmp(&[])?),
        _ => {
            let protocol = number(&lower).or_else(|| protocol_number(&lower));
            let protocol = protocol.ok_or_else(|| {
                let such = "a protocol, such as tcp, udp, icmp, ping or a number";
                expected(column, format!("{such}, found \"{name}\""))
            })?;
            let has_ports = source.has_port() || destination.has_port();
            let ports = if has_ports { Some([drawn, port(destination)?]) } else { None };
            nothing_more(Message::Other { protocol, header: header(protocol, ports) })
        }
    }
}

/// A header of zeros, but for ports where they were given.
fn header(protocol: u8, ports: Option<[u16; 2]>) -> Vec<u8> {
    let mut header = vec![0; header_of(protocol)];
    if let Some(ports) = ports {
        header.resize(header.len().max(4), 0);
        header[..4].copy_from_slice(ports.map(u16::to_be_bytes).as_flattened());
    }
    header
}

/// Flag names; without any it is a SYN.
fn flags(words: &[Word<'_>]) -> Result<Flags, SpecError> {
    let mut bits = 0;
    for (column, word) in words {
        let lower = word.to_ascii_lowercase();
        for name in lower.split([',', '-']) {
            let named = Flags::NAMES.iter().find(|(_, known)| *known == name);
            bits |= match named {
                Some((flag, _)) => flag.0,
                None if name == "none" => 0,
                None => {
                    let what = format!(
                        "TCP flags (fin syn rst psh ack urg ece cwr none), found \"{name}\""
                    );
                    return Err(expected(*column, what));
                }
            };
        }
    }
    Ok(Flags(if words.is_empty() { 0x02 } else { bits }))
}

/// A type by name or number, `type/code`; without any it is an echo request.
fn icmp(words: &[Word<'_>], v6: bool, end: usize) -> Result<Message, SpecError> {
    let (column, text) = words.first().copied().unwrap_or((end, "echo-request"));
    let (kind, code) = text.split_once('/').unwrap_or((text, "0"));
    let named = if v6 { icmpv6::type_named(kind) } else { icmpv4::type_named(kind) };
    let parsed = named.or_else(|| number(kind)).zip(number(code));
    let (kind, code) = parsed.ok_or_else(|| {
        expected(column, format!("an ICMP type by name or number, or type/code, found \"{text}\""))
    })?;
    Ok(Message::Icmp { kind, code, id: 1, sequence: 1 })
}
