//! The packet of `nft monitor trace`, which is in the first line of each chain that it comes to:
//! `trace id 5dd2c64a ip filter input packet: iif "eth0" … ip saddr 10.0.0.1 … tcp dport 22 tcp flags == syn`.
//!
//! Source: nft(8), `nft monitor trace`; nftables `src/netlink.c`, `trace_print_packet`.

use nft::types::{self, Value};
use packet::tcp::Flags;

use super::said::{Among, Said, address, is_protocol, number, ports};
use crate::spec::word::{SpecError, Word, expected};

pub(super) fn read(words: &[Word<'_>], end: usize) -> Result<Option<Said>, SpecError> {
    let [(_, "trace"), (_, "id"), (_, id), ..] = words else { return Ok(None) };
    // Its other lines tell of rules and verdicts.
    let Some(packet) = words.iter().position(|(_, word)| *word == "packet:") else {
        return Ok(None);
    };
    let after = |phrase: &[&str]| {
        let has = |run: &&[Word<'_>]| run.iter().map(|(_, word)| word).eq(phrase.iter());
        let at = words[packet..].windows(phrase.len()).position(|run| has(&run))?;
        words.get(packet + at + phrase.len()).copied()
    };
    let chain: Vec<&str> = words[3..packet.max(3)].iter().map(|(_, word)| *word).collect();
    let among = Among::Trace { id: (*id).to_owned(), chain: chain.join(" ") };
    let mut said = Said { among, ..Said::default() };
    for (ours, theirs) in [("in", "iif"), ("out", "oif")] {
        said.key(ours, after(&[theirs]).map_or("", |(_, name)| name.trim_matches('"')));
    }
    said.key("mac", after(&["ether", "saddr"]).map_or("", |(_, mac)| mac));
    let ip = if after(&["ip6", "saddr"]).is_some() { "ip6" } else { "ip" };
    let of = |side| address(after(&[ip, side]), end, "ip saddr and ip daddr");
    said.between(of("saddr")?, of("daddr")?);
    for phrase in [["ip", "ttl"], ["ip6", "hoplimit"]] {
        said.key("ttl", after(&phrase).map_or("", |(_, ttl)| ttl));
    }
    said.key("id", after(&["ip", "id"]).map_or("", |(_, id)| id));
    if let Some(tos) = tos(&after, ip) {
        said.key("tos", tos);
    }
    said.length(if ip == "ip6" { 40 } else { 0 }, number(after(&[ip, "length"]))?);
    said.protocol = protocol(&after, end)?;
    ends(&after, &mut said)?;
    Ok(Some(said))
}

/// The type of service, of which a part is in words; `None` for 0.
fn tos<'a>(after: &impl After<'a>, ip: &str) -> Option<u8> {
    const ECN: [&str; 4] = ["not-ect", "ect1", "ect0", "ce"];
    let (_, class) = after(&[ip, "dscp"])?;
    let digit = |at: usize| class.as_bytes().get(at).map_or(0, |digit| digit.wrapping_sub(b'0'));
    let dscp = match class.get(..2)? {
        "0x" => u8::from_str_radix(class.get(2..)?, 16).ok()?,
        "cs" => digit(2).checked_mul(8)?,
        "af" => digit(2).checked_mul(8)?.checked_add(digit(3).checked_mul(2)?)?,
        "ef" => 46,
        _ => return None,
    };
    let ecn = after(&[ip, "ecn"]).and_then(|(_, name)| ECN.iter().position(|ecn| *ecn == name));
    Some(dscp.checked_mul(4)? | ecn.unwrap_or(0) as u8).filter(|tos| *tos != 0)
}

/// What stands after some words in a row.
trait After<'a>: Fn(&[&str]) -> Option<Word<'a>> {}
impl<'a, F: Fn(&[&str]) -> Option<Word<'a>>> After<'a> for F {}

fn protocol<'a>(after: &impl After<'a>, end: usize) -> Result<String, SpecError> {
    let named = [["ip", "protocol"], ["ip6", "nexthdr"], ["meta", "l4proto"]];
    if let Some((column, name)) = named.iter().find_map(|phrase| after(phrase)) {
        let name = if name == "ipv6-icmp" { "icmpv6" } else { name };
        return match is_protocol(name) {
            true => Ok(name.to_owned()),
            false => Err(expected(column, format!("a protocol, found \"{name}\""))),
        };
    }
    let told = [("tcp", "dport"), ("udp", "dport"), ("icmp", "type"), ("icmpv6", "type")];
    let told = told.into_iter().find(|(name, field)| after(&[name, field]).is_some());
    told.map(|(name, _)| name.to_owned()).ok_or_else(|| expected(end, "ip protocol NAME"))
}

/// Ports, flags or type.
fn ends<'a>(after: &impl After<'a>, said: &mut Said) -> Result<(), SpecError> {
    let name = said.protocol.clone();
    said.ports = ports(after(&[&name, "sport"]), after(&[&name, "dport"]))?;
    if name == "tcp"
        && let Some((column, text)) = after(&["tcp", "flags", "=="])
    {
        said.flags(flags(column, text)?);
        said.key("win", after(&["tcp", "window"]).map_or("", |(_, window)| window));
    }
    if let Some((_, kind)) = after(&[&name, "type"]) {
        let code = after(&[&name, "code"]).and_then(|(_, code)| code.parse().ok());
        match of_nft(&name, kind) {
            Some(number) => said.icmp(number, code.unwrap_or(0)),
            None => said.icmp(kind, code.unwrap_or(0)),
        }
    }
    Ok(())
}

/// The number of a type of ICMPv6 that has a name in nft alone: neighbours, routers, groups.
fn of_nft(protocol: &str, kind: &str) -> Option<u128> {
    if protocol != "icmpv6" || packet::icmpv6::type_named(kind).is_some() {
        return None;
    }
    Value::parse(&types::ICMPV6_TYPE, kind)?.as_number()
}

/// `syn`, `syn|ack`, `0x12`.
fn flags(column: usize, text: &str) -> Result<Flags, SpecError> {
    if let Some(bits) = text.strip_prefix("0x").and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
        return Ok(Flags(bits));
    }
    let flag = |name: &str| Flags::NAMES.iter().find(|(_, known)| *known == name);
    let bits = text.split(['|', ',']).try_fold(0, |bits, name| Some(bits | flag(name)?.0.0));
    bits.map(Flags).ok_or_else(|| expected(column, format!("TCP flags, found \"{text}\"")))
}
