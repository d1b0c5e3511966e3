//! A whole ruleset with its state and its translations, for conversations: only what depends on the clock or on what
//! the host has is left out.

use std::collections::{BTreeMap, BTreeSet};

use rules::model::{MaskedAddr, Rule, Ruleset};

use super::strip::OF_CONVERSATIONS;
use super::{header, rule_text};
use crate::device::Device;
use crate::generate::ruleset::{ChainText, RulesetText, TableText};

/// A ruleset made ready.
#[derive(Debug, Clone)]
pub struct Whole {
    /// The rules that are left.
    pub rules: RulesetText,
    /// How many those are.
    pub kept: usize,
    /// Rules left out, by what they depend on.
    pub left_out: BTreeMap<String, usize>,
    /// Interfaces that rules name, for packets coming in and going out.
    pub devices: [Vec<Device>; 2],
    /// Addresses that rules name, each with the interface behind which it lives, where a rule says so.
    pub addresses: Vec<(MaskedAddr, Option<Device>)>,
    /// Ports that rules name.
    pub ports: Vec<u16>,
}

/// Makes a ruleset ready.
#[must_use]
pub fn whole(ruleset: &Ruleset) -> Whole {
    let mut left_out = BTreeMap::new();
    let mut kept = 0;
    let mut tables = Vec::new();
    for table in &ruleset.tables {
        let origins: Vec<usize> = (0..table.chains.len()).collect();
        let mut chains = Vec::new();
        for chain in &table.chains {
            let mut texts = Vec::new();
            for rule in &chain.rules {
                match OF_CONVERSATIONS.reason(rule) {
                    Some(reason) => *left_out.entry(reason).or_default() += 1,
                    None => texts.push(rule_text(ruleset, table, rule, &origins)),
                }
            }
            kept += texts.len();
            let policy = match chain.base.map(|base| base.policy) {
                None => "-",
                Some(rules::model::Policy::Drop) => "DROP",
                Some(_) => "ACCEPT",
            };
            chains.push(ChainText { name: chain.name.to_string(), policy, rules: texts });
        }
        let name = ruleset.family.table(&table.name).map_or("", |kind| kind.name);
        tables.push(TableText { name, chains });
    }
    let rules = RulesetText { tables };
    let ports = ports(&rules.text());
    let addresses = addresses(ruleset);
    Whole { rules, kept, left_out, devices: devices(ruleset), addresses, ports }
}

fn all_rules(ruleset: &Ruleset) -> impl Iterator<Item = &Rule> {
    ruleset
        .tables
        .iter()
        .flat_map(|table| &table.chains)
        .flat_map(|chain| &chain.rules)
        .map(AsRef::as_ref)
}

fn devices(ruleset: &Ruleset) -> [Vec<Device>; 2] {
    let mut names = [BTreeSet::new(), BTreeSet::new()];
    for header in all_rules(ruleset).filter_map(|rule| rule.header.as_ref()) {
        header::devices(header, &mut names);
    }
    names.map(|names| names.iter().filter_map(|name| Device::new(name)).collect())
}

fn addresses(ruleset: &Ruleset) -> Vec<(MaskedAddr, Option<Device>)> {
    let mut all = Vec::new();
    for header in all_rules(ruleset).filter_map(|rule| rule.header.as_ref()) {
        for (test, behind) in
            [(header.source(), header.input()), (header.destination(), header.output())]
        {
            let Some(test) = test else { continue };
            let behind = behind.as_ref().filter(|behind| !behind.invert && !behind.prefix);
            all.push((test, behind.and_then(|behind| Device::new(&behind.name))));
        }
    }
    all
}

/// The numbers after `--dport` and its like.
fn ports(text: &str) -> Vec<u16> {
    let mut ports = BTreeSet::new();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    for pair in words.windows(2) {
        if let [option, value] = pair
            && (option.starts_with("--dport") || option.starts_with("--sport"))
        {
            ports.extend(value.split([',', ':']).filter_map(|word| word.parse::<u16>().ok()));
        }
    }
    ports.into_iter().collect()
}
