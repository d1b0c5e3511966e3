//! Random steps of frames between two bursts and a port, compared with a plain list of what each frame holds.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use pktio::{Burst, FaultPort, FaultRates, FrameMeta, MemoryPort, Pool, Port, Region};

use super::ring::Ring;

const CHUNKS: usize = 8;
const CHUNK: usize = 64;
const HEADROOM: usize = 16;
const QUEUE: usize = 6;

/// Where a frame's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Pool,
    Ring,
    Buffer,
}

/// What happens; a burst is one of two.
#[derive(Clone, Debug)]
enum Step {
    /// A frame of these many bytes is made.
    Make(Home, usize, usize),
    Receive(usize),
    Transmit(usize),
    /// Frames whose bit is set are dropped.
    Drop(usize, u8),
    /// The first ones move to the other burst.
    Move(usize, usize),
    /// The first ones are taken out, of which the first moves on and the others are dropped.
    Take(usize, usize),
    /// A port whose memory the ring is transmits the first ones: its own from where they lie, copies of the others.
    Reclaim(usize, usize),
    Clear(usize),
    /// A frame grows in front or at its end.
    Grow(usize, usize, bool, usize),
    Trim(usize, usize, bool, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let burst = || 0..2_usize;
    let (count, at, by) = (|| 0..5_usize, || 0..6_usize, || 0..24_usize);
    let home = prop_oneof![Just(Home::Pool), Just(Home::Ring), Just(Home::Buffer)];
    prop_oneof![
        4 => (home, burst(), 0..40_usize).prop_map(|(home, at, len)| Step::Make(home, at, len)),
        2 => burst().prop_map(Step::Receive),
        2 => burst().prop_map(Step::Transmit),
        1 => (burst(), any::<u8>()).prop_map(|(burst, which)| Step::Drop(burst, which)),
        1 => (burst(), count()).prop_map(|(burst, count)| Step::Move(burst, count)),
        1 => (burst(), count()).prop_map(|(burst, count)| Step::Take(burst, count)),
        2 => (burst(), count()).prop_map(|(burst, count)| Step::Reclaim(burst, count)),
        1 => burst().prop_map(Step::Clear),
        2 => (burst(), at(), any::<bool>(), by()).prop_map(|(b, at, f, by)| Step::Grow(b, at, f, by)),
        1 => (burst(), at(), any::<bool>(), by()).prop_map(|(b, at, f, by)| Step::Trim(b, at, f, by)),
    ]
}

/// What a frame is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Expected {
    home: Home,
    bytes: Vec<u8>,
}

struct World {
    bursts: [Burst; 2],
    expected: [Vec<Expected>; 2],
    queued: Vec<Expected>,
    port: MemoryPort,
    pool: Pool,
    ring: Arc<Ring>,
    /// What is written next.
    mark: u8,
}

impl World {
    fn new() -> Self {
        let pool = Pool::new(CHUNKS, CHUNK, HEADROOM);
        Self {
            bursts: [Burst::with_capacity(0), Burst::with_capacity(100)],
            expected: Default::default(),
            queued: Vec::new(),
            port: MemoryPort::looped(&pool, QUEUE, 3),
            ring: Ring::new(CHUNKS as u64, CHUNK),
            pool,
            mark: 0,
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Make(home, burst, length) => self.make(home, burst, length),
            Step::Receive(burst) => {
                let count = self.port.rx_burst(&mut self.bursts[burst]).unwrap();
                assert_eq!(count, self.queued.len().min(3));
                self.expected[burst] = self.queued.drain(..count).collect();
            }
            Step::Transmit(burst) => self.transmit(burst),
            Step::Drop(burst, which) => {
                let keep = |at: usize| which >> (at % 8) & 1 == 0;
                let mut places = 0..;
                self.bursts[burst].retain(|_| places.next().is_some_and(keep));
                let mut places = 0..;
                self.expected[burst].retain(|_| places.next().is_some_and(keep));
            }
            Step::Move(burst, count) => self.moves(burst, count, count),
            Step::Take(burst, count) => self.moves(burst, count, 1),
            Step::Reclaim(burst, count) => self.reclaim(burst, count),
            Step::Clear(burst) => {
                self.bursts[burst].clear();
                self.expected[burst].clear();
            }
            Step::Grow(burst, at, is_front, by) => self.grow(burst, at, is_front, by),
            Step::Trim(burst, at, is_front, by) => {
                let Some(expected) = self.expected[burst].get_mut(at) else { return };
                let by = by.min(expected.bytes.len());
                if is_front {
                    expected.bytes.drain(..by);
                    self.bursts[burst].trim_front(at, by);
                } else {
                    expected.bytes.truncate(expected.bytes.len() - by);
                    self.bursts[burst].trim_back(at, by);
                }
            }
        }
    }

    fn make(&mut self, home: Home, burst: usize, length: usize) {
        let bytes = vec![0; length];
        let to = &mut self.bursts[burst];
        let made = match home {
            Home::Pool => self.pool.take(),
            Home::Ring => self.ring.take(HEADROOM),
            Home::Buffer => {
                to.push(&bytes, FrameMeta::default());
                None
            }
        };
        let is_made = made.is_some();
        if let Some(mut frame) = made {
            assert!(frame.extend(&bytes));
            to.push_frame(frame);
        }
        if is_made || home == Home::Buffer {
            self.expected[burst].push(Expected { home, bytes });
        }
    }

    fn transmit(&mut self, burst: usize) {
        let room = QUEUE - self.queued.len();
        let mut free = self.pool.free();
        let count = self.port.tx_burst(&mut self.bursts[burst]).unwrap();
        let mut offered = std::mem::take(&mut self.expected[burst]).into_iter();
        let mut taken = 0;
        while taken < room && offered.len() > 0 {
            let next = offered.as_slice()[0].clone();
            if next.home == Home::Buffer && free == 0 {
                break;
            }
            free -= usize::from(next.home == Home::Buffer);
            let home = if next.home == Home::Buffer { Home::Pool } else { next.home };
            if next.home != Home::Buffer || next.bytes.len() <= CHUNK - HEADROOM {
                self.queued.push(Expected { home, ..next });
            }
            offered.next();
            taken += 1;
        }
        self.expected[burst] = offered.collect();
        assert_eq!(count, taken);
    }

    /// Takes `count` frames out, of which the first `kept` go to the other burst.
    fn moves(&mut self, burst: usize, count: usize, kept: usize) {
        let [one, other] = &mut self.bursts;
        let (from, to) = if burst == 0 { (one, other) } else { (other, one) };
        from.drain(count).take(kept).for_each(|frame| to.append(frame));
        let count = count.min(self.expected[burst].len());
        let moved: Vec<_> = self.expected[burst].drain(..count).take(kept).collect();
        self.expected[1 - burst].extend(moved);
    }

    fn reclaim(&mut self, burst: usize, count: usize) {
        let count = count.min(self.expected[burst].len());
        for (at, expected) in self.expected[burst].drain(..count).enumerate() {
            let reclaimed = self.bursts[burst].reclaim(at, &self.ring);
            assert_eq!(reclaimed.is_some(), expected.home == Home::Ring);
            let Some((memory, range)) = reclaimed else { continue };
            assert_eq!(memory.bytes()[range], expected.bytes);
            assert!(self.bursts[burst].reclaim(at, &self.ring).is_none(), "it has it already");
            assert_eq!(self.bursts[burst].get(at).map(|left| left.bytes.len()), Some(0));
            self.ring.take_back(&mut [memory].into_iter());
        }
        drop(self.bursts[burst].drain(count));
    }

    fn grow(&mut self, burst: usize, at: usize, is_front: bool, by: usize) {
        let frames = &mut self.bursts[burst];
        let room = if is_front { frames.headroom(at) } else { frames.tailroom(at) };
        let grown = match is_front {
            true => frames.grow_front(at, by),
            false => frames.grow_back(at, by),
        };
        let Some(expected) = self.expected[burst].get_mut(at) else {
            assert!(grown.is_none());
            return;
        };
        assert_eq!(grown.is_some(), by <= room);
        if let Some(frame) = grown {
            frame.bytes.fill(0);
            expected.bytes = vec![0; expected.bytes.len() + by];
        }
    }

    /// Each frame holds what it should, and each chunk is either in a frame or free. Then every frame is written again:
    /// a frame that shares a byte with another shows it at the next look.
    fn check(&mut self) {
        for (burst, expected) in self.bursts.iter_mut().zip(&mut self.expected) {
            let found: Vec<_> = burst.iter().map(|frame| frame.bytes.to_vec()).collect();
            let wanted: Vec<_> = expected.iter().map(|frame| frame.bytes.clone()).collect();
            assert_eq!(found, wanted);
            assert_eq!(burst.iter_mut().count(), wanted.len());
            for (frame, expected) in burst.iter_mut().zip(expected) {
                self.mark = self.mark.wrapping_add(1);
                frame.bytes.fill(self.mark);
                expected.bytes.fill(self.mark);
            }
        }
        let out = |home| {
            let all = self.expected.iter().flatten().chain(&self.queued);
            all.filter(|frame| frame.home == home).count()
        };
        assert_eq!(self.pool.free() + out(Home::Pool), CHUNKS);
        assert_eq!(self.ring.free() + out(Home::Ring), CHUNKS);
    }
}

proptest! {
    #[test]
    fn every_chunk_goes_back_once_and_none_is_shared(steps in vec(step(), 1..80)) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            world.check();
        }
        let (pool, ring) = (world.pool.clone(), Arc::clone(&world.ring));
        drop(world);
        prop_assert_eq!((pool.free(), ring.free()), (CHUNKS, CHUNKS));
    }

    #[test]
    fn faults_lose_no_chunk(seed in any::<u64>(), lengths in vec(0..40_usize, 1..40)) {
        let pool = Pool::new(CHUNKS, CHUNK, HEADROOM);
        let often = 300_000;
        let rates = FaultRates {
            drop: often,
            duplicate: often,
            truncate: often,
            corrupt: often,
            delay: often,
            reorder: often,
        };
        let mut port = FaultPort::new(MemoryPort::looped(&pool, QUEUE, 3), seed, rates);
        let mut burst = Burst::with_capacity(0);
        for length in lengths {
            if let Some(mut frame) = pool.take() {
                frame.extend(&vec![0; length]);
                burst.push_frame(frame);
            }
            port.tx_burst(&mut burst).unwrap();
            if length % 3 == 0 {
                port.rx_burst(&mut burst).unwrap();
            }
        }
        drop((port, burst));
        prop_assert_eq!(pool.free(), CHUNKS);
    }
}
