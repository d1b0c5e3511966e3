//! `ordered`: workers take turns at the source, where they decide and change in the order of the stream; they do
//! the work of permitted packets side by side, and packets leave in the order in which they came.
//!
//! Order: that of the stream, for changes, verdicts and what is collected; the outcome is that of one
//! thread. What is parallel is the work between verdict and end.
//!
//! Concurrency: the turn is one lock, held while a burst is taken and decided; whoever waits for room in
//! flight does so before it. A worker that is done with its burst leaves it at the exit and goes on; whoever
//! brings the burst that is next lets out all that waited for it. So the oldest burst is always being worked
//! on, and nobody waits for a thread that waits.

use std::collections::VecDeque;
use std::time::Instant;

use engines::{Address, Decide, Packet, Permits};
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::meter::WorkerCounts;
use super::sink::Collector;
use super::workers::{BURST, Run};

/// What belongs to the worker whose turn it is.
struct Turn<'e, A: Address> {
    /// The number of the next burst.
    next: u64,
    engine: Box<dyn Decide<A> + 'e>,
}

/// A burst whose work is done.
struct Worked {
    fingerprints: SmallVec<[u16; BURST]>,
    packets: usize,
    began: Option<Instant>,
}

/// Bursts that wait for earlier ones; bounded by the packets in flight.
struct Exit<'s> {
    /// The number of the burst that leaves next: that of the first place.
    next: u64,
    waiting: VecDeque<Option<Worked>>,
    collector: Collector<'s>,
    counts: WorkerCounts<'s>,
}

pub(super) fn run<A: Address>(run: &Run<'_, A>) {
    let turn = Mutex::new(Turn { next: 0, engine: run.engine.worker() });
    let (collector, counts) = (run.sink.collector(), run.meter.worker());
    let exit = Mutex::new(Exit { next: 0, waiting: VecDeque::new(), collector, counts });
    std::thread::scope(|scope| {
        for _ in 1..run.threads {
            scope.spawn(|| run.part(|| worker(run, &turn, &exit)));
        }
        run.part(|| worker(run, &turn, &exit));
    });
}

fn worker<A: Address>(run: &Run<'_, A>, turn: &Mutex<Turn<'_, A>>, exit: &Mutex<Exit<'_>>) {
    let (clock, mut room) = (run.meter.worker(), Vec::new());
    // One to work on and one at the exit.
    let most = (run.burst() / 2).max(1);
    while run.in_flight.enter(most) {
        let began = clock.begins();
        let (number, packets, permits) = turn.lock().take(run, &mut room, most);
        run.in_flight.leave(most - packets.len());
        if packets.is_empty() {
            return;
        }
        let work = |(at, packet): (usize, &Packet<A>)| match packet {
            Packet::Data(data) if permits.has(at) => Some(run.sink.work(data.body)),
            _ => None,
        };
        let fingerprints = packets.iter().enumerate().filter_map(work).collect();
        let worked = Worked { fingerprints, packets: packets.len(), began };
        let left = exit.lock().let_out(number, worked);
        run.in_flight.leave(left);
    }
}

impl<A: Address> Turn<'_, A> {
    /// The next burst with its number and decisions.
    fn take<'p>(
        &mut self,
        run: &'p Run<'_, A>,
        room: &'p mut Vec<Packet<A>>,
        most: usize,
    ) -> (u64, &'p [Packet<A>], Permits) {
        let (number, mut permits) = (self.next, Permits::default());
        self.next += 1;
        let packets = run.source.next(room, most);
        self.engine.burst(packets, &mut permits);
        (number, packets, permits)
    }
}

impl Exit<'_> {
    /// Takes a burst, and lets out whatever no longer waits for an earlier one; how many packets that is.
    fn let_out(&mut self, number: u64, worked: Worked) -> usize {
        let place = (number - self.next) as usize;
        while self.waiting.len() <= place {
            self.waiting.push_back(None);
        }
        self.waiting[place] = Some(worked);
        let mut left = 0;
        while let Some(worked) = self.waiting.pop_front_if(|first| first.is_some()).flatten() {
            self.next += 1;
            left += worked.packets;
            self.counts.ends(worked.packets, worked.fingerprints.len(), worked.began);
            worked.fingerprints.iter().for_each(|fingerprint| self.collector.count(*fingerprint));
        }
        left
    }
}
