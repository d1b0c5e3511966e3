//! A listing with the counters of a replay, in its own language.
//!
//! Contract: a counter that the walk keeps is what packets of all families counted in this replay; a counter that it does not
//! keep, because a test that remembers packets stands before it, or because no packet walks its rule here, is printed without
//! values, and so are counters of elements. Rules of iptables-nft count as `iptables-save` has them, where a chain has as
//! many rules in both.

use std::collections::HashMap;

use nft::expr::Expr;
use nft::model::{Body, Chain, Rule, Ruleset, Set, Table};
use nft::stmt::{Stmt, Verdict};
use nft::text::Printer;
use nft::types::{Data, Value};
use rules::eval::RuleRef;
use rules::model::{self, Counters};

use super::listing::{Language, Listing};

/// A table that packets walked.
pub(crate) struct Walked<'t> {
    /// The name that the listing has for it, with its family.
    pub(crate) name: String,
    /// The number that it has in its ruleset.
    pub(crate) number: u32,
    pub(crate) table: &'t model::Table,
    /// What tells the counters of its rules.
    pub(crate) counters: &'t dyn Fn(RuleRef) -> Counters,
}

/// Rules by table, chain and number.
type Counted<'t> = HashMap<(&'t str, &'t str, u32), RuleCounters>;

/// What a rule counted.
#[derive(Default)]
struct RuleCounters {
    /// Values of its counters, in the order in which they stand in it.
    own: Vec<Counters>,
    /// Packets that met all its tests.
    matched: Option<Counters>,
}

/// Prints a listing with what rules of these tables counted.
pub(crate) fn print(listing: &Listing, tables: &[Walked<'_>]) -> String {
    let chains = chains_of(&listing.ruleset);
    let mut counted = Counted::new();
    for table in tables {
        for (key, counters) in of_table(table, &chains) {
            counted.entry(key).or_default().add(&counters);
        }
    }
    let mut ruleset = listing.ruleset.clone();
    for table in &mut ruleset.tables {
        count(table, &counted);
    }
    let mut printer = Printer { handles: listing.language == Language::Json, ..Printer::default() };
    match listing.language {
        Language::Text => nft::text::print::ruleset(&ruleset, printer),
        Language::Json => nft::json::write::ruleset(&ruleset, &mut printer) + "\n",
    }
}

/// Chains of a listing by table and name.
type Chains<'l> = HashMap<(String, &'l str), &'l Chain>;

fn chains_of(ruleset: &Ruleset) -> Chains<'_> {
    let chains = ruleset.tables.iter().flat_map(|table| {
        let name = format!("{} {}", table.family.name(), table.name);
        table.chains.iter().map(move |chain| ((name.clone(), &*chain.name), chain))
    });
    chains.collect()
}

fn of_table<'t>(of: &'t Walked<'_>, chains: &Chains<'_>) -> Counted<'t> {
    let mut counted = Counted::new();
    let listed = |chain: &model::Chain| chains.get(&(of.name.clone(), &*chain.name)).copied();
    // A base chain that is at no hook here, and what it may call.
    let is_apart = |chain: &model::Chain| {
        chain.base.is_none() && listed(chain).is_some_and(|chain| chain.attached.is_some())
    };
    let calls =
        |chain: &model::Chain| listed(chain).is_some_and(|chain| chain.rules.iter().any(may_call));
    let is_called = of.table.chains.iter().any(|chain| is_apart(chain) && calls(chain));
    for (at, chain) in (0..).zip(&of.table.chains) {
        if is_apart(chain) || is_called && chain.base.is_none() {
            continue;
        }
        let is_whole = listed(chain).is_some_and(|listed| listed.rules.len() == chain.rules.len());
        for (rule, place) in chain.rules.iter().zip(0..) {
            let counters = (of.counters)(RuleRef { table: of.number, chain: at, rule: place });
            let Some(listed) = &rule.listed else {
                if is_whole {
                    let own = RuleCounters { own: vec![counters], matched: None };
                    counted.insert((&of.name, &chain.name, place + 1), own);
                }
                continue;
            };
            let of_rule = counted.entry((&of.name, &chain.name, listed.number)).or_default();
            if listed.counts {
                of_rule.own.push(counters);
            }
            if !listed.is_part {
                of_rule.matched = Some(counters);
            }
        }
    }
    counted
}

/// Whether a rule may call a chain.
fn may_call(rule: &Rule) -> bool {
    rule.stmts.iter().any(|stmt| {
        matches!(stmt, Stmt::Vmap(..) | Stmt::Verdict(Verdict::Jump(_) | Verdict::Goto(_)))
    })
}

impl RuleCounters {
    /// Adds what packets of another family counted.
    fn add(&mut self, more: &Self) {
        self.own.resize(self.own.len().max(more.own.len()), Counters::default());
        for (to, more) in self.own.iter_mut().zip(&more.own) {
            add(to, more);
        }
        match (&mut self.matched, &more.matched) {
            (Some(to), Some(more)) => add(to, more),
            (to, more) => *to = *more,
        }
    }
}

fn add(to: &mut Counters, more: &Counters) {
    to.packets += more.packets;
    to.bytes += more.bytes;
}

/// Puts counters into a table.
fn count(table: &mut Table, counted: &Counted<'_>) {
    let name = format!("{} {}", table.family.name(), table.name);
    // Of each named counter what rules counted: nothing once a rule may have counted more.
    let mut named: HashMap<Box<str>, Option<Counters>> = HashMap::new();
    let mut is_open = false;
    for chain in &mut table.chains {
        for (rule, number) in chain.rules.iter_mut().zip(1..) {
            let found = counted.get(&(name.as_str(), &*chain.name, number));
            let matched = found.and_then(|counters| counters.matched);
            for (at, stmt) in rule.stmts.iter().enumerate() {
                let Stmt::Named(use_of) = stmt else { continue };
                if use_of.kind.name != "counter" {
                    continue;
                }
                let Expr::Value(Value { data: Data::Text(counter), .. }) = &use_of.name else {
                    // A map says which.
                    is_open = true;
                    continue;
                };
                let all = named.entry(counter.clone()).or_insert(Some(Counters::default()));
                match (all.as_mut(), matched.filter(|_| reaches(&rule.stmts, at))) {
                    (Some(all), Some(matched)) => add(all, &matched),
                    _ => *all = None,
                }
            }
            let mut own = found.into_iter().flat_map(|counters| &counters.own);
            for stmt in &mut rule.stmts {
                if let Stmt::Counter(values) = stmt {
                    *values = own.next().map(values_of);
                }
            }
        }
    }
    for object in &mut table.objects {
        if let Body::Counter(values) = &mut object.body {
            let known = named.get(&object.name).copied();
            let known = known.unwrap_or(Some(Counters::default()));
            *values = known.filter(|_| !is_open).as_ref().map(values_of);
        }
    }
    table.sets.iter_mut().for_each(forget_elements);
}

fn values_of(counters: &Counters) -> (u64, u64) {
    (counters.packets, counters.bytes)
}

/// Whether every packet that meets all tests of a rule, and no other, comes to a statement of it.
fn reaches(stmts: &[Stmt], at: usize) -> bool {
    let is_counter = |stmt: &Stmt| match stmt {
        Stmt::Counter(_) => true,
        Stmt::Named(named) => named.kind.name == "counter",
        _ => false,
    };
    let goes_on = |stmt: &Stmt| {
        is_counter(stmt)
            || matches!(stmt, Stmt::Log(_) | Stmt::Mangle(..) | Stmt::Notrack | Stmt::Last(_))
    };
    let after_tests =
        stmts.iter().rposition(|stmt| !goes_on(stmt) && !ends(stmt)).map_or(0, |last| last + 1);
    let tests = &stmts[..after_tests];
    at >= after_tests
        && tests.iter().all(|stmt| tests_packets(stmt) || is_counter(stmt))
        && stmts[after_tests..at].iter().all(goes_on)
}

/// Whether a statement is only a test.
fn tests_packets(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Compare(_) | Stmt::Limit(_) | Stmt::Quota(_) | Stmt::CtCount(..) => true,
        Stmt::Named(named) => matches!(named.kind.name, "limit" | "quota"),
        _ => false,
    }
}

/// Whether a statement is the last of its rule.
fn ends(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Verdict(_) | Stmt::Reject(_) | Stmt::Nat(_) | Stmt::Queue(_))
}

/// Leaves out what elements counted before.
fn forget_elements(set: &mut Set) {
    for stmt in set.elements.iter_mut().flat_map(|element| &mut element.stmts) {
        if let Stmt::Counter(values) = stmt {
            *values = None;
        }
    }
}
