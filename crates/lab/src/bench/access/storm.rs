//! A storm of bans beside a reader: how long 20,000 bans take, and the rate that one thread's decisions keep, where few others
//! are banned, and a million.
//!
//! Each round watches the reader in quiet, while bans come without a pause, and while 20,000 of them are
//! spread over a tenth of a second. Bans are of addresses that the reader does not ask about, and are lifted
//! and put back in turn, so that what it asks costs the same throughout.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use access::list::{Action, Block, Change, Published};
use engines::catalogue::{Built, Choices, Kind};
use engines::{Body, Config, Data, Engine, Packet, Permits};

use super::{Prepared, Row, Tuning};
use crate::bench::{Rows, limit};
use crate::workload::{PRESETS, Variant};

/// Bans of the storm.
const BANS: u32 = 20_000;
/// Others that are banned all the time.
const MANY: u32 = 1_000_000;
/// How long a reader is watched each time, and over how long a spread storm is spread.
const WATCHED: Duration = Duration::from_millis(100);
/// The parts of a spread storm.
const PARTS: u32 = 20;

/// Measures the engine of the studies and the list of the product.
///
/// # Errors
/// The engine refuses.
pub(super) fn run(rounds: usize, out: &mut Rows) -> Result<(), String> {
    on_preset(rounds, out)?;
    on_list(BANS, rounds, out);
    on_many(rounds, out)?;
    on_list(MANY, rounds, out);
    Ok(())
}

/// What a round found: seconds of a whole storm, and the reader's rate in quiet and beside both storms.
struct Round {
    took: f64,
    quiet: f64,
    without_pause: f64,
    spread: f64,
}

/// One round. `bans(lift, part)` applies one part of the storm, or with `None` all of it.
fn round(
    read: &(dyn Fn(&AtomicBool, &AtomicU64) + Sync),
    bans: &mut dyn FnMut(bool, Option<u32>),
) -> Round {
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut lift = false;
    std::thread::scope(|scope| {
        scope.spawn(|| read(&stop, &count));
        let rate = |during: &mut dyn FnMut()| {
            let (before, started) = (count.load(Ordering::Relaxed), Instant::now());
            during();
            let took = started.elapsed().as_secs_f64();
            (took, (count.load(Ordering::Relaxed) - before) as f64 / took)
        };
        sleep(WATCHED / 5);
        let quiet = rate(&mut || sleep(WATCHED)).1;
        let mut storms = 0.0;
        let (took, without_pause) = rate(&mut || {
            let started = Instant::now();
            while started.elapsed() < WATCHED {
                bans(lift, None);
                lift = !lift;
                storms += 1.0;
            }
        });
        let (_, spread) = rate(&mut || {
            let started = Instant::now();
            for part in 0..PARTS {
                bans(lift, Some(part));
                sleep((WATCHED / PARTS * (part + 1)).saturating_sub(started.elapsed()));
            }
        });
        // Whatever the next round begins with, it is the state that this one began with.
        bans(true, None);
        stop.store(true, Ordering::Relaxed);
        Round { took: took / storms, quiet, without_pause, spread }
    })
}

fn report(engine: &'static str, how: &str, held: u32, rounds: &[Round], out: &mut Rows) {
    let of = |figure: fn(&Round) -> f64| rounds.iter().map(figure).collect::<Vec<_>>();
    let row = |name, unit, figures: &[f64]| {
        let row = Row::new(name, engine, unit, figures);
        row.with("bans", BANS).with("held", held).with("as", how)
    };
    out.push(row("access.update", "s", &of(|round| round.took)));
    let quiet = of(|round| round.quiet);
    for (storm, rates) in [
        ("without pause", of(|round| round.without_pause)),
        ("20,000 in 0.1 s", of(|round| round.spread)),
    ] {
        out.push(
            row("access.update.reader", "decisions/s", &rates)
                .with("storm", storm)
                .beside("quiet", &rates, &quiet),
        );
    }
}

/// The places of a part among the bans of a storm.
fn places(part: Option<u32>) -> std::ops::Range<u32> {
    let each = BANS / PARTS;
    part.map_or(0..BANS, |part| part * each..(part + 1) * each)
}

/// Bans in the engine of the studies one by one, of every third address of preset 8; the reader decides
/// packets of the others.
fn on_preset(rounds: usize, out: &mut Rows) -> Result<(), String> {
    let prepared = Prepared::new(Variant::A, &PRESETS[7], false, 200_000);
    let Built::Shared(engine) = prepared.engine(Kind::Tamis, Tuning::default())? else {
        return Ok(());
    };
    let asked = |packet: &&Packet<u32>| match packet {
        Packet::Data(data) => data.source % 3 != 0,
        Packet::Config(_) => false,
    };
    let data: Vec<_> = prepared.packets().iter().filter(asked).copied().collect();
    on_engine(&*engine, &data, |place| place * 3, 0, rounds, out);
    Ok(())
}

/// The engine of the studies over any addresses, with as many bans as the reader asks about.
fn on_many(rounds: usize, out: &mut Rows) -> Result<(), String> {
    let choices = Choices { default_accept: true, ..Choices::default() };
    let built = Kind::Tamis.build::<u32>(&choices).map_err(|why| why.to_string())?;
    let Built::Shared(engine) = built else { return Ok(()) };
    (0..MANY).for_each(|at| engine.update(&ban(address(at), true)));
    let packet = |at| Data { source: address(at), destination: 7, body: Body::default() };
    let data: Vec<_> = (0..MANY).map(|at| Packet::Data(packet(at))).collect();
    on_engine(&*engine, &data, |place| address(MANY + place), MANY, rounds, out);
    Ok(())
}

fn ban(address: u32, persona_non_grata: bool) -> Config<u32> {
    Config { address, persona_non_grata, accept: true, begin: 0, end: 0 }
}

/// An address of 10.0.0.0/8, which odd numbers permute.
fn address(at: u32) -> u32 {
    (at.wrapping_mul(0x9e37_79b1) & 0x00ff_ffff) | 0x0a00_0000
}

/// Bans come one by one; the reader decides these packets.
fn on_engine(
    engine: &dyn Engine<u32>,
    data: &[Packet<u32>],
    banned: impl Fn(u32) -> u32,
    held: u32,
    rounds: usize,
    out: &mut Rows,
) {
    let read = |stop: &AtomicBool, count: &AtomicU64| {
        let mut worker = engine.worker();
        for burst in data.chunks(64).cycle() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let mut permits = Permits::default();
            worker.burst(burst, &mut permits);
            std::hint::black_box(permits);
            count.fetch_add(burst.len() as u64, Ordering::Relaxed);
        }
    };
    let mut bans = |lift: bool, part| {
        places(part).for_each(|place| engine.update(&ban(banned(place), !lift)));
    };
    let rounds: Vec<_> = limit::rounds(rounds).map(|_| round(&read, &mut bans)).collect();
    report("tamis", "config packets", held, &rounds, out);
}

/// Bans in the list of the product, in one batch or one for each part; it holds others, which the reader asks about.
fn on_list(held: u32, rounds: usize, out: &mut Rows) {
    let change = |at: u32, action| {
        let source = Block::V4((address(at), address(at)));
        Change { action, source, destination: None }
    };
    let changes = |action| (0..BANS).map(move |at| change(held + at, action)).collect::<Vec<_>>();
    let (banned, lifted) = (changes(Action::Ban), changes(Action::Unban));
    let published = Published::default();
    published.update_all(&(0..held).map(|at| change(at, Action::Ban)).collect::<Vec<_>>());
    let read = |stop: &AtomicBool, count: &AtomicU64| {
        let (mut reader, mut at) = (published.reader(), 0u32);
        while !stop.load(Ordering::Relaxed) {
            let list = reader.latest();
            for _ in 0..64 {
                at = (at + 1) % held;
                let source = std::net::Ipv4Addr::from_bits(address(at)).into();
                std::hint::black_box(list.decide(source, source).is_ok());
            }
            count.fetch_add(64, Ordering::Relaxed);
        }
    };
    let mut bans = |lift: bool, part| {
        let of = if lift { &lifted } else { &banned };
        let places = places(part);
        published.update_all(&of[places.start as usize..places.end as usize]);
    };
    let rounds: Vec<_> = limit::rounds(rounds).map(|_| round(&read, &mut bans)).collect();
    report("list", "one batch", held, &rounds, out);
}
