//! [`Filter`]: which frames a watcher wants to see, in words.
//!
//! Contract: all tests have to hold; `and` between them may be left out, `not` negates the next one. A filter that asks
//! for no `reason` or `verdict` wants what a wire lost: every reason but `fragment` and `reply_rate`, whose frames
//! leave in another shape, or were never received.

use std::fmt;
use std::net::IpAddr;

use host::Network;
use packet::{FlowKey, visible};

use crate::forward::account::Reason;

/// Upper-layer protocols that are named.
const PROTOCOLS: [(&str, u8); 9] = [
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmp6", 58),
    ("sctp", 132),
];

/// Protocols whose packets have ports.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

const VERDICTS: [&str; 5] = ["accept", "drop", "reject", "unknown", "any"];

/// Which frames are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    tests: Vec<Test>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Test {
    is_negated: bool,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Source(Network),
    Destination(Network),
    Either(Network),
    Protocol(u8),
    Port(u16),
    In(String),
    Out(String),
    Reason(Reason),
    Verdict(&'static str),
}

/// The facts that a filter looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight<'s> {
    pub(super) input: &'s str,
    pub(super) output: &'s str,
    /// Why it was dropped, if it was.
    pub(super) reason: Option<Reason>,
    pub(super) verdict: &'static str,
    pub(super) flow: Option<FlowKey>,
}

/// The error of a filter: what was expected, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError(String);

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FilterError {}

impl Filter {
    /// Reads words: `host 10.0.0.1 and tcp port 22`, or `host=10.0.0.1 tcp port=22`.
    pub(super) fn parse(text: &str) -> Result<Self, FilterError> {
        let mut words = text.split([' ', '\t', '\n', '=']).filter(|word| !word.is_empty());
        let mut tests = Vec::new();
        let mut is_negated = false;
        while let Some(word) = words.next() {
            match word {
                "and" if !is_negated && !tests.is_empty() => continue,
                "not" => {
                    is_negated = !is_negated;
                    continue;
                }
                _ => {}
            }
            let what = what(word, &mut words)?;
            tests.push(Test { is_negated, what });
            is_negated = false;
        }
        match is_negated {
            true => Err(missing("a test after not")),
            false => Ok(Self { tests }),
        }
    }

    /// Whether the filter may want frames that were not dropped.
    pub(super) fn wants_passed(&self) -> bool {
        self.tests.iter().any(|test| match test.what {
            What::Verdict(verdict) => !test.is_negated && !matches!(verdict, "drop" | "reject"),
            _ => false,
        })
    }

    /// Whether the filter wants a frame.
    pub(super) fn wants(&self, sight: &Sight<'_>) -> bool {
        let asks = |test: &Test| {
            !test.is_negated && matches!(test.what, What::Reason(_) | What::Verdict(_))
        };
        let is_usual = || match sight.reason {
            Some(reason) => !matches!(reason, Reason::Fragment | Reason::ReplyRate),
            None => false,
        };
        self.tests.iter().all(|test| test.what.holds(sight) != test.is_negated)
            && (self.tests.iter().any(asks) || is_usual())
    }
}

impl What {
    fn holds(&self, sight: &Sight<'_>) -> bool {
        let flow = |test: &dyn Fn(FlowKey) -> bool| sight.flow.is_some_and(test);
        match self {
            Self::Source(net) => flow(&|flow| net.holds(flow.source)),
            Self::Destination(net) => flow(&|flow| net.holds(flow.destination)),
            Self::Either(net) => {
                flow(&|flow| net.holds(flow.source) || net.holds(flow.destination))
            }
            Self::Protocol(protocol) => flow(&|flow| flow.protocol == *protocol),
            Self::Port(port) => flow(&|flow| {
                WITH_PORTS.contains(&flow.protocol)
                    && [flow.source_port, flow.destination_port].contains(port)
            }),
            Self::In(name) => sight.input == name,
            Self::Out(name) => sight.output == name,
            Self::Reason(reason) => sight.reason == Some(*reason),
            Self::Verdict(verdict) => *verdict == "any" || sight.verdict == *verdict,
        }
    }
}

/// A test, from its first word and the words after it that it takes.
fn what<'w>(word: &'w str, words: &mut impl Iterator<Item = &'w str>) -> Result<What, FilterError> {
    let mut next = |expected: &str| words.next().ok_or_else(|| missing(expected));
    Ok(match word {
        "host" => What::Either(host(next("an address")?)?),
        "net" => What::Either(net(next("ADDRESS/BITS")?)?),
        "src" => What::Source(net(next("ADDRESS or ADDRESS/BITS")?)?),
        "dst" => What::Destination(net(next("ADDRESS or ADDRESS/BITS")?)?),
        "port" => What::Port(number(next("a port number")?)?),
        "proto" => What::Protocol(protocol(next("a protocol")?)?),
        "in" => What::In(next("the name of a port")?.to_owned()),
        "out" => What::Out(next("the name of a port")?.to_owned()),
        "reason" => What::Reason(reason(next("a reason")?)?),
        "verdict" => What::Verdict(verdict(next("a verdict")?)?),
        word => match PROTOCOLS.iter().find(|(name, _)| *name == word) {
            Some((_, protocol)) => What::Protocol(*protocol),
            None => {
                let known = "host, net, src, dst, port, proto, in, out, reason, verdict, not, or \
                             a protocol such as tcp";
                return Err(misread(known, word));
            }
        },
    })
}

fn host(word: &str) -> Result<Network, FilterError> {
    let address: Option<IpAddr> = word.parse().ok();
    address
        .and_then(|_| Network::parse(word))
        .ok_or_else(|| misread("an address (a prefix is net ADDRESS/BITS)", word))
}

fn net(word: &str) -> Result<Network, FilterError> {
    Network::parse(word).ok_or_else(|| misread("ADDRESS or ADDRESS/BITS", word))
}

fn number(word: &str) -> Result<u16, FilterError> {
    word.parse()
        .map_err(|_| misread("a port number (the name of a port of the run is in NAME)", word))
}

fn protocol(word: &str) -> Result<u8, FilterError> {
    let named = PROTOCOLS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
    named.or_else(|| word.parse().ok()).ok_or_else(|| misread("a protocol's name or number", word))
}

fn reason(word: &str) -> Result<Reason, FilterError> {
    let named = Reason::ALL.into_iter().find(|reason| reason.name() == word);
    named.ok_or_else(|| misread(&Reason::ALL.map(Reason::name).join(", "), word))
}

fn verdict(word: &str) -> Result<&'static str, FilterError> {
    let named = VERDICTS.into_iter().find(|verdict| *verdict == word);
    named.ok_or_else(|| misread(&VERDICTS.join(", "), word))
}

fn misread(expected: &str, found: &str) -> FilterError {
    FilterError(format!("filter: expected {expected}, found \"{}\"", visible::word(found)))
}

fn missing(expected: &str) -> FilterError {
    FilterError(format!("filter: expected {expected}, found the end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(reason: Option<Reason>, verdict: &'static str) -> Sight<'static> {
        let [source, destination] = ["10.0.0.7", "10.0.0.9"].map(|text| text.parse().unwrap());
        let (source_port, destination_port) = (40000, 22);
        let flow = FlowKey { source, destination, protocol: 6, source_port, destination_port };
        Sight { input: "left", output: "right", reason, verdict, flow: Some(flow) }
    }

    fn wants(text: &str, sight: &Sight<'_>) -> bool {
        Filter::parse(text).unwrap().wants(sight)
    }

    #[test]
    fn all_tests_have_to_hold() {
        let seen = sight(Some(Reason::Rule), "drop");
        for text in [
            "",
            "host 10.0.0.7",
            "host 10.0.0.9 and tcp port 22",
            "host=10.0.0.9 tcp port=40000",
            "net 10.0.0.0/8 src 10.0.0.7 dst 10.0.0.8/31 proto 6 proto tcp",
            "in left out right reason rule verdict drop verdict any",
            "not udp and not port 23 not reason policy not verdict accept not not tcp",
        ] {
            assert!(wants(text, &seen), "{text}");
        }
        for text in [
            "host 10.0.0.8",
            "host 10.0.0.7 and udp",
            "src 10.0.0.9",
            "dst 10.0.0.7",
            "port 23",
            "in right",
            "out left",
            "reason policy",
            "verdict accept",
            "not tcp",
            "tcp and not host 10.0.0.7",
        ] {
            assert!(!wants(text, &seen), "{text}");
        }
        let unread = Sight { flow: None, ..seen };
        assert!(wants("", &unread) && !wants("tcp", &unread) && wants("not tcp", &unread));
    }

    #[test]
    fn what_leaves_is_wanted_only_if_it_is_asked_for() {
        let (passed, held) = (sight(None, "accept"), sight(Some(Reason::Fragment), "drop"));
        for (text, wanted, asks) in [
            ("", [false, false], false),
            ("not reason rule", [false, false], false),
            ("reason fragment", [false, true], false),
            ("verdict accept", [true, false], true),
            ("verdict any", [true, true], true),
            ("verdict drop", [false, true], false),
        ] {
            let filter = Filter::parse(text).unwrap();
            assert_eq!([filter.wants(&passed), filter.wants(&held)], wanted, "{text}");
            assert_eq!(filter.wants_passed(), asks, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_was_expected() {
        for (text, what) in [
            ("host", "an address, found the end"),
            ("host 10.0.0.0/8", "a prefix is net ADDRESS/BITS), found \"10.0.0.0/8\""),
            ("port ssh", "found \"ssh\""),
            ("tcp or udp", "found \"or\""),
            ("reason none", "rule, policy, hotdrop"),
            ("verdict maybe", "accept, drop, reject, unknown, any, found \"maybe\""),
            ("tcp not", "a test after not"),
            ("port 65536", "a port number"),
        ] {
            let error = Filter::parse(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
