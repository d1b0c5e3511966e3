//! `ordered`: one thread judges and changes in the order of the stream, workers do the work of permitted
//! packets side by side, and packets leave in the order in which they came.
//!
//! Order: that of the stream, for changes, verdicts and what is collected; the outcome is that of one
//! thread. What is parallel is the work between verdict and end.

use std::collections::BTreeMap;
use std::time::Instant;

use access::{Address, Packet, Permits};
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;

use super::meter::Tally;
use super::sink::Collector;
use super::{IN_FLIGHT, Run};

/// A judged burst on its way through a worker.
struct Staged<A> {
    number: u64,
    packets: Vec<Packet<A>>,
    permits: Permits,
    began: Option<Instant>,
}

/// A burst whose work is done.
struct Worked {
    fingerprints: Vec<u16>,
    packets: usize,
    began: Option<Instant>,
}

/// Bursts that wait for earlier ones; bounded by the packets in flight.
struct Exit<'s> {
    next: u64,
    waiting: BTreeMap<u64, Worked>,
    collector: Collector<'s>,
    tally: Tally<'s>,
}

pub(super) fn run<A: Address>(run: &Run<'_, A>) {
    let (to, staged) = bounded(IN_FLIGHT);
    let (collector, tally) = (run.sink.collector(), run.meter.worker());
    let exit = Mutex::new(Exit { next: 0, waiting: BTreeMap::new(), collector, tally });
    std::thread::scope(|scope| {
        for _ in 0..run.threads {
            let (exit, staged) = (&exit, staged.clone());
            scope.spawn(move || worker(run, &staged, exit));
        }
        stage(run, &to);
        drop(to);
    });
}

fn stage<A: Address>(run: &Run<'_, A>, to: &Sender<Staged<A>>) {
    let (mut engine, mut room) = (run.engine.worker(), Vec::new());
    let tally = run.meter.worker();
    // Several bursts for each worker, or the slowest packet would hold up all others.
    let most = (run.burst() / 4).max(1);
    for number in 0.. {
        let began = tally.begins();
        let packets = run.take(&mut room, most);
        if packets.is_empty() {
            return;
        }
        let mut permits = Permits::default();
        engine.burst(packets, &mut permits);
        let staged = Staged { number, packets: packets.to_vec(), permits, began };
        if to.send(staged).is_err() {
            return;
        }
    }
}

fn worker<A: Address>(run: &Run<'_, A>, staged: &Receiver<Staged<A>>, exit: &Mutex<Exit<'_>>) {
    let works = run.sink.collector();
    for Staged { number, packets, permits, began } in staged {
        let work = |(at, packet): (usize, &Packet<A>)| match packet {
            Packet::Data(data) if permits.has(at) => Some(works.work(data.body)),
            _ => None,
        };
        let fingerprints = packets.iter().enumerate().filter_map(work).collect();
        let worked = Worked { fingerprints, packets: packets.len(), began };
        let mut exit = exit.lock();
        exit.waiting.insert(number, worked);
        exit.release(run);
    }
}

impl Exit<'_> {
    /// Lets out whatever no longer waits for an earlier burst.
    fn release<A: Address>(&mut self, run: &Run<'_, A>) {
        while let Some(worked) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.tally.ends(worked.packets, worked.fingerprints.len(), worked.began);
            for fingerprint in worked.fingerprints {
                self.collector.count(fingerprint);
            }
            run.in_flight.leave(worked.packets);
        }
    }
}
