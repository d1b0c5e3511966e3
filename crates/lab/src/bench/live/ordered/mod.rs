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
use super::super::document::{Row, Runs};
use super::super::limit;
use super::super::rows::Rows;

/// Mean work on a packet.
const MEAN: Duration = Duration::from_micros(2);
/// Workers of the study's pool, beside its receiving and its sending thread.
const POOL: usize = 2;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Workers of the lane, in turn, besides one.
    pub workers: &'static [usize],
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

impl Plan {
    fn engines(self) -> Vec<Engine> {
        let more = self.workers.iter().copied().filter(|workers| *workers != 1);
        let lanes = std::iter::once(1).chain(more).map(Engine::Tamis);
        lanes.chain([Engine::Mutex, Engine::Conventional]).collect()
    }

    /// The lane of most workers.
    fn most(self) -> usize {
        self.workers.iter().copied().max().unwrap_or(1)
    }
}

/// Measures all engines.
///
/// # Panics
/// A packet left before one that came before it, or one has no fate.
pub fn run(plan: Plan, out: &mut Rows) {
    let work = Work::of(MEAN);
    let capacity = capacity(plan, work, out);
    delay(plan, work, &capacity, out);
    let most = Engine::Tamis(plan.most());
    let of_most = capacity.iter().find(|(engine, _)| *engine == most);
    if let Some((_, of_most)) = of_most
        && out.begins("live.ordered, more packets than are taken")
    {
        overload(plan, work, *of_most, out);
    }
    if let Some(packets) = plan.packets
        && out.begins("live.ordered.reordered")
    {
        let left = most.run(Load { work, pace: Pace::Packets(packets) });
        let row = Row::new("live.ordered.reordered", "tamis", "packets", &[left.reordered as f64]);
        out.push(row.with("workers", plan.most()).with("packets", left.released));
    }
    if out.begins("live.ordered.wire") {
        out.push(wire::row(plan.packets.unwrap_or(wire::FRAMES)));
    }
}

/// Packets per second, as fast as they are taken: the median of each engine.
fn capacity(plan: Plan, work: Work, out: &mut Rows) -> Vec<(Engine, f64)> {
    let engines = plan.engines();
    let mut figures = vec![Vec::new(); engines.len()];
    for _ in limit::rounds(plan.rounds) {
        for (engine, figures) in engines.iter().zip(&mut figures) {
            figures.push(engine.run(Load { work, pace: Pace::Full(plan.each) }).rate());
        }
    }
    for (engine, figures_of) in engines.iter().zip(&figures) {
        let row = engine.row(figures_of);
        out.push(match (engine, &figures[..]) {
            (Engine::Tamis(1), _) | (_, []) => row,
            (_, [one, ..]) => row.beside("one worker of tamis", figures_of, one),
        });
    }
    let medians = figures.into_iter().map(|figures| Runs::of(figures).value);
    engines.into_iter().zip(medians).collect()
}

/// What is added to the work on a packet, at half of what each engine can do.
fn delay(plan: Plan, work: Work, capacity: &[(Engine, f64)], out: &mut Rows) {
    for (engine, capacity) in capacity {
        if !out.begins(format!("live.ordered.added, {} by {}", engine.name(), engine.workers())) {
            continue;
        }
        let rate = capacity / 2.0;
        let (mut half, mut last) = (Vec::new(), Vec::new());
        for _ in limit::rounds(plan.rounds) {
            let left = engine.run(Load { work, pace: Pace::Rate(rate, plan.each) });
            half.push(left.added.value_at_quantile(0.5) as f64);
            last.push(left.added.value_at_quantile(0.99) as f64);
        }
        for (quantile, figures) in [("p50", half), ("p99", last)] {
            let row = Row::new("live.ordered.added", engine.name(), "ns", &figures);
            let row = row.with("workers", engine.workers()).with("quantile", quantile);
            out.push(row.with("rate", rate.round()));
        }
    }
}

/// Packets per second where as many come as most workers can take, and twice as many.
fn overload(plan: Plan, work: Work, capacity: f64, out: &mut Rows) {
    let engine = Engine::Tamis(plan.most());
    let mut figures = [Vec::new(), Vec::new()];
    let mut dropped = [0, 0];
    for _ in limit::rounds(plan.rounds) {
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
    out.push(row(1, at, dropped[0]));
    out.push(row(2, over, dropped[1]).beside("offered 1", over, at));
}
