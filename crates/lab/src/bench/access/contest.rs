//! Contestants on one stream, round by round.
//!
//! Each contestant has an engine of its own, warmed up. A first run is not timed and is held to the recorded
//! histogram where it must give it. Then every round runs each contestant once, so that what slows the
//! machine for a while slows all; medians and ratios are of rounds. Later runs see the stream again, on an
//! engine that has seen it: the same mix of changes on a state of the same kind.

use engines::catalogue::{Built, Kind};
use engines::striped_map::Settings;

use super::{Missing, Prepared, Ran, Row, Setting, Tuning, drivers, is_golden, run_once};
use crate::bench::limit;
use crate::studies::orchestrate::Orchestration;

/// One contestant's figures.
#[derive(Debug)]
pub struct Figures {
    /// How it ran.
    pub setting: Setting,
    /// Packets per second of each round.
    pub rates: Vec<f64>,
    /// Nanoseconds of processor time a packet, by all threads: what other programs take of the machine is not in it.
    pub processor: Vec<f64>,
    /// The most packets in flight.
    pub high_water: usize,
    /// Bytes of the engine after the last round, where it tells.
    pub bytes: Option<usize>,
    /// How often readers started again, in all rounds.
    pub retries: u64,
    /// Whether the first run left the recorded histogram.
    pub golden: Option<bool>,
    /// Nanoseconds from source to end of half, 99 and 99.9 percent, if times were taken.
    pub latencies: Option<[u64; 3]>,
}

/// Runs all settings for this number of rounds; those that do not apply are missing, each with why.
///
/// # Errors
/// A histogram is not the recorded one, or does not add up to the packets permitted.
pub fn contest(
    settings: &[Setting],
    prepared: &Prepared,
    rounds: usize,
) -> Result<(Vec<Figures>, Vec<Missing>), String> {
    let (mut contestants, mut missing) = (Vec::new(), Vec::new());
    for setting in settings {
        match enter(setting, prepared)? {
            Ok(contestant) => contestants.push(contestant),
            Err(why) => missing.push(Missing { peer: setting.engine.name().into(), why }),
        }
    }
    for _ in limit::rounds(rounds) {
        for (engine, figures) in &mut contestants {
            let before = processor_time();
            let ran = run_once(&figures.setting, prepared, engine)?;
            let spent = processor_time().zip(before).map(|(after, before)| after - before);
            let each = |spent: f64| spent * 1e9 / ran.outcome.packets as f64;
            figures.processor.extend(spent.map(each));
            figures.add(&ran.outcome);
        }
    }
    for (engine, figures) in &mut contestants {
        figures.look(engine);
    }
    Ok((contestants.into_iter().map(|(_, figures)| figures).collect(), missing))
}

/// Seconds of processor time that this process has taken.
fn processor_time() -> Option<f64> {
    #[cfg(target_os = "linux")]
    {
        use rustix::time::{ClockId, clock_gettime};
        let taken = clock_gettime(ClockId::ProcessCPUTime);
        Some(taken.tv_sec as f64 + taken.tv_nsec as f64 / 1e9)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

type Entered = Result<(Built<u32>, Figures), String>;

/// Makes a contestant and runs it once without timing.
fn enter(setting: &Setting, prepared: &Prepared) -> Result<Entered, String> {
    if let Some(why) = setting.refuses() {
        return Ok(Err(why));
    }
    let mut engine = match prepared.engine(setting.engine, setting.tuning) {
        Ok(engine) => engine,
        Err(why) => return Ok(Err(why)),
    };
    let ran = run_once(setting, prepared, &mut engine)?;
    let golden = is_golden(setting, prepared, &ran);
    if golden == Some(false) {
        let Setting { engine, orchestration, .. } = setting;
        return Err(format!(
            "{} with {orchestration:?}: not the recorded histogram",
            engine.name()
        ));
    }
    let figures = Figures { golden, ..Figures::none(setting) };
    figures.holds(&ran)?;
    Ok(Ok((engine, figures)))
}

impl Figures {
    /// Nothing yet.
    pub(super) fn none(setting: &Setting) -> Self {
        Self {
            setting: *setting,
            rates: Vec::new(),
            processor: Vec::new(),
            high_water: 0,
            bytes: None,
            retries: 0,
            golden: None,
            latencies: None,
        }
    }

    /// What an engine tells after a run.
    pub(super) fn look(&mut self, engine: &Built<u32>) {
        if let Built::Shared(engine) = engine {
            self.bytes = Some(engine.bytes());
            self.retries = engine.retries();
        }
    }

    /// Fails unless as many fingerprints were counted as packets permitted.
    pub(super) fn holds(&self, ran: &Ran) -> Result<(), String> {
        let Setting { engine, orchestration, track, .. } = self.setting;
        let (counted, permitted) = (ran.histogram.iter().sum::<u64>(), ran.outcome.permitted);
        if track != super::Track::A && counted != permitted {
            let name = engine.name();
            return Err(format!("{name} with {orchestration:?}: {counted} counted of {permitted}"));
        }
        Ok(())
    }

    pub(super) fn add(&mut self, outcome: &crate::studies::orchestrate::Outcome) {
        self.rates.push(outcome.packets as f64 / outcome.elapsed.as_secs_f64());
        self.high_water = self.high_water.max(outcome.high_water);
        let shares = [0.5, 0.99, 0.999];
        let latencies = outcome.latencies.as_ref();
        self.latencies = latencies.map(|times| shares.map(|share| times.quantile(share)));
    }

    /// Its rate as a row, beside a peer's of the same rounds.
    #[must_use]
    pub fn row(&self, prepared: &Prepared, peer: Option<(&'static str, &Self)>) -> Row {
        let Setting { engine, orchestration, threads, track, bins, origin, tuning, .. } =
            self.setting;
        let name = format!("access.{}.preset{}", track.name(), prepared.preset.number);
        let row = Row::new(name, engine.name(), "packets/s", &self.rates)
            .with("orchestration", orchestration.name())
            .with("threads", threads)
            .with("variant", prepared.variant.name())
            .with("default", if prepared.default_accept { "accept" } else { "deny" })
            .with("packets", prepared.packets().len())
            .with("addresses", 1u32 << prepared.preset.addresses_log)
            .with("source", origin.name())
            .with("may_overtake", orchestration.may_overtake(threads))
            .with("in_flight", self.high_water);
        let least = self.processor.iter().copied().reduce(f64::min);
        let row = least.into_iter().fold(row, |row, least| row.with("processor_ns", least));
        let row = match orchestration {
            Orchestration::TaskPool { packets } => row.with("task", packets),
            Orchestration::PartialPipeline { config } => row.with("config", config),
            Orchestration::PhasedPipeline { control } => row.with("control", control),
            _ => row,
        };
        let driver = drivers::name(engine, orchestration.name());
        let row = driver.into_iter().fold(row, |row, driver| row.with("driver", driver));
        let row = tuned(row, engine, tuning);
        let row = if track == super::Track::A { row } else { row.with("bins", bins.name()) };
        let row = self.bytes.into_iter().fold(row, |row, bytes| row.with("bytes", bytes));
        let row = self.golden.into_iter().fold(row, |row, golden| row.with("golden", golden));
        let row = if self.retries > 0 { row.with("retries", self.retries) } else { row };
        match peer {
            Some((name, peer)) => row.beside(name, &self.rates, &peer.rates),
            None => row,
        }
    }

    /// Where times were taken: those of half, 99 and 99.9 percent of the packets, and how many were in flight.
    #[must_use]
    pub fn times(&self, prepared: &Prepared) -> Vec<Row> {
        let row = |name, unit, figure: f64| {
            Row::new(name, self.setting.engine.name(), unit, &[figure])
                .with("preset", prepared.preset.number)
                .with("track", self.setting.track.name())
                .with("orchestration", self.setting.orchestration.name())
                .with("threads", self.setting.threads)
        };
        let Some(latencies) = self.latencies else { return Vec::new() };
        let latency =
            |(share, nanos)| row("access.latency", "ns", nanos as f64).with("share", share);
        let in_flight = row("access.inflight", "packets", self.high_water as f64);
        [0.5, 0.99, 0.999].into_iter().zip(latencies).map(latency).chain([in_flight]).collect()
    }
}

/// A row with what the engine was told, where it heeds that.
fn tuned(row: Row, engine: Kind, tuning: Tuning) -> Row {
    let Tuning { stripes, striped_map: Settings { initial, longest, full_percent }, grain } =
        tuning;
    match engine {
        Kind::Striped | Kind::StripedSkipList => {
            stripes.into_iter().fold(row, |row, stripes| row.with("stripes", stripes))
        }
        Kind::StripedMap | Kind::StripedMapAsPublished => {
            row.with("initial", initial).with("longest", longest).with("full_percent", full_percent)
        }
        Kind::CachedExact => row.with("stamps", grain.stamps).with("block", grain.block),
        _ => row,
    }
}
