//! Study 1: four firewalls with four ways to share work, and the serial one: 17 systems; beside them what the study left
//! to others, and ours, under the same four ways.
//!
//! As the study: its generator (variant C, by default every source is accepted), 10 million packets, 3, 6
//! and 10 threads, mean of 3, 10,000 stripes, one shared map of fingerprints. Not as its code: one source for
//! all workers, the real fingerprint (by jump-ahead, whose cost is near that of the hash it counted in its
//! place), warm-up of every firewall, 256 packets in flight. The study's own source for each worker is run
//! beside and named `per_worker`. docs/studies.md says more.
//!
//! All systems take turns, round by round, the serial one in each round, and a firewall stays the same under every way to
//! share work: later runs see the stream again, on a state of the same kind.

mod figures;

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::bench::{Rows, limit};
use crate::studies::orchestrate::{Bins, Orchestration};
use engines::catalogue::Kind;

use engines::catalogue::Built;

use super::contest::{Figures, contest};
use super::drivers::{self, DRIVERS};
use super::published::STUDY1_STRIPES;
use super::{Origin, Part, Plan, Prepared, Row, Setting, Track, Tuning, run_once};
use crate::workload::{Preset, Variant};

pub use figures::draw;

/// The study's four, its future work, and ours.
const ENGINES: [Kind; 8] = [
    Kind::Coarse,
    Kind::Striped,
    Kind::Fine,
    Kind::Optimistic,
    Kind::SplitOrdered,
    Kind::CachedExact,
    Kind::CachedEpoch,
    Kind::Tamis,
];
/// The ways to share work, in the order of the study; the last is the one of its code.
const MODELS: [&str; 5] =
    ["task_pool", "worker_pool", "partial_pipeline", "phased_pipeline", "per_worker"];
/// Tasks of this number of packets let ten workers stay within 256 packets.
const TASK: usize = 25;

/// The speed-ups of one preset, by engine, model and threads; each round's over the serial rounds' mean.
type SpeedUps = BTreeMap<(&'static str, &'static str, usize), Vec<f64>>;

/// Runs the study.
///
/// # Errors
/// An engine gives a wrong outcome.
pub fn run(plan: &Plan, out: &mut Rows) -> Result<String, String> {
    let mut by_preset = BTreeMap::new();
    let presets = if plan.has(Part::SpeedUps) { &plan.presets[..] } else { &[] };
    for preset in presets {
        if !out.begins(format!("access, study 1, preset {}", preset.number)) {
            continue;
        }
        let prepared = Prepared::new(Variant::C, preset, true, plan.packets);
        by_preset.insert(preset.number, speed_ups(plan, &prepared, out)?);
    }
    let most = plan.threads.iter().copied().max().unwrap_or(1);
    let stripes = match plan.has(Part::Stripes) && out.begins("access.stripes") {
        true => stripes(plan, most, out)?,
        false => Vec::new(),
    };
    let mut text = String::new();
    if plan.has(Part::SpeedUps) {
        text.push_str(&tables(&by_preset, most));
    }
    if plan.has(Part::Stripes) {
        text.push_str(&stripes_table(&stripes));
    }
    Ok(text)
}

fn models(threads: usize) -> [Orchestration; 4] {
    [
        Orchestration::TaskPool { packets: TASK },
        Orchestration::WorkerPool,
        // 5 + 5 and 8 + 2 of ten, the same shares of fewer.
        Orchestration::PartialPipeline { config: (threads / 2).max(1) },
        Orchestration::PhasedPipeline { control: (threads * 4 / 5).max(1) },
    ]
}

fn setting(engine: Kind, orchestration: Orchestration, threads: usize) -> Setting {
    Setting { orchestration, bins: Bins::SharedMap, ..Setting::pool(engine, threads).on(Track::C) }
}

/// Everything that is run with a firewall, in the order of the study.
fn systems(engine: Kind, threads: &[usize]) -> Vec<Setting> {
    let of = |&threads: &usize| {
        let settings = models(threads).map(|model| setting(engine, model, threads));
        let published = Setting { origin: Origin::PerWorker, ..settings[1] };
        settings.into_iter().chain([published])
    };
    threads.iter().flat_map(of).collect()
}

/// Every system beside the serial one.
fn speed_ups(plan: &Plan, prepared: &Prepared, out: &mut Rows) -> Result<SpeedUps, String> {
    let mut serial =
        Firewall::new(vec![setting(Kind::Serial, Orchestration::Serial, 1)], prepared)?;
    let firewall = |engine| Firewall::new(systems(engine, &plan.threads), prepared);
    let mut firewalls: Vec<_> = ENGINES.into_iter().map(firewall).collect::<Result<_, _>>()?;
    for _ in limit::rounds(plan.runs) {
        for firewall in std::iter::once(&mut serial).chain(&mut firewalls) {
            firewall.round(prepared)?;
        }
    }
    let Some(serial) = serial.systems.first() else { return Ok(SpeedUps::new()) };
    out.push(serial.row(prepared, None));
    let mut found = SpeedUps::new();
    for measured in firewalls.iter().flat_map(|firewall| &firewall.systems) {
        out.push(measured.row(prepared, Some(("serial", serial))));
        let Setting { engine, orchestration, threads, origin, .. } = measured.setting;
        let model = if origin == Origin::PerWorker { origin.name() } else { orchestration.name() };
        found.insert((engine.name(), model, threads), speed_up(measured, serial));
    }
    Ok(found)
}

/// A firewall, warmed up once, and what is run with it.
struct Firewall {
    engine: Built<u32>,
    systems: Vec<Figures>,
}

impl Firewall {
    /// Warmed up, and run once without timing.
    fn new(settings: Vec<Setting>, prepared: &Prepared) -> Result<Self, String> {
        let kind = settings.first().map_or(Kind::Serial, |setting| setting.engine);
        let mut engine = prepared.engine(kind, Tuning::default())?;
        if let Some(first) = settings.first() {
            run_once(first, prepared, &mut engine)?;
        }
        let systems = settings.iter().filter(|setting| setting.refuses().is_none());
        Ok(Self { engine, systems: systems.map(Figures::none).collect() })
    }

    /// Every system once.
    fn round(&mut self, prepared: &Prepared) -> Result<(), String> {
        for measured in &mut self.systems {
            let ran = run_once(&measured.setting, prepared, &mut self.engine)?;
            measured.holds(&ran)?;
            measured.add(&ran.outcome);
            measured.look(&self.engine);
        }
        Ok(())
    }
}

fn speed_up(measured: &Figures, serial: &Figures) -> Vec<f64> {
    let serial = mean(&serial.rates);
    measured.rates.iter().map(|rate| rate / serial).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Milliseconds of preset 1 in a task pool, by stripes.
fn stripes(plan: &Plan, threads: usize, out: &mut Rows) -> Result<Vec<(usize, Vec<f64>)>, String> {
    let Some(preset) = Preset::of(1) else { return Ok(Vec::new()) };
    let prepared = Prepared::new(Variant::C, preset, true, plan.packets);
    let model = Orchestration::TaskPool { packets: TASK };
    let of = |stripes| Setting {
        tuning: Tuning { stripes: Some(stripes), ..Tuning::default() },
        ..setting(Kind::Striped, model, threads)
    };
    let settings = STUDY1_STRIPES.map(|(stripes, _)| of(stripes));
    let (measured, _) = contest(&settings, &prepared, plan.runs)?;
    let mut found = Vec::new();
    for measured in measured {
        let stripes = measured.setting.tuning.stripes.unwrap_or_default();
        let millis: Vec<f64> =
            measured.rates.iter().map(|rate| plan.packets as f64 / rate * 1e3).collect();
        out.push(
            Row::new("access.stripes", "striped", "ms", &millis)
                .with("stripes", stripes)
                .with("threads", threads)
                .with("packets", plan.packets),
        );
        found.push((stripes, millis));
    }
    Ok(found)
}

fn tables(by_preset: &BTreeMap<usize, SpeedUps>, threads: usize) -> String {
    let mut text = format!("\nSpeed-up over serial, {threads} threads; published with 10\n");
    let columns: String =
        by_preset.keys().map(|preset| format!("{:>14}", format!("PS{preset}"))).collect();
    let _ = writeln!(text, "{:<36}{columns}", "published / ours");
    for driver in &DRIVERS {
        let (engine, model) = (driver.engine.name(), driver.model);
        let name = drivers::name(driver.engine, model).unwrap_or_default();
        let _ = write!(text, "{name:<36}");
        for (preset, found) in by_preset {
            let ours = found.get(&(engine, model, threads)).map_or(f64::NAN, |ours| mean(ours));
            let published = driver.speed_ups[2][preset - 1];
            let _ = write!(text, "{:>14}", format!("{published:.2} / {ours:.2}"));
        }
        text.push('\n');
    }
    let _ = writeln!(text, "\nAll systems, and a source for each worker, ours");
    let systems: Vec<_> = by_preset.values().next().into_iter().flat_map(BTreeMap::keys).collect();
    for system in systems.into_iter().filter(|system| system.2 == threads) {
        let _ = write!(text, "{:<32}", format!("{} {}", system.0, system.1));
        for found in by_preset.values() {
            let ours = found.get(system).map_or(f64::NAN, |ours| mean(ours));
            let _ = write!(text, "{ours:>14.2}");
        }
        text.push('\n');
    }
    text
}

fn stripes_table(found: &[(usize, Vec<f64>)]) -> String {
    let mut text =
        "\nMilliseconds by stripes, task pool, preset 1; published with 10 million packets\n"
            .to_owned();
    for ((stripes, published), (_, ours)) in STUDY1_STRIPES.iter().zip(found) {
        let _ = writeln!(text, "{stripes:>8} {published:>10.0} / {:.0}", mean(ours));
    }
    text
}
