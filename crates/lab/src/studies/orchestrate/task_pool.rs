//! `task_pool`: a dispatcher cuts the stream into tasks and puts them on one bounded queue; workers take
//! task by task. With one packet a task this is the first study's plainest model.
//!
//! Order: tasks start in order; a data packet may be decided while an earlier task is still worked on.

use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};
use engines::{Address, Packet, Permits};

use super::workers::{IN_FLIGHT, Run};

/// Packets with the time at which they were taken.
type Task<A> = (Vec<Packet<A>>, Option<Instant>);

pub(super) fn run<A: Address>(run: &Run<'_, A>, packets: usize) {
    let (to, tasks) = bounded::<Task<A>>(IN_FLIGHT / packets);
    // Emptied tasks come back, so that none is allocated in the long run.
    let (give_back, emptied) = bounded(IN_FLIGHT / packets);
    std::thread::scope(|scope| {
        for _ in 0..run.threads {
            let (tasks, give_back) = (tasks.clone(), give_back.clone());
            scope.spawn(move || run.part(|| worker(run, &tasks, &give_back)));
        }
        run.part(|| dispatch(run, packets, &to, &emptied));
        drop(to);
    });
}

fn dispatch<A: Address>(
    run: &Run<'_, A>,
    most: usize,
    to: &Sender<Task<A>>,
    emptied: &Receiver<Vec<Packet<A>>>,
) {
    let (counts, mut room) = (run.meter.worker(), Vec::new());
    loop {
        let began = counts.begins();
        let packets = run.take(&mut room, most);
        if packets.is_empty() {
            return;
        }
        let mut task = emptied.try_recv().unwrap_or_default();
        task.extend_from_slice(packets);
        if to.send((task, began)).is_err() {
            return;
        }
    }
}

fn worker<A: Address>(
    run: &Run<'_, A>,
    tasks: &Receiver<Task<A>>,
    give_back: &Sender<Vec<Packet<A>>>,
) {
    let (mut engine, mut collector) = (run.engine.worker(), run.sink.collector());
    let mut counts = run.meter.worker();
    for (mut task, began) in tasks {
        let mut permits = Permits::default();
        engine.burst(&task, &mut permits);
        collector.burst(&task, &permits);
        counts.ends(task.len(), permits.count(), began);
        run.in_flight.leave(task.len());
        task.clear();
        let _ = give_back.try_send(task);
    }
}
