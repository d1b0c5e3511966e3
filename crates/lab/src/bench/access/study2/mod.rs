//! Study 2: three tables of permissions, with threads and with streams, and a serial firewall; beside them the tables
//! that the study leaves to others, caches, and ours.
//!
//! As the study: 1,000 to 1,000,000 packets, 100 and 1,000 addresses, preset 1, 8 threads, tables empty at first, mean
//! of 100 loops (fewer of large sizes), the second of two passes, critical time (from the tables' being there) and overall time (with making
//! them; nothing that is read or given back after the last packet), by default every source is accepted; the
//! fingerprint step by step, which is what its times show. Not as the study: addresses are 128 and 1,024 (its generator
//! takes powers of two), PNG is kept so that lifting a ban restores R, tables are changed and read in one step.
//! docs/studies.md says more.

mod figures;
mod growth;
mod settings;
mod system;
mod tables;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::bench::Rows;
use crate::studies::orchestrate::{Bins, Orchestration};
use engines::catalogue::Kind;
use system::{Loop, THREADS, pass, preset, systems};

use super::published::{STUDY2, STUDY2_SIZES};
use super::{Part, Plan, Prepared, Row, Setting, Start, Track};
use crate::bench::Recorded;
use crate::workload::Variant;

/// By table, way, packets and addresses.
type Times = BTreeMap<(&'static str, &'static str, usize, usize), Vec<Loop>>;

/// Runs the study.
///
/// # Errors
/// A system cannot be run.
pub fn run(plan: &Plan, out: &mut Rows) -> Result<String, String> {
    let mut text = String::new();
    if plan.has(Part::Sizes) {
        text.push_str(&tabled(&times(plan, out)?));
    }
    if plan.has(Part::Addresses) {
        growth::run(plan, out)?;
    }
    if plan.has(Part::Settings) {
        settings::run(plan, out)?;
    }
    Ok(text)
}

/// Draws what the document has figures for.
///
/// # Errors
/// A picture cannot be written.
pub fn draw(recorded: &Recorded, dir: &Path) -> Result<(), String> {
    figures::draw(recorded, dir)?;
    tables::draw(recorded, dir)?;
    growth::draw(recorded, dir)?;
    settings::draw(recorded, dir)
}

/// Every system at every size; of two passes the second, as the study has it.
fn times(plan: &Plan, out: &mut Rows) -> Result<Times, String> {
    let mut times = Times::new();
    let settings: Vec<_> = systems().map(|(table, way)| setting(table, way)).collect();
    for (packets, addresses) in sizes(plan) {
        if !out.begins(format!("access, study 2, {packets} packets, {addresses} addresses")) {
            continue;
        }
        let preset = preset(addresses);
        let prepared = Prepared::from(Start::Cold, Variant::D, &preset, true, packets);
        let loops = loops(plan, packets);
        pass(&settings, &prepared, loops)?;
        for (setting, loops) in settings.iter().zip(pass(&settings, &prepared, loops)?) {
            out.extend(rows(&loops, setting, &prepared));
            let (table, way) = (setting.engine.name(), setting.orchestration.name());
            times.insert((table, way, packets, addresses), loops);
        }
    }
    Ok(times)
}

/// The study's sizes as far as the plan goes, and one beyond a million where it goes on.
fn sizes(plan: &Plan) -> Vec<(usize, usize)> {
    let beyond = [(10_000_000, 100), (10_000_000, 1_000)];
    let all = STUDY2_SIZES.into_iter().chain(beyond);
    all.filter(|(packets, _)| *packets <= plan.packets).collect()
}

fn setting(table: Kind, way: Orchestration) -> Setting {
    let threads = if way == Orchestration::Serial { 1 } else { THREADS };
    Setting {
        orchestration: way,
        bins: Bins::SharedMap,
        ..Setting::pool(table, threads).on(Track::B)
    }
}

/// As many loops as the plan has, fewer of many packets, but two.
fn loops(plan: &Plan, packets: usize) -> usize {
    plan.runs.min((500_000 / packets).max(2))
}

fn rows(loops: &[Loop], setting: &Setting, prepared: &Prepared) -> Vec<Row> {
    let row = |name, of: fn(&Loop) -> f64| {
        let figures: Vec<f64> = loops.iter().map(of).collect();
        Row::new(name, setting.engine.name(), "ms", &figures)
            .with("orchestration", setting.orchestration.name())
            .with("packets", prepared.packets().len())
            .with("addresses", 1u32 << prepared.preset.addresses_log)
    };
    vec![
        row("access.study2.made", |one| one.made),
        row("access.study2.critical", |one| one.critical),
        row("access.study2.overall", |one| one.overall),
        row("access.study2.difference", |one| one.overall - one.critical),
    ]
}

fn mean(loops: &[Loop], of: fn(&Loop) -> f64) -> f64 {
    loops.iter().map(of).sum::<f64>() / loops.len() as f64
}

/// Means, as the study prints them; the published second pass before ours where there is one.
fn tabled(times: &Times) -> String {
    let mut text = "\nCritical / overall milliseconds, published then ours\n".to_owned();
    for (&(table, way, packets, addresses), loops) in times {
        let system = STUDY2.iter().find(|one| (one.table, one.way) == (table, way));
        let published = system.and_then(|system| {
            system.pass(1).find(|(size, _)| *size == (packets, addresses)).map(|(_, times)| times)
        });
        let published = published.map_or_else(
            || format!("{:>20}", "-"),
            |(critical, overall)| format!("{critical:>9.2} / {overall:>8.2}"),
        );
        let (critical, overall) = (mean(loops, |one| one.critical), mean(loops, |one| one.overall));
        let system = format!("{table} {way}");
        let _ = writeln!(
            text,
            "{system:<28} {packets:>9} {addresses:>6} {published}   {critical:>9.2} / {overall:>8.2}"
        );
    }
    text
}
