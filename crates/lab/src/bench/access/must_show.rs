//! The figures that the access list is held to, each measured beside what it is held against.
//!
//! Variant A, default deny, after the warm-up, a million packets, unless a row says otherwise.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::bench::{Rows, limit};
use crate::studies::orchestrate::Orchestration;
use engines::catalogue::{Built, Choices, Kind};
use engines::{Config, Engine};

use super::contest::contest;
use super::{Plan, Prepared, Row, Setting, Track, storm};
use crate::workload::{Bitwise, Generator, Mangle, Preset, Tabled, Variant};

/// Measures all of them.
///
/// # Errors
/// An engine gives a wrong outcome.
pub fn run(plan: &Plan, kinds: &[Kind], out: &mut Rows) -> Result<(), String> {
    let Plan { packets, runs: rounds, .. } = *plan;
    for preset in &plan.presets {
        if out.begins(format!("access.generator, preset {}", preset.number)) {
            generators(preset, packets, rounds, out);
        }
    }
    for preset in &plan.presets {
        if !out.begins(format!("access, preset {}", preset.number)) {
            continue;
        }
        let prepared = Prepared::new(Variant::A, preset, false, packets);
        roofline(&prepared, kinds, rounds, out)?;
        shared_out(&prepared, rounds, out)?;
    }
    if out.begins("access.update") {
        storm::run(rounds, out)?;
    }
    if out.begins("access.effect") {
        effect(rounds, out)?;
    }
    Ok(())
}

/// Packets per second of the generator alone, both ways.
fn generators(preset: &Preset, packets: usize, rounds: usize, out: &mut Rows) {
    fn rate<M: Mangle>(preset: &Preset, packets: usize) -> f64 {
        let mut generator = Generator::<M>::new(Variant::A, preset);
        let started = Instant::now();
        for _ in 0..packets {
            std::hint::black_box(generator.packet());
        }
        packets as f64 / started.elapsed().as_secs_f64()
    }
    let (mut tabled, mut bitwise) = (Vec::new(), Vec::new());
    for _ in limit::rounds(rounds) {
        tabled.push(rate::<Tabled>(preset, packets));
        bitwise.push(rate::<Bitwise>(preset, packets));
    }
    out.push(
        Row::new("access.generator", "tabled", "packets/s", &tabled)
            .with("preset", preset.number)
            .with("variant", "A")
            .beside("bitwise", &tabled, &bitwise),
    );
}

/// Every engine beside the matrix without locks, and two threads of ours beside one.
fn roofline(
    prepared: &Prepared,
    kinds: &[Kind],
    rounds: usize,
    out: &mut Rows,
) -> Result<(), String> {
    let kinds = kinds.iter().copied().filter(|kind| kind.is_atomic());
    let alone = kinds.map(|kind| match kind.is_shared() {
        true => Setting::pool(kind, 1),
        false => Setting::alone(kind),
    });
    let settings: Vec<_> = alone.chain([Setting::pool(Kind::Tamis, 2)]).collect();
    let (figures, _) = contest(&settings, prepared, rounds)?;
    let of = |kind: Kind, threads: usize| {
        figures.iter().find(|one| one.setting.engine == kind && one.setting.threads == threads)
    };
    let roof = of(Kind::MatrixUnlocked, 1).map(|roof| ("matrix_unlocked", roof));
    for figures in figures.iter().filter(|one| one.setting.threads == 1) {
        out.push(figures.row(prepared, roof));
    }
    if let (Some(two), Some(one)) = (of(Kind::Tamis, 2), of(Kind::Tamis, 1)) {
        out.push(two.row(prepared, Some(("one thread", one))));
    }
    let matrix = of(Kind::Matrix, 1).and_then(|matrix| matrix.bytes);
    let ours = of(Kind::Tamis, 1).and_then(|tamis| tamis.bytes);
    if let (Some(ours), Some(matrix)) = (ours, matrix) {
        let (ours, matrix) = ([ours as f64], [matrix as f64]);
        out.push(
            Row::new("access.memory", "tamis", "B", &ours)
                .with("preset", prepared.preset.number)
                .beside("matrix", &ours, &matrix),
        );
    }
    Ok(())
}

/// Track (b): two workers beside the serial run of the same work.
fn shared_out(prepared: &Prepared, rounds: usize, out: &mut Rows) -> Result<(), String> {
    let serial = Setting::alone(Kind::Serial).on(Track::B);
    let pool = Setting::pool(Kind::Tamis, 2).on(Track::B);
    let ordered = Setting { orchestration: Orchestration::Ordered, ..pool };
    let (figures, _) = contest(&[serial, pool, ordered], prepared, rounds.min(3))?;
    if let [serial, others @ ..] = &figures[..] {
        out.push(serial.row(prepared, None));
        others.iter().for_each(|one| out.push(one.row(prepared, Some(("serial", serial)))));
    }
    Ok(())
}

/// From the call that publishes a ban to the first decision of another thread that sees it.
fn effect(rounds: usize, out: &mut Rows) -> Result<(), String> {
    let choices = Choices { addresses: Some(2048), default_accept: true, ..Choices::default() };
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_shared() && kind.is_atomic()) {
        let Built::Shared(engine) = kind.build::<u32>(&choices).map_err(|why| why.to_string())?
        else {
            continue;
        };
        let delays = effects(&*engine, 200 * rounds as u32);
        out.push(Row::new("access.effect", kind.name(), "s", &delays));
    }
    Ok(())
}

fn effects(engine: &dyn Engine<u32>, times: u32) -> Vec<f64> {
    let began = Instant::now();
    let (asked, seen) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut worker = engine.worker();
            for turn in 1..=u64::from(times) {
                while worker.decide(7, 9) == (turn % 2 == 1) {
                    std::thread::yield_now();
                }
                seen.store(began.elapsed().as_nanos() as u64, Ordering::SeqCst);
                asked.store(turn, Ordering::SeqCst);
            }
        });
        let change = |turn: u32| {
            let png = turn % 2 == 1;
            Config { address: 7, persona_non_grata: png, accept: true, begin: 0, end: 0 }
        };
        (1..=times)
            .map(|turn| {
                let at = began.elapsed().as_nanos() as u64;
                engine.update(&change(turn));
                while asked.load(Ordering::SeqCst) < u64::from(turn) {
                    std::thread::yield_now();
                }
                (seen.load(Ordering::SeqCst).saturating_sub(at)) as f64 / 1e9
            })
            .collect()
    })
}
