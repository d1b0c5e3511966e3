//! Experiments with access-control engines: which engine, shared out how, on which stream, how fast.
//!
//! [`contest`] times contestants side by side, round by round, so that a machine that is busy now and then
//! slows all of them; [`must_show`], [`study1`] and [`study2`] are the experiments that are named,
//! [`bound`] says what two threads can gain at most, [`figure`] draws. Nothing here decides anything: engines are in `access`, models in
//! `crate::studies::orchestrate`, streams in [`workload`](crate::workload).
//!
//! Three tracks are kept apart: (a) decisions and changes alone, on packets prepared in memory; (b) with the
//! fingerprint taken step by step; (c) with the fingerprint by jump-ahead. Every row names variant and
//! default.

pub mod bound;
pub mod contest;
pub mod drivers;
pub mod must_show;
mod prepared;
pub mod published;
mod storm;
pub mod study1;
pub mod study2;

use std::time::{Duration, Instant};

use crate::studies::orchestrate::{
    Ahead, Bins, Histogram, Meter, Orchestration, Outcome, Serial, Sink, Source, Trace,
    per_worker_source, run, run_alone,
};
use engines::catalogue::{Built, Kind};

use super::{Missing, Row, figure};
use crate::workload::{Preset, Variant, WarmUp, fingerprint, summary};

pub use prepared::{Prepared, Start, Tuning};

/// What is counted as work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Track {
    /// Decisions and changes alone.
    A,
    /// And the fingerprint step by step.
    B,
    /// And the fingerprint by jump-ahead.
    C,
}

impl Track {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::A, Self::B, Self::C];

    /// Its letter in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
        }
    }

    fn sink(self, bins: Bins) -> Sink {
        match self {
            Self::A => Sink::none(),
            Self::B => Sink::new(fingerprint::honest, bins),
            Self::C => Sink::new(fingerprint::jump_ahead, bins),
        }
    }
}

/// Where a run's packets come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Prepared in memory.
    Trace,
    /// The generator, by whoever needs packets.
    Generator,
    /// The generator, in a thread of its own.
    Ahead,
    /// The generator, parts of the stream by as many threads as there are workers; where parts begin is known before.
    Parts,
    /// A generator for each worker, all yielding the same: the first study's published code.
    PerWorker,
}

impl Origin {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Trace, Self::Generator, Self::Ahead, Self::Parts, Self::PerWorker];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Generator => "generator",
            Self::Ahead => "ahead",
            Self::Parts => "parts",
            Self::PerWorker => "per_worker",
        }
    }
}

/// How much of a study to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The most packets.
    pub packets: usize,
    /// Mixes, where a study has them.
    pub presets: Vec<Preset>,
    /// Workers, where a study varies them.
    pub threads: Vec<usize>,
    /// Runs or loops of each.
    pub runs: usize,
    /// One part of a study instead of all.
    pub only: Option<Part>,
}

/// Parts of the studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Study 1: every firewall under every way to share work.
    SpeedUps,
    /// Study 1: the locks of `striped`.
    Stripes,
    /// Study 2: every table at the study's sizes.
    Sizes,
    /// Study 2: addresses doubled.
    Addresses,
    /// Study 2: the settings of its own map.
    Settings,
}

impl Plan {
    /// Whether a part is asked for.
    fn has(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// One way to run a stream.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Which engine.
    pub engine: Kind,
    /// Shared out how.
    pub orchestration: Orchestration,
    /// Among how many workers.
    pub threads: usize,
    /// What is work.
    pub track: Track,
    /// How fingerprints are counted.
    pub bins: Bins,
    /// Where packets come from.
    pub origin: Origin,
    /// What the engine is told beyond the stream.
    pub tuning: Tuning,
    /// Whether packets' times are taken.
    pub latencies: bool,
}

impl Setting {
    /// One thread, track (a), a prepared trace.
    #[must_use]
    pub fn alone(engine: Kind) -> Self {
        Self {
            engine,
            orchestration: Orchestration::Serial,
            threads: 1,
            track: Track::A,
            bins: Bins::Shards,
            origin: Origin::Trace,
            tuning: Tuning::default(),
            latencies: false,
        }
    }

    /// A worker pool of this number of threads, else as [`Self::alone`].
    #[must_use]
    pub fn pool(engine: Kind, threads: usize) -> Self {
        Self { orchestration: Orchestration::WorkerPool, threads, ..Self::alone(engine) }
    }

    /// Another track, its packets from the generator.
    #[must_use]
    pub fn on(self, track: Track) -> Self {
        let origin = if track == Track::A { Origin::Trace } else { Origin::Generator };
        Self { track, origin, ..self }
    }

    /// Why this cannot be run, if so.
    #[must_use]
    pub fn refuses(&self) -> Option<String> {
        let alone = self.orchestration == Orchestration::Serial;
        if !self.engine.is_shared() && !alone {
            return Some("belongs to one thread".to_owned());
        }
        self.orchestration.refuses(self.threads)
    }
}

/// What a run leaves behind.
#[derive(Debug)]
pub struct Ran {
    /// Counts and times.
    pub outcome: Outcome,
    /// From the making of what the run counts by to its last packet's end; the counts have not been read yet.
    pub took: Duration,
    /// Counts of fingerprints.
    pub histogram: Box<[u64]>,
}

/// Runs a stream on an engine once.
///
/// # Errors
/// The setting does not go together.
pub fn run_once(
    setting: &Setting,
    prepared: &Prepared,
    engine: &mut Built<u32>,
) -> Result<Ran, String> {
    if let Some(why) = setting.refuses() {
        return Err(why);
    }
    match setting.origin {
        Origin::Trace => {
            let source = Trace::new(prepared.packets());
            timed(setting, |sink, meter| from(setting, engine, &source, sink, meter))
        }
        Origin::Generator => {
            let source = Serial::new(prepared.generator());
            timed(setting, |sink, meter| from(setting, engine, &source, sink, meter))
        }
        Origin::Ahead => {
            let generator = prepared.generator();
            let ahead = |sink: &Sink, meter: &Meter| {
                std::thread::scope(|scope| {
                    let source = Serial::new(Ahead::start(scope, generator));
                    from(setting, engine, &source, sink, meter)
                })
            };
            timed(setting, ahead)
        }
        Origin::Parts => {
            let (parts, makers) = (prepared.parts(), setting.threads);
            let of = |maker: usize| (maker..parts.count()).step_by(makers).map(|at| parts.part(at));
            let ahead = |sink: &Sink, meter: &Meter| {
                std::thread::scope(|scope| {
                    let makers = (0..makers).map(of);
                    let source = Serial::new(Ahead::start_all(scope, makers, 1));
                    from(setting, engine, &source, sink, meter)
                })
            };
            timed(setting, ahead)
        }
        Origin::PerWorker => {
            let sources: Vec<_> = prepared.generators(setting.threads).map(Serial::new).collect();
            let sources: Vec<&dyn Source<u32>> = sources.iter().map(|source| source as _).collect();
            timed(setting, |sink, meter| per_worker(engine, &sources, sink, meter))
        }
    }
}

/// Runs with what the setting counts by.
fn timed(
    setting: &Setting,
    run: impl FnOnce(&Sink, &Meter) -> Result<Outcome, String>,
) -> Result<Ran, String> {
    let run = || {
        let (sink, meter) = (setting.track.sink(setting.bins), Meter::new(setting.latencies));
        Ok((run(&sink, &meter)?, sink))
    };
    clocked(run, Sink::histogram)
}

/// Reading 65,536 counts takes longer than making most tables: none of a run's time.
fn clocked(
    run: impl FnOnce() -> Result<(Outcome, Sink), String>,
    read: impl FnOnce(Sink) -> Histogram,
) -> Result<Ran, String> {
    let started = Instant::now();
    let (outcome, sink) = run()?;
    let took = started.elapsed();
    Ok(Ran { outcome, took, histogram: read(sink) })
}

fn from(
    setting: &Setting,
    engine: &mut Built<u32>,
    source: &dyn Source<u32>,
    sink: &Sink,
    meter: &Meter,
) -> Result<Outcome, String> {
    match engine {
        Built::Alone(engine) => Ok(run_alone(&mut **engine, source, sink, meter)),
        Built::Shared(engine) => {
            run(setting.orchestration, setting.threads, &**engine, source, sink, meter)
        }
    }
}

/// A worker for each source.
fn per_worker(
    engine: &mut Built<u32>,
    sources: &[&dyn Source<u32>],
    sink: &Sink,
    meter: &Meter,
) -> Result<Outcome, String> {
    let Built::Shared(engine) = engine else {
        return Err("expected an engine that threads share for a source of each".to_owned());
    };
    per_worker_source(&**engine, sources, sink, meter)
}

/// Whether a first run's histogram is the recorded one; `None` where that is not known, or where it depends on
/// the schedule.
#[must_use]
pub fn is_golden(setting: &Setting, prepared: &Prepared, ran: &Ran) -> Option<bool> {
    let Prepared { variant, preset, default_accept, start, .. } = prepared;
    let overtakes = setting.orchestration.may_overtake(setting.threads);
    let published = match variant {
        Variant::A | Variant::B => matches!(start, Start::Warm(_)),
        Variant::C | Variant::D => *start == Start::Warm(WarmUp::AsPublished),
    };
    let usual = Preset::of(preset.number) == Some(preset);
    let recorded = published && usual && prepared.packets().len() == 1_000_000;
    if setting.track == Track::A || overtakes || !recorded {
        return None;
    }
    let golden = crate::workload::golden::outcomes(*variant, *default_accept)?;
    Some(summary::outcome(&ran.histogram) == golden[preset.number - 1])
}

#[cfg(test)]
mod tests;
