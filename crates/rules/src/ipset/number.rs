//! Numbers, addresses and ports of set text.
//!
//! Source: ipset(8) "generic data types"; ICMP types print by name where they have one.

use crate::family::Family;
use crate::names::{icmp_type, protocol_number};
use crate::value;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A decimal or hexadecimal number.
pub(super) fn number(text: &str, max: u64) -> Option<u64> {
    value::number(text, max)
}

/// One address of a family, in the first bytes.
pub(super) fn address(text: &str, family: Family) -> Option<[u8; 16]> {
    let mut addr = [0; 16];
    match family {
        Family::Ipv6 => addr = text.parse::<Ipv6Addr>().ok()?.octets(),
        _ => addr[..4].copy_from_slice(&text.parse::<Ipv4Addr>().ok()?.octets()),
    }
    Some(addr)
}

/// `first` and `last` of `ADDRESS`, `ADDRESS/BITS` or, for IPv4, `ADDRESS-ADDRESS`.
pub(super) fn addresses_v4(text: &str) -> Option<(u32, u32)> {
    let one = |text: &str| text.parse::<Ipv4Addr>().ok().map(u32::from);
    if let Some((first, last)) = text.split_once('-') {
        return Some((one(first)?, one(last)?)).filter(|(first, last)| first <= last);
    }
    let Some((addr, bits)) = text.split_once('/') else {
        return one(text).map(|addr| (addr, addr));
    };
    let (addr, bits) = (one(addr)?, bits.parse::<u32>().ok().filter(|bits| *bits <= 32)?);
    let hosts = u32::MAX.checked_shr(bits).unwrap_or(0);
    Some((addr & !hosts, addr | hosts))
}

/// `[PROTOCOL:]PORT[-PORT]`, of TCP unless it says otherwise.
pub(super) fn ports(text: &str) -> Option<(u8, u16, u16)> {
    let (protocol, ports) = match text.split_once(':') {
        Some((name, ports)) => (value::u8(name).or_else(|| protocol_number(name))?, ports),
        None => (6, text),
    };
    match protocol {
        1 | 58 => {
            let family = if protocol == 1 { Family::Ipv4 } else { Family::Ipv6 };
            let code = icmp(ports, family)?;
            Some((protocol, code, code))
        }
        _ => bare_ports(ports).map(|(first, last)| (protocol, first, last)),
    }
}

/// `PORT[-PORT]`.
pub(super) fn bare_ports(text: &str) -> Option<(u16, u16)> {
    match text.split_once('-') {
        Some((first, last)) => {
            Some((value::port(first)?, value::port(last)?)).filter(|(first, last)| first <= last)
        }
        None => value::port(text).map(|port| (port, port)),
    }
}

/// `TYPE/CODE` or a name.
fn icmp(text: &str, family: Family) -> Option<u16> {
    let (kind, code) = match text.split_once('/') {
        Some((kind, code)) => (value::u8(kind)?, value::u8(code)?),
        None => match value::number(text, 0xffff) {
            Some(both) => return Some(both as u16),
            None => icmp_type(text, family)?,
        },
    };
    Some(u16::from_be_bytes([kind, code]))
}
