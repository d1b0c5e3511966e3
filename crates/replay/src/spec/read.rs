//! [`parse`]: reads a SPEC, or a line of another program.

use super::contents::{self, Contents};
use super::described::{APART, Spec};
use super::fields::{Fields, OF_ARP};
use super::gaps::{self, Filled};
use super::spelt::{self, Among};
use super::word::{SpecError, expected, split};

/// Reads a SPEC, or a line of another program that says what a packet was.
///
/// # Errors
/// The first word that is not what was expected.
pub fn parse(text: &str) -> Result<Spec, SpecError> {
    parse_with(text, &Contents::default())
}

/// Reads a packet spec; `usual` are the contents of a packet whose words do not give them.
///
/// # Errors
/// The first word that is not what was expected.
pub fn parse_with(text: &str, usual: &Contents) -> Result<Spec, SpecError> {
    match spelt::line(text)? {
        Some(line) => of_spelt(line, usual).map(|line| line.spec),
        None => read(text, usual),
    }
}

/// Reads the words that a line of another program amounts to, which differ from what the user sees.
fn of_spelt(line: spelt::Line, usual: &Contents) -> Result<OfLine, SpecError> {
    let spelt::Line { words, logged, among } = line;
    let spec = read(&words, usual)
        .map_err(|error| expected(1, format!("{}, in what this line says: {words}", error.what)))?;
    Ok(OfLine { packet: words, spec: Spec { logged, ..spec }, among })
}

/// A packet that a line says.
pub(crate) struct OfLine {
    /// The packet in words that build it.
    pub(crate) packet: String,
    pub(crate) spec: Spec,
    pub(crate) among: Among,
}

/// The packet that a line says; `None` if it says none.
///
/// # Errors
/// It is a line of one of the programs that are known here, and a word of it cannot be read.
pub(crate) fn of_line(text: &str) -> Result<Option<OfLine>, SpecError> {
    let usual = Contents::default();
    match spelt::line(text)? {
        Some(line) => of_spelt(line, &usual).map(Some),
        None => Ok(read(text, &usual).ok().map(|spec| {
            let packet = text.to_owned();
            OfLine { packet, spec, among: Among::None }
        })),
    }
}

fn read(text: &str, usual: &Contents) -> Result<Spec, SpecError> {
    let words = split(text);
    let mut fields = Fields::default();
    let mut rest = Vec::new();
    let is_arp = words.iter().any(|(_, word)| *word == "arp");
    let mut words = words.into_iter().peekable();
    let mut seen = Vec::new();
    while let Some(word) = &words.next() {
        if let Some((key, _)) = word.1.split_once('=') {
            // Both give the payload.
            let key = if key == "dns" { "payload" } else { key };
            if seen.contains(&key) {
                return Err(expected(word.0, format!("{key}= once, found \"{}\"", word.1)));
            }
            seen.push(key);
        }
        match word.1.split_once('=') {
            Some((key, _)) if is_arp && !OF_ARP.contains(&key) => {
                return Err(expected(word.0, "in= out= mark= mac= path= or after= beside arp"));
            }
            // The type of its records is a word of its own.
            Some(("dns", name)) => {
                let record = words.next_if(|(_, next)| contents::record(next).is_some());
                let record = record.map_or("A", |(_, record)| record);
                fields.set(*word, "dns", &format!("{name} {record}"))?;
            }
            Some((key, value)) => fields.set(*word, key, value)?,
            None => rest.push(*word),
        }
    }
    let end = text.len() + 1;
    let filled = match rest.split_first() {
        Some(((_, "arp"), words)) => {
            fields.contents.mac = fields.contents.mac.or(usual.mac);
            gaps::of_arp(fields.arp(words, end)?, &fields.contents)
        }
        Some((protocol, words)) => fields.frame(*protocol, words, usual, end)?,
        None => return Err(expected(end, "a protocol: tcp udp icmp … or arp")),
    };
    let Filled { frame, wire_len, gaps, lacks } = filled;
    let Fields { input, output, mark, ctstate, after, path, assumed, .. } = fields;
    let (after, logged) = (after.unwrap_or(APART), None);
    let mark = mark.unwrap_or(0);
    Ok(Spec {
        frame,
        wire_len,
        gaps,
        lacks,
        assumed,
        input,
        output,
        mark,
        ctstate,
        after,
        path,
        logged,
    })
}

#[cfg(test)]
mod tests {
    use conntrack::CtState;
    use packet::{Checksums, Link, Packet};

    use super::*;
    use crate::spec::described::config;
    use crate::spec::lack::Lack;
    use crate::spec::{arrivals, words};

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
            arrivals(&specs, &config())
                .map(|(.., arrival)| arrival.time.unwrap() / 1_000_000)
                .collect()
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
    fn contents_for_all_give_way_to_a_length() {
        let usual = |key: &str, value: &str| {
            let mut usual = Contents::default();
            usual.set(key, value).unwrap();
            usual
        };
        let chunks = usual("chunk", "init");
        let lacks = |words: &str| {
            let spec = parse_with(&format!("sctp 1.2.3.4 > 6.7.8.9:10 {words}"), &chunks).unwrap();
            spec.lacks.contains(&Lack::Chunk)
        };
        assert_eq!(["", "len=52", "len=60", "len=40"].map(lacks), [false, false, true, true]);
        assert!(parse_with("sctp 1.2.3.4 > 6.7.8.9:10 chunk=init len=60", &chunks).is_err());
    }

    #[test]
    fn a_source_port_that_was_drawn_is_said() {
        let assumed = |text: &str| parse(text).unwrap().assumed.remove(0);
        assert_eq!(assumed("udp 1.2.3.4 > 6.7.8.9:10"), "source port 49152");
        assert_eq!(assumed("sctp 1.2.3.4 > 6.7.8.9:10"), "source port 49152");
        assert_eq!(assumed("udp 1.2.3.4:5 > 6.7.8.9:10"), "ttl=64");
        assert_eq!(assumed("esp 1.2.3.4 > 6.7.8.9"), "ttl=64");
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
        for (wrong, at) in [
            ("ttl=3 ttl=4", 34),
            ("dns=x.org payload=none", 38),
            ("in=", 31),
            ("out=", 32),
            ("mark=0x+1", 33),
            ("ttl=+1", 32),
            ("len=+60", 32),
            ("mac=02:00:00:00:00:+1", 32),
            ("mac=02:00:00:00:00:001", 32),
            ("payload=0x+1", 36),
            ("payload=%+1", 36),
            ("frag=+8", 33),
            ("dns=.x", 32),
            ("dns=x..y", 32),
            ("dns=x..", 32),
            ("dns=é.org", 32),
            ("dns=x.org TYPE+1", 38),
            ("df=maybe", 31),
        ] {
            assert_eq!(column(&format!("udp 1.2.3.4:5 > 1.2.3.4:10 {wrong}")), at, "{wrong}");
        }
        assert_eq!(column("udp 1.2.3.4:+5 > 1.2.3.4:10"), 5);
        assert_eq!(column("icmp 1.2.3.4:5 > 1.2.3.4"), 6);
        assert_eq!(column("sctp 1.2.3.4:5 > 1.2.3.4"), 18);
        assert_eq!(column("+6 1.2.3.4 > 1.2.3.4"), 1);
        assert!(parse("udp 1.2.3.4 > 1.2.3.4:53 dns=. NS").is_ok());
        assert_eq!(column("arp who-has 10.0.0.1 tell 10.0.0.2 ttl=3"), 36);
    }
}
