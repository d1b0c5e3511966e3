//! Both directions of a wire whose workers take turns at one evaluator: what is sealed meets it as it is staged, what is
//! opened as it is released, as by `forward/ordered`.

use std::convert::Infallible;
use std::time::Duration;

use shuttle::sync::{Arc, Mutex};
use shuttle::{check_pct, check_random, thread};

use super::lane::{Lane, Shape};
use super::turn::{Came, Way};
use super::{DEPTH, Numbers, PATIENCE, SCHEDULES, locked};

/// Batches of each direction.
const BATCHES: u64 = 4;

/// The state that the workers share.
struct World {
    lanes: [Lane<Numbers>; 2],
    sources: [Mutex<u64>; 2],
    /// All that met the rules, in order: direction and number.
    evaluator: Mutex<Vec<(usize, u64)>>,
    left: [Mutex<Vec<u64>>; 2],
}

impl World {
    fn new() -> Arc<Self> {
        let lane = || Lane::new(Shape { room: 3, patience: PATIENCE });
        Arc::new(Self {
            lanes: [lane(), lane()],
            sources: Default::default(),
            evaluator: Mutex::default(),
            left: Default::default(),
        })
    }

    fn is_over(&self) -> bool {
        self.left.iter().all(|left| locked(left).len() as u64 == BATCHES)
    }

    /// Each batch met the rules once and left once, in the order of its direction.
    fn check(&self) {
        let all: Vec<u64> = (1..=BATCHES).collect();
        for (from, left) in self.left.iter().enumerate() {
            let met = locked(&self.evaluator);
            let met: Vec<u64> =
                met.iter().filter(|(of, _)| *of == from).map(|(_, number)| *number).collect();
            assert_eq!((&met, &*locked(left)), (&all, &all), "direction {from}");
        }
    }
}

struct Hand<'w> {
    world: &'w World,
    from: usize,
}

impl Hand<'_> {
    /// Evaluates a batch, while other workers get turns.
    fn meet(&self, batch: &Numbers) {
        let mut evaluator = locked(&self.world.evaluator);
        thread::yield_now();
        evaluator.extend(batch.0.iter().map(|number| (self.from, *number)));
    }
}

impl Way<Numbers> for Hand<'_> {
    type Error = Infallible;

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn stage(&mut self, batch: &mut Numbers) -> Result<Came, Infallible> {
        let mut source = locked(&self.world.sources[self.from]);
        if *source == BATCHES {
            return Ok(Came::default());
        }
        *source += 1;
        batch.0.push(*source);
        drop(source);
        if self.from == 0 {
            self.meet(batch);
        }
        Ok(Came { frames: 1, is_more: false })
    }

    fn refuse(&mut self) -> Result<Came, Infallible> {
        Ok(Came::default())
    }

    fn work(&mut self, _: &mut Numbers) {
        thread::yield_now();
    }

    fn late(&mut self, _: Numbers) {
        panic!("there is time");
    }

    fn release(&mut self, batch: &mut Numbers) -> Result<(), Infallible> {
        if self.from == 1 {
            self.meet(batch);
        }
        locked(&self.world.left[self.from]).append(&mut batch.0);
        Ok(())
    }
}

fn through(workers: usize) {
    let program = move || {
        let world = World::new();
        let work = |_| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                while !world.is_over() {
                    for (from, lane) in world.lanes.iter().enumerate() {
                        let Ok(_) = lane.turn(true, &mut Hand { world: &world, from });
                    }
                    thread::yield_now();
                }
            })
        };
        let hands: Vec<_> = (0..workers).map(work).collect();
        hands.into_iter().for_each(|hand| hand.join().expect("a worker"));
        world.check();
    };
    check_random(program, SCHEDULES);
    check_pct(program, SCHEDULES, DEPTH);
}

/// Nobody waits for a worker that waits for it, and nothing is evaluated twice, or not at all.
#[test]
fn batches_of_both_directions_meet_the_rules_in_their_order_and_once() {
    through(2);
    through(3);
}
