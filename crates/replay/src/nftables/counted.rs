//! A listing with the counters of a replay, in its own language.
//!
//! Contract: a counter that the walk keeps is what packets of all families counted in this replay; a counter that it does not
//! keep, because a test that remembers packets stands before it, is printed without values.

use std::collections::HashMap;

use nft::model::Ruleset;
use nft::stmt::Stmt;
use nft::text::Printer;
use rules::eval::RuleRef;
use rules::model::{Counters, Table};

use super::listing::{Language, Listing};

/// Counters of rules by table, chain and number, in the order in which they stand in the rule.
type Counted<'t> = HashMap<(&'t str, &'t str, u32), Vec<Counters>>;

/// Prints a listing with what these tables' rules counted, each with its number in its ruleset and what tells the counters
/// of its rules.
pub(crate) fn print<'t>(
    listing: &Listing,
    tables: impl Iterator<Item = (u32, &'t Table, &'t dyn Fn(RuleRef) -> Counters)>,
) -> String {
    let mut counted = Counted::new();
    for (number, table, counters) in tables {
        let mut of_table = Counted::new();
        for (at, chain) in (0..).zip(&table.chains) {
            for (rule, place) in chain.rules.iter().zip(0..) {
                let Some(listed) = rule.listed.as_ref().filter(|listed| listed.counts) else {
                    continue;
                };
                let key = (&*table.name, &*chain.name, listed.number);
                let at = RuleRef { table: number, chain: at, rule: place };
                of_table.entry(key).or_default().push(counters(at));
            }
        }
        for (key, counters) in of_table {
            add(counted.entry(key).or_default(), &counters);
        }
    }
    let ruleset = with(&listing.ruleset, &counted);
    let mut printer = Printer { handles: listing.language == Language::Json, ..Printer::default() };
    match listing.language {
        Language::Text => nft::text::print::ruleset(&ruleset, printer),
        Language::Json => nft::json::write::ruleset(&ruleset, &mut printer) + "\n",
    }
}

/// Adds the counters that packets of another family moved.
fn add(to: &mut Vec<Counters>, more: &[Counters]) {
    to.resize(to.len().max(more.len()), Counters::default());
    for (to, more) in to.iter_mut().zip(more) {
        to.packets += more.packets;
        to.bytes += more.bytes;
    }
}

/// The ruleset with these counters.
fn with(ruleset: &Ruleset, counted: &Counted<'_>) -> Ruleset {
    let mut ruleset = ruleset.clone();
    for table in &mut ruleset.tables {
        let name = format!("{} {}", table.family.name(), table.name);
        for chain in &mut table.chains {
            for (rule, number) in chain.rules.iter_mut().zip(1..) {
                let found = counted.get(&(name.as_str(), &*chain.name, number));
                let mut counters = found.into_iter().flatten();
                for stmt in &mut rule.stmts {
                    if let Stmt::Counter(values) = stmt {
                        let next = counters.next();
                        *values = next.map(|counters| (counters.packets, counters.bytes));
                    }
                }
            }
        }
    }
    ruleset
}
