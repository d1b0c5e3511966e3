//! A lane step by step: against a plain list, under random steps.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;

use super::{Backlog, Batch, Came, Claim, Lane, Shape, Stage, Way};

const PATIENCE: Duration = Duration::from_secs(1);
const WORKERS: usize = 3;
const NOTHING: [u32; 0] = [];

/// A number that is staged, and what was done to it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Number(Option<u32>);

impl Batch for Number {
    fn clear(&mut self) {
        self.0 = None;
    }
}

fn lane(room: usize) -> Lane<Number> {
    Lane::new(Shape { room, patience: PATIENCE })
}

/// Stages a number, and takes it.
fn take(lane: &Lane<Number>, number: u32, now: Duration) -> Option<Claim<'_, Number>> {
    let Stage::Room(mut stager) = lane.stage() else { return None };
    assert_eq!(stager.batch().0, None, "buffers are handed out empty");
    stager.batch().0 = Some(number);
    Some(stager.take(now))
}

/// Everything that is released now.
fn release(lane: &Lane<Number>, now: Duration) -> Vec<u32> {
    let Some(mut releaser) = lane.release() else { return Vec::new() };
    let mut all = Vec::new();
    while let Some(Number(number)) = releaser.next(now) {
        all.extend(*number);
    }
    assert!(releaser.next(now).is_none(), "it has ended");
    all
}

#[test]
fn what_is_done_first_waits_for_what_came_first() {
    let lane = lane(4);
    let [first, second, third] =
        [1, 2, 3].map(|number| take(&lane, number, Duration::ZERO).unwrap());
    assert_eq!(second.finish(), None);
    assert_eq!(release(&lane, Duration::ZERO), NOTHING);
    assert_eq!(first.finish(), None);
    assert_eq!(release(&lane, Duration::ZERO), [1, 2]);
    assert_eq!(lane.len(), 1);
    assert_eq!(third.finish(), None);
}

#[test]
fn a_full_lane_takes_nothing_and_one_stages_at_a_time() {
    let lane = lane(2);
    let stager = lane.stage();
    assert!(matches!(stager, Stage::Room(_)) && matches!(lane.stage(), Stage::Later));
    drop(stager);
    let [first, second] = [1, 2].map(|number| take(&lane, number, Duration::ZERO));
    assert!(matches!(lane.stage(), Stage::Full(_)));
    drop(first);
    assert_eq!(release(&lane, Duration::ZERO), NOTHING, "a lost batch goes by");
    assert!(take(&lane, 3, Duration::ZERO).is_some());
    assert_eq!(second.unwrap().finish(), None);
    assert_eq!(release(&lane, Duration::ZERO), [2], "the third one is lost");
    assert!(lane.is_empty());
}

#[test]
fn one_releases_at_a_time_and_a_releaser_that_ends_early_lets_others() {
    let lane = lane(4);
    for number in [1, 2] {
        assert_eq!(take(&lane, number, Duration::ZERO).unwrap().finish(), None);
    }
    let mut releaser = lane.release().unwrap();
    for _ in 0..2 {
        assert!(lane.release().is_none(), "also once somebody has asked");
    }
    assert!(releaser.next(Duration::ZERO).is_some());
    drop(releaser);
    assert_eq!(release(&lane, Duration::ZERO), [2]);
}

/// A releaser that has found nothing does not end the turn of the next one.
#[test]
fn who_has_ended_releasing_has_ended() {
    let lane = lane(4);
    let mut ended = lane.release().unwrap();
    assert!(ended.next(Duration::ZERO).is_none());
    let next = lane.release().unwrap();
    assert_eq!(take(&lane, 1, Duration::ZERO).unwrap().finish(), None);
    assert!(ended.next(Duration::ZERO).is_none());
    drop(ended);
    assert!(lane.release().is_none(), "the next one still releases");
    drop(next);
    assert_eq!(release(&lane, Duration::ZERO), [1]);
}

#[test]
fn a_worker_that_takes_too_long_is_waited_for_no_more() {
    let lane = lane(4);
    let stuck = take(&lane, 1, Duration::ZERO).unwrap();
    assert_eq!(take(&lane, 2, Duration::ZERO).unwrap().finish(), None);
    assert_eq!(release(&lane, PATIENCE - Duration::from_nanos(1)), NOTHING);
    assert_eq!(release(&lane, PATIENCE), [2]);
    assert_eq!(stuck.finish(), Some(Number(Some(1))), "it is the worker's to drop");
    assert_eq!((lane.backlog().overdue, lane.is_empty()), (1, true));
}

#[test]
fn what_is_held_back_and_for_how_long_is_added_up() {
    let (lane, at) = (lane(4), Duration::from_millis);
    let [slow, second, third] =
        [1, 2, 3].map(|number| take(&lane, number, at(number.into())).unwrap());
    let backlog = |batches, held, released, stayed| Backlog {
        batches,
        held,
        released,
        stayed: at(stayed),
        overdue: 0,
    };
    assert_eq!(lane.backlog(), backlog(3, 0, 0, 0));
    assert_eq!(third.finish(), None);
    assert_eq!(lane.backlog(), backlog(3, 1, 0, 0));
    assert_eq!(second.finish(), None);
    assert_eq!((release(&lane, at(5)), lane.backlog()), (Vec::new(), backlog(3, 2, 0, 0)));
    assert_eq!(slow.finish(), None);
    assert_eq!(release(&lane, at(10)).len(), 3);
    assert_eq!(lane.backlog(), backlog(0, 0, 3, 9 + 8 + 7));
}

/// A way that brings this number of batches, one at a time, and records the calls that it gets.
struct Telling {
    left: usize,
    told: Vec<&'static str>,
}

impl Way<Number> for Telling {
    type Error = std::convert::Infallible;

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn stage(&mut self, number: &mut Number) -> Result<Came, Self::Error> {
        if self.left == 0 {
            return Ok(Came::default());
        }
        self.left -= 1;
        number.0 = Some(1);
        self.told.push("staged");
        Ok(Came { frames: 1, is_more: self.left > 0 })
    }

    fn refuse(&mut self) -> Result<Came, Self::Error> {
        Ok(Came::default())
    }

    fn call(&mut self) {
        self.told.push("called");
    }

    fn work(&mut self, _: &mut Number) {
        self.told.push("worked");
    }

    fn late(&mut self, _: Number) {}

    fn release(&mut self, _: &mut Number) -> Result<(), Self::Error> {
        self.told.push("released");
        Ok(())
    }
}

/// A sleeping worker would sleep on while this one works, and for ever if it is stuck there.
#[test]
fn others_are_called_to_what_else_came_before_a_worker_begins_its_own() {
    let told = |left| {
        let mut way = Telling { left, told: Vec::new() };
        assert!(lane(4).turn(true, &mut way).unwrap());
        way.told
    };
    assert_eq!(told(2), ["staged", "called", "worked", "released"], "more has come");
    assert_eq!(told(1), ["staged", "worked", "released"], "there is nothing for them");
}

/// The next step of a schedule.
#[derive(Debug, Clone)]
enum Step {
    /// A worker stages a batch, and takes it.
    Take(usize),
    Finish(usize),
    Lose(usize),
    Release,
    Later(u64),
}

/// A list of all batches ever staged, and plain rules.
#[derive(Default)]
struct Model {
    batches: Vec<State>,
    released: usize,
    now: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Taken(u64),
    Done,
    Lost,
}

impl Model {
    fn release(&mut self) -> Vec<u32> {
        let mut all = Vec::new();
        while let Some(batch) = self.batches.get(self.released) {
            match *batch {
                State::Done => all.push(self.released as u32),
                State::Taken(since) if self.now - since < PATIENCE.as_secs() => break,
                State::Taken(_) | State::Lost => {}
            }
            self.released += 1;
        }
        all
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let worker = 0..WORKERS;
    let step = prop_oneof![
        4 => worker.clone().prop_map(Step::Take),
        4 => worker.clone().prop_map(Step::Finish),
        1 => worker.prop_map(Step::Lose),
        3 => Just(Step::Release),
        1 => (0..2_u64).prop_map(Step::Later),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    /// The lane does what the list does.
    #[test]
    fn a_lane_is_a_list(room in 1..6_usize, steps in steps()) {
        let lane = lane(room);
        let mut model = Model::default();
        let mut held: Vec<VecDeque<(usize, Claim<'_, Number>)>> = Vec::new();
        held.resize_with(WORKERS, VecDeque::new);
        for step in steps {
            let now = Duration::from_secs(model.now);
            match step {
                Step::Take(worker) => {
                    let ticket = model.batches.len();
                    let claim = take(&lane, ticket as u32, now);
                    prop_assert_eq!(claim.is_some(), ticket - model.released < room);
                    if let Some(claim) = claim {
                        model.batches.push(State::Taken(model.now));
                        held[worker].push_back((ticket, claim));
                    }
                }
                Step::Finish(worker) | Step::Lose(worker) => {
                    let Some((ticket, claim)) = held[worker].pop_front() else { continue };
                    let is_gone = ticket < model.released;
                    let state = match step {
                        Step::Lose(_) => {
                            drop(claim);
                            State::Lost
                        }
                        _ => {
                            prop_assert_eq!(claim.finish().is_some(), is_gone);
                            State::Done
                        }
                    };
                    if !is_gone {
                        model.batches[ticket] = state;
                    }
                }
                Step::Release => prop_assert_eq!(release(&lane, now), model.release()),
                Step::Later(seconds) => model.now += seconds,
            }
            prop_assert_eq!(lane.len(), model.batches.len() - model.released);
        }
    }
}
