//! `worker_pool`: every worker takes its next packets from the source, decides and changes, and collects.
//!
//! `one_by_one` is the same as the second study has it: each takes one packet at a time, and adds it to a counter of all.
//!
//! Order: packets are taken in order, but a worker that was slower with an earlier config packet is
//! overtaken by others; with one worker nothing is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use engines::{Address, Engine, Permits};

use super::in_flight::InFlight;
use super::meter::{Meter, Outcome};
use super::sink::Sink;
use super::source::Source;
use super::workers::{IN_FLIGHT, Panicked, Run};

pub(super) fn run<A: Address>(run: &Run<'_, A>) {
    all(run, || worker(run));
}

/// Fails where the counter of all and what each counted for itself differ.
pub(super) fn one_by_one<A: Address>(run: &Run<'_, A>) -> Result<(), String> {
    let done = CachePadded::new(AtomicU64::new(0));
    let count = |packets: usize| _ = done.fetch_add(packets as u64, Ordering::Relaxed);
    all(run, || worker_of(run, 1, count));
    let (done, each) = (done.into_inner(), run.meter.outcome(Duration::ZERO, 0).packets);
    (done.into_inner() == each)
        .then_some(())
        .ok_or_else(|| format!("expected {each} packets counted by all"))
}

fn all<A: Address>(run: &Run<'_, A>, worker: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 1..run.threads {
            scope.spawn(|| run.part(&worker));
        }
        run.part(&worker);
    });
}

/// One worker's loop.
pub(super) fn worker<A: Address>(run: &Run<'_, A>) {
    worker_of(run, run.burst(), |_| ());
}

/// That of a worker that takes so many packets at a time, and tells how many were done.
fn worker_of<A: Address>(run: &Run<'_, A>, places: usize, done: impl Fn(usize)) {
    let (mut engine, mut collector) = (run.engine.worker(), run.sink.collector());
    let (mut counts, mut room) = (run.meter.worker(), Vec::new());
    // A worker is done with a burst before it takes the next, so its places are the same ones all along.
    if !run.in_flight.enter(places) {
        return;
    }
    while !run.in_flight.is_given_up() {
        let began = counts.begins();
        let packets = run.source.next(&mut room, places);
        if packets.is_empty() {
            break;
        }
        let mut permits = Permits::default();
        engine.burst(packets, &mut permits);
        collector.burst(packets, &permits);
        counts.ends(packets.len(), permits.count(), began);
        done(packets.len());
    }
    run.in_flight.leave(places);
}

/// A worker for each source, as the first study's published code runs its pools: not one stream but several,
/// which is no system of the exercise. Kept to show what that changes.
///
/// # Errors
/// One of them panicked.
pub fn per_worker_source<A: Address>(
    engine: &dyn Engine<A>,
    sources: &[&dyn Source<A>],
    sink: &Sink,
    meter: &Meter,
) -> Result<Outcome, String> {
    let (in_flight, panicked) = (InFlight::new(IN_FLIGHT), Panicked::default());
    let (in_flight, panicked, threads) = (&in_flight, &panicked, sources.len());
    let of = |source| Run { engine, source, sink, in_flight, meter, threads, panicked };
    let Some(first) = sources.first().copied() else { return Ok(Outcome::default()) };
    let started = Instant::now();
    std::thread::scope(|scope| {
        for &source in sources {
            let run = of(source);
            scope.spawn(move || run.part(|| worker(&run)));
        }
    });
    of(first).outcome(started)
}
