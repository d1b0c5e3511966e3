//! Policy rules, as `ip -4 rule; ip -6 rule` print them: which table answers for which packets.
//!
//! What a packet does not tell (a mark with unknown bits, ports of a fragment) and what tamis does not model (owners,
//! groups of interfaces, tunnels) makes a rule's answer open, never no. Source: ip-rule(8); kernel `net/core/fib_rules.c`,
//! `net/ipv4/fib_rules.c`, `net/ipv6/fib6_rules.c`.

use std::net::IpAddr;

use crate::Network;
use crate::by_part::{ByNetwork, ByPart};
use crate::route::{DEFAULT, LOCAL, MAIN, Refusal, table_name};
use crate::routed::Missing;
use crate::routes::tos;
use crate::text::{Line, TextError, Word, lines};

/// The policy rules of a host; a family that was not given is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    v4: Option<Vec<PolicyRule>>,
    v6: Option<Vec<PolicyRule>>,
    /// The IPv4 rules are others than every host has at the start.
    is_custom_v4: bool,
    /// Where many rules of a family ask for the same, they by that.
    by_most: [Option<RulesBy>; 2],
}

/// Rules by what most of them ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RulesBy {
    Source(ByNetwork),
    Destination(ByNetwork),
    /// By the mask of a mark.
    Mark(ByPart<u32, u32>),
}

/// Up to this many rules are asked one by one.
const FEW: usize = 16;

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRule {
    /// Rules are asked in ascending order.
    pub priority: u32,
    /// Whether the rule's match is inverted (`not`).
    pub invert: bool,
    pub(crate) from: Option<Network>,
    pub(crate) to: Option<Network>,
    input: Option<Box<str>>,
    output: Option<Box<str>>,
    pub(crate) mark: Option<(u32, u32)>,
    pub(crate) tos: Option<u8>,
    pub(crate) protocol: Option<u8>,
    pub(crate) ports: [Option<(u16, u16)>; 2],
    /// Whether the rule tests something that is not modelled.
    is_open: bool,
    /// Whether the rule gives packets a realm.
    realm: bool,
    /// Whether the rule asks for the table of a routing domain.
    pub(crate) l3mdev: bool,
    pub(crate) action: Action,
    /// Longest prefix, in bits, of the routes that the rule ignores.
    pub(crate) suppress: Option<u8>,
}

/// What a rule does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Lookup(Box<str>),
    Goto(u32),
    Nop,
    Refuse(Refusal),
    /// Something that this program's print does not tell.
    Open,
}

/// What a search for a route is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// The input interface: `Some("lo")` for packets that the host sends.
    pub(crate) input: Option<&'a str>,
    /// The interface it is bound to.
    pub(crate) output: Option<&'a str>,
    pub(crate) tos: Option<u8>,
    pub(crate) mark: Option<u32>,
    pub(crate) protocol: Option<u8>,
    pub(crate) ports: Option<[u16; 2]>,
}

impl Policy {
    /// Reads the text of `ip -4 rule`, `ip -6 rule`, or both after one another: priorities that begin again, or
    /// addresses, show where the other family begins.
    ///
    /// # Errors
    /// A line that begins with no priority, or a value that is none, with its place.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let mut sections: Vec<Vec<PolicyRule>> = Vec::new();
        for line in lines(text).filter(|line| !line.continues) {
            let rule = read_rule(&line)?;
            match sections.last_mut() {
                Some(section)
                    if section.last().is_some_and(|last| last.priority <= rule.priority) =>
                {
                    section.push(rule);
                }
                _ => sections.push(vec![rule]),
            }
        }
        let mut policy = Self::default();
        for section in sections {
            let is_v6 = section.iter().find_map(PolicyRule::is_v6).unwrap_or(policy.v4.is_some());
            let of_family = if is_v6 { &mut policy.v6 } else { &mut policy.v4 };
            of_family.get_or_insert_default().extend(section);
        }
        policy.is_custom_v4 = policy.v4.as_deref().is_some_and(is_custom);
        policy.by_most = [&policy.v4, &policy.v6].map(|rules| RulesBy::of(rules.as_deref()?));
        Ok(policy)
    }

    /// The rules of a family, if they were given.
    #[must_use]
    pub fn of(&self, is_v6: bool) -> Option<&[PolicyRule]> {
        if is_v6 { self.v6.as_deref() } else { self.v4.as_deref() }
    }

    /// The first rule, from a place on, that may hold for a flow.
    pub(crate) fn next(&self, flow: &Flow<'_>, from: usize) -> Option<(usize, &PolicyRule)> {
        let is_v6 = flow.destination.is_ipv6();
        let place = match (&self.by_most[usize::from(is_v6)], flow.mark) {
            (Some(RulesBy::Source(rules)), _) => rules.next(from, flow.source)?,
            (Some(RulesBy::Destination(rules)), _) => rules.next(from, flow.destination)?,
            (Some(RulesBy::Mark(rules)), Some(mark)) => {
                rules.first(from, |mask| Some(mark & mask))?
            }
            _ => from,
        };
        Some((place, self.of(is_v6)?.get(place)?))
    }

    /// Whether an IPv4 rule gives packets a realm.
    pub(crate) fn has_realms(&self) -> bool {
        self.v4.iter().flatten().any(|rule| rule.realm)
    }

    /// Whether somebody made IPv4 rules of their own: tables `local` and `main` are then searched apart.
    pub(crate) fn is_custom_v4(&self) -> bool {
        self.is_custom_v4
    }
}

impl RulesBy {
    fn of(rules: &[PolicyRule]) -> Option<Self> {
        // One that is turned round holds for what it does not ask for.
        let plain = || rules.iter().map(|rule| Some(rule).filter(|rule| !rule.invert));
        let source = || plain().map(|rule| rule?.from);
        let destination = || plain().map(|rule| rule?.to);
        let mark = || plain().map(|rule| rule?.mark.map(|(mark, mask)| (mask, mark & mask)));
        let counts =
            [source().flatten().count(), destination().flatten().count(), mark().flatten().count()];
        let most = counts.into_iter().max().filter(|most| *most > FEW)?;
        Some(match counts.into_iter().position(|count| count == most) {
            Some(0) => Self::Source(ByNetwork::of_networks(source())),
            Some(1) => Self::Destination(ByNetwork::of_networks(destination())),
            _ => Self::Mark(ByPart::of(mark())),
        })
    }
}

fn is_custom(rules: &[PolicyRule]) -> bool {
    let usual = [(0, LOCAL), (32766, MAIN), (32767, DEFAULT)];
    let usual = usual.map(|(priority, table)| PolicyRule::lookup(priority, table));
    rules != usual
}

impl PolicyRule {
    /// Whether the rule asks for a packet's mark.
    #[must_use]
    pub fn asks_for_mark(&self) -> bool {
        self.mark.is_some()
    }

    pub(crate) fn lookup(priority: u32, table: &str) -> Self {
        Self {
            priority,
            invert: false,
            from: None,
            to: None,
            input: None,
            output: None,
            mark: None,
            tos: None,
            protocol: None,
            ports: [None; 2],
            is_open: false,
            realm: false,
            l3mdev: false,
            action: Action::Lookup(table.into()),
            suppress: None,
        }
    }

    fn is_v6(&self) -> Option<bool> {
        self.from.or(self.to).map(|network| network.addr.is_ipv6())
    }

    /// What would have to be known for its answer not to be open.
    pub(crate) fn lacks(&self, flow: &Flow<'_>) -> Missing {
        match self.input {
            _ if self.is_open || self.l3mdev => Missing::Policy,
            Some(_) if flow.input.is_none() => Missing::Input,
            _ => Missing::Mark,
        }
    }

    /// Whether it holds for a flow; `None` where that is open.
    pub(crate) fn holds(&self, flow: &Flow<'_>) -> Option<bool> {
        let is_v6 = flow.destination.is_ipv6();
        let within =
            |network: Option<Network>, addr| network.map(|network| Some(network.holds(addr)));
        let named = |wanted: &Option<Box<str>>, has: Option<&str>| {
            wanted.as_ref().map(|wanted| has.map(|has| **wanted == *has))
        };
        // An IPv4 search does not see the bits of a type of service that became DSCP's.
        let service = if is_v6 { 0xfc } else { 0x1c };
        let tests = [
            within(self.from, flow.source),
            within(self.to, flow.destination),
            named(&self.input, flow.input),
            // Before it is routed, nothing has an output interface.
            self.output.as_ref().map(|wanted| Some(flow.output == Some(wanted))),
            self.mark.map(|(mark, mask)| flow.mark.map(|has| (has ^ mark) & mask == 0)),
            self.tos.filter(|tos| *tos != 0).map(|tos| flow.tos.map(|has| has & service == tos)),
            self.protocol.map(|protocol| flow.protocol.map(|has| has == protocol)),
            self.ports[0].map(|range| flow.port(0).map(|port| range.0 <= port && port <= range.1)),
            self.ports[1].map(|range| flow.port(1).map(|port| range.0 <= port && port <= range.1)),
            self.is_open.then_some(None),
        ];
        let mut all = Some(true);
        for test in tests.into_iter().flatten() {
            match test {
                Some(false) => return Some(self.invert),
                Some(true) => {}
                None => all = None,
            }
        }
        all.map(|all| all != self.invert)
    }
}

impl Flow<'_> {
    /// Source or destination port, as a search sees it: 0 for a protocol that has none.
    fn port(&self, which: usize) -> Option<u16> {
        // Those whose ports, or what the kernel takes for them, a search looks at.
        const WITH_PORTS: [u8; 7] = [6, 17, 33, 50, 51, 132, 136];
        let has_none = self.protocol.is_some_and(|protocol| !WITH_PORTS.contains(&protocol));
        if has_none { Some(0) } else { self.ports.map(|ports| ports[which]) }
    }
}

fn read_rule(line: &Line<'_>) -> Result<PolicyRule, TextError> {
    let first = line.at(0);
    let priority = first.text.strip_suffix(':').and_then(|number| number.parse().ok());
    let priority = priority.ok_or_else(|| first.not("the priority of a rule and a colon"))?;
    let mut rule = PolicyRule::lookup(priority, MAIN);
    rule.action = Action::Nop;
    let mut place = 1;
    while place < line.words.len() {
        place += 1 + read_word(&mut rule, line.at(place), line.at(place + 1), line)?;
    }
    Ok(rule)
}

/// One word of a rule and its value: how many words the value took.
fn read_word(
    rule: &mut PolicyRule,
    word: Word<'_>,
    value: Word<'_>,
    line: &Line<'_>,
) -> Result<usize, TextError> {
    let network = || match value.text {
        "all" => Ok(None),
        "default" | "any" => Ok(None),
        text => Network::parse(text).map(Some).ok_or_else(|| value.not("an address or a prefix")),
    };
    let range = || range(value.text).ok_or_else(|| value.not("a port or a range of ports"));
    match word.text {
        "not" => {
            rule.invert = true;
            return Ok(0);
        }
        "from" => rule.from = network()?,
        "to" => rule.to = network()?,
        "iif" | "dev" => rule.input = Some(value.text.into()),
        "oif" => rule.output = Some(value.text.into()),
        "fwmark" => rule.mark = Some(mark(value.text).ok_or_else(|| value.not("a mark"))?),
        "tos" | "dsfield" => {
            rule.tos = Some(tos(value).ok_or_else(|| value.not("a type of service"))?)
        }
        "ipproto" => match protocol(value.text) {
            Some(number) => rule.protocol = Some(number),
            None => rule.is_open = true,
        },
        "sport" => rule.ports[0] = Some(range()?),
        "dport" => rule.ports[1] = Some(range()?),
        "lookup" | "table" => rule.action = lookup(rule, value, line),
        "goto" => {
            let to = value.text.parse().map_err(|_| value.not("the priority of a rule"))?;
            rule.action = Action::Goto(to);
        }
        "suppress_prefixlength" => {
            let bits = value.text.parse().map_err(|_| value.not("a number of bits"))?;
            rule.suppress = Some(bits);
        }
        // These say nothing of which packets it holds for.
        "realms" => rule.realm = true,
        "proto" | "map-to" | "protocol" => {}
        "suppress_ifgroup" | "uidrange" | "tun_id" | "dscp" | "flowlabel" => rule.is_open = true,
        text => {
            rule.action = match text {
                "blackhole" => Action::Refuse(Refusal::Blackhole),
                "unreachable" => Action::Refuse(Refusal::Unreachable),
                "prohibit" => Action::Refuse(Refusal::Prohibit),
                "nop" => Action::Nop,
                _ => return Ok(0),
            };
            return Ok(0);
        }
    }
    Ok(1)
}

/// `lookup TABLE`; a program that does not know an action writes a word of its own after `unspec`.
fn lookup(rule: &mut PolicyRule, table: Word<'_>, line: &Line<'_>) -> Action {
    if table.text == "[l3mdev-table]" {
        rule.l3mdev = true;
        return Action::Open;
    }
    let refuses = ["blackhole", "unreachable", "prohibit"].iter().any(|name| line.has(name));
    match table.text {
        "unspec" | "0" if !refuses => Action::Open,
        name => Action::Lookup(table_name(name).into()),
    }
}

fn mark(text: &str) -> Option<(u32, u32)> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    match text.split_once('/') {
        Some((mark, mask)) => Some((number(mark)?, number(mask)?)),
        None => Some((number(text)?, u32::MAX)),
    }
}

fn range(text: &str) -> Option<(u16, u16)> {
    match text.split_once('-') {
        Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
        None => text.parse().ok().map(|port| (port, port)),
    }
}

fn protocol(text: &str) -> Option<u8> {
    const NAMES: [(&str, u8); 10] = [
        ("icmp", 1),
        ("tcp", 6),
        ("udp", 17),
        ("dccp", 33),
        ("gre", 47),
        ("esp", 50),
        ("ah", 51),
        ("ipv6-icmp", 58),
        ("sctp", 132),
        ("udplite", 136),
    ];
    let named = NAMES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    named.or_else(|| text.strip_prefix("ipproto-").unwrap_or(text).parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0:\tfrom all lookup local
49:\tfrom 10.0.0.9 lookup main masquerade
50:\tfrom all goto 77
51:\tfrom all blackhole
52:\tfrom all iif nosuch [detached] prohibit
54:\tfrom all lookup main suppress_prefixlength 0
57:\tfrom all lookup [l3mdev-table]
60:\tfrom all uidrange 0-100 lookup 101
77:\tnot from 10.9.0.0/24 to 10.1.0.0/16 tos 0x10 iif br0 oif d0 [detached] ipproto tcp sport 5-9 dport 80 lookup 200
32765:\tfrom 10.0.0.0/24 fwmark 0x1/0xff lookup 254
32766:\tfrom all lookup main
0:\tfrom all lookup local
32766:\tfrom all lookup main
";

    fn flow() -> Flow<'static> {
        Flow {
            source: "10.0.0.9".parse().unwrap(),
            destination: "10.1.0.1".parse().unwrap(),
            input: Some("br0"),
            output: None,
            tos: Some(0),
            mark: Some(0x101),
            protocol: Some(6),
            ports: Some([5, 80]),
        }
    }

    #[test]
    fn rules_of_both_families() {
        let policy = Policy::parse(TEXT).unwrap();
        let rules = policy.of(false).unwrap();
        assert_eq!((rules.len(), policy.of(true).unwrap().len()), (11, 2));
        assert!(policy.is_custom_v4());
        assert_eq!(rules[1].action, Action::Lookup(MAIN.into()));
        assert_eq!(rules[2].action, Action::Goto(77));
        assert_eq!(rules[3].action, Action::Refuse(Refusal::Blackhole));
        assert_eq!(rules[4].holds(&flow()), Some(false));
        assert_eq!(
            (rules[4].action.clone(), rules[5].suppress),
            (Action::Refuse(Refusal::Prohibit), Some(0))
        );
        assert!(rules[6].l3mdev);
        assert_eq!(rules[7].holds(&flow()), None);
        assert_eq!(rules[8].holds(&flow()), Some(true));
        assert_eq!(rules[9].holds(&flow()), Some(true));
        assert_eq!(rules[9].holds(&Flow { mark: None, ..flow() }), None);
        assert_eq!(rules[9].holds(&Flow { mark: Some(2), ..flow() }), Some(false));
        let other = Flow { mark: None, source: "1.2.3.4".parse().unwrap(), ..flow() };
        assert_eq!(rules[9].holds(&other), Some(false));
        assert_eq!(rules[9].action, Action::Lookup(MAIN.into()));
    }

    #[test]
    fn of_many_rules_none_is_passed_over_that_may_hold() {
        let asks: [fn(u32) -> String; 3] = [
            |n| format!("from 10.0.{n}.0/{}", 24 + n % 9),
            |n| format!("from all to 10.0.{n}.0/{}", 16 + n % 17),
            |n| format!("from all fwmark {n:#x}/{:#x}", [0xff_u32, 0xf, u32::MAX][n as usize % 3]),
        ];
        let more = ["not from 10.0.7.0/24", "from all", "from 10.0.7.9 fwmark 7", "to 10.0.7.9"];
        for ask in asks {
            let many = (0..60).map(ask).chain(more.map(str::to_owned)).chain((0..60).map(ask));
            let text = (1..).zip(many).map(|(n, asks)| format!("{n}:\t{asks} lookup 7\n"));
            let policy = Policy::parse(&text.collect::<String>()).unwrap();
            assert!(policy.by_most[0].is_some());
            let rules = policy.of(false).unwrap();
            for mark in (0..70).map(Some).chain([None]) {
                let addr = IpAddr::from([10, 0, mark.unwrap_or(7) as u8, 9]);
                let flow = Flow { source: addr, destination: addr, mark, ..flow() };
                let first = policy.next(&flow, 0);
                let asked = std::iter::successors(first, |(at, _)| policy.next(&flow, at + 1));
                let may_hold = |rule: &&PolicyRule| rule.holds(&flow) != Some(false);
                let found: Vec<_> = asked.map(|(_, rule)| rule).filter(may_hold).collect();
                assert_eq!(found, rules.iter().filter(may_hold).collect::<Vec<_>>(), "{mark:?}");
            }
        }
    }

    #[test]
    fn the_usual_rules_are_no_policy() {
        let usual = "0:\tfrom all lookup local \n32766:\tfrom all lookup main \n32767:\tfrom all lookup default \n";
        assert!(!Policy::parse(usual).unwrap().is_custom_v4());
        assert!(Policy::parse(&usual[..25]).unwrap().is_custom_v4());
        let only6 =
            Policy::parse("0:\tfrom all lookup local\n5:\tfrom 2001:db8::/32 lookup 5\n").unwrap();
        assert!(only6.of(false).is_none() && only6.of(true).is_some());
    }

    #[test]
    fn what_is_no_rule_is_told() {
        let error =
            Policy::parse("0:\tfrom all lookup local\n1:\tfrom here lookup main").unwrap_err();
        assert_eq!((error.line, error.column, &*error.found), (2, 9, "here"));
        assert_eq!(Policy::parse("ip: x").unwrap_err().column, 1);
        let error = Policy::parse("1:\tfrom all fwmark x").unwrap_err();
        assert_eq!(error.to_string(), "1:20: expected a mark, found \"x\"");
    }
}
