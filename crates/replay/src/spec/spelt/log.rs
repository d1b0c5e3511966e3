//! The kernel's log of `-j LOG`: `[UFW BLOCK] IN=eth0 OUT= MAC=… SRC=… DST=… LEN=60 … PROTO=TCP SPT=1 DPT=2 … SYN`.
//!
//! A packet with an interface for input alone is taken to be addressed to the host: a rule in PREROUTING would say no
//! more of one that is forwarded.
//!
//! Source: `net/netfilter/nf_log_syslog.c`.

use packet::tcp::Flags;

use super::{Said, address, is_protocol, number, ports, read_as, value_of};
use crate::spec::{SpecError, Word, expected};

/// Flags as they are printed there.
const FLAGS: [(&str, u8); 8] = [
    ("CWR", 0x80),
    ("ECE", 0x40),
    ("URG", 0x20),
    ("ACK", 0x10),
    ("PSH", 0x08),
    ("RST", 0x04),
    ("SYN", 0x02),
    ("FIN", 0x01),
];

pub(super) fn read(words: &[Word<'_>], end: usize) -> Result<Option<Said>, SpecError> {
    let Some(start) = words.iter().position(|(_, word)| word.starts_with("IN=")) else {
        return Ok(None);
    };
    let words = &words[start..];
    // An error that a host sends quotes a packet, in brackets.
    let quote = words.iter().position(|(_, word)| word.starts_with("[SRC="));
    let words = &words[..quote.unwrap_or(words.len())];
    let mut said = Said::default();
    interfaces(words, &mut said);
    if words.iter().any(|(_, word)| *word == "ARP") {
        said.protocol = "arp".to_owned();
        addresses(words, ["IPSRC", "IPDST"], end, &mut said)?;
        return Ok(Some(said));
    }
    if value_of(words, "OUT").is_none() || value_of(words, "SRC").is_none() {
        return Ok(None);
    }
    way(words, &mut said);
    addresses(words, ["SRC", "DST"], end, &mut said)?;
    header(words, &mut said)?;
    protocol(words, end, &mut said)?;
    Ok(Some(said))
}

fn interfaces(words: &[Word<'_>], said: &mut Said) {
    for (ours, theirs) in [("in", "IN"), ("out", "OUT")] {
        said.key(ours, value_of(words, theirs).map_or("", |(_, name)| name));
    }
    // Destination, source and type of an Ethernet header.
    let mac = value_of(words, "MAC").map(|(_, mac)| mac).filter(|mac| mac.len() == 14 * 3 - 1);
    if let Some(source) = mac.and_then(|mac| mac.get(18..35)) {
        said.key("mac", source);
    }
    said.key("mark", value_of(words, "MARK").map_or("", |(_, mark)| mark));
}

/// Which way it is on, by the interfaces that it has there.
fn way(words: &[Word<'_>], said: &mut Said) {
    let has = |key| value_of(words, key).is_some_and(|(_, name)| !name.is_empty());
    match (has("IN"), has("OUT")) {
        (true, true) => said.key("path", "forward"),
        (true, false) => said.key("path", "input"),
        (false, true) => said.key("path", "output"),
        (false, false) => {}
    }
}

fn addresses(
    words: &[Word<'_>],
    keys: [&str; 2],
    end: usize,
    said: &mut Said,
) -> Result<(), SpecError> {
    let of = |key| address(value_of(words, key), end, &format!("{key}=ADDRESS"));
    said.between(of(keys[0])?, of(keys[1])?);
    Ok(())
}

fn header(words: &[Word<'_>], said: &mut Said) -> Result<(), SpecError> {
    let number = |key| number::<u32>(value_of(words, key));
    let hex = |key: &str| {
        let (_, text) = value_of(words, key)?;
        u8::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    said.len = number("LEN")?.map(|len| len as usize);
    for key in ["TTL", "HOPLIMIT"] {
        if let Some(ttl) = number(key)? {
            said.key("ttl", ttl);
        }
    }
    let tos = match number("TC")? {
        Some(class) => class as u8,
        None => hex("TOS").unwrap_or(0) | hex("PREC").unwrap_or(0),
    };
    if tos != 0 {
        said.key("tos", tos);
    }
    let more = words.iter().any(|(_, word)| *word == "MF");
    let units = words.iter().find_map(|(column, word)| Some((column, word.strip_prefix("FRAG:")?)));
    let offset = match units {
        Some((column, units)) => 8 * read_as::<u32>(column + 5, units, "an offset")?,
        None => 0,
    };
    if more || offset > 0 {
        said.key("frag", format_args!("{offset}{}", if more { "+" } else { "" }));
    }
    Ok(())
}

fn protocol(words: &[Word<'_>], end: usize, said: &mut Said) -> Result<(), SpecError> {
    let (column, name) = value_of(words, "PROTO").ok_or_else(|| expected(end, "PROTO=PROTOCOL"))?;
    let lower = name.to_ascii_lowercase();
    if !is_protocol(&lower) {
        return Err(expected(column, format!("a protocol, found \"{name}\"")));
    }
    said.protocol = lower;
    said.ports = ports(value_of(words, "SPT"), value_of(words, "DPT"))?;
    match &*said.protocol {
        "tcp" => {
            let flag = |(_, word): &Word<'_>| FLAGS.iter().find(|(name, _)| name == word);
            let bits = words.iter().filter_map(flag).fold(0, |bits, (_, bit)| bits | bit);
            said.flags(Flags(bits));
        }
        "icmp" | "icmpv6" => {
            let number = |key| number::<u8>(value_of(words, key));
            if let Some(kind) = number("TYPE")? {
                said.icmp(kind, number("CODE")?.unwrap_or(0));
            }
        }
        _ => {}
    }
    Ok(())
}
