//! Ticks of the time-stamp counter around the loop over the rules, and around each rule's match and its counter: where the
//! study put them (`xt2_do_table`, and the loop over the extensions of a rule).
//!
//! Contract: of each rule the least of all walks, and the median of all rules, so what else the machine does is not in it.
//! Asking for the counter takes ticks of its own, which have a row and are in every other one.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::layouts::Kind;
use dataplane::publish::tally::{Cell, Local, Tally};
use rules::model::Family;
use serde_json::json;

use super::count::{Counting, Locked};
use super::plan::{Plan, params, row};
use super::sys::ticks;
use super::walk::Laying;
use super::workload::Linear;
use crate::bench::document::Runs;
use crate::bench::limit;
use crate::bench::rows::Rows;

/// What a layout is walked for with a kind of counter.
const BUDGET: Duration = Duration::from_millis(300);
const LAYOUTS: [Kind; 3] = [Kind::TableBlob, Kind::Linked, Kind::PackedChain];
const COUNTINGS: [Counting; 3] = [Counting::Local, Counting::Locked, Counting::LockedTwice];

/// Counts as another does, and notes what a match and a count take.
#[derive(Debug)]
struct Sampled<T> {
    counters: T,
    last: AtomicU64,
    /// Of each rule.
    least: Box<[Least]>,
}

#[derive(Debug)]
struct Least {
    matched: AtomicU64,
    counted: AtomicU64,
}

/// By the one thread that walks.
fn lower(least: &AtomicU64, to: u64) {
    least.store(least.load(Ordering::Relaxed).min(to), Ordering::Relaxed);
}

impl<T: Tally> Tally for Sampled<T> {
    fn new(places: usize) -> Self {
        let most = || AtomicU64::new(u64::MAX);
        let least = (0..places).map(|_| Least { matched: most(), counted: most() }).collect();
        Self { counters: T::new(places), last: AtomicU64::new(0), least }
    }

    #[inline]
    fn count(&self, place: usize, bytes: u64) {
        let matched = ticks().unwrap_or_default();
        self.counters.count(place, bytes);
        let counted = ticks().unwrap_or_default();
        if let Some(least) = self.least.get(place) {
            lower(&least.matched, matched.wrapping_sub(self.last.load(Ordering::Relaxed)));
            lower(&least.counted, counted.wrapping_sub(matched));
        }
        self.last.store(ticks().unwrap_or_default(), Ordering::Relaxed);
    }

    fn cell(&self, _: usize) -> Option<&Cell> {
        None
    }
}

impl<T> Sampled<T> {
    /// The medians of all rules that were hit.
    fn medians(&self) -> [f64; 2] {
        let of = |which: fn(&Least) -> &AtomicU64| {
            let all = self.least.iter().map(|least| which(least).load(Ordering::Relaxed));
            Runs::of(all.filter(|least| *least < u64::MAX).map(|least| least as f64).collect()).value
        };
        [of(|least| &least.matched), of(|least| &least.counted)]
    }
}

/// Rows of the study's ruleset, all of whose rules match.
pub(super) fn rows(plan: Plan, rows: &mut Rows) {
    if ticks().is_none() {
        rows.lacks("rdtsc", "only x86_64 has it".to_owned());
        return;
    }
    let alone = (0..1000).map(|_| (ticks(), black_box(ticks())));
    let alone = alone.filter_map(|(one, other)| other?.checked_sub(one?)).min().unwrap_or_default();
    let of_none = params(json!({ "counters": "none" }));
    let each = Runs::of(vec![alone as f64]);
    rows.push(row("rules.cycles.counter", "rdtsc", of_none, each, "ticks"));
    let linear = Linear::study(Family::Ipv6, true);
    for kind in LAYOUTS {
        let laying = Laying::new(linear, kind);
        for counting in COUNTINGS {
            let measured = |_| match counting {
                Counting::Locked => measured::<Locked<1>>(&laying),
                Counting::LockedTwice => measured::<Locked<2>>(&laying),
                _ => measured::<Local>(&laying),
            };
            let runs: Vec<_> = limit::rounds(plan.runs()).map(measured).collect();
            let names = ["rules.cycles.loop", "rules.cycles.match", "rules.cycles.count"];
            for (at, name) in names.into_iter().enumerate() {
                let each = Runs::of(runs.iter().map(|run| run[at]).collect());
                let rules = linear.chains * linear.rules;
                let of = params(json!({ "counters": counting.name(), "rules": rules }));
                rows.push(row(name, kind.name(), of, each, "ticks/rule"));
            }
        }
    }
}

/// Ticks a rule around the whole walk, and around match and count of each.
fn measured<T: Tally>(laying: &Laying) -> [f64; 3] {
    let mut least = u64::MAX;
    laying.counted::<T, _>(|walk| {
        repeated(|| {
            let before = ticks();
            walk();
            let taken = ticks().zip(before).map_or(0, |(after, before)| after.wrapping_sub(before));
            least = least.min(taken);
        });
    });
    let ((), sampled) = laying.counted::<Sampled<T>, _>(|walk| repeated(walk));
    let [matched, counted] = sampled.medians();
    [least as f64 / laying.linear.run_per_packet() as f64, matched, counted]
}

fn repeated(mut walk: impl FnMut()) {
    let start = Instant::now();
    walk();
    while start.elapsed() < BUDGET / 2 {
        walk();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hit_rule_is_sampled_and_counted() {
        let linear = Linear { chains: 2, rules: 50, ..Linear::study(Family::Ipv6, true) };
        let laying = Laying::new(linear, Kind::PackedChain);
        let ((), sampled) = laying.counted::<Sampled<Local>, _>(|walk| (0..3).for_each(|_| walk()));
        let hit = sampled.least.iter().filter(|of| of.matched.load(Ordering::Relaxed) < u64::MAX);
        assert!(hit.count() >= 100);
        let packets = |cell: &Cell| cell.get().packets == 3;
        assert!((0..100).all(|place| sampled.counters.cell(place).is_some_and(packets)));
        assert!(ticks().is_none() || sampled.medians().iter().all(|ticks| *ticks > 0.0));
    }
}
