//! The systems of the study: its tables under its ways to share work, and loops that are timed with each.

use std::time::Instant;

use engines::catalogue::Kind;

use super::super::{Prepared, Setting, run_once};
use crate::bench::limit;
use crate::studies::orchestrate::Orchestration;
use crate::workload::{PRESETS, Preset};

/// The study's machine had 8 logical cores, and it used as many threads.
pub(super) const THREADS: usize = 8;
/// The study's tables, its future work, and ours.
pub(super) const TABLES: [Kind; 7] = [
    Kind::Matrix,
    Kind::ConcurrentMap,
    Kind::StripedMap,
    Kind::SplitOrdered,
    Kind::CachedExact,
    Kind::CachedEpoch,
    Kind::Tamis,
];

/// A table under a way to share work.
pub(super) type System = (Kind, Orchestration);

/// Milliseconds of one loop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loop {
    /// The table's making.
    pub(super) made: f64,
    pub(super) critical: f64,
    pub(super) overall: f64,
}

pub(super) fn systems() -> impl Iterator<Item = System> {
    let ways = [Orchestration::WorkerPool, Orchestration::Stream];
    let all = ways.into_iter().flat_map(|way| TABLES.map(|table| (table, way)));
    all.chain([(Kind::Serial, Orchestration::Serial)])
}

/// Preset 1 with the next power of two of addresses.
pub(super) fn preset(addresses: usize) -> Preset {
    Preset { addresses_log: addresses.next_power_of_two().ilog2(), ..PRESETS[0] }
}

/// This number of loops of each setting, which take turns; each loop on a table of its own.
pub(super) fn pass(
    settings: &[Setting],
    prepared: &Prepared,
    loops: usize,
) -> Result<Vec<Vec<Loop>>, String> {
    let mut found = vec![Vec::with_capacity(loops); settings.len()];
    for _ in limit::rounds(loops) {
        for (setting, found) in settings.iter().zip(&mut found) {
            found.push(one_loop(setting, prepared)?);
        }
    }
    Ok(found)
}

fn one_loop(setting: &Setting, prepared: &Prepared) -> Result<Loop, String> {
    let millis = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    let started = Instant::now();
    let mut engine = prepared.empty(setting.engine, setting.tuning)?;
    let made = started.elapsed();
    prepared.tell(&mut engine);
    let ran = run_once(setting, prepared, &mut engine)?;
    let [made, critical, took] = [made, ran.outcome.elapsed, ran.took].map(millis);
    Ok(Loop { made, critical, overall: made + took })
}
