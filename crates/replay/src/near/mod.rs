//! Near misses: rules that a packet would have matched but for one test, and what it has there instead.
//!
//! A match of several options that all must hold (`-m tcp --sport 1024: --dport 22`) counts as one test for
//! each of them. A test that may hold is no near miss: only known answers count.

use std::collections::VecDeque;

use conntrack::CtState;
use packet::tcp::Flags;
use packet::{FlowKey, L3, L4, Read, icmpv4, icmpv6, tcp};
use rules::eval::{RuleRef, Test, tests_of};
use rules::model::{Action, Family, Rule};
use rules::save::{LoadOptions, load};
use rules::{Iface, Outcome, Transit, protocol_name, protocol_number};

/// Matches whose options must all hold, each by itself.
const ALL_OF: &[&str] = &["tcp", "udp", "udplite", "sctp", "dccp", "iprange"];

/// A rule that would have matched but for one test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NearMiss {
    pub(crate) at: RuleRef,
    /// The test, in the words of the rule.
    pub(crate) test: String,
    /// What the packet has there, if there are words for it.
    pub(crate) has: Option<String>,
    /// The rule has no other test, so that it nearly matches everything.
    alone: bool,
}

/// The near miss of a rule that certainly did not match, from all its tests.
fn near_miss(
    at: RuleRef,
    rule: &Rule,
    tests: &[Test],
    transit: &Transit<'_, '_>,
) -> Option<NearMiss> {
    let watches = match &rule.action {
        Action::None => true,
        Action::Target(target) => target.body.only_watches(),
        _ => false,
    };
    let mut refusing = tests.iter().filter(|test| test.outcome != Some(Outcome::YES));
    let (Some(refused), None, false) = (refusing.next(), refusing.next(), watches) else {
        return None;
    };
    // A match that remembers packets cannot be asked again: alone in refusing, it said no.
    if !matches!(refused.outcome, None | Some(Outcome::NO)) {
        return None;
    }
    let (test, options) = narrowed(&refused.text, transit)?;
    let alone = tests.len() == 1 && options == 1;
    let has = value_at(&test, transit);
    Some(NearMiss { at, test, has, alone })
}

/// The near misses of a walk: of those nearest to the decision, as many as were asked for.
#[derive(Debug)]
pub(crate) struct Misses {
    most: usize,
    /// Of rules of several tests, in the order of evaluation.
    several: VecDeque<NearMiss>,
    /// Of rules of one test.
    alone: VecDeque<NearMiss>,
}

impl Misses {
    /// Room for this number.
    pub(crate) fn of_most(most: usize) -> Self {
        Self { most, several: VecDeque::new(), alone: VecDeque::new() }
    }

    /// Notes a rule that certainly did not match, if it is a near miss.
    pub(crate) fn add(
        &mut self,
        at: RuleRef,
        rule: &Rule,
        tests: &[Test],
        transit: &Transit<'_, '_>,
    ) {
        let Some(miss) = near_miss(at, rule, tests, transit) else { return };
        let of_its_kind = if miss.alone { &mut self.alone } else { &mut self.several };
        of_its_kind.push_back(miss);
        if of_its_kind.len() > self.most {
            of_its_kind.pop_front();
        }
    }

    /// Those to show, the nearest to the decision first; rules of one test come last.
    pub(crate) fn nearest(&self) -> Vec<&NearMiss> {
        self.several.iter().rev().chain(self.alone.iter().rev()).take(self.most).collect()
    }
}

/// The one option of a test that does not hold, and how many it has; `None` if several do not.
fn narrowed(text: &str, transit: &Transit<'_, '_>) -> Option<(String, usize)> {
    let Some((name, options)) = text.strip_prefix("-m ").and_then(|rest| rest.split_once(' '))
    else {
        return Some((text.to_owned(), 1));
    };
    let options = split_options(options);
    if options.len() < 2 || !ALL_OF.contains(&name) {
        return Some((options.join(" "), 1));
    }
    let count = options.len();
    let refuses = |option: &String| holds(name, option, transit) != Some(Outcome::YES);
    let mut refusing = options.into_iter().filter(refuses);
    match (refusing.next(), refusing.next()) {
        (Some(option), None) => Some((option, count)),
        _ => None,
    }
}

/// `--a 1 ! --b 2` in its options. Words in quotes hold no option here: no match of [`ALL_OF`] has any.
fn split_options(text: &str) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    let mut inverted = false;
    for word in text.split(' ') {
        let starts = word == "!" || word.starts_with("--");
        match options.last_mut() {
            Some(last) if !starts || inverted => {
                last.push(' ');
                last.push_str(word);
            }
            _ => options.push(word.to_owned()),
        }
        inverted = word == "!";
    }
    options
}

/// What one option of a match says by itself.
fn holds(name: &str, option: &str, transit: &Transit<'_, '_>) -> Option<Outcome> {
    let protocol = protocol_number(name).map_or_else(String::new, |_| format!("-p {name} "));
    let text = format!("*filter\n:INPUT ACCEPT\n-A INPUT {protocol}-m {name} {option}\nCOMMIT\n");
    let options = LoadOptions { family: Some(transit.family), ..LoadOptions::default() };
    let loaded = load(&text, &options).ok()?;
    let rule = loaded.ruleset.tables.first()?.chains.first()?.rules.first()?;
    tests_of(transit.family, rule, transit).last()?.outcome
}

/// What the packet has where a test looks, in the words of the test.
fn value_at(test: &str, transit: &Transit<'_, '_>) -> Option<String> {
    let option = test.split(' ').find(|word| *word != "!")?;
    let value = value(option, transit)?;
    // The plural is what a rule asks for; a packet has one.
    let option = match option {
        "--sports" => "--sport",
        "--dports" => "--dport",
        "--src-range" => "-s",
        "--dst-range" => "-d",
        "--ttl-lt" | "--ttl-gt" => "--ttl-eq",
        "--hl-lt" | "--hl-gt" => "--hl-eq",
        "--ports" | "--tcp-flags" | "--syn" => return Some(value),
        option => option,
    };
    Some(format!("{option} {value}"))
}

fn value(option: &str, transit: &Transit<'_, '_>) -> Option<String> {
    let key = || FlowKey::of(transit.packet).known();
    Some(match option {
        "-s" | "--src-range" => key()?.source.to_string(),
        "-d" | "--dst-range" => key()?.destination.to_string(),
        "-i" => iface(transit.input)?,
        "-o" => iface(transit.output)?,
        "-p" => {
            let number = key()?.protocol;
            protocol_name(number).map_or_else(|| number.to_string(), str::to_owned)
        }
        "--sport" | "--sports" => port(transit, 0)?.to_string(),
        "--dport" | "--dports" => port(transit, 2)?.to_string(),
        "--ports" => format!("--sport {} --dport {}", port(transit, 0)?, port(transit, 2)?),
        "--tcp-flags" | "--syn" => {
            format!("flags {}", Flags(upper::<1>(transit, tcp::FLAGS.start)?[0]))
        }
        "--icmp-type" => icmp(upper(transit, icmpv4::TYPE.start)?, icmpv4::type_name),
        "--icmpv6-type" => icmp(upper(transit, icmpv6::TYPE.start)?, icmpv6::type_name),
        "--ctstate" | "--state" => match transit.ct.view.state()? {
            CtState::Invalid => "INVALID",
            CtState::New => "NEW",
            CtState::Related => "RELATED",
            CtState::Established => "ESTABLISHED",
            CtState::Untracked => "UNTRACKED",
        }
        .to_owned(),
        "--mark" if transit.mark.unknown == 0 => format!("{:#x}", transit.mark.value),
        "--mac-source" => mac(transit.packet.source_mac())?,
        "--ttl-eq" | "--ttl-lt" | "--ttl-gt" | "--hl-eq" | "--hl-lt" | "--hl-gt" => {
            let offset = if transit.family == Family::Ipv6 { 7 } else { 8 };
            transit.net::<1>(offset).known()?[0].to_string()
        }
        "--length" => transit.packet.len().to_string(),
        "--tos" => format!("{:#04x}", tos(transit)?),
        "--dscp" => format!("{:#04x}", tos(transit)? >> 2),
        _ => return None,
    })
}

fn iface(iface: Iface<'_>) -> Option<String> {
    match iface {
        Iface::Named(name) => Some(name.to_owned()),
        Iface::Absent => Some("none".to_owned()),
        Iface::Unknown => None,
    }
}

/// Bytes of the upper-layer header.
fn upper<const N: usize>(transit: &Transit<'_, '_>, offset: usize) -> Option<[u8; N]> {
    match transit.packet.headers().l4 {
        L4::Upper(upper) => transit.packet.upper(&upper, offset).known(),
        L4::Fragment { .. } | L4::Broken { .. } | L4::Unknown | L4::None => None,
    }
}

/// The port at an offset of a header that has ports in front.
fn port(transit: &Transit<'_, '_>, offset: usize) -> Option<u16> {
    upper(transit, offset).map(u16::from_be_bytes)
}

fn icmp([kind, code]: [u8; 2], name: fn(u8) -> Option<&'static str>) -> String {
    let kind = name(kind).map_or_else(|| kind.to_string(), str::to_owned);
    if code == 0 { kind } else { format!("{kind}/{code}") }
}

fn mac(address: Read<[u8; 6]>) -> Option<String> {
    let hex = address.known()?.map(|byte| format!("{byte:02x}"));
    Some(hex.join(":"))
}

/// Type of service of IPv4, traffic class of IPv6.
fn tos(transit: &Transit<'_, '_>) -> Option<u8> {
    let [first, second] = transit.net::<2>(0).known()?;
    match transit.packet.headers().l3 {
        L3::Ipv6 => Some(first << 4 | second >> 4),
        _ => Some(second),
    }
}

#[cfg(test)]
mod tests;
