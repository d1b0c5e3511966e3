//! `serial`: one thread takes, decides, changes and collects, packet after packet. Here for engines that
//! belong to one thread; shared ones run the loop of one worker.
//!
//! Order: that of the stream.

use std::time::Instant;

use engines::{Address, Decide, Permits};

use super::meter::{Meter, Outcome};
use super::sink::Sink;
use super::source::Source;
use super::workers::BURST;

/// Runs an engine that belongs to this thread.
pub fn run_alone<A: Address>(
    engine: &mut dyn Decide<A>,
    source: &dyn Source<A>,
    sink: &Sink,
    meter: &Meter,
) -> Outcome {
    let started = Instant::now();
    let (mut collector, mut counts, mut room) = (sink.collector(), meter.worker(), Vec::new());
    let mut high_water = 0;
    loop {
        let began = counts.begins();
        let packets = source.next(&mut room, BURST);
        if packets.is_empty() {
            break;
        }
        high_water = high_water.max(packets.len());
        let mut permits = Permits::default();
        engine.burst(packets, &mut permits);
        collector.burst(packets, &permits);
        counts.ends(packets.len(), permits.count(), began);
    }
    drop((collector, counts));
    meter.outcome(started.elapsed(), high_water)
}
