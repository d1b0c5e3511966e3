//! How the cost of changes grows: with the rules loaded, with the rules of a chain, and with the number of rules
//! added or deleted singly, in one batch, and chain by chain.
//!
//! The layouts are changed in place; the revision pays for its transaction and its text as well, and leaves the
//! rules before it as they were.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::layouts::{Kind, Laid, Layout};
use rules::model::{Family, Rule, Ruleset};
use serde_json::json;

use super::clock;
use super::plan::{Plan, params, row};
use super::update::Live;
use super::workload::{Linear, loaded};
use crate::bench::document::Runs;
use crate::bench::rows::Rows;

/// Time for one point of a curve.
const BUDGET: Duration = Duration::from_millis(150);
/// Changes of one point at most.
const CHANGES: usize = 101;
/// The engine of revisions.
const REVISION: &str = "revision";

/// Curves over the rules that are loaded, those of a chain, and those that are added.
pub(super) fn all(plan: Plan, rows: &mut Rows) {
    let (loaded, per_chain, added): (&[_], &[_], &[_]) = match plan.quick {
        true => (&[1_000, 4_000, 16_000, 64_000], &[4, 64, 1024, 16_384], &[500, 1000, 2000]),
        false => (
            &[1_000, 4_000, 16_000, 64_000, 256_000, 662_000],
            &[1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536],
            &[1_000, 2_000, 4_000, 8_000, 16_000],
        ),
    };
    for rules in loaded {
        one_change("rules.growth.loaded", shape(rules / 100, 100), rows);
    }
    for rules in loaded {
        chain_deleted(shape(rules / 100, 100), rows);
    }
    for rules in per_chain {
        one_change("rules.growth.chain", shape(65_536 / rules, *rules), rows);
    }
    for count in added {
        many_changes(*count, rows);
    }
}

fn shape(chains: usize, rules: usize) -> Linear {
    Linear { family: Family::Ipv4, is_match: false, chains, rules }
}

/// A rule put into the middle of a chain in the middle.
fn one_change(name: &'static str, linear: Linear, rows: &mut Rows) {
    let ruleset = linear.ruleset();
    let params = || {
        let Linear { chains, rules, .. } = linear;
        params(json!({ "loaded": chains * rules, "chains": chains, "per_chain": rules }))
    };
    // Behind the built-in ones.
    let (chain, at) = ((3 + linear.chains / 2) as u32, linear.rules / 2);
    let rule = new_rules(1);
    for kind in Kind::ALL {
        let mut laid = Laid::encode(kind, &ruleset.tables[0], Family::Ipv4);
        let seconds = sampled(|| {
            let (seconds, ()) = clock::once(|| laid.splice(chain, at, 0, &rule));
            laid.splice(chain, at, 1, &[]);
            seconds
        });
        rows.push(row(name, kind.name(), params(), seconds, "s"));
    }
    let mut live = Live::new(&ruleset);
    let name_of = linear.chains / 2;
    let insert = format!("*filter\n-I c{name_of} {} {}\nCOMMIT\n", at + 1, new_rule(0));
    let delete = format!("*filter\n-D c{name_of} {}\nCOMMIT\n", at + 1);
    let seconds = sampled(|| {
        let seconds = live.change(&insert);
        live.change(&delete);
        seconds
    });
    rows.push(row(name, REVISION, params(), seconds, "s"));
}

/// A chain of 100 rules is deleted: layouts take the rules of one in the middle out and keep its head (the study's lazy
/// deletion); a revision deletes one that nothing jumps to, with its head and its name.
fn chain_deleted(linear: Linear, rows: &mut Rows) {
    let ruleset = linear.ruleset();
    let params = || params(json!({ "loaded": linear.chains * linear.rules, "per_chain": 100 }));
    let (chain, rules) = ((3 + linear.chains / 2) as u32, new_rules(100));
    let name = "rules.growth.chain_deleted";
    for kind in Kind::ALL {
        let mut laid = Laid::encode(kind, &ruleset.tables[0], Family::Ipv4);
        let seconds = sampled(|| {
            let (seconds, ()) = clock::once(|| laid.splice(chain, 0, rules.len(), &[]));
            laid.splice(chain, 0, 0, &rules);
            seconds
        });
        rows.push(row(name, kind.name(), params(), seconds, "s"));
    }
    let mut live = Live::new(&ruleset);
    let mut add = String::from("*filter\n-N gone\n");
    for number in 0..100 {
        // Writing to a string does not fail.
        let _ = writeln!(add, "-A gone {}", new_rule(number));
    }
    add.push_str("COMMIT\n");
    let seconds = sampled(|| {
        live.change(&add);
        live.change("*filter\n-F gone\n-X gone\nCOMMIT\n")
    });
    rows.push(row(name, REVISION, params(), seconds, "s"));
}

/// As many samples as there is time for.
fn sampled(mut one: impl FnMut() -> f64) -> Runs {
    let start = Instant::now();
    let mut seconds = vec![one()];
    while seconds.len() < CHANGES && start.elapsed() < BUDGET {
        seconds.push(one());
    }
    Runs::of(seconds)
}

/// Chains that rules are added to, one after the other.
const CHAINS: usize = 100;

/// `count` rules into 100 chains that were empty, in three ways, and out of them again.
fn many_changes(count: usize, rows: &mut Rows) {
    let empty = shape(CHAINS, 0);
    let ruleset = empty.ruleset();
    let rules = new_rules(count);
    let params = || params(json!({ "added": count, "chains": CHAINS }));
    for kind in Kind::ALL {
        let fresh = || Laid::encode(kind, &ruleset.tables[0], Family::Ipv4);
        for (name, add) in WAYS {
            let seconds =
                Runs::of((0..3).map(|_| clock::once(|| add(fresh(), &rules)).0).collect());
            rows.push(row(name, kind.name(), params(), seconds, "s"));
        }
        for (name, add, delete) in WAYS_BACK {
            let one = || {
                let mut laid = add(fresh(), &rules);
                clock::once(|| delete(&mut laid, count)).0
            };
            let seconds = Runs::of((0..3).map(|_| one()).collect());
            rows.push(row(name, kind.name(), params(), seconds, "s"));
        }
    }
    for (name, texts) in texts(count) {
        let seconds = Runs::of((0..3).map(|_| applied(&ruleset, &[], &texts)).collect());
        rows.push(row(name, REVISION, params(), seconds, "s"));
    }
    let [_, (_, batch), (_, chains)] = texts(count);
    for (name, added, texts) in texts_back(count, &batch, &chains) {
        let seconds = Runs::of((0..3).map(|_| applied(&ruleset, added, &texts)).collect());
        rows.push(row(name, REVISION, params(), seconds, "s"));
    }
}

type Add = fn(Laid, &[Arc<Rule>]) -> Laid;

/// The ways to add rules to a layout: each to the next chain in turn; all to one chain; a share to each chain.
const WAYS: [(&str, Add); 3] = [
    ("rules.growth.singly", |mut laid, rules| {
        for (index, rule) in rules.iter().enumerate() {
            laid.splice((3 + index % CHAINS) as u32, usize::MAX, 0, std::slice::from_ref(rule));
        }
        laid
    }),
    ("rules.growth.batch", |mut laid, rules| {
        laid.splice(3, usize::MAX, 0, rules);
        laid
    }),
    ("rules.growth.chains", |mut laid, rules| {
        for (chain, rules) in rules.chunks(rules.len().div_ceil(CHAINS)).enumerate() {
            laid.splice(3 + chain as u32, usize::MAX, 0, rules);
        }
        laid
    }),
];

type Delete = fn(&mut Laid, usize);

/// The ways to delete them, each with what was added: the first one of each chain in turn; all of one chain; each chain's.
const WAYS_BACK: [(&str, Add, Delete); 3] = [
    ("rules.growth.deleted_singly", WAYS[2].1, |laid, count| {
        for index in 0..count {
            laid.splice((3 + index % CHAINS) as u32, 0, 1, &[]);
        }
    }),
    ("rules.growth.deleted_batch", WAYS[1].1, |laid, count| laid.splice(3, 0, count, &[])),
    ("rules.growth.deleted_chains", WAYS[2].1, |laid, count| {
        for chain in 0..CHAINS {
            laid.splice((3 + chain) as u32, 0, count.div_ceil(CHAINS), &[]);
        }
    }),
];

/// The same as texts.
fn texts_back<'t>(
    count: usize,
    batch: &'t [String],
    chains: &'t [String],
) -> [(&'static str, &'t [String], Vec<String>); 3] {
    let singly = (0..count).map(|rule| format!("*filter\n-D c{} 1\nCOMMIT\n", rule % CHAINS));
    let flush = |chain: usize| format!("*filter\n-F c{chain}\nCOMMIT\n");
    [
        (WAYS_BACK[0].0, chains, singly.collect()),
        (WAYS_BACK[1].0, batch, vec![flush(0)]),
        (WAYS_BACK[2].0, chains, (0..CHAINS).map(flush).collect()),
    ]
}

/// The additions as texts, each one transaction.
fn texts(count: usize) -> [(&'static str, Vec<String>); 3] {
    let one = |chain: usize, rules: std::ops::Range<usize>| {
        let mut text = String::from("*filter\n");
        for rule in rules {
            // Writing to a string does not fail.
            let _ = writeln!(text, "-A c{chain} {}", new_rule(rule));
        }
        text + "COMMIT\n"
    };
    let share = count.div_ceil(CHAINS);
    let chains = (0..CHAINS).map(|chain| one(chain, chain * share..count.min((chain + 1) * share)));
    [
        (WAYS[0].0, (0..count).map(|rule| one(rule % CHAINS, rule..rule + 1)).collect()),
        (WAYS[1].0, vec![one(0, 0..count)]),
        (WAYS[2].0, chains.collect()),
    ]
}

/// Seconds of changes that follow others, which are not timed.
fn applied(ruleset: &Ruleset, before: &[String], texts: &[String]) -> f64 {
    let mut live = Live::new(ruleset);
    for text in before {
        live.change(text);
    }
    texts.iter().map(|text| live.change(text)).sum()
}

/// The tests of a rule that no workload has.
fn new_rule(number: usize) -> String {
    format!("-s 192.0.2.{}/32 -d 203.0.{}.{}/32", number >> 16, number >> 8 & 255, number & 255)
}

fn new_rules(count: usize) -> Vec<Arc<Rule>> {
    let mut text = String::from("*filter\n:new - [0:0]\n");
    for number in 0..count {
        // Writing to a string does not fail.
        let _ = writeln!(text, "-A new {}", new_rule(number));
    }
    let mut ruleset = loaded(&(text + "COMMIT\n"), Family::Ipv4);
    let mut chains = ruleset.tables.swap_remove(0).chains;
    chains.pop().map(|chain| chain.rules).unwrap_or_default()
}
