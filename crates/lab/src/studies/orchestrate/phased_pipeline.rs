//! `phased_pipeline`: control workers take packets, decide and change; permitted packets go on one bounded
//! queue to collection workers.
//!
//! Order: as in `worker_pool` among the control workers; with one of them nothing is overtaken.

use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};
use engines::{Address, Data, Packet, Permits};

use super::workers::{IN_FLIGHT, Run};

/// A permitted packet with the time at which it was taken.
type Permitted<A> = (Data<A>, Option<Instant>);

pub(super) fn run<A: Address>(run: &Run<'_, A>, control: usize) {
    let (to, from) = bounded::<Permitted<A>>(IN_FLIGHT);
    std::thread::scope(|scope| {
        for _ in control..run.threads {
            let from = from.clone();
            scope.spawn(move || run.part(|| collection_worker(run, &from)));
        }
        for _ in 0..control {
            let to = to.clone();
            scope.spawn(move || run.part(|| control_worker(run, &to)));
        }
        drop(to);
    });
}

fn control_worker<A: Address>(run: &Run<'_, A>, to: &Sender<Permitted<A>>) {
    let (mut engine, mut counts) = (run.engine.worker(), run.meter.worker());
    let mut room = Vec::new();
    loop {
        let began = counts.begins();
        let packets = run.take(&mut room, run.burst());
        if packets.is_empty() {
            return;
        }
        let mut permits = Permits::default();
        engine.burst(packets, &mut permits);
        let done = packets.len() - permits.count();
        counts.ends(done, 0, began);
        run.in_flight.leave(done);
        for (at, packet) in packets.iter().enumerate() {
            if let Packet::Data(data) = packet
                && permits.has(at)
            {
                // Some of them outlive us, unless they panicked: then nothing is counted any more.
                let _ = to.send((*data, began));
            }
        }
    }
}

fn collection_worker<A: Address>(run: &Run<'_, A>, from: &Receiver<Permitted<A>>) {
    let (mut collector, mut counts) = (run.sink.collector(), run.meter.worker());
    for (data, began) in from {
        collector.packet(&data);
        counts.ends(1, 1, began);
        run.in_flight.leave(1);
    }
}
