//! Edits that make a packet pass a printed match: its ports, flags, types and ranges.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::generate::Craft;
use crate::generate::draft::Draft;

/// The edits for the options of a printed match. Options that no edit is known for, and those with a `!`,
/// are left to chance.
pub(super) fn of(text: &str) -> Vec<Craft> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let mut crafts = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let inverted = at > 0 && words[at - 1] == "!";
        if word.starts_with("--") && !inverted {
            crafts.extend(option(word, &words[at + 1..]));
        }
    }
    crafts
}

fn option(name: &str, values: &[&str]) -> Option<Craft> {
    let value = *values.first()?;
    let make: Craft = match name {
        "--sport" | "--sports" => ports(value, |p, port| p.ports.0 = port)?,
        "--dport" | "--dports" | "--ports" => ports(value, |p, port| p.ports.1 = port)?,
        "--tcp-flags" => {
            let (mask, set) = (flags(value)?, flags(values.get(1)?)?);
            Arc::new(move |p| p.flags = p.flags & !mask | set)
        }
        "--icmp-type" | "--icmpv6-type" => {
            let (kind, code) = value.split_once('/').unwrap_or((value, "0"));
            let icmp = (kind.parse().ok()?, code.parse().ok()?);
            Arc::new(move |p| p.icmp = icmp)
        }
        "--src-range" => range(value, |p, addr| p.source = addr)?,
        "--dst-range" => range(value, |p, addr| p.destination = addr)?,
        "--mac-source" => {
            let mac = mac(value)?;
            Arc::new(move |p| p.macs[1] = mac)
        }
        _ => return None,
    };
    Some(make)
}

/// A number drawn with the packet: choices among the values of a list depend on it.
fn chance(p: &Draft) -> usize {
    usize::from(p.ports.0) + usize::from(p.ports.1) + usize::from(p.flags) + p.payload.len()
}

/// The ends of the ranges in a list of ports.
fn ports(list: &str, set: fn(&mut Draft, u16)) -> Option<Craft> {
    let words = list.split([',', ':']).filter(|word| !word.is_empty());
    let ends: Vec<u16> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    if ends.is_empty() {
        return None;
    }
    Some(Arc::new(move |p| {
        let port = ends[chance(p) % ends.len()];
        set(p, port);
    }))
}

/// Either end of a range of addresses.
fn range(value: &str, set: fn(&mut Draft, [u8; 16])) -> Option<Craft> {
    let (low, high) = value.split_once('-').unwrap_or((value, value));
    let ends = [address(low)?, address(high)?];
    Some(Arc::new(move |p| {
        let addr = ends[chance(p) % 2];
        set(p, addr);
    }))
}

fn address(text: &str) -> Option<[u8; 16]> {
    if let Ok(addr) = text.parse::<Ipv6Addr>() {
        return Some(addr.octets());
    }
    let mut octets = [0; 16];
    octets[..4].copy_from_slice(&text.parse::<Ipv4Addr>().ok()?.octets());
    Some(octets)
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut words = text.split(':');
    for byte in &mut mac {
        *byte = u8::from_str_radix(words.next()?, 16).ok()?;
    }
    Some(mac)
}

/// `SYN,ACK`, `ALL` or `NONE`.
fn flags(text: &str) -> Option<u8> {
    const NAMES: [&str; 6] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"];
    match text {
        "ALL" => return Some(0x3f),
        "NONE" => return Some(0),
        _ => {}
    }
    text.split(',').try_fold(0, |sum, name| {
        let bit = NAMES.iter().position(|known| *known == name)?;
        Some(sum | 1 << bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Placement, Scene, Wire};
    use rules::model::Family;

    #[test]
    fn a_packet_is_edited_to_pass() {
        let scene = Scene::new(Family::Ipv4, Wire::Tun, Placement::Forward);
        let mut draft = Draft::new(scene, [0; 16], [0; 16]);
        let text = "-m tcp --dport 80 ! --sport 7 --tcp-flags SYN,ACK,FIN ACK";
        of(text).iter().for_each(|craft| craft(&mut draft));
        of("-m iprange --src-range 10.0.0.1-10.0.0.1").iter().for_each(|craft| craft(&mut draft));
        assert_eq!((draft.ports, draft.flags), ((1024, 80), 0x10));
        assert_eq!(draft.source[..4], [10, 0, 0, 1]);
    }
}
