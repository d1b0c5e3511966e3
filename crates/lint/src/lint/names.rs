//! Names that rules share with the host and with each other: sets that are not there or that nobody asks, marks that
//! nobody reads or sets.

use super::code::{Code, Severity};
use super::finding::{Finding, of_rule};
use crate::flow::target_text;
use host::{Links, Policy};
use rules::ext::{MatchUse, TargetUse};
use rules::ipset::Sets;
use rules::model::{Action, Chain, Rule, Ruleset, Table};
use std::collections::BTreeSet;

/// What is known of the host that rules stand on.
#[derive(Debug, Clone, Default)]
pub struct OnHost {
    /// Links of the host.
    pub links: Option<Links>,
    /// Sets of the host.
    pub sets: Option<Sets>,
    /// Policy rules of the host, which may route by mark.
    pub policy: Option<Policy>,
}

/// A rule where it stands.
type Placed<'r> = (&'r Table, &'r Chain, &'r Rule);

/// What marks are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Packet,
    Connection,
}

impl Mark {
    fn name(self) -> &'static str {
        match self {
            Self::Packet => "mark",
            Self::Connection => "connection mark",
        }
    }
}

pub(super) fn findings(ruleset: &Ruleset, host: &OnHost) -> Vec<Finding> {
    let mut found = missing_sets(ruleset, host);
    found.extend(unread_sets(ruleset));
    for mark in [Mark::Packet, Mark::Connection] {
        found.extend(marks(ruleset, host.policy.as_ref(), mark));
    }
    found
}

fn placed(ruleset: &Ruleset) -> impl Iterator<Item = Placed<'_>> {
    ruleset.tables.iter().flat_map(|table| {
        table
            .chains
            .iter()
            .flat_map(move |chain| chain.rules.iter().map(move |rule| (table, chain, &**rule)))
    })
}

fn target(rule: &Rule) -> Option<&TargetUse> {
    match &rule.action {
        Action::Target(target) => Some(target),
        _ => None,
    }
}

/// Rules about sets that the host does not have.
fn missing_sets(ruleset: &Ruleset, host: &OnHost) -> Vec<Finding> {
    let Some(sets) = &host.sets else { return Vec::new() };
    let mut found = Vec::new();
    for (table, chain, rule) in placed(ruleset) {
        let asked = rule.matches.iter().flat_map(|used| used.body.sets());
        let changed = target(rule).into_iter().flat_map(|target| target.body.sets());
        for name in asked.chain(changed).filter(|name| sets.elements(name).is_none()) {
            let text = format!("the host has no set {name}: these rules cannot be loaded there");
            let what = (Code::MissingSet, Severity::Error, text);
            let mut finding = of_rule(ruleset, table, chain, rule, what);
            name.clone_into(&mut finding.about);
            found.push(finding);
        }
    }
    found
}

/// Rules that fill sets which no rule asks.
fn unread_sets(ruleset: &Ruleset) -> Vec<Finding> {
    let asked = placed(ruleset).flat_map(|(.., rule)| &rule.matches);
    let asked: BTreeSet<&str> = asked.flat_map(|used| used.body.sets()).collect();
    let mut found = Vec::new();
    for (table, chain, rule) in placed(ruleset) {
        let Some(target) = target(rule).filter(|it| has_option(it, "SET", &["--add-set"])) else {
            continue;
        };
        for name in target.body.sets().into_iter().filter(|name| !asked.contains(name)) {
            let text = format!("it fills the set {name}, which no rule here asks");
            let mut finding =
                of_rule(ruleset, table, chain, rule, (Code::SetUnread, Severity::Note, text));
            name.clone_into(&mut finding.about);
            found.push(finding);
        }
    }
    found
}

/// Rules that set marks which no rule reads, or read marks which no rule sets.
fn marks(ruleset: &Ruleset, policy: Option<&Policy>, mark: Mark) -> Vec<Finding> {
    let all = || placed(ruleset);
    let is_read = all().any(|(.., rule)| reads(rule, mark))
        || mark == Mark::Packet && policy.is_some_and(routes_by_mark);
    let is_set = all().any(|(.., rule)| sets(rule, mark));
    let name = mark.name();
    let (text, code) = match (is_set, is_read) {
        (true, false) => (
            format!("it sets a {name}, and no rule here reads one (ip rule, tc and programs may)"),
            Code::MarkUnread,
        ),
        (false, true) => (
            format!("it asks for a {name}, and no rule here sets one (programs, tc and IPsec may)"),
            Code::MarkUnset,
        ),
        _ => return Vec::new(),
    };
    let concerned = all().filter(|(.., rule)| sets(rule, mark) || asks(rule, mark));
    concerned
        .map(|(table, chain, rule)| {
            let what = (code, Severity::Note, text.clone());
            let mut finding = of_rule(ruleset, table, chain, rule, what);
            finding.about = format!("line {}", rule.line);
            finding
        })
        .collect()
}

/// Routing asks for marks.
fn routes_by_mark(policy: &Policy) -> bool {
    [false, true]
        .into_iter()
        .flat_map(|is_v6| policy.of(is_v6).unwrap_or_default())
        .any(|rule| rule.asks_for_mark())
}

fn asks(rule: &Rule, mark: Mark) -> bool {
    let name = if mark == Mark::Packet { "mark" } else { "connmark" };
    rule.matches.iter().any(|used: &MatchUse| &*used.name == name)
}

fn reads(rule: &Rule, mark: Mark) -> bool {
    let copies = match mark {
        Mark::Packet => ["--save-mark"],
        Mark::Connection => ["--restore-mark"],
    };
    asks(rule, mark) || target(rule).is_some_and(|target| has_option(target, "CONNMARK", &copies))
}

fn sets(rule: &Rule, mark: Mark) -> bool {
    let Some(target) = target(rule) else { return false };
    match mark {
        Mark::Packet => {
            matches!(&*target.name, "MARK" | "HMARK")
                || has_option(target, "CONNMARK", &["--restore-mark"])
                || has_option(target, "TPROXY", &["--tproxy-mark"])
                || has_option(target, "SET", &["--map-mark"])
        }
        Mark::Connection => {
            has_option(target, "CONNMARK", &["--set-xmark", "--save-mark", "--set-mark"])
        }
    }
}

fn has_option(target: &TargetUse, name: &str, options: &[&str]) -> bool {
    let is_given = || {
        let text = target_text(target);
        options.iter().any(|option| text.split(' ').any(|word| word == *option))
    };
    &*target.name == name && is_given()
}
