//! `worker_pool`: every worker takes its next packets from the source, decides and changes, and collects.
//!
//! Order: packets are taken in order, but a worker that was slower with an earlier config packet is
//! overtaken by others; with one worker nothing is.

use std::time::Instant;

use engines::{Address, Engine, Permits};

use super::in_flight::InFlight;
use super::meter::{Meter, Outcome};
use super::sink::Sink;
use super::source::Source;
use super::workers::{IN_FLIGHT, Panicked, Run};

pub(super) fn run<A: Address>(run: &Run<'_, A>) {
    std::thread::scope(|scope| {
        for _ in 1..run.threads {
            scope.spawn(|| run.part(|| worker(run)));
        }
        run.part(|| worker(run));
    });
}

/// One worker's loop.
pub(super) fn worker<A: Address>(run: &Run<'_, A>) {
    let (mut engine, mut collector) = (run.engine.worker(), run.sink.collector());
    let (mut counts, mut room) = (run.meter.worker(), Vec::new());
    // A worker is done with a burst before it takes the next, so its places are the same ones all along.
    let places = run.burst();
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
