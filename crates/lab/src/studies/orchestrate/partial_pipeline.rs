//! `partial_pipeline`: config workers take packets, apply config packets and hand data packets on, in
//! turn to one queue for each data worker; data workers decide and collect.
//!
//! Order: a data packet waits in its queue while later config packets are applied, and a config worker
//! may be slower with an earlier one: it may be decided before an earlier and after a later change.

use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};
use engines::{Address, Data, Packet};

use super::workers::{IN_FLIGHT, Run};

/// A data packet with the time at which it was taken.
type Handed<A> = (Data<A>, Option<Instant>);

pub(super) fn run<A: Address>(run: &Run<'_, A>, config: usize) {
    // With room for all that may be in flight no sender ever waits for a queue.
    let queues: (Vec<_>, Vec<_>) = (config..run.threads).map(|_| bounded(IN_FLIGHT)).unzip();
    let (to, from) = queues;
    std::thread::scope(|scope| {
        for queue in from {
            scope.spawn(move || run.part(|| data_worker(run, queue)));
        }
        for _ in 0..config {
            let to = to.clone();
            scope.spawn(move || run.part(|| config_worker(run, &to)));
        }
        drop(to);
    });
}

fn config_worker<A: Address>(run: &Run<'_, A>, to: &[Sender<Handed<A>>]) {
    let (mut engine, mut counts) = (run.engine.worker(), run.meter.worker());
    let mut room = Vec::new();
    let mut turns = to.iter().cycle();
    loop {
        let began = counts.begins();
        let packets = run.take(&mut room, run.burst());
        if packets.is_empty() {
            return;
        }
        let mut applied = 0;
        for packet in packets {
            match packet {
                Packet::Config(config) => {
                    engine.update(config);
                    applied += 1;
                }
                Packet::Data(data) => {
                    // It outlives us, unless it panicked: then nothing is counted any more.
                    let _ = turns.next().map(|queue| queue.send((*data, began)));
                }
            }
        }
        counts.ends(applied, 0, began);
        run.in_flight.leave(applied);
    }
}

fn data_worker<A: Address>(run: &Run<'_, A>, queue: Receiver<Handed<A>>) {
    let (mut engine, mut collector) = (run.engine.worker(), run.sink.collector());
    let mut counts = run.meter.worker();
    for (data, began) in queue {
        let permitted = engine.decide(data.source, data.destination);
        if permitted {
            collector.packet(&data);
        }
        counts.ends(1, usize::from(permitted), began);
        run.in_flight.leave(1);
    }
}
