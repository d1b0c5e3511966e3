//! What needs no packets: chains that nothing jumps to, or that do nothing; interfaces that are not there.

use std::collections::{BTreeSet, HashSet};

use host::Links;
use rules::model::{Action, Chain, IfaceTest, Ruleset, Table};

use super::code::{Code, Severity};
use super::effort::Effort;
use super::finding::{Finding, of_rule};

/// For each chain of a table, whether a built-in chain leads to it.
pub(super) fn used(table: &Table) -> Vec<bool> {
    let mut used = vec![false; table.chains.len()];
    let bases = table.chains.iter().enumerate().filter(|(_, chain)| chain.base.is_some());
    let mut left: Vec<usize> = bases.map(|(index, _)| index).collect();
    while let Some(index) = left.pop() {
        if std::mem::replace(&mut used[index], true) {
            continue;
        }
        left.extend(table.chains[index].rules.iter().filter_map(|rule| leads_to(&rule.action)));
    }
    used
}

fn leads_to(action: &Action) -> Option<usize> {
    match action {
        Action::Jump(to) | Action::Goto(to) => Some(*to as usize),
        _ => None,
    }
}

/// Chains that are not used, and jumps to such as do nothing.
pub(super) fn findings(ruleset: &Ruleset, table: &Table, used: &[bool]) -> Vec<Finding> {
    let unused = table.chains.iter().enumerate().filter(|(index, _)| !used[*index]);
    let rules = || table.chains.iter().flat_map(|chain| &chain.rules);
    let named: HashSet<usize> = rules().filter_map(|rule| leads_to(&rule.action)).collect();
    let mut found: Vec<Finding> =
        unused.map(|(index, chain)| unused_chain(table, named.contains(&index), chain)).collect();
    let idle: Vec<bool> = table.chains.iter().map(is_idle).collect();
    let mut effort = Effort::showing();
    for (chain, _) in table.chains.iter().zip(used).filter(|(_, used)| **used) {
        for rule in &chain.rules {
            if let Some(to) = leads_to(&rule.action).filter(|to| idle[*to]) {
                let to = &table.chains[to];
                let does = if to.rules.is_empty() { "is empty" } else { "only returns" };
                let text = format!("the chain {} {does}", to.name);
                let what = (Code::IdleChain, Severity::Note, text);
                let mut finding = of_rule(ruleset, table, chain, rule, what);
                finding.about = to.name.to_string();
                let named = &to.rules[..effort.of(to.rules.len())];
                finding.by = named.iter().map(|rule| rule.line).collect();
                found.push(finding);
            }
        }
    }
    found
}

fn unused_chain(table: &Table, is_named: bool, chain: &Chain) -> Finding {
    let text = match is_named {
        true => "only chains that are not used themselves jump here",
        false => "no rule jumps here",
    };
    Finding {
        code: Code::UnusedChain,
        severity: Severity::Note,
        table: table.name.to_string(),
        chain: chain.name.to_string(),
        line: chain.line,
        rule: format!("-N {}", chain.name),
        text: text.to_owned(),
        about: chain.name.to_string(),
        by: Vec::new(),
        witness: None,
    }
}

fn is_idle(chain: &Chain) -> bool {
    let returns = chain.fall_through == rules::model::FallThrough::Return;
    returns && chain.rules.iter().all(|rule| matches!(rule.action, Action::Return))
}

/// Rules that want a packet from or to an interface that the host does not have.
pub(super) fn lacking_interfaces(ruleset: &Ruleset, table: &Table, links: &Links) -> Vec<Finding> {
    let mut found = Vec::new();
    let names: BTreeSet<&str> = links.all().iter().map(|link| &*link.name).collect();
    for chain in &table.chains {
        for rule in &chain.rules {
            let header = rule.header.iter();
            let tests = header.flat_map(|header| [("-i", header.input()), ("-o", header.output())]);
            for (option, test) in tests {
                let Some(test) = test.as_ref().filter(|test| lacks(&names, test)) else { continue };
                let end = if test.prefix { "+" } else { "" };
                let text = format!("the host has no interface {option} {}{end}", test.name);
                let what = (Code::NoSuchInterface, Severity::Warning, text);
                found.push(of_rule(ruleset, table, chain, rule, what));
            }
        }
    }
    found
}

fn lacks(names: &BTreeSet<&str>, test: &IfaceTest) -> bool {
    let first = names.range(&*test.name..).next();
    !test.invert && first.is_none_or(|name| !test.accepts(name))
}
