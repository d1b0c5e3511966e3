//! The destination that a rule of nat gives, in words and for one packet.

use super::answer::Translated;
use rules::eval::{By, RuleRef};
use rules::model::{Action, Ruleset};
use rules::nat::{Mapping, Ports};
use rules::predicate::{Field, Values};
use rules::save::print_rule;
use std::net::IpAddr;

fn mapping(ruleset: &Ruleset, by: By) -> Option<Mapping> {
    let By::Rule(at) = by else { return None };
    let chain = &ruleset.tables[at.table as usize].chains[at.chain as usize];
    match &chain.rules[at.rule as usize].action {
        Action::Target(target) => target.body.mapping(),
        _ => None,
    }
}

/// What a rule makes of destinations.
pub(super) fn shown(ruleset: &Ruleset, by: By) -> Translated {
    let (line, text) = decider(ruleset, by);
    let to = mapping(ruleset, by).map_or_else(|| "another address".to_owned(), |it| words(&it));
    Translated { line, by: text, to }
}

/// `10.0.0.5:80`, `10.0.0.5-10.0.0.9`, `this host:3128`.
fn words(mapping: &Mapping) -> String {
    let range = mapping.range;
    let address = match range.addresses {
        Some([low, high]) if low == high => match (low, range.ports) {
            (IpAddr::V6(low), Some(_)) => format!("[{low}]"),
            _ => low.to_string(),
        },
        Some([low, high]) => format!("{low}-{high}"),
        None if mapping.redirects => "this host".to_owned(),
        None => "the same address".to_owned(),
    };
    match range.ports {
        Some(Ports { first, last, .. }) if first == last => format!("{address}:{first}"),
        Some(Ports { first, last, .. }) => format!("{address}:{first}-{last}"),
        None => address,
    }
}

/// A packet with the destination that a rule gives it, where that is one address of another host.
pub(crate) fn sent_on(ruleset: &Ruleset, by: By, values: &Values) -> Option<Values> {
    let mapping = mapping(ruleset, by).filter(|it| !it.redirects)?;
    let mut values = values.clone();
    let [low, high] = mapping.range.addresses?;
    if low != high {
        return None;
    }
    values.set(Field::Destination, super::question::number(low));
    if values.number(Field::DestinationType) != 0 {
        const UNICAST: u128 = 1;
        values.set(Field::DestinationType, UNICAST);
    }
    match mapping.range.ports {
        Some(Ports { first, last, base: None }) if first == last => {
            values.set(Field::DestinationPort, first.into());
        }
        None => {}
        Some(_) => return None,
    }
    Some(values)
}

fn rule_text(ruleset: &Ruleset, at: RuleRef) -> (u32, String) {
    let table = &ruleset.tables[at.table as usize];
    let chain = &table.chains[at.chain as usize];
    let rule = &chain.rules[at.rule as usize];
    (rule.line, print_rule(ruleset.family, table, chain, rule))
}

/// What decides, with its line.
pub(super) fn decider(ruleset: &Ruleset, by: By) -> (u32, String) {
    match by {
        By::Rule(at) | By::HotDrop(at) => rule_text(ruleset, at),
        By::Policy { table, chain } => {
            let chain = &ruleset.tables[table as usize].chains[chain as usize];
            let policy = chain.base.map_or_else(String::new, |base| base.policy.to_string());
            (chain.line, format!("policy {policy} of {}", chain.name))
        }
    }
}
