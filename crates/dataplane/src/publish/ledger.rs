//! The writer's side: the current program, the programs not yet reclaimed, and the sums of counters.
//!
//! A program that was replaced is kept until no worker has it, and until the programs before it are reclaimed; only
//! then the counters and the states of matches are free that the next one no longer needed. Arrays of counters are
//! likewise kept until no worker counts in them, and then added to the sums. So workers never free either of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use rules::model::{Counters, Rule};
use rules::revision::{Dropped, Numbers, Revision};

use super::array::Array;
use super::desk::{Desk, Seat};
use super::report::{Held, PublishError, Snapshot};
use super::tally::{POLICIES, Places, Tally};
use super::worker::{Place, Work};
use crate::program::Program;

/// What the ledger's lock protects.
#[derive(Debug)]
pub(super) struct Ledger<T> {
    pub(super) current: Arc<Program>,
    places: Places,
    /// Replaced programs that may still be in use, oldest first.
    retired: VecDeque<Retired>,
    desks: Vec<Registered<T>>,
    /// The number of workers so far.
    registered: usize,
    /// Arrays that may still be counted in, each once.
    arrays: Vec<Arc<Array<T>>>,
    /// Sums of all arrays that are no longer used, and the starting values of rules and policies.
    rules: Vec<Counters>,
    policies: Vec<Counters>,
    /// Counters that the current program, and earlier ones, need.
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
    /// Bytes that it does not share with the next program.
    bytes: usize,
    /// Places that the next program does not need.
    dropped: Vec<Dropped>,
}

/// A worker as the ledger knows it.
#[derive(Debug)]
struct Registered<T> {
    id: usize,
    place: Arc<Place<T>>,
    array: Arc<Array<T>>,
}

/// A policy whose counters are reset, and their new value.
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

    /// Starts a rule's counters at a value.
    pub(super) fn start_rule(&mut self, slot: u32, at: Counters) {
        let slot = slot as usize;
        if self.rules.len() <= slot {
            self.rules.resize(slot + 1, Counters::default());
        }
        self.rules[slot] = at;
    }

    /// Starts a policy's counters at a value; needs new arrays.
    pub(super) fn start_policy(&mut self, (place, at): Reset) {
        self.arrays.iter().for_each(|array| array.void_policy(place));
        if let Some(sum) = self.policies.get_mut(place) {
            *sum = at;
        }
    }

    /// A desk for a new worker, with the current program on it.
    pub(super) fn register(&mut self) -> (Arc<Place<T>>, Arc<Program>) {
        // Otherwise workers that come and go would leave their arrays until a reader comes.
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

    /// Starts the counters of rules that are about to be published. Nobody counts in their places yet: they were
    /// reclaimed, or never used.
    pub(super) fn prepare(&mut self, rules: &[Arc<Rule>]) {
        for rule in rules {
            self.arrays.iter().for_each(|array| array.reset_rule(rule.slot as usize));
            self.start_rule(rule.slot, rule.counters);
        }
    }

    /// Makes a program the current one, which differs from the previous one by these revisions. It and the earlier ones
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

    /// Gives every worker a new array, so that earlier ones are left; returns the number of the last of those.
    pub(super) fn renew(&mut self) -> u64 {
        // Otherwise they would be kept until a reader comes.
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

    /// Removes the desks of workers that were dropped.
    fn forget_the_gone(&mut self) {
        self.desks.retain(|desk| Arc::strong_count(&desk.place) > 1);
    }

    fn seat(&mut self, array: &Arc<Array<T>>) -> Seat<Work<T>> {
        self.last_seat += 1;
        let (program, array) = (Arc::clone(&self.current), Arc::clone(array));
        Seat { number: self.last_seat, what: Work { program, places: self.places, array } }
    }

    /// An array for a worker: a new one, or the other worker's where workers share theirs.
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

    /// Reclaims what is no longer used: returns the programs, for the caller to drop, which takes time in proportion to
    /// their size.
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

    /// Adds up the arrays that are no longer counted in.
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

    /// The number of programs that are not reclaimed, and their bytes.
    pub(super) fn unreclaimed(&self) -> (usize, usize) {
        (self.retired.len(), self.retired.iter().map(|retired| retired.bytes).sum())
    }

    pub(super) fn held(&self) -> Held {
        let (programs, bytes) = self.unreclaimed();
        Held { programs, bytes, arrays: self.arrays.len(), places: self.slots }
    }

    /// The error that names the worker that has been in a burst for longest.
    pub(super) fn behind(&self) -> PublishError {
        let at = |desk: &&Registered<T>| desk.place.at.load(Ordering::Relaxed);
        let walking = self.desks.iter().filter(|desk| at(desk) != 0);
        let worker = walking.min_by_key(at).map(|desk| desk.id);
        let (programs, bytes) = self.unreclaimed();
        PublishError::Behind { worker, programs, bytes }
    }
}

/// Counters in a new array: some to spare, so that a few more rules seldom need another.
fn room_for(slots: usize) -> usize {
    slots + slots / 8 + 64
}
