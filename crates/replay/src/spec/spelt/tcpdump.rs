//! A line of tcpdump: `12:00:01.5 eth0  In  IP 10.0.0.1.51200 > 10.0.0.2.22: Flags [S], seq 1, …`, also with `-e` and
//! `-v`, whose second line belongs to the first.
//!
//! Names for addresses are not looked up: `tcpdump -n` prints none.
//!
//! Source: tcpdump(1), "OUTPUT FORMAT".

use std::net::IpAddr;

use packet::tcp::Flags;
use pktio::Timestamp;
use rules::{port_number, protocol_number};

use super::said::{Among, Captured, Said, is_protocol, read_as};
use crate::spec::contents::query_len;
use crate::spec::word::{SpecError, Word, expected};
use conntrack::SECOND;

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
const ICMP: [(&str, &str); 13] = [
    ("echo request", "echo-request"),
    ("echo reply", "echo-reply"),
    ("time exceeded in-transit", "time-exceeded"),
    ("router advertisement", "router-advertisement"),
    ("router solicitation", "router-solicitation"),
    ("neighbor advertisement", "neighbour-advertisement"),
    ("neighbor solicitation", "neighbour-solicitation"),
    ("packet too big", "packet-too-big"),
    ("redirect", "redirect"),
    ("multicast listener query", "130"),
    ("multicast listener report v2", "143"),
    ("multicast listener report", "131"),
    ("multicast listener done", "132"),
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
    let time = time(&words[..start]);
    let sequence = sequence(rest).filter(|_| said.protocol == "tcp");
    said.among = Among::Capture(Captured { time, rest: phrase(rest), sequence });
    contents(rest, &mut said);
    Ok(Some(said))
}

/// `eth0 In`, as tcpdump says of `-i any`; and the sender's hardware address, with `-e`.
fn interface(words: &[Word<'_>], said: &mut Said) {
    for pair in words.windows(2) {
        match (pair[0].1, pair[1].1) {
            // To the host, to all, to a group.
            (name, "In" | "B" | "M") => said.key("in", name),
            (name, "Out") => said.key("out", name),
            (mac, ">") if mac.split(':').count() == 6 => said.key("mac", mac),
            _ => {}
        }
    }
}

/// The time of a line, in nanoseconds from midnight or 1970, as -tt and -tttt or no option have it.
fn time(words: &[Word<'_>]) -> Option<u64> {
    words.iter().enumerate().find_map(|(at, (_, word))| {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let date = before.and_then(|(_, date)| midnight(date)).unwrap_or(0);
        let (whole, part) = word.split_once('.').unwrap_or((word, "0"));
        let part: u64 = format!("{part:0<9}").get(..9)?.parse().ok()?;
        let fields: Vec<u64> = whole.split(':').map(|n| n.parse().ok()).collect::<Option<_>>()?;
        let seconds = match fields[..] {
            [hour, minute, second] => {
                (hour.checked_mul(60)?.checked_add(minute)?).checked_mul(60)?.checked_add(second)?
            }
            [seconds] if word.contains('.') => seconds,
            _ => return None,
        };
        seconds.checked_mul(SECOND)?.checked_add(part)?.checked_add(date)
    })
}

/// `seq 1:22,`, or `seq 22,` of what has no bytes.
fn sequence(words: &[Word<'_>]) -> Option<[u32; 2]> {
    let at = words.iter().position(|(_, word)| *word == "seq")?;
    let (_, numbers) = words.get(at + 1)?;
    let (start, end) = {
        let numbers = numbers.trim_end_matches(',');
        numbers.split_once(':').unwrap_or((numbers, numbers))
    };
    Some([start.parse().ok()?, end.parse().ok()?])
}

/// When a day begins that is written as 2026-11-26, in nanoseconds from 1970.
fn midnight(date: &str) -> Option<u64> {
    let time = Timestamp::parse_rfc3339(&format!("{date}T00:00:00Z"))?;
    u64::try_from(time.as_nanos()).ok()
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

/// Reads the packet's contents from the line.
fn contents(words: &[Word<'_>], said: &mut Said) {
    let text = phrase(words);
    // The line does not show all of what stands before the upper layer.
    if text.starts_with("HBH") {
        return;
    }
    let after = |name: &str| {
        let (_, rest) = text.split_once(name)?;
        let end = rest.find([',', ' ', ')', ':']).unwrap_or(rest.len());
        rest.get(..end)
    };
    let length = after("length ").and_then(|length| length.parse::<u16>().ok());
    match &*said.protocol {
        "tcp" => {
            let options = tcp_options(&text);
            // Numbers after the first ones of a connection count from those.
            if said.message.split(',').any(|flag| flag == "syn") {
                said.key("seq", after("seq ").unwrap_or_default());
                said.key("ack", after(" ack ").unwrap_or_default());
            }
            said.key("win", after("win ").unwrap_or_default());
            if let Some((list, bytes)) = &options {
                said.key("options", list);
                let of_header = bytes.next_multiple_of(4);
                said.length(said.header_len() + of_header, length);
            }
        }
        "udp" => udp_contents(words, &text, length, said),
        "icmp" | "icmpv6" => said.length(said.ip_len(), length),
        "esp" | "ah" if !text.contains(": ") => {
            said.key("spi", after("spi=").unwrap_or_default());
            said.length(said.ip_len(), length);
        }
        _ => {}
    }
}

/// `options [mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 7]` as a packet spec has them, and their bytes. A line that says
/// the length lists all options.
fn tcp_options(text: &str) -> Option<(String, usize)> {
    let Some((_, list)) = text.split_once("options [") else {
        return text.contains("length ").then(|| ("none".to_owned(), 0));
    };
    let (list, _) = list.split_once(']')?;
    let (mut ours, mut bytes) = (Vec::new(), 0);
    for option in list.split(',') {
        let words: Vec<&str> = option.split(' ').collect();
        let (word, len) = match words[..] {
            ["mss", mss] => (format!("mss:{mss}"), 4),
            ["wscale", scale] => (format!("wscale:{scale}"), 3),
            ["sackOK"] => ("sack".to_owned(), 2),
            ["TS", "val", value, "ecr", echo] => (format!("ts:{value}:{echo}"), 10),
            ["nop"] => ("nop".to_owned(), 1),
            ["eol"] => ("eol".to_owned(), 1),
            _ => return None,
        };
        ours.push(word);
        bytes += len;
    }
    Some((ours.join(","), bytes))
}

/// The length of a datagram, and what it asks of a name server.
fn udp_contents(words: &[Word<'_>], text: &str, length: Option<u16>, said: &mut Said) {
    let in_brackets = |word: &str| word.strip_prefix('(')?.strip_suffix(')')?.parse::<u16>().ok();
    if text.starts_with("UDP, length ") {
        said.length(said.header_len(), length);
        return;
    }
    // `12345+ A? example.org. (29)`.
    let [(_, id), (_, asked), (_, name), (_, size)] = words else { return };
    // Another flag than that of recursion stands after it, or before the question.
    let is_query = id.strip_suffix('+').is_some_and(|id| id.parse::<u16>().is_ok());
    let Some(size) = in_brackets(size).filter(|_| is_query) else { return };
    said.length(said.header_len(), Some(size));
    let size = usize::from(size);
    let Some(record) = asked.strip_suffix('?') else { return };
    let query = query_len(name, record);
    let is_whole = said.len.map(usize::from) == Some(said.header_len() + size);
    let is_plain = !name.contains('\\') && is_whole;
    if query == Some(size) && is_plain {
        said.key("dns", format_args!("{name} {record}"));
    }
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
    let (id, offset) = (after(" id ").unwrap_or_default(), after("offset ").unwrap_or("0"));
    said.key("id", id);
    let flags = verbose.split_once("flags [").and_then(|(_, rest)| rest.split(']').next());
    let flags = flags.unwrap_or_default();
    if flags.contains("DF") {
        said.key("df", "yes");
    }
    if offset != "0" || flags.contains('+') {
        let more = if flags.contains('+') { "+" } else { "" };
        said.key("frag", format_args!("{offset}{more}"));
    }
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
    // `[|tcp]`, where no more was captured.
    let bare = first.trim_start_matches("[|");
    let named = told.unwrap_or_else(|| bare.split(['(', ',', ']']).next().unwrap_or_default());
    let is_letters = !first.is_empty() && first.chars().all(|c| FLAGS.iter().any(|(l, _)| *l == c));
    if is_letters && said.ports.is_some() {
        let column = words.first().map_or(1, |(column, _)| *column);
        let what = format!("Flags [{first}], as tcpdump prints them since 4.0, found \"{first}\"");
        return Err(expected(column, what));
    }
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
