//! A packet spec: `[in=eth0] [out=eth1] tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn`, then `key=value`
//! for ttl, mark, ctstate, after, mac, len, tos, frag and path; or a line of another program that says what a packet was
//! (`spelt`).

mod message;
mod spelt;
pub(crate) mod words;

use std::fmt;
use std::net::IpAddr;

use conntrack::{CtState, Mode};
use dataplane::{Arrival, Path};
use packet::Link;
use packet::craft::{Addresses, Craft, Ethernet, Fragment, arp_frame};

use message::{endpoints, message};

/// How connections of packet specs are tracked unless that is given: as the kernel does, from an empty
/// table. Nothing came before a packet that nobody captured.
pub const CT: Mode = Mode::Kernel;

/// A packet to evaluate, with what is given about it beyond its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// An Ethernet frame.
    pub frame: Vec<u8>,
    /// The interface it comes in by.
    pub input: Option<String>,
    /// The interface it goes out by.
    pub output: Option<String>,
    /// Its mark.
    pub mark: u32,
    /// The state of its connection; if it is not given, tracking finds it, and for a packet that nothing
    /// came before this is NEW.
    pub ctstate: Option<CtState>,
    /// Nanoseconds since the packet before it.
    pub after: u64,
    /// The way that it is on, if that is said.
    pub path: Option<Path>,
}

/// Where nothing is given, packets come a second apart.
const APART: u64 = 1_000_000_000;

/// Packets of a conversation, each with its arrival: its number from 1, and its time.
pub fn arrivals<'s>(
    specs: impl IntoIterator<Item = &'s Spec>,
) -> impl Iterator<Item = (&'s Spec, Arrival<'s>)> {
    let mut time = 0_u64;
    (1..).zip(specs).map(move |(number, spec)| {
        time = time.saturating_add(spec.after);
        (spec, spec.arrival(number, time))
    })
}

impl Spec {
    /// How it arrives, as the packet of this number from 1 and at this time in nanoseconds.
    pub(crate) fn arrival(&self, number: u64, time: u64) -> Arrival<'_> {
        Arrival {
            time: Some(time),
            input: self.input.as_deref(),
            output: self.output.as_deref(),
            mark: self.mark,
            ctstate: self.ctstate,
            path: self.path,
            ..Arrival::new(number, Link::Ethernet, self.frame.len())
        }
    }
}

/// What `why` and `test` evaluate packet specs with, where no option says otherwise.
#[cfg(test)]
pub(crate) fn config() -> dataplane::Config {
    let mut config = dataplane::Config::default();
    config.ct.mode = CT;
    config
}

/// What was expected in a SPEC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// Column in bytes, from 1.
    pub column: usize,
    /// What.
    pub what: String,
}

impl SpecError {
    /// What stands under the packet spec to show the column.
    #[must_use]
    pub fn mark(&self, text: &str) -> String {
        let before = text.get(..self.column - 1).unwrap_or(text);
        let mut mark: String = before.chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
        mark.push('^');
        mark
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--packet:{}: expected {}", self.column, self.what)
    }
}

impl std::error::Error for SpecError {}

/// A word and its column.
type Word<'a> = (usize, &'a str);

/// Reads a SPEC, or a line of another program that says what a packet was.
///
/// # Errors
/// The first word that is not what was expected.
pub fn parse(text: &str) -> Result<Spec, SpecError> {
    match spelt::in_our_words(text)? {
        Some(words) => read(&words).map_err(|error| {
            expected(1, format!("{}, in what this line says: {words}", error.what))
        }),
        None => read(text),
    }
}

/// The packet that a line says, and its packet spec; `None` if it says none.
///
/// # Errors
/// It is a line of one of the programs that are known here, and a word of it cannot be read.
pub(crate) fn of_line(text: &str) -> Result<Option<(String, Spec)>, SpecError> {
    match spelt::in_our_words(text)? {
        Some(words) => read(&words).map(|spec| Some((words, spec))),
        None => Ok(read(text).ok().map(|spec| (text.to_owned(), spec))),
    }
}

fn read(text: &str) -> Result<Spec, SpecError> {
    let words = split(text);
    let mut fields = Fields::default();
    let mut rest = Vec::new();
    let is_arp = words.iter().any(|(_, word)| *word == "arp");
    for word in &words {
        match word.1.split_once('=') {
            Some((key, _)) if is_arp && !OF_ARP.contains(&key) => {
                return Err(expected(word.0, "in= out= mark= mac= path= or after= beside arp"));
            }
            Some((key, value)) => fields.set(*word, key, value)?,
            None => rest.push(*word),
        }
    }
    let end = text.len() + 1;
    let frame = match rest.split_first() {
        Some(((_, "arp"), words)) => fields.arp(words, end)?,
        Some((protocol, words)) => fields.frame(*protocol, words, end)?,
        None => return Err(expected(end, "a protocol: tcp udp icmp … or arp")),
    };
    let Fields { input, output, mark, ctstate, after, path, .. } = fields;
    Ok(Spec { frame, input, output, mark, ctstate, after: after.unwrap_or(APART), path })
}

/// Keys that stand beside arp.
const OF_ARP: [&str; 6] = ["in", "out", "mark", "mac", "path", "after"];

fn split(text: &str) -> Vec<Word<'_>> {
    let start = text.as_ptr() as usize;
    text.split_ascii_whitespace().map(|word| (word.as_ptr() as usize - start + 1, word)).collect()
}

fn expected(column: usize, what: impl Into<String>) -> SpecError {
    SpecError { column, what: what.into() }
}

#[derive(Default)]
struct Fields {
    input: Option<String>,
    output: Option<String>,
    mark: u32,
    ctstate: Option<CtState>,
    after: Option<u64>,
    path: Option<Path>,
    ttl: Option<u8>,
    tos: u8,
    mac: Option<[u8; 6]>,
    len: Option<(usize, usize)>,
    fragment: Option<Fragment>,
}

impl Fields {
    fn set(&mut self, (column, _): Word<'_>, key: &str, value: &str) -> Result<(), SpecError> {
        let at = column + key.len() + 1;
        let wrong = |what: &str| expected(at, format!("{what} for {key}, found \"{value}\""));
        match key {
            "in" => self.input = Some(value.to_owned()),
            "out" => self.output = Some(value.to_owned()),
            "mark" => self.mark = number(value).ok_or_else(|| wrong("a number of 32 bits"))?,
            "ctstate" => self.ctstate = Some(state(value).ok_or_else(|| wrong(&states()))?),
            "after" => {
                self.after =
                    Some(seconds(value).ok_or_else(|| wrong("seconds, such as 60 or 0.5"))?)
            }
            "path" => {
                self.path = Some(path(value).ok_or_else(|| wrong("forward, input or output"))?)
            }
            "ttl" => self.ttl = Some(value.parse().map_err(|_| wrong("a number 0-255"))?),
            "tos" => {
                let tos = number(value).and_then(|tos| u8::try_from(tos).ok());
                self.tos = tos.ok_or_else(|| wrong("a number 0-255"))?;
            }
            "mac" => self.mac = Some(mac(value).ok_or_else(|| wrong("xx:xx:xx:xx:xx:xx"))?),
            "len" => {
                let len: u16 = value.parse().map_err(|_| wrong("an IP length in bytes"))?;
                self.len = Some((at, len.into()));
            }
            "frag" => {
                self.fragment = Some(fragment(value).ok_or_else(|| wrong("OFFSET or OFFSET+"))?)
            }
            _ => {
                return Err(expected(
                    column,
                    "in= out= path= ttl= mark= ctstate= after= mac= len= tos= or frag=",
                ));
            }
        }
        Ok(())
    }

    fn ethernet(&self) -> Ethernet {
        let usual = Ethernet::default();
        Ethernet { source: self.mac.unwrap_or(usual.source), ..usual }
    }

    /// `who-has A tell B`.
    fn arp(&self, words: &[Word<'_>], end: usize) -> Result<Vec<u8>, SpecError> {
        let [(_, "who-has"), target, (_, "tell"), sender] = words else {
            let column = words.first().map_or(end, |(column, _)| *column);
            return Err(expected(column, "who-has ADDRESS tell ADDRESS"));
        };
        let v4 = |(column, text): Word<'_>| match text.parse() {
            Ok(IpAddr::V4(addr)) => Ok(addr.octets()),
            _ => Err(expected(column, format!("an IPv4 address, found \"{text}\""))),
        };
        Ok(arp_frame(self.ethernet(), packet::arp::REQUEST, v4(*sender)?, v4(*target)?))
    }

    fn frame(&self, name: Word<'_>, words: &[Word<'_>], end: usize) -> Result<Vec<u8>, SpecError> {
        let (source, destination, rest) = endpoints(words, end)?;
        let addresses = Addresses::new(source.addr, destination.addr)
            .ok_or_else(|| expected(end, "two addresses of one family"))?;
        let message = message(name, &source, &destination, rest, end)?;
        let mut craft = Craft::new(addresses, message);
        craft.ethernet = Some(self.ethernet());
        craft.ttl = self.ttl.unwrap_or(64);
        craft.tos = self.tos;
        craft.fragment = self.fragment;
        if let Some((column, len)) = self.len {
            let header = craft.header_len();
            craft.payload_len = len
                .checked_sub(header)
                .ok_or_else(|| expected(column, format!("a length of at least {header} bytes")))?;
        }
        Ok(craft.frame())
    }
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Seconds as nanoseconds: at most a year.
fn seconds(text: &str) -> Option<u64> {
    const YEAR: f64 = 31_536_000.0;
    let seconds: f64 = text.parse().ok().filter(|seconds| (0.0..=YEAR).contains(seconds))?;
    Some((seconds * 1e9) as u64)
}

fn path(text: &str) -> Option<Path> {
    [Path::Forward, Path::Input, Path::Output].into_iter().find(|path| path.name() == text)
}

/// A connection state, named as `--ctstate` names it.
fn state(text: &str) -> Option<CtState> {
    CtState::ALL.into_iter().find(|state| state.name().eq_ignore_ascii_case(text))
}

fn states() -> String {
    CtState::ALL.map(CtState::name).join(" ")
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// An offset in bytes, with `+` when more fragments follow.
fn fragment(text: &str) -> Option<Fragment> {
    let (offset, more) = match text.strip_suffix('+') {
        Some(offset) => (offset, true),
        None => (text, false),
    };
    Some(Fragment { offset: offset.parse().ok()?, more })
}

#[cfg(test)]
mod tests {
    use packet::{Checksums, Packet};

    use super::*;

    fn reads_back(text: &str) -> String {
        let mut frame = parse(text).unwrap().frame;
        let len = frame.len();
        Packet::parse(&mut frame, len, Link::Ethernet, Checksums::Verify).to_string()
    }

    #[test]
    fn packets_come_a_second_apart_unless_it_is_said() {
        let times = |texts: &[&str]| -> Vec<u64> {
            let specs: Vec<Spec> = texts
                .iter()
                .map(|text| parse(&format!("{text} udp 1.2.3.4:5 > 6.7.8.9:10")).unwrap())
                .collect();
            arrivals(&specs).map(|(_, arrival)| arrival.time.unwrap() / 1_000_000).collect()
        };
        assert_eq!(
            times(&["", "after=60", "after=0.5", "after=0", ""]),
            [1000, 61_000, 61_500, 61_500, 62_500]
        );
        for wrong in ["after=soon", "after=-1", "after=1e9", "after=NaN"] {
            assert!(parse(&format!("udp 1.2.3.4:5 > 6.7.8.9:10 {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_packet_prints_as_it_was_spelled() {
        for text in [
            "tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn",
            "tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn,ack",
            "udp [2001:db8::1]:53 > [2001:db8::2]:4000",
            "icmp 10.0.0.1 > 10.0.0.2 echo-request",
            "arp who-has 10.0.0.1 tell 10.0.0.2",
        ] {
            assert_eq!(reads_back(text), text);
        }
    }

    #[test]
    fn the_words_of_a_packet_build_one_like_it() {
        for text in [
            "tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn,ece,cwr ttl=3 tos=16 len=400",
            "tcp 198.51.100.7:1 > 10.0.0.9:2 none frag=0+",
            "udp [2001:db8::1]:53 > [2001:db8::2]:4000 tos=184 ttl=255",
            "icmp 10.0.0.1 > 10.0.0.2 77/3",
            "icmpv6 2001:db8::1 > 2001:db8::2 destination-unreachable/4 mac=02:00:00:00:00:09",
            "udp 10.0.0.1:0 > 10.0.0.2:0 frag=1480 len=100",
            "47 10.0.0.1 > 10.0.0.2",
        ] {
            let mut frame = parse(text).unwrap().frame;
            let (whole, len) = (frame.clone(), frame.len());
            let packet = Packet::parse(&mut frame, len, Link::Ethernet, Checksums::Verify);
            let full = words::of_packet(&packet, words::Detail::Full).unwrap();
            assert_eq!(parse(&full).unwrap().frame, whole, "{text}: {full}");
        }
    }

    #[test]
    fn a_packet_without_its_header_has_no_words() {
        let mut frame = parse("tcp 10.0.0.1:1 > 10.0.0.2:2 syn").unwrap().frame;
        let packet = Packet::parse(&mut frame[..40], 54, Link::Ethernet, Checksums::Ignore);
        assert_eq!(words::of_packet(&packet, words::Detail::Brief), None);
    }

    #[test]
    fn keys_stand_anywhere() {
        let spec = parse("in=eth0 ttl=3 udp 1.2.3.4:5 > 6.7.8.9:10 out=eth1 mark=0x10").unwrap();
        assert_eq!((spec.input.as_deref(), spec.output.as_deref()), (Some("eth0"), Some("eth1")));
        assert_eq!((spec.mark, spec.frame[14 + 8]), (0x10, 3));
        let spec = parse("udp 1.2.3.4:5 > 6.7.8.9:10 ctstate=established").unwrap();
        assert_eq!(spec.ctstate, Some(CtState::Established));
    }

    #[test]
    fn errors_name_the_column() {
        let column = |text: &str| parse(text).unwrap_err().column;
        assert_eq!(column(""), 1);
        assert_eq!(column("tcp 1.2.3.4:5 6.7.8.9:10"), 15);
        assert_eq!(column("tcp 1.2.3.4:5 > 6.7.8.9"), 17);
        assert_eq!(column("tcp 1.2.3.4:5 > 6.7.8.9:10 path=in"), 33);
        assert_eq!(column("tcp 1.2.3.4:5 > 6.7.8.9:10 sin"), 28);
        assert_eq!(column("udp 1.2.3.4:5 > [::1]:10"), 25);
        assert_eq!(column("tpc 1.2.3.4:5 > 1.2.3.4:10"), 1);
        assert_eq!(column("tcp 1.2.3.4:5 > 1.2.3.4:10 ttl=x"), 32);
        assert_eq!(column("tcp 1.2.3.4:5 > 1.2.3.4:10 ctstate=OLD"), 36);
        assert_eq!(column("arp who-has 10.0.0.1 tell 10.0.0.2 ttl=3"), 36);
    }
}
