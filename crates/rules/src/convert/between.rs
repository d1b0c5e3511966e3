//! What one family's tests and targets are in another's words.
//!
//! Source: the manual pages of the four tools; both sides of each pair were measured to match the same packets.

use super::piece::{Piece, pieces};
use crate::ext::{MatchUse, TargetUse, value};
use crate::family::ethertype_name;
use crate::model::{
    Action, Chain, Family, Field, FieldTest, Header, IfaceTest, MaskedAddr, Rule, Table,
};

/// A rule in the other family's words, in any order.
#[derive(Debug, Default)]
pub(super) struct Draft {
    tests: Vec<String>,
    verdict: String,
    /// What it does not say any more, though it matches the same packets.
    pub(super) notes: Vec<String>,
}

impl Draft {
    pub(super) fn words(&self) -> String {
        format!("{} {}", self.tests.join(" "), self.verdict)
    }

    fn test(&mut self, text: impl Into<String>) {
        self.tests.push(text.into());
    }
}

/// The EtherType of a family's packets, as bridge rules spell it.
pub(super) fn ethertype(family: Family) -> Option<&'static str> {
    match family {
        Family::Ipv4 => Some("IPv4"),
        Family::Ipv6 => Some("IPv6"),
        Family::Arp => Some("ARP"),
        Family::Bridge => None,
    }
}

/// The prefix of a bridge's options on packets of a family.
fn prefix(family: Family) -> &'static str {
    if family == Family::Ipv6 { "ip6" } else { "ip" }
}

/// The chain that a rule jumps or goes to.
pub(super) fn jump<'t>(table: &'t Table, rule: &Rule) -> Option<&'t Chain> {
    match rule.action {
        Action::Jump(to) | Action::Goto(to) => table.chains.get(to as usize),
        _ => None,
    }
}

/// Translates a rule, or says what cannot be.
pub(super) fn translate(
    (from, to): (Family, Family),
    (table, rule): (&Table, &Rule),
) -> Result<Draft, String> {
    let mut draft = Draft::default();
    let none = Header::default();
    let header = rule.header.as_deref().unwrap_or(&none);
    for (option, test) in [("-i", &header.input), ("-o", &header.output)] {
        draft.tests.extend(test.as_ref().map(|test| iface(option, test)));
    }
    match (from, to) {
        _ if from.is_ip() && to.is_ip() => ip_to_ip(header, &mut draft)?,
        (_, Family::Bridge) if from.is_ip() => ip_to_bridge(from, header, &mut draft)?,
        (Family::Bridge, _) if to.is_ip() => bridge_to_ip(to, header, &mut draft)?,
        (Family::Arp, Family::Bridge) => arp_to_bridge(header, &mut draft)?,
        (Family::Bridge, Family::Arp) => bridge_to_arp(header, &mut draft)?,
        _ => return Err(format!("{} rules see no packets of {}", to.tool(), from.tool())),
    }
    for used in &rule.matches {
        one_match((from, to), used, &mut draft)?;
    }
    draft.verdict = match &rule.action {
        Action::None => match to.dialect().no_verdict {
            Some(verdict) => format!("-j {verdict}"),
            None => String::new(),
        },
        Action::Accept => "-j ACCEPT".to_owned(),
        Action::Drop => "-j DROP".to_owned(),
        Action::Return => "-j RETURN".to_owned(),
        Action::Jump(_) | Action::Goto(_) => {
            let word = if matches!(rule.action, Action::Goto(_)) { "-g" } else { "-j" };
            if word == "-g" && !(from.is_ip() && to.is_ip()) {
                return Err("-g".to_owned());
            }
            format!("{word} {}", jump(table, rule).map_or("?", |chain| &chain.name))
        }
        Action::Target(used) => target((from, to), used)?,
    };
    Ok(draft)
}

fn iface(option: &str, test: &IfaceTest) -> String {
    let (bang, plus) = (bang(test.invert), if test.prefix { "+" } else { "" });
    format!("{bang}{option} {}{plus}", test.name)
}

fn bang(invert: bool) -> &'static str {
    if invert { "! " } else { "" }
}

fn address(option: &str, test: &Option<MaskedAddr>, family: Family) -> Option<String> {
    let test = test.as_ref()?;
    let text = value::short_network_text(&test.addr, &test.mask, family.addr_len());
    Some(format!("{}{option} {text}", bang(test.invert)))
}

fn ip_to_ip(header: &Header, draft: &mut Draft) -> Result<(), String> {
    if header.source.is_some() || header.destination.is_some() {
        return Err("an address of the other family".to_owned());
    }
    if header.fragment.is_some() {
        return Err("-f".to_owned());
    }
    if let Some(protocol) = header.protocol {
        if matches!(protocol.number, 1 | 58) {
            return Err("-p: each family has an ICMP of its own".to_owned());
        }
        draft.test(format!("{}-p {}", bang(protocol.invert), protocol.number));
    }
    Ok(())
}

fn ip_to_bridge(from: Family, header: &Header, draft: &mut Draft) -> Result<(), String> {
    let prefix = prefix(from);
    draft.test(format!("-p {}", ethertype(from).unwrap_or_default()));
    draft.tests.extend(address(&format!("--{prefix}-src"), &header.source, from));
    draft.tests.extend(address(&format!("--{prefix}-dst"), &header.destination, from));
    if header.fragment.is_some() {
        return Err("-f".to_owned());
    }
    if let Some(protocol) = header.protocol {
        draft.test(format!("{}--{prefix}-proto {}", bang(protocol.invert), protocol.number));
    }
    Ok(())
}

/// The EtherType of a bridge rule must be the family's own.
fn of_ethertype(to: Family, header: &Header, draft: &mut Draft) -> Result<(), String> {
    let test = header.fields.iter().find(|test| test.field == Field::EtherType);
    match test {
        None => draft.notes.push(format!("frames that are not {}", to.tool())),
        Some(test) if !test.invert && ethertype_name(test.value_u16()) == ethertype(to) => {}
        Some(_) => return Err("-p: frames of other types".to_owned()),
    }
    if header.logical_input.is_some() || header.logical_output.is_some() {
        return Err("--logical-in, --logical-out".to_owned());
    }
    Ok(())
}

fn bridge_to_ip(to: Family, header: &Header, draft: &mut Draft) -> Result<(), String> {
    of_ethertype(to, header, draft)?;
    if header.destination.is_some() {
        return Err("-d: an Ethernet destination".to_owned());
    }
    if let Some(source) = &header.source {
        if source.mask[..6] != [0xff; 6] {
            return Err("-s: a masked Ethernet address".to_owned());
        }
        let text = value::masked_mac_text(first_six(&source.addr), [0xff; 6]);
        draft.test(format!("-m mac {}--mac-source {text}", bang(source.invert)));
    }
    Ok(())
}

fn first_six(bytes: &[u8; 16]) -> [u8; 6] {
    std::array::from_fn(|i| bytes[i])
}

fn arp_to_bridge(header: &Header, draft: &mut Draft) -> Result<(), String> {
    draft.test("-p ARP");
    draft.tests.extend(address("--arp-ip-src", &header.source, Family::Arp));
    draft.tests.extend(address("--arp-ip-dst", &header.destination, Family::Arp));
    for test in &header.fields {
        let FieldTest { field, value, mask, invert } = *test;
        let whole = mask[..2] == [0xff; 2];
        let bang = bang(invert);
        match field {
            Field::SenderHardware => {
                draft.test(format!("{bang}--arp-mac-src {}", value::masked_mac_text(value, mask)));
            }
            Field::TargetHardware => {
                draft.test(format!("{bang}--arp-mac-dst {}", value::masked_mac_text(value, mask)));
            }
            Field::Operation if whole => {
                draft.test(format!("{bang}--arp-op {}", test.value_u16()));
            }
            Field::HardwareType if whole => {
                draft.test(format!("{bang}--arp-htype {}", test.value_u16()));
            }
            Field::ProtocolType if whole => {
                draft.test(format!("{bang}--arp-ptype {:#x}", test.value_u16()));
            }
            // What every rule tests: on a bridge of Ethernet no address is longer.
            Field::HardwareLen if value[0] == 6 && mask[0] == 0xff && !invert => {}
            _ => return Err("a test of lengths, or under a mask".to_owned()),
        }
    }
    Ok(())
}

fn bridge_to_arp(header: &Header, draft: &mut Draft) -> Result<(), String> {
    of_ethertype(Family::Arp, header, draft)?;
    if header.source.is_some() || header.destination.is_some() {
        return Err("-s, -d: addresses of the frame".to_owned());
    }
    draft.notes.push("hardware types other than Ethernet".to_owned());
    Ok(())
}

/// A match in the other family's words.
fn one_match(
    (from, to): (Family, Family),
    used: &MatchUse,
    draft: &mut Draft,
) -> Result<(), String> {
    let name = &*used.name;
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
fn target((from, to): (Family, Family), used: &TargetUse) -> Result<String, String> {
    let name = &*used.name;
    let pieces = pieces(|to| used.body.print(to));
    let lost = || format!("-j {name}");
    let options = |rename: &dyn Fn(&str, &str) -> (String, String)| {
        let words = pieces.iter().map(|piece| {
            let (option, value) = rename(&piece.name, piece.value());
            let value = if value.is_empty() { value } else { quoted(&value) };
            format!("{}--{option} {value}", piece.bang())
        });
        words.collect::<Vec<_>>().join(" ")
    };
    if from.is_ip() && to.is_ip() {
        let same = |option: &str, value: &str| (option.to_owned(), value.to_owned());
        return match name {
            "TTL" => {
                Ok(format!("-j HL {}", options(&|o, v| (o.replacen("ttl", "hl", 1), v.to_owned()))))
            }
            "HL" => Ok(format!(
                "-j TTL {}",
                options(&|o, v| (o.replacen("hl", "ttl", 1), v.to_owned()))
            )),
            "REJECT" => {
                let with = reject(pieces.first().map(Piece::value).unwrap_or_default());
                with.map(|with| format!("-j REJECT --reject-with {with}")).ok_or_else(lost)
            }
            "SET" => Err(lost()),
            _ => Ok(format!("-j {name} {}", options(&same))),
        };
    }
    let piece = pieces.first();
    match (to, name) {
        (Family::Bridge, "MARK") => {
            let mark = piece.and_then(mark_to_bridge).ok_or_else(lost)?;
            Ok(format!("-j mark {mark} --mark-target CONTINUE"))
        }
        (_, "mark") => {
            let continues =
                pieces.iter().any(|p| p.name == "mark-target" && p.value() == "CONTINUE");
            let mark = piece.filter(|_| continues).and_then(|piece| mark_from_bridge(to, piece));
            mark.map(|mark| format!("-j MARK {mark}")).ok_or_else(lost)
        }
        _ => Err(lost()),
    }
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
    Some(match (bits, mask) {
        (bits, u32::MAX) => format!("--mark-set {bits:#x}"),
        (bits, 0) => format!("--mark-xor {bits:#x}"),
        (0, mask) => format!("--mark-and {:#x}", !mask),
        (bits, mask) if bits == mask => format!("--mark-or {bits:#x}"),
        _ => return None,
    })
}

fn mark_from_bridge(to: Family, piece: &Piece) -> Option<String> {
    let option = match (&*piece.name, to) {
        ("mark-set", _) => "set-mark",
        ("mark-or", _) => "or-mark",
        ("mark-and", _) => "and-mark",
        ("mark-xor", to) if to.is_ip() => "xor-mark",
        _ => return None,
    };
    Some(format!("--{option} {}", piece.value()))
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
