//! Which packets can be evaluated apart from each other, so that several threads may share them.
//!
//! Contract: packets that are evaluated apart as [`Class`] allows get the same verdicts as one after the other.
//! A rule that no walk reaches does not count. Whether there is room for a connection, and what fragments
//! wait, depends on all packets whatever the rules: that is for whoever shares them out to watch.

use crate::family::TableKind;
use std::fmt;

use crate::eval::{self, Cause, RuleRef};
use crate::ipset::Sets;
use crate::model::{Action, Rule, Ruleset, Table};

/// How far packets depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Not at all.
    Pure,
    /// Those of a connection do: of two addresses.
    PerFlow,
    /// All of them do, in the order of the capture.
    Global(Because),
}

/// Why all packets depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// What this rule does depends on other connections' packets.
    Rule(RuleRef, Cause),
    /// Addresses and ports are given out to one connection after the other.
    Nat,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pure => "pure",
            Self::PerFlow => "per_flow",
            Self::Global(_) => "global",
        })
    }
}

impl Class {
    /// The class of packets of which some are of this class, and some of the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Global(_), _) => self,
            (_, Self::Pure) => self,
            _ => other,
        }
    }
}

impl Ruleset {
    /// How far packets depend on each other under these rules, with their connections tracked or not, and with these sets
    /// if any.
    #[must_use]
    pub fn class(&self, tracked: bool, sets: Option<&Sets>) -> Class {
        let is_tracked = tracked && self.tracks();
        if is_tracked && self.table(TableKind::NAT).is_some() {
            return Class::Global(Because::Nat);
        }
        if let Some(at) = self.exceeds() {
            return Class::Global(Because::Rule(at, Cause::Steps));
        }
        let tables = self.tables.iter().zip(0..);
        let mut rules = tables.flat_map(|(table, number)| reached(table, number));
        // The host's answer to a packet that it rejects is known by that packet.
        let is_answered = rules.clone().any(|(_, rule)| rejects(rule));
        let global = rules.find_map(|(at, rule)| Some(Because::Rule(at, global(rule, sets)?)));
        match global {
            Some(because) => Class::Global(because),
            None if is_tracked || is_answered => Class::PerFlow,
            None => Class::Pure,
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

/// Rules that a packet may reach.
fn reached(table: &Table, number: u32) -> impl Iterator<Item = (RuleRef, &Rule)> + Clone {
    let chains = &table.chains;
    let mut is_reached: Vec<bool> = chains.iter().map(|chain| chain.base.is_some()).collect();
    let mut open: Vec<usize> = (0..chains.len()).filter(|chain| is_reached[*chain]).collect();
    while let Some(chain) = open.pop() {
        for rule in &chains[chain].rules {
            if let Action::Jump(to) | Action::Goto(to) = rule.action
                && !std::mem::replace(&mut is_reached[to as usize], true)
            {
                open.push(to as usize);
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
    let by_target = match &rule.action {
        Action::Target(target) => target.body.couples_flows(sets).then_some(Cause::Target),
        _ => None,
    };
    remembers.map(|index| Cause::Match(index as u16)).or(by_target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::save::{LoadOptions, load};

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
        assert_eq!(class(&filter(reject), false), Class::PerFlow, "with its answer");
        assert_eq!(class(&filter(pure), true), Class::Pure);
        assert_eq!(class(&filter(state), true), Class::PerFlow);
        assert_eq!(class(&filter(state), false), Class::Pure);
        assert_eq!(class(&filter(&format!("{pure}\n{nth}")), true), Class::Pure);
        let reached = filter(&format!("-A FORWARD -g a\n-A a -j b\n{nth}"));
        let at = RuleRef { table: 0, chain: 2, rule: 0 };
        let because = Because::Rule(at, Cause::Match(0));
        assert_eq!(class(&reached, true), Class::Global(because));
    }

    #[test]
    fn translation_helpers_and_zones_of_one_direction_couple_connections() {
        let nat = "*nat\n:POSTROUTING ACCEPT\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n";
        assert_eq!(class(nat, true), Class::Global(Because::Nat));
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
        assert_eq!(class(&rule, true), Class::PerFlow);
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

    #[test]
    fn either_class() {
        let global = Class::Global(Because::Nat);
        for other in [Class::Pure, Class::PerFlow, global] {
            assert_eq!((global.or(other), other.or(global)), (global, global));
        }
        assert_eq!(Class::Pure.or(Class::PerFlow), Class::PerFlow);
        assert_eq!(Class::PerFlow.or(Class::Pure), Class::PerFlow);
    }
}
