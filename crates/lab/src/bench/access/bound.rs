//! What threads can gain over one in track (a), whatever the engine.
//!
//! A change has to be seen by the other thread, so at least one word of its address is written by one thread and read by
//! the other. The bound shares that and nothing else: each thread has tables of its own and decides and changes half of
//! the bursts in them, and beside that writes the word of an address whose permissions a packet changes, and reads the
//! words of source and destination of every packet that it decides. Its decisions are wrong, since it never sees the
//! other's ranges; an engine whose decisions are right shares more. Words are tried close together and a line apart; the
//! better one counts. Beside it stand threads that share nothing, which is what the machine gives, and `tamis`.
//!
//! Bursts are dealt out beforehand, in turn: not even a place in the stream is shared.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use engines::catalogue::{Built, Kind};
use engines::{Engine, Packet, Permits};

use super::{Plan, Prepared, Row, Tuning};
use crate::bench::Runs;
use crate::bench::{Rows, limit};
use crate::workload::Variant;

/// Packets of a burst.
const BURST: usize = 64;
/// Words of a cache line.
const LINE: usize = 8;

/// What threads share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    Nothing,
    /// One word of each address, this many words from the next one.
    Words(usize),
    /// The engine.
    All,
}

const CONTESTANTS: [(&str, Shared); 4] = [
    ("nothing", Shared::Nothing),
    ("words", Shared::Words(1)),
    ("words_apart", Shared::Words(LINE)),
    ("engine", Shared::All),
];

/// Measures all presets of the plan: for each contestant, each number of threads beside one; two unless the plan has
/// others.
///
/// # Errors
/// The engine refuses.
pub fn run(plan: &Plan, out: &mut Rows) -> Result<(), String> {
    let more = if plan.threads.is_empty() { &[2][..] } else { &plan.threads };
    let more = more.iter().copied().filter(|threads| *threads > 1);
    let counts: Vec<usize> = std::iter::once(1).chain(more).collect();
    for preset in &plan.presets {
        if !out.begins(format!("access.bound, preset {}", preset.number)) {
            continue;
        }
        let prepared = Prepared::new(Variant::A, preset, false, plan.packets);
        let course = Course::new(&prepared, counts.iter().copied().max().unwrap_or(1))?;
        let rates = course.rates(&counts, plan.runs);
        for ((shares, _), rates) in CONTESTANTS.iter().zip(&rates) {
            let [one, more @ ..] = &rates[..] else { continue };
            for (threads, rates) in counts.iter().skip(1).zip(more) {
                out.push(course.row(shares, *threads, rates, one).with("preset", preset.number));
            }
        }
    }
    Ok(())
}

/// A stream, which of its packets change something, and engines that know what came before.
struct Course<'p> {
    packets: &'p [Packet<u32>],
    changes: Vec<bool>,
    /// One that threads share, or one for each of them.
    engines: Vec<Box<dyn Engine<u32>>>,
    words: Box<[AtomicU64]>,
}

impl<'p> Course<'p> {
    fn new(prepared: &'p Prepared, threads: usize) -> Result<Self, String> {
        let engine = |_| match prepared.engine(Kind::Tamis, Tuning::default())? {
            Built::Shared(engine) => Ok(engine),
            Built::Alone(_) => Err("tamis: expected an engine that threads share".to_owned()),
        };
        let words = LINE << prepared.preset.addresses_log;
        Ok(Self {
            packets: prepared.packets(),
            changes: prepared.changes(),
            engines: (0..threads).map(engine).collect::<Result<_, _>>()?,
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Packets per second of each contestant, by each number of threads, round by round.
    fn rates(&self, counts: &[usize], rounds: usize) -> Vec<Vec<Vec<f64>>> {
        let mut rates = vec![vec![Vec::new(); counts.len()]; CONTESTANTS.len()];
        let each = |found: &mut dyn FnMut(usize, usize, f64)| {
            for (contestant, (_, shared)) in CONTESTANTS.iter().enumerate() {
                for (at, threads) in counts.iter().enumerate() {
                    found(contestant, at, self.rate(*shared, *threads));
                }
            }
        };
        // Fills caches.
        each(&mut |_, _, _| {});
        for _ in limit::rounds(rounds) {
            each(&mut |contestant, at, rate| rates[contestant][at].push(rate));
        }
        rates
    }

    fn row(&self, shares: &str, threads: usize, rates: &[f64], one: &[f64]) -> Row {
        let changed = self.changes.iter().filter(|change| **change).count();
        let best = Runs::of(rates.to_vec()).max / Runs::of(one.to_vec()).max;
        Row::new("access.bound", Kind::Tamis.name(), "packets/s", rates)
            .with("shares", shares)
            .with("threads", threads)
            .with("changes", changed as f64 / self.packets.len() as f64)
            .with("best_by_best", best)
            .beside("one thread", rates, one)
    }

    /// Packets per second.
    fn rate(&self, shared: Shared, threads: usize) -> f64 {
        let (ready, started) = (&Barrier::new(threads), &AtomicU64::new(u64::MAX));
        let clock = Instant::now();
        let now = || clock.elapsed().as_nanos() as u64;
        std::thread::scope(|scope| {
            let work = move |thread: usize| {
                ready.wait();
                started.fetch_min(now(), Ordering::Relaxed);
                self.part(shared, thread, threads);
            };
            for thread in 1..threads {
                scope.spawn(move || work(thread));
            }
            work(0);
        });
        let nanos = now() - started.load(Ordering::Relaxed);
        self.packets.len() as f64 / nanos as f64 * 1e9
    }

    /// One thread's bursts.
    fn part(&self, shared: Shared, thread: usize, threads: usize) {
        let own = if shared == Shared::All { 0 } else { thread % self.engines.len() };
        let mut worker = self.engines[own].worker();
        let bursts = self.packets.chunks(BURST).zip(self.changes.chunks(BURST));
        for (packets, changes) in bursts.skip(thread).step_by(threads) {
            if let Shared::Words(apart) = shared {
                self.touch(packets, changes, apart);
            }
            let mut permits = Permits::default();
            worker.burst(packets, &mut permits);
            black_box(permits);
        }
    }

    /// Reads and writes the words that the other thread reads and writes, too.
    fn touch(&self, packets: &[Packet<u32>], changes: &[bool], apart: usize) {
        let word = |address: u32| &self.words[address as usize * apart % self.words.len()];
        let mut seen = 0;
        for (packet, changes) in packets.iter().zip(changes) {
            match packet {
                Packet::Data(data) => {
                    let both = [data.source, data.destination].map(word);
                    seen ^= both.map(|word| word.load(Ordering::Relaxed)).iter().sum::<u64>();
                }
                Packet::Config(config) if *changes => {
                    word(config.address).store(seen, Ordering::Release);
                }
                Packet::Config(_) => {}
            }
        }
        black_box(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::PRESETS;

    #[test]
    fn words_are_written_where_something_changes_and_only_there() {
        let prepared = Prepared::new(Variant::A, &PRESETS[1], false, 5_000);
        let course = Course::new(&prepared, 2).unwrap();
        let of = |packet: &Packet<u32>| matches!(packet, Packet::Config(_));
        let told = prepared.packets().iter().filter(|packet| of(packet)).count();
        let changed = course.changes.iter().filter(|change| **change).count();
        assert!(changed > 0 && changed < told, "{changed} of {told}");
        // A repeated change changes nothing.
        let twice = prepared.packets().iter().zip(&course.changes);
        assert!(twice.into_iter().all(|(packet, change)| of(packet) || !change));
    }

    #[test]
    fn every_contestant_runs_with_one_thread_and_with_more() {
        let preset = crate::workload::Preset { addresses_log: 7, trains_log: 6, ..PRESETS[0] };
        let (presets, threads) = (vec![preset], vec![2, 3]);
        let plan = Plan { packets: 2_000, presets, threads, runs: 2, only: None };
        let mut out = Rows::kept();
        run(&plan, &mut out).unwrap();
        let of = |row: &Row| (row.params["shares"].clone(), row.params["threads"].clone());
        let found: Vec<_> = out.rows().iter().map(of).collect();
        let both = |(shares, _): (&str, _)| [2, 3].map(|threads| (shares.into(), threads.into()));
        assert_eq!(found, CONTESTANTS.map(both).concat());
        assert!(out.rows().iter().all(|row| row.runs.value > 0.0 && row.runs.runs == 2));
    }
}
