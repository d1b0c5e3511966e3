//! A match or a target of one family in another's words.
//!
//! Source: the manual pages of the four tools; both sides of each pair were measured to match the same packets.

use super::draft::{Draft, prefix};
use super::piece::{Piece, pieces};
use crate::ext::{MatchUse, TargetUse, find_match, find_target};
use crate::family::Family;

/// A match in the other family's words.
pub(super) fn one_match(
    from: Family,
    to: Family,
    used: &MatchUse,
    draft: &mut Draft,
) -> Result<(), String> {
    let name = &*used.name;
    if find_match(name, from).is_none() {
        return Err(format!("-m {name}, which is not known"));
    }
    let pieces = pieces(|to| used.body.print(to));
    if from.is_ip() && to.is_ip() {
        return match_ip_to_ip(name, &pieces, draft);
    }
    if name == "comment" {
        draft.notes.push("a comment".to_owned());
        return Ok(());
    }
    for piece in &pieces {
        let (bang, value) = (piece.bang(), piece.value());
        let text = match (to, name, &*piece.name) {
            (Family::Bridge, _, _) => match_to_bridge(from, name, piece),
            (Family::Arp, "arp", option) => {
                arp_option(option).map(|o| format!("{bang}{o} {value}"))
            }
            (_, "mark", "mark") if !value.starts_with('/') => {
                Some(format!("-m mark {bang}--mark {value}"))
            }
            (_, "limit", _) => Some(limit(&pieces, piece)),
            (_, "pkttype", _) if matches!(value, "broadcast" | "multicast") => {
                Some(format!("-m pkttype {bang}--pkt-type {value}"))
            }
            (_, "ip" | "ip6", option) => match_to_ip(
                to,
                option.trim_start_matches("ip6-").trim_start_matches("ip-"),
                piece,
                &pieces,
            ),
            _ => None,
        };
        draft.test(text.ok_or_else(|| format!("{} --{}", used.name, piece.name))?);
    }
    if pieces.is_empty() && !matches!(name, "tcp" | "udp") {
        return Err(format!("-m {name}"));
    }
    Ok(())
}

/// Rate and burst together, once.
fn limit(all: &[Piece], piece: &Piece) -> String {
    if all.first() != Some(piece) {
        return String::new();
    }
    let words = all.iter().map(|piece| format!("--{} {}", piece.name, piece.value()));
    format!("-m limit {}", words.collect::<Vec<_>>().join(" "))
}

fn arp_option(option: &str) -> Option<&'static str> {
    Some(match option {
        "arp-op" => "--opcode",
        "arp-ptype" => "--proto-type",
        "arp-htype" => "--h-type",
        "arp-ip-src" => "-s",
        "arp-ip-dst" => "-d",
        "arp-mac-src" => "--src-mac",
        "arp-mac-dst" => "--dst-mac",
        _ => return None,
    })
}

fn match_ip_to_ip(name: &str, pieces: &[Piece], draft: &mut Draft) -> Result<(), String> {
    let other = match name {
        "ttl" => "hl",
        "hl" => "ttl",
        // Sets hold addresses of one family.
        "set" | "icmp" | "icmp6" => return Err(format!("-m {name}")),
        same => same,
    };
    let words = pieces.iter().map(|piece| {
        let option = match (name, other) {
            ("ttl", "hl") | ("hl", "ttl") => piece.name.replacen(name, other, 1),
            _ => piece.name.clone(),
        };
        let values: Vec<String> = piece.values.iter().map(|value| quoted(value)).collect();
        format!("{}--{option} {}", piece.bang(), values.join(" "))
    });
    draft.test(format!("-m {other} {}", words.collect::<Vec<_>>().join(" ")));
    Ok(())
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

fn match_to_bridge(from: Family, name: &str, piece: &Piece) -> Option<String> {
    let (bang, value, prefix) = (piece.bang(), piece.value(), prefix(from));
    Some(match (name, &*piece.name) {
        ("tcp" | "udp" | "sctp" | "dccp", "sport" | "dport") => {
            format!("{bang}--{prefix}-{} {value}", piece.name)
        }
        ("icmp", "icmp-type") if value != "any" => format!("{bang}--ip-icmp-type {value}"),
        ("icmp6", "icmpv6-type") => format!("{bang}--ip6-icmp-type {value}"),
        ("mark", "mark") => format!("{bang}--mark {value}"),
        ("mac", "mac-source") => format!("{bang}-s {value}"),
        ("pkttype", "pkt-type") if matches!(value, "broadcast" | "multicast") => {
            format!("{bang}--pkttype-type {value}")
        }
        ("limit", "limit" | "limit-burst") => format!("--{} {value}", piece.name),
        ("tos", "tos") => {
            let tos = value.strip_suffix("/0xff")?;
            let option = if from == Family::Ipv6 { "ip6-tclass" } else { "ip-tos" };
            format!("{bang}--{option} {tos}")
        }
        _ => return None,
    })
}

fn match_to_ip(to: Family, option: &str, piece: &Piece, all: &[Piece]) -> Option<String> {
    let (bang, value) = (piece.bang(), piece.value());
    let protocol = all.iter().find(|piece| piece.name.ends_with("-proto"));
    let protocol = protocol.map(Piece::value).unwrap_or_default();
    Some(match option {
        "src" => format!("{bang}-s {value}"),
        "dst" => format!("{bang}-d {value}"),
        "proto" => format!("{bang}-p {value}"),
        "tos" | "tclass" => format!("-m tos {bang}--tos {value}/0xff"),
        "sport" | "dport" if matches!(protocol, "tcp" | "udp" | "sctp" | "dccp") => {
            format!("-m {protocol} {bang}--{option} {value}")
        }
        "icmp-type" if to == Family::Ipv4 => format!("-m icmp {bang}--icmp-type {value}"),
        "icmp-type" => format!("-m icmp6 {bang}--icmpv6-type {value}"),
        _ => return None,
    })
}

/// A target in the other family's words.
pub(super) fn target(from: Family, to: Family, used: &TargetUse) -> Result<String, String> {
    if find_target(&used.name, from).is_none() {
        return Err(format!("-j {}, which is not known", used.name));
    }
    let pieces = pieces(|to| used.body.print(to));
    let both_ip = from.is_ip() && to.is_ip();
    let translated = match (to, &*used.name) {
        (_, name) if both_ip => target_ip_to_ip(name, &pieces),
        (Family::Bridge, "MARK") => pieces.first().and_then(mark_to_bridge),
        (_, "mark") => mark_from_bridge(to, &pieces),
        _ => None,
    };
    translated.ok_or_else(|| format!("-j {}", used.name))
}

fn target_ip_to_ip(name: &str, pieces: &[Piece]) -> Option<String> {
    let options = |rename: &dyn Fn(&str) -> String| {
        let words = pieces.iter().map(|piece| {
            let value = Some(piece.value()).filter(|value| !value.is_empty());
            let value = value.map(quoted).unwrap_or_default();
            format!("{}--{} {value}", piece.bang(), rename(&piece.name))
        });
        words.collect::<Vec<_>>().join(" ")
    };
    Some(match name {
        "TTL" => format!("-j HL {}", options(&|option| option.replacen("ttl", "hl", 1))),
        "HL" => format!("-j TTL {}", options(&|option| option.replacen("hl", "ttl", 1))),
        "REJECT" => {
            let with = pieces.first().map(Piece::value).unwrap_or_default();
            format!("-j REJECT --reject-with {}", reject(with)?)
        }
        // Sets hold addresses of one family.
        "SET" => return None,
        _ => format!("-j {name} {}", options(&str::to_owned)),
    })
}

fn mark_to_bridge(piece: &Piece) -> Option<String> {
    let hex = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let (bits, mask) = match (&*piece.name, piece.value().split_once('/')) {
        ("set-xmark", Some((bits, mask))) => (hex(bits)?, hex(mask)?),
        ("set-mark", _) => (hex(piece.value())?, u32::MAX),
        ("or-mark", _) => (hex(piece.value())?, hex(piece.value())?),
        ("and-mark", _) => (0, !hex(piece.value())?),
        _ => return None,
    };
    let mark = match (bits, mask) {
        (bits, u32::MAX) => format!("--mark-set {bits:#x}"),
        (bits, 0) => format!("--mark-xor {bits:#x}"),
        (0, mask) => format!("--mark-and {:#x}", !mask),
        (bits, mask) if bits == mask => format!("--mark-or {bits:#x}"),
        _ => return None,
    };
    Some(format!("-j mark {mark} --mark-target CONTINUE"))
}

/// Other families' MARK always goes on to the next rule.
fn mark_from_bridge(to: Family, pieces: &[Piece]) -> Option<String> {
    if !pieces.iter().any(|piece| piece.name == "mark-target" && piece.value() == "CONTINUE") {
        return None;
    }
    let piece = pieces.first()?;
    let option = match (&*piece.name, to) {
        ("mark-set", _) => "set-mark",
        ("mark-or", _) => "or-mark",
        ("mark-and", _) => "and-mark",
        ("mark-xor", to) if to.is_ip() => "xor-mark",
        _ => return None,
    };
    Some(format!("-j MARK --{option} {}", piece.value()))
}

/// The answer of the other family that says the same.
fn reject(with: &str) -> Option<&'static str> {
    const PAIRS: [(&str, &str); 4] = [
        ("icmp-port-unreachable", "icmp6-port-unreachable"),
        ("icmp-net-unreachable", "icmp6-no-route"),
        ("icmp-host-unreachable", "icmp6-addr-unreachable"),
        ("icmp-admin-prohibited", "icmp6-adm-prohibited"),
    ];
    if with == "tcp-reset" {
        return Some("tcp-reset");
    }
    PAIRS.iter().find_map(|(v4, v6)| match with {
        _ if with == *v4 => Some(*v6),
        _ if with == *v6 => Some(*v4),
        _ => None,
    })
}
