//! [`Codec`]: an extension's name and revision, and its data as bytes and as the options of its text.
//!
//! Contract: what a codec does not know, a bit or an option, is an error. Fields that only the kernel uses are 0.
//! Source: the structs of `linux/netfilter/xt_*.h`, `linux/netfilter_ipv4/ipt_*.h` and their filling by iptables 1.8.

use rules::model::Family;

use super::Width;
use super::arp;
use super::bytes::{byte, get, put, put_u16, put_u32, text, u16_at, u32_at};
use super::options::{Options, bit_names, bits, number, range, range_text, say, small};
use super::tracked;

/// Whether it is `-m` or `-j`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Match,
    Target,
}

/// How one extension's data is written and read.
pub(super) struct Codec {
    /// In the text of rules.
    pub(super) name: &'static str,
    /// In the kernel.
    pub(super) kernel: &'static str,
    pub(super) revision: u8,
    pub(super) kind: Kind,
    /// Its family; none: iptables and ip6tables both.
    pub(super) family: Option<Family>,
    /// Bytes of its struct, for programs of 64 bits and of 32.
    len: [usize; 2],
    /// From options into bytes that are 0.
    pub(super) encode: fn(&mut Options, &mut [u8]) -> Result<(), String>,
    /// Into options; none if the data is that of another name.
    pub(super) decode: fn(&[u8]) -> Result<Option<String>, String>,
}

const fn matched(
    name: &'static str,
    len: usize,
    encode: fn(&mut Options, &mut [u8]) -> Result<(), String>,
    decode: fn(&[u8]) -> Result<Option<String>, String>,
) -> Codec {
    let (kind, len) = (Kind::Match, [len, len]);
    Codec { name, kernel: name, revision: 0, kind, family: None, len, encode, decode }
}

impl Codec {
    const fn target(self) -> Self {
        Self { kind: Kind::Target, ..self }
    }

    const fn of(self, family: Family) -> Self {
        Self { family: Some(family), ..self }
    }

    const fn revision(self, revision: u8) -> Self {
        Self { revision, ..self }
    }

    pub(super) fn len(&self, width: Width) -> usize {
        self.len[usize::from(width == Width::Bits32)]
    }
}

/// All that are translated.
pub(super) const CODECS: [Codec; 16] = [
    matched("tcp", 12, tcp, tcp_text),
    matched("udp", 10, udp, udp_text),
    matched(
        "icmp",
        4,
        |options, to| icmp("--icmp-type", options, to),
        |from| icmp_text("--icmp-type", from),
    )
    .of(Family::Ipv4),
    matched(
        "icmp6",
        4,
        |options, to| icmp("--icmpv6-type", options, to),
        |from| icmp_text("--icmpv6-type", from),
    )
    .of(Family::Ipv6),
    matched("multiport", 48, multiport, multiport_text).revision(1),
    Codec {
        kernel: "conntrack",
        ..matched("state", tracked::LEN, tracked::state, tracked::state_text).revision(3)
    },
    matched("conntrack", tracked::LEN, tracked::conntrack, |from| {
        tracked::conntrack_text(from, false)
    })
    .revision(3)
    .of(Family::Ipv4),
    matched("conntrack", tracked::LEN, tracked::conntrack, |from| {
        tracked::conntrack_text(from, true)
    })
    .revision(3)
    .of(Family::Ipv6),
    Codec { len: [40, 28], ..matched("limit", 40, limit, limit_text) },
    matched("mark", 12, mark, mark_text).revision(1),
    matched("comment", 256, comment, comment_text),
    matched(
        "REJECT",
        4,
        |options, to| reject(&REJECT, options, to),
        |from| reject_text(&REJECT, from),
    )
    .target()
    .of(Family::Ipv4),
    matched(
        "REJECT",
        4,
        |options, to| reject(&REJECT6, options, to),
        |from| reject_text(&REJECT6, from),
    )
    .target()
    .of(Family::Ipv6),
    matched("LOG", 32, log, log_text).target(),
    matched("MARK", 8, set_mark, set_mark_text).revision(2).target(),
    matched("mangle", arp::MANGLE, arp::mangle, arp::mangle_text).target().of(Family::Arp),
];

/// Codecs of a family.
pub(super) fn of(family: Family, kind: Kind) -> impl Iterator<Item = &'static Codec> {
    let is_ip = family.is_ip();
    let has = move |one: &&Codec| one.kind == kind && one.family.map_or(is_ip, |of| of == family);
    CODECS.iter().filter(has)
}

const TCP_FLAGS: [(&str, u32); 8] = [
    ("FIN", 0x01),
    ("SYN", 0x02),
    ("RST", 0x04),
    ("PSH", 0x08),
    ("ACK", 0x10),
    ("URG", 0x20),
    ("ALL", 0x3f),
    ("NONE", 0),
];

/// Two ranges of ports, each with its bit of `!`.
fn ports(options: &mut Options, to: &mut [u8], inverted: &mut u8) -> Result<(), String> {
    for (at, names, bit) in
        [(0, ["--sport", "--source-port"], 1), (4, ["--dport", "--destination-port"], 2)]
    {
        let said = names.iter().find_map(|name| options.take(name));
        let (invert, value) = said.unwrap_or((false, ":".to_owned()));
        let (low, high) = range(&value)?;
        put_u16(to, at, low);
        put_u16(to, at + 2, high);
        *inverted |= if invert { bit } else { 0 };
    }
    Ok(())
}

fn ports_text(from: &[u8], inverted: u8, said: &mut String) {
    for (at, option, bit) in [(0, "--sport", 1), (4, "--dport", 2)] {
        let (low, high) = (u16_at(from, at), u16_at(from, at + 2));
        if (low, high) != (0, u16::MAX) || inverted & bit != 0 {
            say(said, inverted & bit != 0, option);
            said.push_str(&format!(" {}", range_text(low, high)));
        }
    }
}

fn tcp(options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let mut inverted = 0;
    ports(options, to, &mut inverted)?;
    if let Some((invert, option)) = options.take("--tcp-option") {
        put(to, 8, &[small(&option)?]);
        inverted |= if invert { 8 } else { 0 };
    }
    if let Some((invert, values)) = options.take_all("--tcp-flags") {
        let [mask, set] = &values[..] else { return Err("--tcp-flags: two lists".to_owned()) };
        let [mask, set] = [bits(mask, &TCP_FLAGS)?, bits(set, &TCP_FLAGS)?];
        put(to, 9, &[mask as u8, set as u8]);
        inverted |= if invert { 4 } else { 0 };
    }
    put(to, 11, &[inverted]);
    Ok(())
}

fn tcp_text(from: &[u8]) -> Result<Option<String>, String> {
    let [option, mask, set, inverted] = get(from, 8);
    let mut said = String::new();
    ports_text(from, inverted, &mut said);
    if option != 0 || inverted & 8 != 0 {
        say(&mut said, inverted & 8 != 0, "--tcp-option");
        said.push_str(&format!(" {option}"));
    }
    if mask != 0 || inverted & 4 != 0 {
        say(&mut said, inverted & 4 != 0, "--tcp-flags");
        for word in [mask, set] {
            let names = bit_names(word.into(), &TCP_FLAGS[..6], "NONE")?;
            said.push_str(&format!(" {names}"));
        }
    }
    Ok(Some(said))
}

fn udp(options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let mut inverted = 0;
    ports(options, to, &mut inverted)?;
    put(to, 8, &[inverted]);
    Ok(())
}

fn udp_text(from: &[u8]) -> Result<Option<String>, String> {
    let mut said = String::new();
    ports_text(from, byte(from, 8), &mut said);
    Ok(Some(said))
}

/// The type that is any, of ICMP.
const ANY: u8 = 255;

fn icmp(option: &str, options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let (invert, said) = options.take(option).unwrap_or((false, "any".to_owned()));
    let (kind, code) = match said.split_once('/') {
        _ if said == "any" => (ANY, None),
        Some((kind, code)) => (small(kind)?, Some(small(code)?)),
        None => (small(&said)?, None),
    };
    put(to, 0, &[kind, code.unwrap_or(0), code.unwrap_or(u8::MAX), u8::from(invert)]);
    Ok(())
}

fn icmp_text(option: &str, from: &[u8]) -> Result<Option<String>, String> {
    let [kind, low, high, inverted] = get(from, 0);
    let mut said = String::new();
    say(&mut said, inverted & 1 != 0, option);
    said.push_str(&match (kind, low, high) {
        (ANY, 0, u8::MAX) => " any".to_owned(),
        (kind, 0, u8::MAX) => format!(" {kind}"),
        (kind, low, high) if low == high => format!(" {kind}/{low}"),
        _ => return Err(format!("{option}: codes {low} to {high}")),
    });
    Ok(Some(said))
}

/// As `flags` numbers them.
const PORTS: [&str; 3] = ["--sports", "--dports", "--ports"];
/// The most ports.
const MOST: usize = 15;

fn multiport(options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let said = (0u8..).zip(PORTS).find_map(|(kind, name)| Some((kind, options.take(name)?)));
    let (kind, (invert, said)) = said.ok_or("multiport: no ports")?;
    let mut count = 0;
    for one in said.split(',') {
        let (low, high) = range(one)?;
        let ends = [low, high];
        for (end, port) in ends.iter().enumerate().take(if one.contains(':') { 2 } else { 1 }) {
            if count == MOST {
                return Err("multiport: more than 15 ports".to_owned());
            }
            put_u16(to, 2 + 2 * count, *port);
            put(to, 32 + count, &[u8::from(end == 0 && one.contains(':'))]);
            count += 1;
        }
    }
    put(to, 0, &[kind, count as u8]);
    put(to, 47, &[u8::from(invert)]);
    Ok(())
}

fn multiport_text(from: &[u8]) -> Result<Option<String>, String> {
    let [kind, count] = get(from, 0);
    let option = PORTS.get(usize::from(kind)).ok_or("multiport: of which side?")?;
    let mut said = String::new();
    say(&mut said, byte(from, 47) != 0, option);
    for at in 0..usize::from(count).min(MOST) {
        let is_end = at > 0 && byte(from, 31 + at) != 0;
        said.push(if at == 0 {
            ' '
        } else if is_end {
            ':'
        } else {
            ','
        });
        said.push_str(&u16_at(from, 2 + 2 * at).to_string());
    }
    Ok(Some(said))
}

/// Ten thousandths of a second for each word of `--limit`, the longest first.
const PERIODS: [(&str, u32); 4] = [
    ("day", 24 * 60 * 60 * 10_000),
    ("hour", 60 * 60 * 10_000),
    ("min", 60 * 10_000),
    ("sec", 10_000),
];

fn limit(options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let (_, rate) = options.take("--limit").unwrap_or((false, "3/hour".to_owned()));
    let (times, word) = rate.split_once('/').unwrap_or((&rate, "sec"));
    let period = PERIODS.iter().find(|(name, _)| *name == word || name.starts_with(word));
    let period = period.ok_or_else(|| format!("{rate}: per what?"))?.1;
    let average = period.checked_div(number(times)?).ok_or("--limit 0")?;
    let burst = options.take("--limit-burst").map_or(Ok(5), |(_, burst)| number(&burst))?;
    put_u32(to, 0, average);
    put_u32(to, 4, burst);
    Ok(())
}

/// As iptables says it: by the longest period in which a rounded number of packets is near enough.
fn limit_text(from: &[u8]) -> Result<Option<String>, String> {
    let (average, burst) = (u32_at(from, 0).max(1), u32_at(from, 4));
    let is_worse =
        |(_, period): &&(&str, u32)| average > *period || period / average < period % average;
    let found = PERIODS.iter().position(|period| is_worse(&period)).unwrap_or(PERIODS.len());
    let (word, period) = PERIODS[found.saturating_sub(1)];
    Ok(Some(format!(" --limit {}/{word} --limit-burst {burst}", period / average)))
}

/// `value/mask`; the mask is all bits where it is not said.
fn masked(said: &str) -> Result<(u32, u32), String> {
    let (value, mask) = said.split_once('/').unwrap_or((said, "0xffffffff"));
    Ok((number(value)?, number(mask)?))
}

fn mark(options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let (invert, said) = options.take("--mark").ok_or("mark: which?")?;
    let (value, mask) = masked(&said)?;
    put_u32(to, 0, value);
    put_u32(to, 4, mask);
    put(to, 8, &[u8::from(invert)]);
    Ok(())
}

fn mark_text(from: &[u8]) -> Result<Option<String>, String> {
    let mut said = String::new();
    say(&mut said, byte(from, 8) != 0, "--mark");
    said.push_str(&format!(" {:#x}/{:#x}", u32_at(from, 0), u32_at(from, 4)));
    Ok(Some(said))
}

fn set_mark(options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let (_, said) = options.take("--set-xmark").ok_or("MARK: to what?")?;
    let (value, mask) = masked(&said)?;
    put_u32(to, 0, value);
    put_u32(to, 4, mask);
    Ok(())
}

fn set_mark_text(from: &[u8]) -> Result<Option<String>, String> {
    Ok(Some(format!(" --set-xmark {:#x}/{:#x}", u32_at(from, 0), u32_at(from, 4))))
}

/// A word in quotes.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

fn comment(options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let (_, said) = options.take("--comment").ok_or("comment: which?")?;
    put(to, 0, said.as_bytes().get(..said.len().min(255)).unwrap_or_default());
    Ok(())
}

fn comment_text(from: &[u8]) -> Result<Option<String>, String> {
    Ok(Some(format!(" --comment {}", quoted(text(from, 0, 256)?))))
}

/// Answers by their number; one without a name has no option.
const REJECT: [&str; 9] = [
    "icmp-net-unreachable",
    "icmp-host-unreachable",
    "icmp-proto-unreachable",
    "icmp-port-unreachable",
    "",
    "icmp-net-prohibited",
    "icmp-host-prohibited",
    "tcp-reset",
    "icmp-admin-prohibited",
];

const REJECT6: [&str; 9] = [
    "icmp6-no-route",
    "icmp6-adm-prohibited",
    "",
    "icmp6-addr-unreachable",
    "icmp6-port-unreachable",
    "",
    "tcp-reset",
    "icmp6-policy-fail",
    "icmp6-reject-route",
];

fn reject(names: &[&str], options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let (_, said) = options.take("--reject-with").ok_or("REJECT: with what?")?;
    let found = names.iter().position(|name| *name == said);
    put_u32(to, 0, found.ok_or_else(|| format!("{said}: not translated"))? as u32);
    Ok(())
}

fn reject_text(names: &[&str], from: &[u8]) -> Result<Option<String>, String> {
    let with = names.get(u32_at(from, 0) as usize).filter(|name| !name.is_empty());
    let with = with.ok_or_else(|| format!("REJECT: answer {}", u32_at(from, 0)))?;
    Ok(Some(format!(" --reject-with {with}")))
}

const LOG_OPTIONS: [(&str, u8); 5] = [
    ("--log-tcp-sequence", 0x01),
    ("--log-tcp-options", 0x02),
    ("--log-ip-options", 0x04),
    ("--log-uid", 0x08),
    ("--log-macdecode", 0x20),
];
/// Warning.
const LEVEL: u8 = 4;

fn log(options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let level = options.take("--log-level").map_or(Ok(LEVEL), |(_, level)| small(&level))?;
    let prefix = options.take("--log-prefix").map_or_else(String::new, |(_, prefix)| prefix);
    let set = LOG_OPTIONS.iter().filter(|(option, _)| options.take(option).is_some());
    let flags = set.fold(0, |flags, (_, bit)| flags | bit);
    put(to, 0, &[level, flags]);
    put(to, 2, prefix.as_bytes().get(..prefix.len().min(29)).unwrap_or_default());
    Ok(())
}

fn log_text(from: &[u8]) -> Result<Option<String>, String> {
    let [level, flags] = get(from, 0);
    let prefix = text(from, 2, 30)?;
    let mut said = String::new();
    if !prefix.is_empty() {
        said.push_str(&format!(" --log-prefix {}", quoted(prefix)));
    }
    if level != LEVEL {
        said.push_str(&format!(" --log-level {level}"));
    }
    for (option, _) in LOG_OPTIONS.iter().filter(|(_, bit)| flags & bit != 0) {
        said.push_str(&format!(" {option}"));
    }
    let known = LOG_OPTIONS.iter().fold(0, |known, (_, bit)| known | bit);
    if flags & !known == 0 { Ok(Some(said)) } else { Err(format!("LOG: flags {flags:#x}")) }
}
