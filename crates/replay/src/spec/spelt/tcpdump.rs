//! A line of tcpdump: `12:00:01.5 eth0  In  IP 10.0.0.1.51200 > 10.0.0.2.22: Flags [S], seq 1, …`, also with `-e` and
//! `-v`, whose second line belongs to the first.
//!
//! Names for addresses are not looked up: `tcpdump -n` prints none.
//!
//! Source: tcpdump(1), "OUTPUT FORMAT".

use std::net::IpAddr;

use packet::tcp::Flags;
use rules::{port_number, protocol_number};

use super::{Said, is_protocol, read_as};
use crate::spec::{SpecError, Word, expected};

/// Letters of TCP flags.
const FLAGS: [(char, u8); 9] = [
    ('F', 0x01),
    ('S', 0x02),
    ('R', 0x04),
    ('P', 0x08),
    ('.', 0x10),
    ('U', 0x20),
    ('E', 0x40),
    ('W', 0x80),
    // Accurate ECN, which headers here do not have.
    ('e', 0x00),
];

/// ICMP messages as they begin there, and the SPEC's words for them.
const ICMP: [(&str, &str); 9] = [
    ("echo request", "echo-request"),
    ("echo reply", "echo-reply"),
    ("time exceeded in-transit", "time-exceeded"),
    ("router advertisement", "router-advertisement"),
    ("router solicitation", "router-solicitation"),
    ("neighbor advertisement", "neighbour-advertisement"),
    ("neighbor solicitation", "neighbour-solicitation"),
    ("packet too big", "packet-too-big"),
    ("redirect", "redirect"),
];

/// Errors name an address or port before these words: the code of destination-unreachable.
const UNREACHABLE: [(&str, u8); 5] =
    [("net", 0), ("host", 1), ("protocol", 2), ("port", 3), ("need to frag", 4)];

pub(super) fn read(words: &[Word<'_>], end: usize) -> Result<Option<Said>, SpecError> {
    let is_start = |(_, word): &Word<'_>| matches!(*word, "IP" | "IP6" | "ARP," | "IPv4" | "IPv6");
    let Some(start) = words.iter().position(is_start) else { return Ok(None) };
    let mut said = Said::default();
    interface(&words[..start], &mut said);
    if words[start].1 == "ARP," {
        return arp(&words[start..], said);
    }
    let Some(arrow) = words.iter().skip(start).position(|(_, word)| *word == ">") else {
        return Ok(None);
    };
    let arrow = start + arrow;
    let verbose = phrase(&words[start + 1..arrow]);
    // With -e, the hardware addresses have an arrow of their own, before.
    let ([source], [destination, rest @ ..]) = (&words[arrow - 1..arrow], &words[arrow + 1..])
    else {
        return Err(expected(end, "SOURCE > DESTINATION"));
    };
    let (source, from) = endpoint(*source)?;
    let (destination, to) = endpoint((destination.0, destination.1.trim_end_matches(':')))?;
    said.between(source, destination);
    said.ports = from.zip(to).map(|(source, to)| [source, to]);
    from_verbose(&verbose, &mut said);
    message(rest, &verbose, &mut said)?;
    Ok(Some(said))
}

/// `eth0 In`, as tcpdump says of `-i any`; and the sender's hardware address, with `-e`.
fn interface(words: &[Word<'_>], said: &mut Said) {
    for pair in words.windows(2) {
        match (pair[0].1, pair[1].1) {
            (name, "In") => said.key("in", name),
            (name, "Out") => said.key("out", name),
            (mac, ">") if mac.split(':').count() == 6 => said.key("mac", mac),
            _ => {}
        }
    }
}

fn arp(words: &[Word<'_>], mut said: Said) -> Result<Option<Said>, SpecError> {
    let after = |name: &str| {
        let at = words.iter().position(|(_, word)| *word == name)?;
        let (column, text) = words.get(at + 1)?;
        Some((*column, text.trim_end_matches(',')))
    };
    let Some((target, sender)) = after("who-has").zip(after("tell")) else {
        let column = words.first().map_or(1, |(column, _)| *column);
        return Err(expected(column, "a question: ARP, Request who-has ADDRESS tell ADDRESS"));
    };
    said.protocol = "arp".to_owned();
    let address = |(column, text)| read_as::<IpAddr>(column, text, "an address");
    said.between(address(sender)?, address(target)?);
    Ok(Some(said))
}

/// An address and, after a dot, a port by number or name.
fn endpoint((column, text): Word<'_>) -> Result<(IpAddr, Option<u16>), SpecError> {
    if let Ok(address) = text.parse() {
        return Ok((address, None));
    }
    let read = text
        .rsplit_once('.')
        .and_then(|(address, port)| Some((address.parse().ok()?, Some(port_number(port)?))));
    let what = "an address, with a port after a dot, as tcpdump -n prints them";
    read.ok_or_else(|| expected(column, format!("{what}, found \"{text}\"")))
}

fn phrase(words: &[Word<'_>]) -> String {
    words.iter().map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

/// `(tos 0x0, ttl 64, …, proto TCP (6), length 60)`.
fn from_verbose(verbose: &str, said: &mut Said) {
    let after = |name: &str| {
        let (_, rest) = verbose.split_once(name)?;
        let end = rest.find([',', ')', ' ']).unwrap_or(rest.len());
        rest.get(..end)
    };
    if let Some(tos) = after("tos 0x").and_then(|hex| u8::from_str_radix(hex, 16).ok())
        && tos != 0
    {
        said.key("tos", tos);
    }
    said.key("ttl", after("ttl ").or_else(|| after("hlim ")).unwrap_or_default());
    said.len = after(" length ").and_then(|len| len.parse().ok());
}

/// What follows the addresses: flags, an ICMP message, or a protocol.
fn message(words: &[Word<'_>], verbose: &str, said: &mut Said) -> Result<(), SpecError> {
    // Options for each hop are no protocol.
    let words = match words {
        [(_, "HBH"), rest @ ..] => rest,
        _ => words,
    };
    let text = phrase(words);
    // What is in a tunnel may have flags, too, further on.
    if let [(_, "Flags"), (column, letters), ..] = words {
        said.protocol = "tcp".to_owned();
        said.flags(flags(*column, letters)?);
        return Ok(());
    }
    if let Some(icmp) = text.strip_prefix("ICMP6, ").or_else(|| text.strip_prefix("ICMP ")) {
        return icmp_message(words, icmp, said);
    }
    let told = verbose.split_once("proto ").or_else(|| verbose.split_once("next-header "));
    let told = told.and_then(|(_, rest)| rest.split(' ').next());
    let first = words.first().map_or("", |(_, word)| *word);
    let named = told.unwrap_or_else(|| first.split(['(', ',', ' ']).next().unwrap_or_default());
    said.protocol = match protocol(&named.to_ascii_lowercase()) {
        Some(known) => known,
        // What is in a datagram is named instead, as DNS is.
        None if said.ports.is_some() => "udp".to_owned(),
        None => {
            let column = words.first().map_or(1, |(column, _)| *column);
            return Err(expected(column, format!("a protocol, found \"{first}\"")));
        }
    };
    Ok(())
}

/// A protocol as it is named there: `GREv0`, `ip-proto-99`, or `IP` for one packet in another.
fn protocol(name: &str) -> Option<String> {
    let number = name.strip_prefix("ip-proto-").unwrap_or(name);
    let without_version = name.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix('v');
    match name {
        "ip" => Some("4".to_owned()),
        "ip6" => Some("41".to_owned()),
        _ if is_protocol(number) => Some(number.to_owned()),
        _ => without_version.filter(|name| protocol_number(name).is_some()).map(str::to_owned),
    }
}

/// `[S.],`.
fn flags(column: usize, text: &str) -> Result<Flags, SpecError> {
    let letters = text.trim_end_matches(',').trim_matches(['[', ']']);
    let bit = |letter| FLAGS.iter().find(|(known, _)| *known == letter).map(|(_, bit)| *bit);
    let bits = match letters {
        "none" => Some(0),
        _ => letters.chars().try_fold(0, |bits, letter| Some(bits | bit(letter)?)),
    };
    let wrong = || expected(column, format!("letters of TCP flags in brackets, found \"{text}\""));
    bits.map(Flags).ok_or_else(wrong)
}

fn icmp_message(words: &[Word<'_>], icmp: &str, said: &mut Said) -> Result<(), SpecError> {
    let is_v6 = said.source.is_some_and(|source| source.is_ipv6());
    said.protocol = if is_v6 { "icmpv6" } else { "icmp" }.to_owned();
    said.ports = None;
    if let Some((_, kind)) = ICMP.iter().find(|(theirs, _)| icmp.starts_with(theirs)) {
        said.icmp(kind, 0);
        return Ok(());
    }
    if let Some((before, _)) = icmp.split_once("unreachable") {
        let code = UNREACHABLE.iter().find(|(word, _)| before.contains(word));
        // The numbers of IPv6 are others.
        let code = match (is_v6, code) {
            (false, Some((_, code))) => *code,
            (true, Some(("port", _))) => 4,
            _ => 0,
        };
        said.icmp("destination-unreachable", code);
        return Ok(());
    }
    let column = words.first().map_or(1, |(column, _)| *column);
    Err(expected(column, format!("an ICMP message that is known here, found \"{icmp}\"")))
}
