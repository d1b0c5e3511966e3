//! The writer's side: which program is current, which ones are not yet reclaimed, and what counters add up to.
//!
//! A program that was replaced is kept until no worker has it, and until those before it are gone; only then
//! are the counters and the states of matches free that the next one no longer needed. Arrays of counters are
//! likewise kept until no worker counts in them, and then added to the sums. So workers never free either of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use rules::model::{Counters, Rule};
use rules::revision::{Dropped, Numbers, Revision};

use super::array::Array;
use super::desk::{Desk, Seat};
use super::tally::{POLICIES, Places, Tally};
use super::worker::{Place, Work};
use super::{Held, PublishError, Snapshot};
use crate::program::Program;

/// What a writer holds while it has the lock.
#[derive(Debug)]
pub(super) struct Ledger<T> {
    pub(super) current: Arc<Program>,
    places: Places,
    /// Replaced programs that somebody may still have, oldest first.
    retired: VecDeque<Retired>,
    desks: Vec<Registered<T>>,
    /// Workers so far.
    registered: usize,
    /// Arrays that somebody may still count in, each once.
    arrays: Vec<Arc<Array<T>>>,
    /// Of all arrays that are no more, and of rules and policies when they were new.
    rules: Vec<Counters>,
    policies: Vec<Counters>,
    /// Counters that the current program, and those before it, need.
    slots: usize,
    /// Counters in a new array.
    room: usize,
    /// Numbers of the last seat and array given out.
    last_seat: u64,
    last_array: u64,
}

#[derive(Debug)]
struct Retired {
    program: Arc<Program>,
    /// What it does not share with the one after it.
    bytes: usize,
    /// Places that the one after it does not need.
    dropped: Vec<Dropped>,
}

/// A worker as the ledger knows it.
#[derive(Debug)]
struct Registered<T> {
    id: usize,
    place: Arc<Place<T>>,
    array: Arc<Array<T>>,
}

/// A policy whose counters start anew, and where.
pub(super) type Reset = (usize, Counters);

impl<T: Tally> Ledger<T> {
    pub(super) fn new(first: Program, slots: usize) -> Self {
        Self {
            places: Places::of(&first),
            current: Arc::new(first),
            retired: VecDeque::new(),
            desks: Vec::new(),
            registered: 0,
            arrays: Vec::new(),
            rules: Vec::new(),
            policies: vec![Counters::default(); POLICIES],
            slots,
            room: room_for(slots),
            last_seat: 0,
            last_array: 0,
        }
    }

    /// Counters start there.
    pub(super) fn start_rule(&mut self, slot: u32, at: Counters) {
        let slot = slot as usize;
        if self.rules.len() <= slot {
            self.rules.resize(slot + 1, Counters::default());
        }
        self.rules[slot] = at;
    }

    /// Counters start there; needs new arrays.
    pub(super) fn start_policy(&mut self, (place, at): Reset) {
        self.arrays.iter().for_each(|array| array.void_policy(place));
        if let Some(sum) = self.policies.get_mut(place) {
            *sum = at;
        }
    }

    /// A desk for a new worker, with the current program on it.
    pub(super) fn register(&mut self) -> (Arc<Place<T>>, Arc<Program>) {
        // Or workers that come and go would leave theirs until somebody reads.
        self.collect();
        let id = self.registered;
        self.registered += 1;
        let other = self.desks.last().map(|desk| Arc::clone(&desk.array));
        let array = self.array_beside(other);
        let seat = self.seat(&array);
        let desk = CachePadded::new(Desk::new(seat));
        let place = Arc::new(Place { desk, at: AtomicU64::new(0) });
        self.desks.push(Registered { id, place: Arc::clone(&place), array });
        (place, Arc::clone(&self.current))
    }

    /// Counters of rules that are about to be published start. Nobody counts in their places yet: they were reclaimed, or
    /// never used.
    pub(super) fn prepare(&mut self, rules: &[Arc<Rule>]) {
        for rule in rules {
            self.arrays.iter().for_each(|array| array.reset_rule(rule.slot as usize));
            self.start_rule(rule.slot, rule.counters);
        }
    }

    /// Makes a program the current one, which differs from the one before by these revisions. It and those before it
    /// need this number of `slots`.
    pub(super) fn publish(
        &mut self,
        next: Program,
        revisions: &[Arc<Revision>],
        resets: &[Reset],
        slots: usize,
    ) -> u64 {
        self.slots = slots;
        resets.iter().for_each(|reset| self.start_policy(*reset));
        let bytes = revisions.iter().map(|revision| revision.replaced_bytes()).sum();
        let dropped = revisions.iter().map(|revision| revision.dropped().clone()).collect();
        self.places = Places::of(&next);
        let program = std::mem::replace(&mut self.current, Arc::new(next));
        self.retired.push_back(Retired { program, bytes, dropped });
        if self.slots > self.room || !resets.is_empty() {
            self.renew();
        } else {
            self.post();
        }
        self.current.number()
    }

    /// Gives every worker a new array, so that the ones before will be left: the number of the last of those.
    pub(super) fn renew(&mut self) -> u64 {
        // Or they would be kept for as long as nobody reads.
        self.collect();
        let before = self.last_array;
        if self.slots > self.room {
            self.room = room_for(self.slots);
        }
        let mut other = None;
        for at in 0..self.desks.len() {
            let array = self.array_beside(other.take());
            other = Some(Arc::clone(&array));
            self.desks[at].array = array;
        }
        self.post();
        before
    }

    /// Puts the current program on every desk.
    fn post(&mut self) {
        self.forget_the_gone();
        for at in 0..self.desks.len() {
            let seat = self.seat(&Arc::clone(&self.desks[at].array));
            self.desks[at].place.desk.post(seat);
        }
    }

    /// Workers that were dropped need no desk.
    fn forget_the_gone(&mut self) {
        self.desks.retain(|desk| Arc::strong_count(&desk.place) > 1);
    }

    fn seat(&mut self, array: &Arc<Array<T>>) -> Seat<Work<T>> {
        self.last_seat += 1;
        let (program, array) = (Arc::clone(&self.current), Arc::clone(array));
        Seat { number: self.last_seat, what: Work { program, places: self.places, array } }
    }

    /// An array for a worker: a new one, but where workers share theirs the other worker's.
    fn array_beside(&mut self, other: Option<Arc<Array<T>>>) -> Arc<Array<T>> {
        if let (true, Some(other)) = (T::IS_SHARED, other) {
            return other;
        }
        self.last_array += 1;
        let array = Array::new(self.last_array, self.room);
        let array = Arc::new(array);
        self.arrays.push(Arc::clone(&array));
        array
    }

    /// Lets go of what nobody has any more: the programs, for the caller to drop, which takes as long as they are
    /// large.
    #[must_use]
    pub(super) fn reclaim(&mut self, numbers: &mut Numbers) -> Vec<Program> {
        let mut gone = Vec::new();
        while let Some(Retired { program, bytes, dropped }) = self.retired.pop_front() {
            match Arc::try_unwrap(program) {
                Ok(program) => {
                    dropped.iter().for_each(|dropped| numbers.free(dropped));
                    gone.push(program);
                }
                Err(program) => {
                    self.retired.push_front(Retired { program, bytes, dropped });
                    break;
                }
            }
        }
        gone
    }

    /// Adds up the arrays that nobody counts in any more.
    fn collect(&mut self) {
        self.forget_the_gone();
        for array in std::mem::take(&mut self.arrays) {
            match Arc::try_unwrap(array) {
                Ok(left) => left.add_to(&mut self.rules, &mut self.policies),
                Err(array) => self.arrays.push(array),
            }
        }
    }

    /// The sums, once every array up to this number is in them.
    pub(super) fn sums(&mut self, until: u64) -> Option<Snapshot> {
        self.collect();
        let all = self.arrays.iter().all(|array| array.number > until);
        all.then(|| Snapshot {
            program: Arc::clone(&self.current),
            rules: self.rules.clone(),
            policies: self.policies.clone(),
        })
    }

    /// How many programs are not reclaimed, and their bytes.
    pub(super) fn unreclaimed(&self) -> (usize, usize) {
        (self.retired.len(), self.retired.iter().map(|retired| retired.bytes).sum())
    }

    pub(super) fn held(&self) -> Held {
        let (programs, bytes) = self.unreclaimed();
        Held { programs, bytes, arrays: self.arrays.len(), places: self.slots }
    }

    /// Names who has been in a burst for longest.
    pub(super) fn behind(&self) -> PublishError {
        let at = |desk: &&Registered<T>| desk.place.at.load(Ordering::Relaxed);
        let walking = self.desks.iter().filter(|desk| at(desk) != 0);
        let worker = walking.min_by_key(at).map(|desk| desk.id);
        let (programs, bytes) = self.unreclaimed();
        PublishError::Behind { worker, programs, bytes }
    }
}

/// Counters in a new array: some to spare, so that single rules seldom need another.
fn room_for(slots: usize) -> usize {
    slots + slots / 8 + 64
}
