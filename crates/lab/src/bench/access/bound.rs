//! What two threads can gain over one in track (a), whatever the engine.
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

use access::{Engine, Packet, Permits};
use engines::catalogue::{Built, Kind};

use super::{Plan, Prepared, Row, Tuning};
use crate::bench::Runs;
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

/// Measures all presets of the plan: for each contestant, two threads beside one.
///
/// # Errors
/// The engine refuses.
pub fn run(plan: &Plan, say: &mut dyn FnMut(Row)) -> Result<(), String> {
    for preset in &plan.presets {
        let prepared = Prepared::new(Variant::A, preset, false, plan.packets);
        let course = Course::new(&prepared)?;
        let mut rates = CONTESTANTS.map(|_| [Vec::new(), Vec::new()]);
        // One round more than are kept: the first fills caches.
        for round in 0..=plan.runs {
            for ((_, shared), rates) in CONTESTANTS.iter().zip(&mut rates) {
                for (threads, rates) in (1..).zip(rates) {
                    let rate = course.rate(*shared, threads);
                    if round > 0 {
                        rates.push(rate);
                    }
                }
            }
        }
        for ((shares, _), [one, two]) in CONTESTANTS.iter().zip(&rates) {
            let changed = course.changes.iter().filter(|change| **change).count();
            let best = Runs::of(two.clone()).max / Runs::of(one.clone()).max;
            say(Row::new("access.bound", Kind::Tamis.name(), "packets/s", two)
                .with("preset", preset.number)
                .with("shares", *shares)
                .with("threads", 2)
                .with("changes", changed as f64 / plan.packets as f64)
                .with("best_by_best", best)
                .beside("one thread", two, one));
        }
    }
    Ok(())
}

/// A stream, which of its packets change something, and engines that know what came before.
struct Course<'p> {
    packets: &'p [Packet<u32>],
    changes: Vec<bool>,
    /// One that threads share, or one for each of them.
    engines: [Box<dyn Engine<u32>>; 2],
    words: Box<[AtomicU64]>,
}

impl<'p> Course<'p> {
    fn new(prepared: &'p Prepared) -> Result<Self, String> {
        let engine = || match prepared.engine(Kind::Tamis, Tuning::default())? {
            Built::Shared(engine) => Ok(engine),
            Built::Alone(_) => Err("tamis: expected an engine that threads share".to_owned()),
        };
        let words = LINE << prepared.preset.addresses_log;
        Ok(Self {
            packets: prepared.packets(),
            changes: prepared.changes(),
            engines: [engine()?, engine()?],
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        })
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
        let course = Course::new(&prepared).unwrap();
        let of = |packet: &Packet<u32>| matches!(packet, Packet::Config(_));
        let told = prepared.packets().iter().filter(|packet| of(packet)).count();
        let changed = course.changes.iter().filter(|change| **change).count();
        assert!(changed > 0 && changed < told, "{changed} of {told}");
        // A repeated change changes nothing.
        let twice = prepared.packets().iter().zip(&course.changes);
        assert!(twice.into_iter().all(|(packet, change)| of(packet) || !change));
    }

    #[test]
    fn every_contestant_runs_with_one_thread_and_with_two() {
        let preset = crate::workload::Preset { addresses_log: 7, trains_log: 6, ..PRESETS[0] };
        let plan =
            Plan { packets: 2_000, presets: vec![preset], threads: vec![], runs: 2, only: None };
        let mut rows = Vec::new();
        run(&plan, &mut |row| rows.push(row)).unwrap();
        let shares: Vec<_> = rows.iter().map(|row| row.params["shares"].clone()).collect();
        assert_eq!(shares, CONTESTANTS.map(|(shares, _)| shares));
        assert!(rows.iter().all(|row| row.runs.value > 0.0 && row.runs.runs == 2));
    }
}
