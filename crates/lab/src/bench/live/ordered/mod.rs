//! Packets that are worked on in parallel and leave in their order: the lane of `tamis`, the study's scheme (`mutex`)
//! and one thread with the state inside (`conventional`), on the same packets.
//!
//! Contract: work is computing, drawn for each packet from 0 to twice the mean, the same for all engines; packets come
//! from memory, bare. Every engine's packets are looked at where they leave: their numbers must rise. Engines take
//! turns, round by round, before other processes where that may be had. Latency is from when a packet was due to when
//! it left, without the work on it.

mod lane;
mod load;
mod peers;
pub mod wire;

use std::thread;
use std::time::Duration;

use self::load::{Left, Load, Pace, Work};
use super::super::document::{Document, Row};

/// Mean work on a packet.
const MEAN: Duration = Duration::from_micros(2);
/// Workers of the study's pool, beside its receiving and its sending thread.
const POOL: usize = 2;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds in which engines take turns.
    pub rounds: usize,
    /// How long each runs in a round.
    pub each: Duration,
    /// How many packets the order is looked at of besides, in one run.
    pub packets: Option<u64>,
}

/// What does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    /// The lane, by so many workers.
    Tamis(usize),
    /// A mutex for each packet.
    Mutex,
    /// One thread.
    Conventional,
}

impl Engine {
    const ALL: [Self; 4] = [Self::Tamis(1), Self::Tamis(2), Self::Mutex, Self::Conventional];

    fn name(self) -> &'static str {
        match self {
            Self::Tamis(_) => "tamis",
            Self::Mutex => "mutex",
            Self::Conventional => "conventional",
        }
    }

    fn workers(self) -> usize {
        match self {
            Self::Tamis(workers) => workers,
            Self::Mutex => POOL,
            Self::Conventional => 1,
        }
    }

    fn run(self, load: Load) -> Left {
        let left = match self {
            Self::Tamis(workers) => lane::run(load, workers),
            Self::Mutex => peers::mutex(load, POOL),
            Self::Conventional => peers::conventional(load),
        };
        left.check();
        // The kernel keeps real-time priority from having all of a second: what is left over is not taken from the next run.
        thread::sleep(left.elapsed / 8);
        left
    }

    /// Packets per second of these runs.
    fn row(self, figures: &[f64]) -> Row {
        let row = Row::new("live.ordered", self.name(), "packets/s", figures);
        row.with("workers", self.workers()).with("work_us", MEAN.as_micros() as u64)
    }
}

/// Measures all engines.
///
/// # Panics
/// A packet left before one that came before it, or one has no fate.
#[must_use]
pub fn run(plan: Plan) -> Document {
    let mut document = Document::new();
    let work = Work::of(MEAN);
    let capacity = capacity(plan, work, &mut document);
    delay(plan, work, &capacity, &mut document);
    overload(plan, work, capacity[1], &mut document);
    if let Some(packets) = plan.packets {
        let left = Engine::Tamis(2).run(Load { work, pace: Pace::Packets(packets) });
        let row = Row::new("live.ordered.reordered", "tamis", "packets", &[left.reordered as f64]);
        document.results.push(row.with("workers", 2).with("packets", left.released));
    }
    document.results.push(wire::row(plan.packets.unwrap_or(wire::FRAMES)));
    document
}

/// Packets per second, as fast as they are taken: the median of each engine.
fn capacity(plan: Plan, work: Work, document: &mut Document) -> Vec<f64> {
    let mut figures = Engine::ALL.map(|_| Vec::new());
    for _ in 0..plan.rounds {
        for (engine, figures) in Engine::ALL.into_iter().zip(&mut figures) {
            let left = engine.run(Load { work, pace: Pace::Full(plan.each) });
            figures.push(left.rate());
        }
    }
    let [one, ..] = &figures;
    let rows = Engine::ALL.into_iter().zip(&figures);
    let rows = rows.map(|(engine, figures)| match engine {
        Engine::Tamis(1) => engine.row(figures),
        _ => engine.row(figures).beside("one worker of tamis", figures, one),
    });
    document.results.extend(rows);
    let medians = figures.into_iter().map(|figures| super::super::Runs::of(figures).value);
    medians.collect()
}

/// What is added to the work on a packet, at half of what each engine can do.
fn delay(plan: Plan, work: Work, capacity: &[f64], document: &mut Document) {
    for (engine, capacity) in Engine::ALL.into_iter().zip(capacity) {
        let rate = capacity / 2.0;
        let (mut half, mut last) = (Vec::new(), Vec::new());
        for _ in 0..plan.rounds {
            let left = engine.run(Load { work, pace: Pace::Rate(rate, plan.each) });
            half.push(left.added.value_at_quantile(0.5) as f64);
            last.push(left.added.value_at_quantile(0.99) as f64);
        }
        for (quantile, figures) in [("p50", half), ("p99", last)] {
            let row = Row::new("live.ordered.added", engine.name(), "ns", &figures);
            let row = row.with("workers", engine.workers()).with("quantile", quantile);
            document.results.push(row.with("rate", rate.round()));
        }
    }
}

/// Packets per second where as many come as two workers can take, and twice as many.
fn overload(plan: Plan, work: Work, capacity: f64, document: &mut Document) {
    let engine = Engine::Tamis(2);
    let mut figures = [Vec::new(), Vec::new()];
    let mut dropped = [0, 0];
    for _ in 0..plan.rounds {
        for (times, (figures, dropped)) in (1_u8..).zip(figures.iter_mut().zip(&mut dropped)) {
            let rate = capacity * f64::from(times);
            let left = engine.run(Load { work, pace: Pace::Rate(rate, plan.each) });
            figures.push(left.rate());
            *dropped += left.refused;
        }
    }
    let [at, over] = &figures;
    let row = |times: u64, figures: &[f64], dropped| {
        engine.row(figures).with("offered", times).with("dropped_as_queue", dropped)
    };
    document.results.push(row(1, at, dropped[0]));
    document.results.push(row(2, over, dropped[1]).beside("offered 1", over, at));
}
