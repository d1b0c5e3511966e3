//! What tests that remember packets share their memory by.

use std::collections::BTreeSet;

use rules::eval::RuleRef;
use rules::ext::MatchUse;
use rules::model::{Action, Ruleset};

use crate::flow::match_text;

/// What a test shares its memory with: every test of a list is as its others are.
pub(super) fn list_of(used: &MatchUse, text: &str) -> Option<String> {
    if let Some(list) = used.body.list() {
        return Some(format!("recent {}", list.name));
    }
    if used.body.asks_for_set() {
        return Some(if used.body.repeats() { SETS } else { EVERYTHING }.to_owned());
    }
    let named = text.split_once("--hashlimit-name ").map(|(_, rest)| rest);
    let name = named.and_then(|rest| rest.split(' ').next());
    let connections = || (&*used.name == "connlimit").then(|| EVERYTHING.to_owned());
    name.map(|name| format!("hashlimit {name}")).or_else(connections)
}

/// What a test says of a packet may depend on those before it; `sets_change` says that rules change sets.
pub(super) fn remembers(used: &MatchUse, sets_change: bool) -> bool {
    let is_of_fixed_set = used.body.asks_for_set() && used.body.repeats() && !sets_change;
    used.body.memory().is_some() && !is_of_fixed_set
}

/// Whether some rule changes sets.
pub(super) fn changes_sets(ruleset: &Ruleset) -> bool {
    let chains = ruleset.tables.iter().flat_map(|table| &table.chains);
    let mut actions = chains.flat_map(|chain| &chain.rules).map(|rule| &rule.action);
    actions.any(|it| matches!(it, Action::Target(target) if target.body.changes_sets()))
}

/// Rules with a test of one of these lists.
pub(super) fn rules_of_lists(ruleset: &Ruleset, lists: &BTreeSet<String>) -> Vec<RuleRef> {
    let mut found = Vec::new();
    for (table, of_table) in (0..).zip(&ruleset.tables) {
        for (chain, of_chain) in (0..).zip(&of_table.chains) {
            for (rule, of_rule) in (0..).zip(&of_chain.rules) {
                let is_of = |used: &MatchUse| {
                    let remembers = used.body.memory().is_some();
                    let list = || list_of(used, &match_text(used));
                    remembers && list().is_some_and(|list| lists.contains(&list))
                };
                if of_rule.matches.iter().any(is_of) {
                    found.push(RuleRef { table, chain, rule });
                }
            }
        }
    }
    found
}

/// Tests of sets that rules change.
pub(super) const SETS: &str = "sets";

/// Tests of how many connections there are, or of counters of sets: they depend on all packets and their verdicts.
pub(super) const EVERYTHING: &str = "everything";
