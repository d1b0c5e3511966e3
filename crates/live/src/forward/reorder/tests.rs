//! A lane step by step: against a plain list, under random steps.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;

use super::{Backlog, Batch, Came, Claim, Lane, Part, Shape, Stage, Way};

const PATIENCE: Duration = Duration::from_secs(1);

/// Numbers that are staged, and what was done to them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Numbers(Vec<u32>);

impl Batch for Numbers {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

fn lane(room: usize, parts: usize) -> Lane<Numbers> {
    Lane::new(Shape { room, ready: room, flood: Duration::MAX, parts, patience: PATIENCE })
}

/// Stages a number in each part that is to have one.
fn stage(lane: &Lane<Numbers>, number: u32, fills: &[bool], now: Duration) -> bool {
    let Stage::Room(mut stager) = lane.stage(now) else { return false };
    for (part, fill) in stager.parts().iter_mut().zip(fills) {
        assert!(part.is_empty(), "buffers are handed out empty");
        part.0.extend(fill.then_some(number));
    }
    stager.put(now, false);
    true
}

/// Stages a number as a batch of one part, which this worker takes.
fn take(
    lane: &Lane<Numbers>,
    worker: usize,
    number: u32,
    now: Duration,
) -> Option<Claim<'_, Numbers>> {
    let Stage::Room(mut stager) = lane.stage(now) else { return None };
    assert!(stager.parts()[0].is_empty(), "buffers are handed out empty");
    stager.parts()[0].0.push(number);
    Some(stager.take(worker, now))
}

/// Everything that is released now, by batch: the numbers that were done, and the workers that were too late.
fn release(lane: &Lane<Numbers>, now: Duration) -> Vec<Released> {
    let Some(mut releaser) = lane.release() else { return Vec::new() };
    let mut all = Vec::new();
    while let Some(parts) = releaser.next(now) {
        let mut batch = Released::default();
        for part in parts {
            match part {
                Part::Done(part) => batch.done.extend(&part.0),
                Part::Overdue { worker, .. } => batch.overdue.push(*worker),
            }
        }
        all.push(batch);
    }
    all
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Released {
    done: Vec<u32>,
    overdue: Vec<usize>,
}

fn done(numbers: &[u32]) -> Released {
    Released { done: numbers.to_vec(), overdue: Vec::new() }
}

#[test]
fn what_is_done_first_waits_for_what_came_first() {
    let lane = lane(4, 1);
    let takes = |worker| take(&lane, worker, worker as u32, Duration::ZERO).unwrap();
    let [first, second, third] = [1, 2, 3].map(takes);
    assert_eq!(second.finish(), None);
    assert_eq!(release(&lane, Duration::ZERO), []);
    assert_eq!(first.finish(), None);
    assert_eq!(release(&lane, Duration::ZERO), [done(&[1]), done(&[2])]);
    assert_eq!((lane.len(), lane.has_unclaimed()), (1, false), "it has been taken");
    assert_eq!(third.finish(), None);
}

#[test]
fn a_full_lane_takes_nothing_and_one_stages_at_a_time() {
    let lane = lane(2, 1);
    let stager = lane.stage(Duration::ZERO);
    assert!(matches!(stager, Stage::Room(_)) && matches!(lane.stage(Duration::ZERO), Stage::Later));
    drop(stager);
    let [first, _second] = [1, 2].map(|number| take(&lane, 0, number, Duration::ZERO));
    assert!(matches!(lane.stage(Duration::ZERO), Stage::Full(_)));
    drop(first);
    assert_eq!(release(&lane, Duration::ZERO), [done(&[])], "a lost batch goes by");
    assert!(take(&lane, 0, 3, Duration::ZERO).is_some());
}

#[test]
fn while_enough_is_ready_what_comes_waits_and_if_too_much_comes_it_is_refused() {
    let shape = Shape { room: 8, ready: 2, flood: PATIENCE, parts: 2, patience: PATIENCE };
    let lane: Lane<Numbers> = Lane::new(shape);
    let put = |is_behind| {
        let Stage::Room(mut stager) = lane.stage(Duration::ZERO) else { return false };
        stager.parts()[0].0.push(1);
        stager.put(Duration::ZERO, is_behind);
        true
    };
    let flood = |later| lane.stage(PATIENCE - Duration::from_nanos(1) + later);
    let refuse = |is_behind| match flood(Duration::from_nanos(1)) {
        Stage::Full(stager) => stager.refuse(PATIENCE, is_behind),
        other => panic!("{other:?}"),
    };
    assert!(put(false) && put(true));
    assert!(matches!(flood(Duration::ZERO), Stage::Later), "it may be a burst");
    let claim = lane.claim(0, Duration::ZERO).unwrap();
    assert!(put(true), "what is being worked on is not ready");
    refuse(true);
    refuse(false);
    assert!(matches!(flood(PATIENCE), Stage::Later), "that was all");
    assert_eq!(claim.finish(), None);
    assert_eq!(lane.claim(0, PATIENCE).unwrap().finish(), None);
    assert!(put(true));
    assert_eq!(lane.claim(0, PATIENCE).unwrap().finish(), None);
    drop(lane.stage(PATIENCE));
    assert!(put(false), "nothing had come");
    assert!(matches!(flood(PATIENCE), Stage::Later));
}

#[test]
fn one_releases_at_a_time_and_a_releaser_that_ends_early_lets_others() {
    let lane = lane(4, 1);
    for number in [1, 2] {
        assert_eq!(take(&lane, 0, number, Duration::ZERO).unwrap().finish(), None);
    }
    let mut releaser = lane.release().unwrap();
    assert!(lane.release().is_none());
    assert!(releaser.next(Duration::ZERO).is_some());
    drop(releaser);
    assert_eq!(release(&lane, Duration::ZERO), [done(&[2])]);
}

#[test]
fn a_worker_that_takes_too_long_is_named_and_waited_for_no_more() {
    let lane = lane(4, 1);
    let stuck = take(&lane, 7, 1, Duration::ZERO).unwrap();
    assert_eq!(take(&lane, 1, 2, Duration::ZERO).unwrap().finish(), None);
    assert_eq!(release(&lane, PATIENCE - Duration::from_nanos(1)), []);
    let given_up = Released { done: Vec::new(), overdue: vec![7] };
    assert_eq!(release(&lane, PATIENCE), [given_up, done(&[2])]);
    assert_eq!(stuck.finish(), Some(Numbers(vec![1])), "it is the worker's to drop");
    assert_eq!((lane.backlog().overdue, lane.is_empty()), (1, true));
}

#[test]
fn what_is_held_back_and_for_how_long_is_added_up() {
    let lane = lane(4, 2);
    let at = Duration::from_millis;
    assert!((1..=3).all(|number| stage(&lane, number, &[true, number != 3], at(number.into()))));
    let backlog = |batches, held, released, stayed| Backlog {
        batches,
        held,
        released,
        stayed: at(stayed),
        overdue: 0,
    };
    let slow = lane.claim(0, at(4)).unwrap();
    assert_eq!(lane.backlog(), backlog(3, 0, 0, 0));
    for worker in [0, 0, 1] {
        assert_eq!(lane.claim(worker, at(4)).unwrap().finish(), None);
    }
    // Of the second one a worker still has a part; of the third one there is no other.
    let second = lane.claim(1, at(4)).unwrap();
    assert_eq!(lane.backlog(), backlog(3, 1, 0, 0));
    assert_eq!(second.finish(), None);
    assert_eq!((release(&lane, at(5)), lane.backlog()), (Vec::new(), backlog(3, 2, 0, 0)));
    assert_eq!(slow.finish(), None);
    assert_eq!(release(&lane, at(10)).len(), 3);
    assert_eq!(lane.backlog(), backlog(0, 0, 3, 9 + 8 + 7));
}

#[test]
fn who_was_too_late_once_is_waited_for_again_only_when_it_is_back() {
    let lane = lane(4, 2);
    assert!(stage(&lane, 1, &[true, true], Duration::ZERO));
    let stuck = lane.claim(1, Duration::ZERO).unwrap();
    let own = |now| assert_eq!(lane.claim(0, now).unwrap().finish(), None);
    own(Duration::ZERO);
    let without = |number| Released { done: vec![number], overdue: vec![1] };
    assert_eq!(release(&lane, PATIENCE), [without(1)]);
    assert!(stage(&lane, 2, &[true, true], PATIENCE));
    own(PATIENCE);
    assert_eq!(release(&lane, PATIENCE), [without(2)], "at once");
    assert!(stuck.finish().is_some());
    assert!(stage(&lane, 3, &[true, true], PATIENCE));
    own(PATIENCE);
    assert_eq!(release(&lane, PATIENCE), []);
    assert_eq!(lane.claim(1, PATIENCE).unwrap().finish(), None);
    assert_eq!(release(&lane, PATIENCE), [done(&[3, 3])]);
}

/// A way that brings this number of batches, one at a time, and records the calls that it gets.
struct Telling {
    left: usize,
    told: Vec<&'static str>,
}

impl Way<Numbers> for Telling {
    type Error = std::convert::Infallible;

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn stage(&mut self, parts: &mut [Numbers]) -> Result<Came, Self::Error> {
        if self.left == 0 {
            return Ok(Came::default());
        }
        self.left -= 1;
        parts.iter_mut().for_each(|part| part.0.push(1));
        self.told.push("staged");
        Ok(Came { frames: parts.len(), is_more: self.left > 0 })
    }

    fn refuse(&mut self) -> Result<Came, Self::Error> {
        Ok(Came::default())
    }

    fn call(&mut self) {
        self.told.push("called");
    }

    fn work(&mut self, _: &mut Numbers) {
        self.told.push("worked");
    }

    fn late(&mut self, _: Numbers) {}

    fn release(&mut self, _: &mut [Part<Numbers>]) -> Result<(), Self::Error> {
        self.told.push("released");
        Ok(())
    }
}

/// The calls of a worker's turn, with this number of batches of this number of parts.
fn told(batches: usize, parts: usize) -> Vec<&'static str> {
    let mut way = Telling { left: batches, told: Vec::new() };
    assert!(lane(4, parts).turn(0, true, &mut way).unwrap());
    way.told
}

/// A sleeping worker would sleep on while this one works, and for ever if it is stuck there.
#[test]
fn others_are_called_to_what_is_theirs_before_a_worker_begins_its_own() {
    assert_eq!(told(2, 1), ["staged", "called", "worked", "released"], "more has come");
    assert_eq!(told(2, 2), ["staged", "staged", "called", "worked"], "the other's part is missing");
    assert_eq!(told(1, 2), ["staged", "called", "worked"]);
    assert_eq!(told(1, 1), ["staged", "worked", "released"], "there is nothing for them");
}

/// The next step of a schedule.
#[derive(Debug, Clone)]
enum Step {
    /// A batch with something in these parts.
    Stage(Vec<bool>),
    /// A worker claims its part; or, of batches of one part, stages one and takes it.
    Claim(usize),
    Finish(usize),
    Lose(usize),
    Release,
    Later(u64),
}

/// A list of all batches ever staged, and plain rules.
#[derive(Default)]
struct Model {
    batches: Vec<Vec<State>>,
    released: usize,
    late: Vec<bool>,
    now: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Staged(u64),
    Taken(usize, u64),
    Done(bool),
    Lost,
}

impl Model {
    fn claim(&mut self, worker: usize) -> Option<usize> {
        self.late[worker] = false;
        let batches = self.batches.iter_mut().enumerate().skip(self.released);
        let mut waiting = batches.filter(|(_, batch)| matches!(batch[worker], State::Staged(_)));
        let (ticket, batch) = waiting.next()?;
        batch[worker] = State::Taken(worker, self.now);
        Some(ticket)
    }

    /// Stages a batch of one part that this worker takes.
    fn take(&mut self, worker: usize) -> usize {
        self.late[0] = false;
        self.batches.push(vec![State::Taken(worker, self.now)]);
        self.batches.len() - 1
    }

    fn release(&mut self) -> Vec<Released> {
        let mut all = Vec::new();
        while let Some(batch) = self.batches.get(self.released) {
            let is_over = |since| self.now - since >= PATIENCE.as_secs();
            let mut out = Released::default();
            let mut late = self.late.clone();
            for (column, state) in batch.iter().enumerate() {
                match *state {
                    State::Done(has_number) => {
                        out.done.extend(has_number.then_some(self.released as u32));
                    }
                    State::Lost => {}
                    State::Taken(worker, since) if is_over(since) => out.overdue.push(worker),
                    State::Staged(since) if late[column] || is_over(since) => {
                        out.overdue.push(column);
                    }
                    State::Taken(..) | State::Staged(_) => return all,
                }
                late[column] |= matches!(state, State::Taken(..) | State::Staged(_));
            }
            (self.late, self.released) = (late, self.released + 1);
            all.push(out);
        }
        all
    }
}

fn steps(parts: usize) -> impl Strategy<Value = Vec<Step>> {
    let worker = 0..parts.max(3);
    let fills = prop::collection::vec(any::<bool>(), parts);
    let step = prop_oneof![
        4 => fills.prop_map(Step::Stage),
        4 => worker.clone().prop_map(Step::Claim),
        4 => worker.clone().prop_map(Step::Finish),
        1 => worker.prop_map(Step::Lose),
        3 => Just(Step::Release),
        1 => (0..2_u64).prop_map(Step::Later),
    ];
    prop::collection::vec(step, 0..120)
}

/// The lane does what the list does.
fn agree(parts: usize, room: usize, steps: Vec<Step>) {
    let lane = lane(room, parts);
    let mut model = Model { late: vec![false; parts], ..Model::default() };
    let mut held: Vec<VecDeque<(usize, Claim<'_, Numbers>)>> = Vec::new();
    held.resize_with(parts.max(3), VecDeque::new);
    for step in steps {
        let now = Duration::from_secs(model.now);
        match step {
            Step::Stage(_) if parts == 1 => {}
            Step::Stage(fills) => {
                let is_room = model.batches.len() - model.released < room;
                let number = model.batches.len() as u32;
                assert_eq!(stage(&lane, number, &fills, now), is_room);
                let state = |fill: bool| match fill {
                    true => State::Staged(model.now),
                    false => State::Done(false),
                };
                if is_room {
                    model.batches.push(fills.into_iter().map(state).collect());
                }
            }
            Step::Claim(worker) => {
                let is_room = model.batches.len() - model.released < room;
                let (claim, expected) = if parts > 1 {
                    (lane.claim(worker, now), model.claim(worker))
                } else {
                    let claim = take(&lane, worker, model.batches.len() as u32, now);
                    (claim, is_room.then(|| model.take(worker)))
                };
                let number = claim.as_ref().and_then(|part| part.0.first().copied());
                assert_eq!(number, expected.map(|ticket| ticket as u32));
                held[worker].extend(expected.zip(claim));
            }
            Step::Finish(worker) | Step::Lose(worker) => {
                let Some((ticket, claim)) = held[worker].pop_front() else { continue };
                let (column, is_gone) =
                    (if parts == 1 { 0 } else { worker }, ticket < model.released);
                let state = match step {
                    Step::Lose(_) => {
                        drop(claim);
                        State::Lost
                    }
                    _ => {
                        assert_eq!(claim.finish().is_some(), is_gone);
                        State::Done(true)
                    }
                };
                model.late[column] = false;
                if !is_gone {
                    model.batches[ticket][column] = state;
                }
            }
            Step::Release => assert_eq!(release(&lane, now), model.release()),
            Step::Later(seconds) => model.now += seconds,
        }
        assert_eq!(lane.len(), model.batches.len() - model.released);
    }
}

proptest! {
    #[test]
    fn a_lane_of_one_part_is_a_list(room in 1..6_usize, steps in steps(1)) {
        agree(1, room, steps);
    }

    #[test]
    fn a_lane_of_parts_is_a_list(room in 1..6_usize, steps in steps(3)) {
        agree(3, room, steps);
    }
}
