//! The engine `tamis`: the product's lane and turn, over bare packets.

use std::convert::Infallible;
use std::hint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use live::reorder::{Batch, Came, Lane, Shape, Way};

use super::load::{BURST, Left, Load, Packet, Sink, Source, Work, before_others, soon};

/// As a wire's.
const ROOM: usize = 64;
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Packets(Vec<Packet>);

impl Batch for Packets {
    fn clear(&mut self) {
        self.0.clear();
    }
}

/// What workers share. The locks are free whenever they are taken: one worker stages at a time, and one releases.
struct Floor {
    lane: Lane<Packets>,
    source: Mutex<Source>,
    sink: Mutex<Sink>,
    refused: AtomicU64,
    late: AtomicU64,
    work: Work,
    start: Instant,
}

/// By so many workers.
pub(super) fn run(load: Load, workers: usize) -> Left {
    let (start, all) = (soon(), Barrier::new(workers));
    let floor = Floor {
        lane: Lane::new(Shape { room: ROOM, patience: PATIENCE }),
        source: Mutex::new(Source::new(load.pace, start)),
        sink: Mutex::new(Sink::new(load.work, start)),
        refused: AtomicU64::new(0),
        late: AtomicU64::new(0),
        work: load.work,
        start,
    };
    thread::scope(|scope| {
        for _ in 0..workers {
            let (floor, all) = (&floor, &all);
            scope.spawn(move || {
                before_others(load.pace);
                all.wait();
                take_turns(floor);
            });
        }
    });
    let Floor { source, sink, refused, late, .. } = floor;
    let sink = sink.into_inner().unwrap_or_else(PoisonError::into_inner);
    let source = source.into_inner().unwrap_or_else(PoisonError::into_inner);
    sink.left(&source, refused.into_inner() + late.into_inner())
}

fn take_turns(floor: &Floor) {
    let mut hand = Hand(floor);
    loop {
        let Ok(is_busy) = floor.lane.turn(true, &mut hand);
        if is_busy {
            continue;
        }
        if locked(&floor.source).is_over() && floor.lane.is_empty() {
            return;
        }
        hint::spin_loop();
    }
}

struct Hand<'f>(&'f Floor);

impl Way<Packets> for Hand<'_> {
    type Error = Infallible;

    fn now(&self) -> Duration {
        self.0.start.elapsed()
    }

    fn stage(&mut self, packets: &mut Packets) -> Result<Came, Infallible> {
        Ok(came(locked(&self.0.source).take(&mut packets.0)))
    }

    fn refuse(&mut self) -> Result<Came, Infallible> {
        let mut source = locked(&self.0.source);
        if !source.is_paced() {
            return Ok(Came::default());
        }
        let refused = source.take(&mut Vec::new());
        self.0.refused.fetch_add(refused as u64, Ordering::Relaxed);
        Ok(came(refused))
    }

    fn work(&mut self, packets: &mut Packets) {
        packets.0.iter().for_each(|packet| self.0.work.on(packet));
    }

    fn late(&mut self, packets: Packets) {
        self.0.late.fetch_add(packets.0.len() as u64, Ordering::Relaxed);
    }

    fn release(&mut self, packets: &mut Packets) -> Result<(), Infallible> {
        locked(&self.0.sink).send(&packets.0);
        Ok(())
    }
}

/// A burst that is not full took all that there was.
fn came(frames: usize) -> Came {
    Came { frames, is_more: frames == BURST }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
