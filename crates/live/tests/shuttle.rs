//! Schedules of several workers at a lane, by shuttle: at random, and by depth, as it knows them.
//!
//! The lane and its turn are the real files; their lock, the threads and all else that they could see of each other are
//! shuttle's. What the lane is made of orders its memory, so a schedule is all that can differ.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Duration;

use lane::{Batch, Lane, Shape, Stage};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Arc, Mutex, MutexGuard};
use shuttle::{check_pct, check_random, thread};
use turn::{Came, Way};

// Users of the crate see what these programs do not use.
#[allow(dead_code, unreachable_pub)]
#[path = "../src/forward/ordered/frames.rs"]
mod frames;
#[allow(dead_code, unreachable_pub)]
#[path = "../src/forward/reorder/lane.rs"]
mod lane;
#[path = "shuttle/sealed.rs"]
mod sealed;
#[allow(dead_code, unreachable_pub)]
#[path = "../src/forward/reorder/turn.rs"]
mod turn;
#[path = "shuttle/turns.rs"]
mod turns;

/// Where frames find what a batch is.
mod forward {
    pub(crate) mod reorder {
        pub(crate) use crate::lane::Batch;
    }
}

/// The locks of a lane.
mod sync {
    pub(super) use shuttle::sync::{Mutex, MutexGuard};
}

const SCHEDULES: usize = 4000;
const DEPTH: usize = 4;
const BATCHES: u64 = 6;
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Numbers(Vec<u64>);

impl Batch for Numbers {
    fn clear(&mut self) {
        self.0.clear();
    }
}

/// The state that the workers of a model share.
struct World {
    lane: Lane<Numbers>,
    /// The next number to be staged.
    source: Mutex<u64>,
    released: Mutex<Vec<u64>>,
    /// Numbers that were lost, or given up.
    lost: Mutex<BTreeSet<u64>>,
    /// Workers in each of the two sequential parts.
    inside: [AtomicUsize; 2],
    seconds: Mutex<u64>,
}

/// The trouble of a worker with its batches, by chance.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    None,
    /// The worker panics over some batches: its claim is dropped.
    Panics,
    /// Time passes meanwhile.
    Stuck,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            lane: Lane::new(Shape { room: 3, patience: PATIENCE }),
            source: Mutex::new(0),
            released: Mutex::new(Vec::new()),
            lost: Mutex::new(BTreeSet::new()),
            inside: [AtomicUsize::new(0), AtomicUsize::new(0)],
            seconds: Mutex::new(0),
        })
    }

    /// Runs what only one worker may run at a time, and sees to it that others could.
    fn alone(&self, which: usize, run: impl FnOnce()) {
        assert_eq!(self.inside[which].fetch_add(1, Ordering::SeqCst), 0, "one at a time");
        thread::yield_now();
        run();
        self.inside[which].fetch_sub(1, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        *locked(&self.source) == BATCHES && self.lane.is_empty()
    }

    /// Numbers that are staged are released in their order or lost, each once.
    fn check(&self) {
        let (released, lost) = (locked(&self.released), locked(&self.lost));
        assert!(released.is_sorted_by(|one, next| one < next), "in order: {released:?}");
        let all: BTreeSet<u64> = released.iter().chain(lost.iter()).copied().collect();
        assert_eq!(all, (1..=BATCHES).collect(), "released {released:?}, lost {lost:?}");
        assert_eq!(released.len() + lost.len(), BATCHES as usize, "released and lost: {lost:?}");
    }
}

/// A worker of a world.
struct Hand<'w>(&'w World);

impl Way<Numbers> for Hand<'_> {
    type Error = std::convert::Infallible;

    fn now(&self) -> Duration {
        Duration::from_secs(*locked(&self.0.seconds))
    }

    fn stage(&mut self, batch: &mut Numbers) -> Result<Came, Self::Error> {
        let mut source = locked(&self.0.source);
        if *source == BATCHES {
            return Ok(Came::default());
        }
        *source += 1;
        let number = *source;
        drop(source);
        self.0.alone(0, || batch.0.push(number));
        Ok(Came { frames: 1, is_more: number.is_multiple_of(2) })
    }

    fn refuse(&mut self) -> Result<Came, Self::Error> {
        Ok(Came::default())
    }

    fn work(&mut self, batch: &mut Numbers) {
        assert_eq!(batch.0.len(), 1);
        thread::yield_now();
    }

    fn late(&mut self, batch: Numbers) {
        locked(&self.0.lost).extend(batch.0);
    }

    fn release(&mut self, batch: &mut Numbers) -> Result<(), Self::Error> {
        self.0.alone(1, || locked(&self.0.released).append(&mut batch.0));
        Ok(())
    }
}

/// Takes turns until all is over. No worker ever waits for another: shuttle reports a schedule without an end.
fn work(world: &World, trouble: Trouble) {
    let mut hand = Hand(world);
    while !world.is_over() {
        if trouble == Trouble::None || thread_rng().gen_bool(0.5) {
            let Ok(_) = world.lane.turn(true, &mut hand);
        } else if let Stage::Room(mut stager) = world.lane.stage() {
            let Ok(came) = hand.stage(stager.batch());
            if came.frames == 0 {
                continue;
            }
            let claim = stager.take(hand.now());
            let number = claim.0[0];
            match trouble {
                Trouble::Stuck => {
                    *locked(&world.seconds) += 1;
                    thread::yield_now();
                    if let Some(part) = claim.finish() {
                        hand.late(part);
                    }
                }
                _ => {
                    locked(&world.lost).insert(number);
                    drop(claim);
                }
            }
        }
        thread::yield_now();
    }
}

fn through(troubles: &'static [Trouble]) {
    let program = move || {
        let world = World::new();
        let hands = troubles.iter().map(|trouble| {
            let world = Arc::clone(&world);
            thread::spawn(move || work(&world, *trouble))
        });
        let hands: Vec<_> = hands.collect();
        hands.into_iter().for_each(|hand| hand.join().expect("a worker"));
        world.check();
    };
    check_random(program, SCHEDULES);
    check_pct(program, SCHEDULES, DEPTH);
}

#[test]
fn batches_leave_in_the_order_in_which_they_came() {
    through(&[Trouble::None, Trouble::None, Trouble::None]);
}

#[test]
fn batches_that_a_worker_panics_over_hold_nobody_up() {
    through(&[Trouble::Panics, Trouble::None, Trouble::Panics]);
}

#[test]
fn batches_that_a_worker_keeps_are_given_up_once() {
    through(&[Trouble::Stuck, Trouble::None]);
    through(&[Trouble::Stuck, Trouble::Stuck, Trouble::None]);
}
