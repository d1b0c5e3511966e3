//! Lines of chains and rules in the text of a listing.

use std::collections::HashMap;

use nft::model::{Rule, Ruleset};
use nft::text::Printer;

/// The lines that declare chains, by table and chain, where the text has blocks as `nft list ruleset` prints them.
pub(crate) fn of_chains(text: &str) -> HashMap<(&str, &str), u32> {
    let mut lines = HashMap::new();
    let mut table = "";
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        let Some((opened, rest)) = line.split_once('{') else { continue };
        let (opened, rest) = (opened.trim_end(), rest.trim_start());
        if !rest.is_empty() && !rest.starts_with('#') {
            continue;
        }
        if let Some(name) = opened.strip_prefix("table ") {
            table = name;
        } else if let Some(chain) = opened.strip_prefix("chain ") {
            lines.insert((table, chain), number);
        }
    }
    lines
}

/// Forgets the lines of rules that stand in included files.
pub(super) fn forget_others(ruleset: &mut Ruleset) {
    for rule in rules(ruleset).filter(|rule| rule.position.file > 0) {
        rule.position.line = 0;
    }
}

/// Gives rules the lines that they have in what nft prints of the ruleset.
pub(super) fn find(ruleset: &mut Ruleset, text: &str) {
    let mut lines = text.lines().map(str::trim).zip(1..);
    for table in &mut ruleset.tables {
        let family = table.family;
        for rule in table.chains.iter_mut().flat_map(|chain| &mut chain.rules) {
            let printed = nft::text::print::rule(rule, Printer { family, ..Printer::default() });
            let first = printed.trim().lines().next().unwrap_or("").to_owned();
            // Rules stand in the text in their order.
            let Some((_, line)) = lines.by_ref().find(|(line, _)| *line == first) else { return };
            rule.position.line = line;
        }
    }
}

fn rules(ruleset: &mut Ruleset) -> impl Iterator<Item = &mut Rule> {
    let chains = ruleset.tables.iter_mut().flat_map(|table| &mut table.chains);
    chains.flat_map(|chain| &mut chain.rules)
}
