//! Ticks of the time-stamp counter around the loop over the rules, and around each rule's match and its counter: where the
//! study put them (`xt2_do_table`, and the loop over the extensions of a rule).
//!
//! Contract: the loop takes the least of all walks, a match and a count the mean of all rules and walks, those left out that
//! took [`MOST`] ticks or more, which were interrupted. Asking for the counter takes ticks of its own, which have a row and are
//! in every other one, and processors count it in steps: of AMD's newer ones in steps of some 25.

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

/// Ticks that only an interruption takes.
const MOST: usize = 4096;

/// Counts as another does, and notes what a match and a count take.
#[derive(Debug)]
struct Sampled<T> {
    counters: T,
    last: AtomicU64,
    matched: Samples,
    counted: Samples,
}

/// How often each number of ticks was seen, by the one thread that walks.
#[derive(Debug)]
struct Samples(Box<[AtomicU64]>);

impl Samples {
    fn new() -> Self {
        Self((0..MOST).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    fn add(&self, ticks: u64) {
        let seen = usize::try_from(ticks).ok().and_then(|ticks| self.0.get(ticks));
        seen.into_iter().for_each(|seen| {
            seen.store(seen.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        });
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|seen| seen.load(Ordering::Relaxed)).sum()
    }

    fn mean(&self) -> f64 {
        let all = self.0.iter().enumerate();
        let sum: u64 = all.map(|(ticks, seen)| ticks as u64 * seen.load(Ordering::Relaxed)).sum();
        sum as f64 / self.count() as f64
    }
}

impl<T: Tally> Tally for Sampled<T> {
    fn new(places: usize) -> Self {
        let [matched, counted] = [Samples::new(), Samples::new()];
        Self { counters: T::new(places), last: AtomicU64::new(0), matched, counted }
    }

    #[inline]
    fn count(&self, place: usize, bytes: u64) {
        let matched = ticks().unwrap_or_default();
        self.counters.count(place, bytes);
        let counted = ticks().unwrap_or_default();
        self.matched.add(matched.wrapping_sub(self.last.load(Ordering::Relaxed)));
        self.counted.add(counted.wrapping_sub(matched));
        self.last.store(ticks().unwrap_or_default(), Ordering::Relaxed);
    }

    fn cell(&self, _: usize) -> Option<&Cell> {
        None
    }
}

/// Rows of the study's ruleset, all of whose rules match.
pub(super) fn rows(plan: Plan, rows: &mut Rows) {
    if ticks().is_none() {
        rows.lacks("rdtsc", "only x86_64 has it".to_owned());
        return;
    }
    let alone = Samples::new();
    for _ in 0..100_000 {
        let one = black_box(ticks()).unwrap_or_default();
        alone.add(black_box(ticks()).unwrap_or_default().wrapping_sub(one));
    }
    let of_none = params(json!({ "counters": "none" }));
    let each = Runs::of(vec![alone.mean()]);
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
    let a_rule = least as f64 / laying.linear.run_per_packet() as f64;
    [a_rule, sampled.matched.mean(), sampled.counted.mean()]
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
        assert!(sampled.matched.count() <= 306 && sampled.counted.count() >= 200, "{sampled:?}");
        let packets = |cell: &Cell| cell.get().packets == 3;
        assert!((0..100).all(|place| sampled.counters.cell(place).is_some_and(packets)));
        let samples = [0, 2, 4, MOST as u64].into_iter().fold(Samples::new(), |samples, ticks| {
            samples.add(ticks);
            samples
        });
        assert_eq!((samples.count(), samples.mean()), (3, 2.0), "an interruption is left out");
    }
}
