//! `stream`: a parallel stream over the source, by rayon: its threads take items from one iterator and steal
//! work from each other. The second study used the streams of its language's library.
//!
//! Order: as in `worker_pool`.

use engines::{Address, Packet, Permits};
use rayon::iter::{ParallelBridge, ParallelIterator};

use super::workers::Run;

pub(super) fn run<A: Address>(run: &Run<'_, A>) -> Result<(), String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(run.threads).build();
    let pool = pool.map_err(|error| format!("cannot start threads: {error}"))?;
    // rayon may hold one item for each thread beside the one that is worked on.
    let most = (run.burst() / 2).max(1);
    let counts = run.meter.worker();
    let items = std::iter::from_fn(|| {
        let began = counts.begins();
        let mut room = Vec::new();
        let packets = run.take(&mut room, most);
        let packets: Vec<Packet<A>> = packets.to_vec();
        (!packets.is_empty()).then_some((packets, began))
    });
    // Each item is a part: one that panicked would keep its room in flight, for which others wait.
    let each = || {
        items.par_bridge().for_each_init(
            || (run.engine.worker(), run.sink.collector(), run.meter.worker()),
            |(engine, collector, counts), (packets, began)| {
                run.part(|| {
                    let mut permits = Permits::default();
                    engine.burst(&packets, &mut permits);
                    collector.burst(&packets, &permits);
                    counts.ends(packets.len(), permits.count(), began);
                    run.in_flight.leave(packets.len());
                });
            },
        );
    };
    run.part(|| pool.install(each));
    Ok(())
}
