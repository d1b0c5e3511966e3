//! Study 2: three tables of permissions, with threads and with streams, and a serial firewall.
//!
//! As the study: 1,000 to 1,000,000 packets, 100 and 1,000 addresses, preset 1, 8 threads, mean of 100
//! loops, the second of two passes, critical time (from the tables' being there) and overall time (with
//! making them), by default every source is accepted; the fingerprint step by step, which is what its times
//! show. Not as the study: addresses are 128 and 1,024 (its generator takes powers of two), PNG is kept so
//! that lifting a ban restores R, tables are changed and read in one step. docs/studies.md says more.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use crate::studies::orchestrate::{Bins, Orchestration};
use engines::catalogue::Kind;

use super::figure::{self, Labels, Line};
use super::published::{STUDY2, STUDY2_SIZES};
use super::{Plan, Prepared, Row, Setting, Track, run_once};
use crate::workload::{PRESETS, Preset, Variant};

/// The study's machine had 8 logical cores, and it used as many threads.
const THREADS: usize = 8;
/// Packets at which spaces are doubled until the matrix loses.
const GROWN: usize = 20_000;

/// A system of the study, ours among them.
type System = (Kind, Orchestration);

/// Critical and overall milliseconds by system, packets and addresses.
type Times = BTreeMap<(&'static str, &'static str, usize, usize), (f64, f64)>;

fn systems() -> Vec<System> {
    let tables = [Kind::Matrix, Kind::ConcurrentMap, Kind::StripedMap, Kind::Tamis];
    let ways = [Orchestration::WorkerPool, Orchestration::Stream];
    let all = ways.into_iter().flat_map(|way| tables.map(|table| (table, way)));
    all.chain([(Kind::Serial, Orchestration::Serial)]).collect()
}

/// Runs the study.
///
/// # Errors
/// A system cannot be run, or a figure cannot be written.
pub fn run(
    plan: &Plan,
    figures: Option<&Path>,
    say: &mut dyn FnMut(Row),
) -> Result<String, String> {
    let mut times = Times::new();
    for (packets, addresses) in sizes(plan) {
        let prepared = Prepared::new(Variant::D, &preset(addresses), true, packets);
        for system in systems() {
            let passes = [pass(system, &prepared, plan)?, pass(system, &prepared, plan)?];
            let [_, (critical, overall)] = passes;
            for (name, millis) in
                [("access.study2.critical", critical), ("access.study2.overall", overall)]
            {
                say(Row::new(name, system.0.name(), "ms", &[millis])
                    .with("orchestration", system.1.name())
                    .with("packets", packets)
                    .with("addresses", addresses)
                    .with("loops", loops(plan, packets)));
            }
            let key = (system.0.name(), system.1.name(), packets, addresses);
            times.insert(key, (critical, overall));
        }
    }
    let growth = growth(plan, say)?;
    if let Some(dir) = figures {
        draw(dir, &times, &growth)?;
    }
    Ok(table(&times))
}

/// The study's sizes as far as the plan goes, and one beyond a million where it goes on.
fn sizes(plan: &Plan) -> Vec<(usize, usize)> {
    let beyond = [(10_000_000, 100), (10_000_000, 1_000)];
    let all = STUDY2_SIZES.into_iter().chain(beyond);
    all.filter(|(packets, _)| *packets <= plan.packets).collect()
}

/// Preset 1 with the next power of two of addresses.
fn preset(addresses: usize) -> Preset {
    Preset { addresses_log: addresses.next_power_of_two().ilog2(), ..PRESETS[0] }
}

/// As many loops as the plan has, fewer where a loop takes seconds.
fn loops(plan: &Plan, packets: usize) -> usize {
    plan.runs.min((100_000_000 / packets / 10).max(1))
}

/// Mean critical and overall milliseconds.
fn pass(system: System, prepared: &Prepared, plan: &Plan) -> Result<(f64, f64), String> {
    let loops = loops(plan, prepared.packets().len());
    let threads = if system.1 == Orchestration::Serial { 1 } else { THREADS };
    let setting = Setting {
        orchestration: system.1,
        bins: Bins::SharedMap,
        ..Setting::pool(system.0, threads).on(Track::B)
    };
    let (mut critical, mut overall) = (0.0, 0.0);
    for _ in 0..loops {
        let started = Instant::now();
        let choices = prepared.variant.choices(&prepared.preset, prepared.default_accept);
        let mut engine = system.0.build(&choices).map_err(|why| why.to_string())?;
        critical += run_once(&setting, prepared, &mut engine)?.outcome.elapsed.as_secs_f64();
        overall += started.elapsed().as_secs_f64();
    }
    let mean = |seconds: f64| seconds * 1e3 / loops as f64;
    Ok((mean(critical), mean(overall)))
}

/// Overall milliseconds by addresses, doubled as far as a matrix can be laid out.
fn growth(plan: &Plan, say: &mut dyn FnMut(Row)) -> Result<Vec<Line>, String> {
    let tables = [Kind::Matrix, Kind::ConcurrentMap, Kind::StripedMap, Kind::Tamis];
    let mut lines: Vec<Line> =
        tables.iter().map(|kind| (kind.name().to_owned(), Vec::new())).collect();
    // One address more than a power of two would not be laid out: variant D counts from 1.
    for log in 7..16 {
        let preset = Preset { addresses_log: log, ..PRESETS[0] };
        let packets = GROWN.min(plan.packets);
        let prepared = Prepared::new(Variant::D, &preset, true, packets);
        for (kind, (_, points)) in tables.iter().zip(&mut lines) {
            let few = Plan { runs: plan.runs.min(5), ..plan.clone() };
            let (critical, overall) = pass((*kind, Orchestration::Stream), &prepared, &few)?;
            say(Row::new("access.study2.grown", kind.name(), "ms", &[overall])
                .with("critical_ms", critical)
                .with("addresses", 1usize << log)
                .with("packets", packets));
            points.push((f64::from(log), overall));
        }
    }
    Ok(lines)
}

fn table(times: &Times) -> String {
    let mut text = "\nCritical / overall milliseconds, published then ours\n".to_owned();
    for (table, way, published) in STUDY2 {
        for ((packets, addresses), (critical, overall)) in STUDY2_SIZES.into_iter().zip(published) {
            let Some((ours, all)) = times.get(&(table, way, packets, addresses)) else { continue };
            let system = format!("{table} {way}");
            let _ = writeln!(
                text,
                "{system:<28} {packets:>9} {addresses:>6} {critical:>9.2} / {overall:>8.2}   \
                 {ours:>9.2} / {all:>8.2}"
            );
        }
    }
    text
}

/// Figures 1 to 8 of the study, and the one that it left to others.
fn draw(dir: &Path, times: &Times, growth: &[Line]) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|why| format!("{}: {why}", dir.display()))?;
    let line = |table: &'static str, way: &'static str, most: usize| -> Line {
        let of = |((t, w, packets, addresses), (critical, _)): (
            &(&str, &str, usize, usize),
            &(f64, f64),
        )| {
            ((*t, *w, *addresses) == (table, way, 100) && *packets <= most)
                .then_some((*packets as f64, *critical))
        };
        (format!("{table} {way}"), times.iter().filter_map(of).collect())
    };
    let tables = ["matrix", "concurrent_map", "striped_map"];
    let of_way = |way, most| tables.map(|table| line(table, way, most)).to_vec();
    let all = usize::MAX;
    let serial = vec![line("serial", "serial", all), line("concurrent_map", "stream", all)];
    let matrix = vec![line("matrix", "worker_pool", all), line("matrix", "stream", all)];
    for (number, title, lines) in [
        (1, "serial and streams with the concurrent map", serial),
        (3, "threads and streams with the matrix", matrix),
        (4, "three tables with streams", of_way("stream", all)),
        (5, "three tables with threads", of_way("worker_pool", all)),
        (7, "three tables with threads, close", of_way("worker_pool", 100_000)),
        (8, "three tables with streams, close", of_way("stream", 100_000)),
    ] {
        let title = format!("Study 2, figure {number}: {title}");
        let labels = Labels { title: &title, x: "packets", y: "critical milliseconds" };
        figure::lines(&dir.join(format!("study2-figure{number}.svg")), labels, &lines)?;
    }
    let largest = times.keys().map(|(_, _, packets, _)| *packets).max().unwrap_or_default();
    let each = |of: fn(&(f64, f64)) -> f64, addresses: usize| -> Vec<(String, f64)> {
        let these = times
            .iter()
            .filter(|((_, way, p, a), _)| *way != "serial" && *p == largest && *a == addresses);
        these.map(|((table, way, _, _), time)| (format!("{table} {way}"), of(time))).collect()
    };
    let labels = Labels {
        title: "Study 2, figure 2: overall less critical time, 1,000 addresses",
        x: "",
        y: "milliseconds",
    };
    figure::bars(&dir.join("study2-figure2.svg"), labels, &each(|time| time.1 - time.0, 1_000))?;
    let labels = Labels {
        title: "Study 2, figure 6: all combinations, the most packets, 1,000 addresses",
        x: "",
        y: "critical milliseconds",
    };
    figure::bars(&dir.join("study2-figure6.svg"), labels, &each(|time| time.0, 1_000))?;
    let labels = Labels {
        title: "Study 2: overall time by addresses",
        x: "addresses, power of two",
        y: "milliseconds",
    };
    figure::lines(&dir.join("study2-addresses.svg"), labels, growth)
}
