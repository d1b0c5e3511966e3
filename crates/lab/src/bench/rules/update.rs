//! Changes of the rules: one at a time, and ten thousand at once.
//!
//! A change is timed from its text to the moment in which whoever walks next walks the new rules. What is left
//! over of the old revision is given back after that.

use std::fmt::Write;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rules::model::{Family, Ruleset};
use rules::revision::{Numbers, Revision};
use rules::save::{LoadOptions, load};
use serde_json::json;

use super::clock;
use super::fan::LARGE;
use super::plan::{Plan, params, row};
use super::workload::Linear;
use crate::bench::document::{Row, Runs};
use crate::bench::limit;
use crate::bench::rows::Rows;

/// The engine that walks published revisions.
const ENGINE: &str = "packed_chain";
/// Rules of the bulk transaction.
pub(super) const BANS: usize = 10_000;

/// Rules in use.
#[derive(Debug)]
pub(super) struct Live {
    current: Mutex<Arc<Revision>>,
    numbers: Numbers,
}

impl Live {
    /// Puts rules to use.
    ///
    /// # Panics
    /// The rules, which are our own, form a loop.
    pub(super) fn new(ruleset: &Ruleset) -> Self {
        let mut numbers = Numbers::default();
        let revision = Revision::first(ruleset, &mut numbers);
        Self { current: Mutex::new(Arc::new(revision)), numbers }
    }

    /// The rules as they are.
    pub(super) fn now(&self) -> Arc<Revision> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Seconds until a change is visible.
    ///
    /// # Panics
    /// The text, which is our own, is not taken.
    pub(super) fn change(&mut self, text: &str) -> f64 {
        self.make(|now, numbers| now.changed_by(text, numbers).map_err(|error| error.to_string()))
    }

    /// Seconds until a whole ruleset is visible in place of the one before.
    ///
    /// # Panics
    /// The text, which is our own, is not taken.
    pub(super) fn reload(&mut self, text: &str, family: Family) -> f64 {
        self.make(|now, numbers| {
            let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
            let loaded = load(text, &options).map_err(|error| error.to_string())?;
            now.replaced_by(loaded.ruleset, numbers).map_err(|refused| refused.to_string())
        })
    }

    fn make(
        &mut self,
        next: impl FnOnce(&Revision, &mut Numbers) -> Result<Revision, String>,
    ) -> f64 {
        let now = self.now();
        let start = Instant::now();
        let next = match next(&now, &mut self.numbers) {
            Ok(next) => Arc::new(next),
            Err(error) => panic!("a change is not taken: {error}"),
        };
        let dropped = next.dropped().clone();
        let old =
            mem::replace(&mut *self.current.lock().unwrap_or_else(PoisonError::into_inner), next);
        let seconds = start.elapsed().as_secs_f64();
        // Nobody walks the old one.
        drop((now, old));
        self.numbers.free(&dropped);
        seconds
    }
}

/// Rules to be changed, and where.
#[derive(Debug, Clone)]
pub(super) struct Site {
    /// In the parameters of its rows.
    pub(super) shape: &'static str,
    pub(super) family: Family,
    pub(super) rules: usize,
    /// The chain that is changed, and a rule number in its middle.
    pub(super) chain: String,
    pub(super) middle: usize,
}

impl Site {
    /// 100 chains of 1,000 rules, or one of 100,000.
    pub(super) fn of(linear: Linear) -> Self {
        let shape = if linear.chains == 1 { "1 x 100000" } else { "100 x 1000" };
        Self {
            shape,
            family: linear.family,
            rules: linear.chains * linear.rules,
            chain: format!("c{}", linear.chains / 2),
            middle: linear.rules / 2,
        }
    }

    /// The tests of a rule that is not there yet.
    pub(super) fn rule(&self) -> &'static str {
        if self.family == Family::Ipv6 {
            "-s 2001:db8::66/128 -d 2001:db8::99/128"
        } else {
            "-s 203.0.113.66/32 -d 203.0.113.99/32"
        }
    }

    /// Many sources to be dropped.
    pub(super) fn bans(&self) -> String {
        let mut text = String::from("*filter\n");
        for ban in 0..BANS {
            let (high, low) = (ban >> 8, ban & 255);
            // Writing to a string does not fail.
            let _ = match self.family {
                Family::Ipv6 => {
                    writeln!(text, "-A {} -s 2001:db8:6::{high:x}:{low:x}/128 -j DROP", self.chain)
                }
                _ => writeln!(text, "-A {} -s 198.19.{high}.{low}/32 -j DROP", self.chain),
            };
        }
        text + "COMMIT\n"
    }
}

/// The three single changes; what undoes them in between is not timed.
pub(super) fn single(plan: Plan, live: &mut Live, site: &Site) -> [Runs; 3] {
    let Site { chain, middle, .. } = site;
    let rule = site.rule();
    let command = |text: String| format!("*filter\n{text}\nCOMMIT\n");
    let append = command(format!("-A {chain} {rule}"));
    let delete = command(format!("-D {chain} {rule}"));
    let insert = command(format!("-I {chain} {middle} {rule}"));
    let replace = command(format!("-R {chain} {middle} {rule} -j DROP"));
    let remove = command(format!("-D {chain} {middle}"));
    let mut seconds = [const { Vec::new() }; 3];
    for _ in 0..plan.changes() {
        seconds[0].push(live.change(&append));
        seconds[1].push(live.change(&delete));
        live.change(&insert);
        seconds[2].push(live.change(&replace));
        live.change(&remove);
    }
    seconds.map(Runs::of)
}

/// Names of the rows of [`single`].
pub(super) const NAMES: [&str; 3] =
    ["rules.update.append", "rules.update.delete", "rules.update.replace"];

/// Single changes and whole readings without a peer.
pub(super) fn all(plan: Plan, rows: &mut Rows) {
    let study = Linear::study(Family::Ipv6, false);
    for linear in [study, Linear { chains: 1, rules: 100_000, ..study }] {
        let text = linear.text();
        let site = Site::of(linear);
        let mut live = Live::new(&linear.ruleset());
        single_rows(plan, &mut live, &site, rows);
        rows.push(reading(plan, &mut live, &site, &text));
    }
    if !plan.quick {
        let tree = LARGE.tree();
        let mut live = Live::new(&tree.ruleset());
        let chain = format!("c{}", LARGE.chains / 2);
        let middle = 1;
        let (family, rules) = (Family::Ipv4, LARGE.rules);
        let site = Site { shape: "fan 662k", family, rules, chain, middle };
        single_rows(plan, &mut live, &site, rows);
    }
}

fn single_rows(plan: Plan, live: &mut Live, site: &Site, rows: &mut Rows) {
    for (name, seconds) in NAMES.into_iter().zip(single(plan, live, site)) {
        rows.push(row(name, ENGINE, site_params(site), seconds, "s"));
    }
}

pub(super) fn site_params(site: &Site) -> serde_json::Map<String, serde_json::Value> {
    params(json!({ "shape": site.shape, "rules": site.rules }))
}

/// One rule appended by reading the whole text again.
fn reading(plan: Plan, live: &mut Live, site: &Site, text: &str) -> Row {
    let more = format!("-A {} {}\nCOMMIT\n", site.chain, site.rule());
    let changed = text.replace("COMMIT\n", &more);
    let mut seconds = Vec::new();
    for _ in limit::rounds(plan.runs()) {
        seconds.push(live.reload(&changed, site.family));
        live.reload(text, site.family);
    }
    row("rules.update.append", "whole text", site_params(site), Runs::of(seconds), "s")
}

/// Ten thousand bans in one transaction, and a transaction that takes them out.
pub(super) fn bans(plan: Plan, live: &mut Live, site: &Site) -> Runs {
    let text = site.bans();
    let undo = text.replace("\n-A", "\n-D");
    let seconds = limit::rounds(plan.runs()).map(|_| {
        let seconds = live.change(&text);
        live.change(&undo);
        seconds
    });
    Runs::of(seconds.collect())
}

/// The same without a peer.
pub(super) fn bulk(plan: Plan, rows: &mut Rows) {
    let study = Linear::study(Family::Ipv6, false);
    for linear in [study, Linear { chains: 1, rules: 100_000, ..study }] {
        let site = Site::of(linear);
        let mut live = Live::new(&linear.ruleset());
        let seconds = bans(plan, &mut live, &site);
        rows.push(row("rules.bulk", ENGINE, bulk_params(&site), seconds, "s"));
    }
}

pub(super) fn bulk_params(site: &Site) -> serde_json::Map<String, serde_json::Value> {
    params(json!({ "shape": site.shape, "rules": site.rules, "bans": BANS }))
}

/// Text to rules to be walked, within the process.
pub(super) fn load_rows(plan: Plan, rows: &mut Rows) {
    for linear in [Family::Ipv6, Family::Ipv4].map(|family| Linear::study(family, true)) {
        let text = linear.text();
        let seconds = limit::rounds(plan.runs()).map(|_| {
            let options = LoadOptions { family: Some(linear.family), ..LoadOptions::default() };
            let (seconds, _) = clock::once(|| {
                load(&text, &options).map(|loaded| {
                    let revision = Revision::first(&loaded.ruleset, &mut Numbers::default());
                    (revision, loaded)
                })
            });
            seconds
        });
        let family = if linear.family == Family::Ipv6 { "v6" } else { "v4" };
        let params = params(json!({ "rules": 100_000, "family": family, "of": "text in memory" }));
        rows.push(row("rules.load", ENGINE, params, Runs::of(seconds.collect()), "s"));
    }
}
