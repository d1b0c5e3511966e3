//! The kernel's log of `-j LOG`: `[UFW BLOCK] IN=eth0 OUT= MAC=… SRC=… DST=… LEN=60 … PROTO=TCP SPT=1 DPT=2 … SYN`.
//!
//! A packet with an interface for input alone is taken to be addressed to the host, unless the prefix before it belongs
//! to rules in PREROUTING, which log no output interface of a forwarded packet either (`crate::why`).
//!
//! Lines of the target TRACE, which writes one for each rule, belong to one packet.
//!
//! Source: `net/netfilter/nf_log_syslog.c`; `net/ipv4/netfilter/ip_tables.c`, `trace_packet`.

use packet::tcp::Flags;

use super::said::{Among, Said, address, is_protocol, number, ports, read_as, value_of};
use crate::logged::Prefix;
use crate::spec::word::{SpecError, Word, expected, split};

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
    let Some((start, within)) = begins(words) else { return Ok(None) };
    let traced = traced(&words[..start]);
    let mut words = words[start..].to_vec();
    words[0] = (words[0].0 + within, &words[0].1[within..]);
    let words = &*words;
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
    // In PREROUTING nothing says yet where it goes.
    if traced.is_none_or(|place| !place.contains(":PREROUTING:")) {
        way(words, &mut said);
    }
    if let Some(place) = traced {
        said.among = Among::Trace { id: identity(words), chain: place.to_owned() };
    }
    addresses(words, ["SRC", "DST"], end, &mut said)?;
    header(words, &mut said)?;
    protocol(words, end, &mut said)?;
    Ok(Some(said))
}

/// Where in the rules a packet is, of a line of the target TRACE: `TRACE: filter:INPUT:rule:3`.
fn traced<'a>(before: &[Word<'a>]) -> Option<&'a str> {
    match before {
        [.., (_, "TRACE:"), (_, place)] => Some(place),
        _ => None,
    }
}

/// What tells a packet from others, on its whole way. Its destination is not of it: DNAT and REDIRECT change that.
fn identity(words: &[Word<'_>]) -> String {
    let of = |key| value_of(words, key).map_or("", |(_, value)| value);
    const KEYS: [&str; 11] =
        ["SRC", "PROTO", "LEN", "ID", "FLOWLBL", "SPT", "SEQ", "ACK", "WINDOW", "TYPE", "CODE"];
    KEYS.map(of).join(" ")
}

/// Where the packet begins: in which word, and where in it, as a prefix need not end with a blank.
fn begins(words: &[Word<'_>]) -> Option<(usize, usize)> {
    let plain = words.iter().position(|(_, word)| word.starts_with("IN=")).map(|at| (at, 0));
    plain.or_else(|| {
        let after = |at: usize| words.get(at + 1).is_some_and(|(_, next)| next.starts_with("OUT="));
        words.iter().enumerate().find_map(|(at, (_, word))| {
            let within = word.find("IN=").filter(|_| after(at))?;
            Some((at, within))
        })
    })
}

/// What stands before the packet: the prefix, after what syslog, journald or dmesg put before it where that is known.
/// `None` if nothing does: then it may have been cut off.
pub(super) fn prefix(text: &str) -> Option<Prefix> {
    let words = split(text);
    let (at, within) = begins(&words)?;
    let before = text.get(..words[at].0 - 1 + within)?;
    let of_kernel = before.split_once("kernel: ").map(|(_, rest)| rest);
    let mut rest = of_kernel.unwrap_or(before);
    let mut is_whole = of_kernel.is_some();
    if let Some((level, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        && level.parse::<u8>().is_ok()
    {
        (rest, is_whole) = (after, true);
    }
    // `[   12.500000] `, or a date.
    if let Some((time, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once("] "))
        && is_time(time)
    {
        (rest, is_whole) = (after, true);
    }
    (is_whole || !rest.trim().is_empty()).then(|| Prefix { text: rest.to_owned(), is_whole })
}

/// Whether the kernel's time stands there, `   12.500000`, or that of `dmesg -T`, `Thu Nov 26 10:11:12 2026`: rules have
/// prefixes in brackets, too.
fn is_time(text: &str) -> bool {
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words[..] {
        [stamp] => stamp
            .split_once('.')
            .is_some_and(|(whole, part)| are_digits(whole) && are_digits(part) && part.len() == 6),
        [_, _, day, clock, year] => {
            are_digits(day)
                && are_digits(year)
                && clock.split(':').count() == 3
                && clock.split(':').all(are_digits)
        }
        _ => false,
    }
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
    // A number of IPv6, and one of ICMP that IPv4's stands before.
    if value_of(words, "HOPLIMIT").is_none() {
        said.key("id", value_of(words, "ID").map_or("", |(_, id)| id));
    }
    said.key("label", value_of(words, "FLOWLBL").map_or("", |(_, label)| label));
    if words.iter().any(|(_, word)| *word == "DF") {
        said.key("df", "yes");
    }
    said.key("mark", value_of(words, "MARK").map_or("", |(_, mark)| mark));
}

/// Which way it is on, by the interfaces that it has there.
fn way(words: &[Word<'_>], said: &mut Said) {
    let has = |key| value_of(words, key).is_some_and(|(_, name)| !name.is_empty());
    let by_loopback = value_of(words, "OUT").is_some_and(|(_, name)| name == "lo");
    match (has("IN"), has("OUT")) {
        (true, true) => said.key("path", "forward"),
        (true, false) => said.key("path", "input"),
        // What goes out by `lo` comes back in, as a SPEC with `out=lo` alone does.
        (false, true) if !by_loopback => said.key("path", "output"),
        (false, _) => {}
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
    let byte = |key| number::<u8>(value_of(words, key));
    let hex = |key: &str| {
        let (_, text) = value_of(words, key)?;
        u8::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    said.len = number::<u32>(value_of(words, "LEN"))?.and_then(|len| len.try_into().ok());
    // What is forwarded has lost one by the time that a rule sees it, unless a bridge passes it on.
    let has = |key| value_of(words, key).is_some_and(|(_, name)| !name.is_empty());
    let is_lowered = has("IN") && has("OUT") && !has("PHYSIN") && !has("PHYSOUT");
    for key in ["TTL", "HOPLIMIT"] {
        if let Some(ttl) = byte(key)? {
            said.key("ttl", if is_lowered { ttl.saturating_add(1) } else { ttl });
        }
    }
    let tos = match byte("TC")? {
        Some(class) => class,
        None => hex("TOS").unwrap_or(0) | hex("PREC").unwrap_or(0),
    };
    if tos != 0 {
        said.key("tos", tos);
    }
    let more = words.iter().any(|(_, word)| *word == "MF");
    let units = words.iter().find_map(|(column, word)| Some((column, word.strip_prefix("FRAG:")?)));
    let offset = match units {
        Some((column, units)) => 8 * u32::from(read_as::<u16>(column + 5, units, "an offset")?),
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
            for (ours, theirs) in [("seq", "SEQ"), ("ack", "ACK"), ("win", "WINDOW")] {
                said.key(ours, value_of(words, theirs).map_or("", |(_, number)| number));
            }
            // `OPT (020405B4)`, with --log-tcp-options.
            let option = words.windows(2).find(|pair| pair[0].1 == "OPT").map(|pair| pair[1].1);
            if let Some(hex) = option.and_then(|word| word.strip_prefix('(')?.strip_suffix(')')) {
                said.key("options", format_args!("0x{hex}"));
            }
        }
        "esp" | "ah" => said.key("spi", value_of(words, "SPI").map_or("", |(_, spi)| spi)),
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
