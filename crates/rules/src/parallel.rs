//! Which packets can be evaluated apart from each other, so that several threads may share them.
//!
//! Contract: packets that are evaluated apart as [`Class`] allows get the same verdicts as one after the other. A rule
//! that no walk reaches does not count. Whether there is room for a connection, what fragments wait, and whether a
//! translated connection gets another port because its own is taken, depends on all packets whatever the rules: the
//! caller that shares them out has to watch that.

use conntrack::steer::{Alike, Key};
use std::fmt;

use crate::eval::{self, Cause, RuleRef};
use crate::ext::TargetUse;
use crate::family::Role;
use crate::ipset::Sets;
use crate::model::{Action, Chain, Hook, Rule, Ruleset, Table};
use crate::nat::Gives;

/// Most ports that count as one: where most do, there is nothing left to tell packets apart by.
const MOST_ALIKE: usize = 1024;

/// How far packets depend on each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// No packet depends on another.
    Pure,
    /// Packets of a connection depend on each other, and have this in common.
    PerFlow(Key),
    /// All packets depend on each other, in the order of the capture.
    Global(Because),
}

/// Why all packets depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// What this rule does depends on other connections' packets.
    Rule(RuleRef, Cause),
    /// This rule gives connections ports, or addresses, that others leave.
    Nat(RuleRef),
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pure => "pure",
            Self::PerFlow(_) => "per_flow",
            Self::Global(_) => "global",
        })
    }
}

impl Class {
    /// The class of packets of which some are of this class, and some of the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Global(because), _) | (_, Self::Global(because)) => Self::Global(because),
            (Self::PerFlow(one), Self::PerFlow(other)) => Self::PerFlow(one.or(other)),
            (class, Self::Pure) | (Self::Pure, class) => class,
        }
    }

    /// What packets of a connection have in common, where they depend on each other and on no others.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::PerFlow(key) => Some(key),
            Self::Pure | Self::Global(_) => None,
        }
    }
}

impl Ruleset {
    /// How far packets depend on each other under these rules, with their connections tracked or not, and with these sets
    /// if any.
    #[must_use]
    pub fn class(&self, tracked: bool, sets: Option<&Sets>) -> Class {
        self.class_where(tracked, |rule| global(rule, sets))
    }

    /// Returns the class for workers that share sets and what matches remember, as the processors of one kernel do:
    /// shared state couples no packets that the kernel does not couple. Connections are tracked.
    #[must_use]
    pub fn class_of_sharers(&self) -> Class {
        self.class_where(true, |rule| global_by_target(rule, None))
    }

    fn class_where(&self, tracked: bool, global: impl Fn(&Rule) -> Option<Cause>) -> Class {
        let is_tracked = tracked && self.tracks();
        if let Some(at) = self.exceeds() {
            return Class::Global(Because::Rule(at, Cause::Steps));
        }
        let tables = self.tables.iter().zip(0..);
        let reached = tables.flat_map(|(table, number)| reached(table, number, &Hook::ALL));
        let rules: Vec<(RuleRef, &Rule)> = reached.filter(|(_, rule)| extends(rule)).collect();
        let rules = || rules.iter().copied();
        let key = match is_tracked && self.has(Role::Translate) {
            true => alike(rules()).map(Key::Ports),
            false => Ok(Key::Addresses),
        };
        // The host's answer to a packet that it rejects is known by that packet.
        let is_answered = rules().any(|(_, rule)| rejects(rule));
        let global = rules().find_map(|(at, rule)| Some(Because::Rule(at, global(rule)?)));
        match (key, global) {
            (_, Some(because)) => Class::Global(because),
            (Err(at), None) => Class::Global(Because::Nat(at)),
            (Ok(key), None) if is_tracked || is_answered => Class::PerFlow(key),
            (Ok(_), None) => Class::Pure,
        }
    }

    /// The first rule of a chain in which a walk may be given up: from then on that one looks at no packet as others
    /// did.
    fn exceeds(&self) -> Option<RuleRef> {
        let tables = self.tables.iter().zip(0..);
        let mut found = tables.filter_map(|(table, number)| {
            Some(RuleRef { table: number, chain: eval::exceeded(table)? as u32, rule: 0 })
        });
        found.next()
    }
}

/// What rules have in them that may make packets depend on each other, counted rule by rule, including rules that no
/// walk reaches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Couples {
    /// Steps of a walk through all of them.
    steps: u64,
    /// Rules whose targets couple connections, or give them ports that are not their own.
    hard: usize,
    /// Rules whose packets the host answers.
    answers: usize,
}

impl Couples {
    /// One more rule.
    pub(crate) fn add(&mut self, rule: &Rule) {
        self.steps = self.steps.saturating_add(eval::steps(rule));
        self.hard += usize::from(is_hard(rule));
        self.answers += usize::from(rejects(rule));
    }

    /// One rule less.
    pub(crate) fn take(&mut self, rule: &Rule) {
        self.steps = self.steps.saturating_sub(eval::steps(rule));
        self.hard = self.hard.saturating_sub(usize::from(is_hard(rule)));
        self.answers = self.answers.saturating_sub(usize::from(rejects(rule)));
    }

    /// The most that packets of those who share what matches remember may depend on each other; `None` where only a look
    /// at the rules can tell. `is_tree` says that no chain is walked twice.
    pub(crate) fn class(&self, is_tree: bool, tracks: bool, has_nat: bool) -> Option<Class> {
        if !is_tree || self.steps > eval::MAX_STEPS.into() || self.hard > 0 {
            return None;
        }
        let ports = tracks && has_nat;
        let key = if ports { Key::Ports(Alike::default()) } else { Key::Addresses };
        Some(if tracks || self.answers > 0 { Class::PerFlow(key) } else { Class::Pure })
    }
}

/// Whether how far a rule couples packets depends on more than that it is there.
fn is_hard(rule: &Rule) -> bool {
    let gives = |target: &TargetUse| !matches!(target.body.gives(), Gives::Own);
    global_by_target(rule, None).is_some() || rule.target().is_some_and(gives)
}

/// The ports that rules translate to each other; or the first rule that gives connections what others leave, or of which
/// it is not known which ports they are.
fn alike<'r>(rules: impl Iterator<Item = (RuleRef, &'r Rule)>) -> Result<Alike, RuleRef> {
    let mut all = Alike::default();
    for (at, rule) in rules {
        let Action::Target(target) = &rule.action else { continue };
        let port = match target.body.gives() {
            Gives::Own => continue,
            Gives::Left => return Err(at),
            Gives::Destination(port) => port,
        };
        let matched = rule.matches.iter().filter_map(|used| used.body.destinations());
        let len = |ranges: &Vec<(u16, u16)>| -> usize {
            ranges.iter().map(|(low, high)| usize::from(high - low) + 1).sum()
        };
        let fewest =
            matched.min_by_key(len).filter(|ranges| len(ranges) <= MOST_ALIKE).ok_or(at)?;
        let ports = fewest.into_iter().flat_map(|(low, high)| low..=high).chain([port]);
        all = all.and(ports);
        if all.len() > MOST_ALIKE {
            return Err(at);
        }
    }
    Ok(all)
}

/// Rules of a table, whose number this is, that a packet may reach at some of these hooks.
pub(crate) fn reached<'t>(
    table: &'t Table,
    number: u32,
    hooks: &[Hook],
) -> impl Iterator<Item = (RuleRef, &'t Rule)> + use<'t> {
    let chains = &table.chains;
    let is_base = |chain: &Chain| chain.base.is_some_and(|base| hooks.contains(&base.hook));
    let mut is_reached: Vec<bool> = chains.iter().map(is_base).collect();
    let mut open: Vec<usize> = (0..chains.len()).filter(|chain| is_reached[*chain]).collect();
    while let Some(chain) = open.pop() {
        for rule in &chains[chain].rules {
            for to in rule.leads_to() {
                if !std::mem::replace(&mut is_reached[to as usize], true) {
                    open.push(to as usize);
                }
            }
        }
    }
    let chains = chains.iter().zip(0..).zip(is_reached).filter(|(_, is_reached)| *is_reached);
    chains.flat_map(move |((chain, index), _)| {
        let rules = chain.rules.iter().zip(0..);
        rules.map(move |(rule, place)| {
            (RuleRef { table: number, chain: index, rule: place }, &**rule)
        })
    })
}

/// Whether a rule does anything but test a header and give a verdict: any other rule couples no packets.
fn extends(rule: &Rule) -> bool {
    !rule.matches.is_empty() || matches!(rule.action, Action::Target(_))
}

/// Whether the host answers packets that a rule matches.
fn rejects(rule: &Rule) -> bool {
    matches!(&rule.action, Action::Target(target) if target.body.answer().is_some())
}

/// What of a rule depends on packets of other connections.
fn global(rule: &Rule, sets: Option<&Sets>) -> Option<Cause> {
    let remembers = rule
        .matches
        .iter()
        .position(|used| used.body.memory().is_some_and(|memory| memory.couples_flows(sets)));
    remembers.map(|index| Cause::Match(index as u16)).or_else(|| global_by_target(rule, sets))
}

fn global_by_target(rule: &Rule, sets: Option<&Sets>) -> Option<Cause> {
    match &rule.action {
        Action::Target(target) => target.body.couples_flows(sets).then_some(Cause::Target),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::save::{LoadOptions, load};

    const BY_ADDRESSES: Class = Class::PerFlow(Key::Addresses);

    fn class(rules: &str, tracked: bool) -> Class {
        load(rules, &LoadOptions::default()).unwrap().ruleset.class(tracked, None)
    }

    fn filter(rules: &str) -> String {
        format!("*filter\n:FORWARD ACCEPT\n:a -\n:b -\n{rules}\nCOMMIT\n")
    }

    #[test]
    fn the_class_is_that_of_the_worst_rule_that_is_reached() {
        let pure = "-A FORWARD -p tcp --dport 22 -j DROP";
        let state = "-A FORWARD -m conntrack --ctstate NEW -j ACCEPT";
        let nth = "-A b -m statistic --mode nth --every 3 --packet 0 -j DROP";
        let reject = "-A FORWARD -p tcp --dport 22 -j REJECT";
        assert_eq!(class(&filter(reject), false), BY_ADDRESSES, "with its answer");
        assert_eq!(class(&filter(pure), true), Class::Pure);
        assert_eq!(class(&filter(state), true), BY_ADDRESSES);
        assert_eq!(class(&filter(state), false), Class::Pure);
        assert_eq!(class(&filter(&format!("{pure}\n{nth}")), true), Class::Pure);
        let reached = filter(&format!("-A FORWARD -g a\n-A a -j b\n{nth}"));
        let at = RuleRef { table: 0, chain: 2, rule: 0 };
        let because = Because::Rule(at, Cause::Match(0));
        assert_eq!(class(&reached, true), Class::Global(because));
    }

    #[test]
    fn helpers_and_zones_of_one_direction_couple_connections() {
        let raw = |rule| format!("*raw\n:PREROUTING ACCEPT\n-A PREROUTING {rule}\nCOMMIT\n");
        let is_global = |rule| matches!(class(&raw(rule), true), Class::Global(_));
        assert!(is_global("-p tcp --dport 21 -j CT --helper ftp"));
        assert!(is_global("-j CT --zone-orig 7"));
        assert!(!is_global("-j CT --zone 7"));
        assert!(!is_global("-j CT --notrack"));
    }

    #[test]
    fn a_label_that_is_set_is_its_connections_own() {
        let rule = filter("-A FORWARD -m connlabel --label 3 --set -j ACCEPT");
        assert_eq!(class(&rule, true), BY_ADDRESSES);
    }

    #[test]
    fn sets_couple_connections_where_packets_change_them() {
        let class = |rule: &str, options: &str| {
            let sets = Sets::parse(&format!("create s hash:ip family inet{options}\n")).unwrap();
            let rules = load(&filter(rule), &LoadOptions::default()).unwrap().ruleset;
            (rules.class(true, None), rules.class(true, Some(&sets)))
        };
        let (look, add) =
            ("-A FORWARD -m set --match-set s src", "-A FORWARD -j SET --add-set s src");
        assert_eq!(class(look, ""), (Class::Pure, Class::Pure));
        let couples = |classes| matches!(classes, (Class::Pure, Class::Global(_)));
        assert!(couples(class(look, " counters")) && couples(class(look, " timeout 60")));
        assert!(couples(class(add, "")));
    }

    /// The class under these rules of PREROUTING and POSTROUTING in the nat table.
    fn nat(rules: &str) -> Class {
        let chains = ":PREROUTING ACCEPT\n:POSTROUTING ACCEPT\n";
        class(&format!("*nat\n{chains}{rules}\nCOMMIT\n"), true)
    }

    #[test]
    fn translations_that_keep_ports_are_steered_by_them() {
        let plain = Class::PerFlow(Key::Ports(Alike::default()));
        for rule in [
            "-A POSTROUTING -o wan0 -j MASQUERADE",
            "-A POSTROUTING -j SNAT --to-source 192.0.2.1",
            "-A POSTROUTING -s 10.0.0.0/8 -j NETMAP --to 192.0.2.0/24",
            "-A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 10.0.0.1",
            "-A PREROUTING -j DNAT --to-destination 10.0.0.1-10.0.0.9",
            "-A PREROUTING -p udp -j REDIRECT",
        ] {
            assert_eq!(nat(rule), plain, "{rule}");
            assert_eq!(
                class(&format!("*nat\n:PREROUTING ACCEPT\nCOMMIT\n{}", filter("")), true),
                Class::Pure,
                "nothing is tracked"
            );
        }
    }

    #[test]
    fn ports_that_rules_translate_to_each_other_count_as_one() {
        let ports = |ports: &[u16]| Class::PerFlow(Key::Ports(ports.iter().copied().collect()));
        let to = "-j DNAT --to-destination 10.0.0.1:";
        assert_eq!(nat(&format!("-A PREROUTING -p tcp --dport 8080 {to}80")), ports(&[80, 8080]));
        let two = format!(
            "-A PREROUTING -p tcp --dport 22:24 {to}2222\n\
             -A PREROUTING -p udp -m multiport --dports 53,67:68 -j REDIRECT --to-ports 5353"
        );
        assert_eq!(nat(&two), ports(&[22, 23, 24, 53, 67, 68, 2222, 5353]));
        let syn = format!("-A PREROUTING -p tcp --syn --dport 8080 {to}80");
        assert_eq!(nat(&syn), ports(&[80, 8080]));
    }

    #[test]
    fn ports_and_addresses_that_others_leave_couple_connections() {
        let is_global = |rule: &str| {
            let at = RuleRef { table: 0, chain: rule.contains("POST").into(), rule: 0 };
            nat(rule) == Class::Global(Because::Nat(at))
        };
        for rule in [
            "-A POSTROUTING -j MASQUERADE --random",
            "-A POSTROUTING -p tcp -j MASQUERADE --to-ports 1024-2048",
            "-A POSTROUTING -p tcp -j MASQUERADE --to-ports 1024",
            "-A POSTROUTING -j SNAT --to-source 192.0.2.1 --random-fully",
            "-A POSTROUTING -j SNAT --to-source 192.0.2.1-192.0.2.9",
            "-A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 10.0.0.1:80-90",
            "-A PREROUTING -p tcp --dport 80:89 -j DNAT --to-destination 10.0.0.1:8080-8089/80",
            "-A PREROUTING -p tcp -j REDIRECT --to-ports 3128",
            "-A PREROUTING -p tcp ! --dport 22 -j REDIRECT --to-ports 3128",
            "-A PREROUTING -p tcp --dport 1:1025 -j REDIRECT --to-ports 3128",
            "-A PREROUTING -p tcp -m multiport --ports 80,443 -j REDIRECT --to-ports 3128",
            "-A PREROUTING -p icmp -j DNAT --to-destination 10.0.0.1:7",
        ] {
            assert!(is_global(rule), "{rule}: {:?}", nat(rule));
        }
    }

    #[test]
    fn either_class() {
        let global = Class::Global(Because::Nat(RuleRef { table: 0, chain: 0, rule: 0 }));
        let by_ports = Class::PerFlow(Key::Ports(Alike::default()));
        for other in [Class::Pure, BY_ADDRESSES, by_ports.clone(), global.clone()] {
            assert_eq!(global.clone().or(other.clone()), global);
            assert_eq!(other.clone().or(global.clone()), global);
            assert_eq!(Class::Pure.or(other.clone()), other);
            assert_eq!(other.clone().or(Class::Pure), other);
        }
        assert_eq!(BY_ADDRESSES.or(by_ports.clone()), by_ports);
    }
}
