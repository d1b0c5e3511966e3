//! [`Lane`]: batches between staging and release, in order of their tickets.
//!
//! The worker that stages a batch takes it with that ([`Stager::take`]): a batch stays in one processor's caches. It is
//! then done or lost, and leaves once those before it have left.

use std::collections::VecDeque;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

use super::sync::{Mutex, MutexGuard};

/// A buffer that a lane carries, and uses again.
pub trait Batch: Default {
    /// Drops what it holds, and keeps its room.
    fn clear(&mut self);
}

/// Batches in the order in which they were staged.
#[derive(Debug)]
pub struct Lane<B> {
    state: Mutex<State<B>>,
    shape: Shape,
}

/// The shape of a lane: its bound and its patience.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Batches that it holds at most.
    pub room: usize,
    /// How long a worker may have a batch.
    pub patience: Duration,
}

/// The state of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Batches that were staged and not released.
    pub batches: usize,
    /// Finished batches among them that wait for an earlier one.
    pub held: usize,
    /// Batches that were released so far.
    pub released: u64,
    /// How long the released batches were here, from staging to release, all together.
    pub stayed: Duration,
    /// Batches that were given up so far.
    pub overdue: u64,
}

#[derive(Debug)]
struct State<B> {
    /// Ticket of the oldest batch here: earlier batches were released.
    first: u64,
    places: VecDeque<Place<B>>,
    /// Buffers that are not in use.
    free: Vec<B>,
    /// The buffer that is staged next; `None` while a worker stages.
    staging: Option<B>,
    /// Whether a worker releases.
    is_releasing: bool,
    /// Batches that were given up.
    overdue: u64,
    /// How long the batches that were released were here.
    stayed: Duration,
}

/// The place of a batch.
#[derive(Debug)]
struct Place<B> {
    /// When it was staged, and taken.
    since: Duration,
    batch: Left<B>,
}

/// What its worker has left of a batch.
#[derive(Debug)]
enum Left<B> {
    /// The worker has it.
    Taken,
    Done(B),
    Lost,
}

/// Whether a batch may be staged.
#[derive(Debug)]
pub enum Stage<'l, B: Batch> {
    /// Yes.
    Room(Stager<'l, B>),
    /// No: another worker does so now.
    Later,
    /// No: there is no room. The caller may receive and drop what comes.
    Full(Stager<'l, B>),
}

/// Stages one batch; another one can be staged once it has, or is dropped.
#[derive(Debug)]
pub struct Stager<'l, B: Batch> {
    lane: &'l Lane<B>,
    /// `None` once it was taken.
    batch: Option<B>,
}

/// A batch that a worker has. If it is dropped before it is finished, the batch is lost.
#[derive(Debug)]
pub struct Claim<'l, B: Batch> {
    lane: &'l Lane<B>,
    ticket: u64,
    batch: Option<B>,
}

/// Releases batches; another worker can once this is dropped, or has found none.
#[derive(Debug)]
pub struct Releaser<'l, B: Batch> {
    lane: &'l Lane<B>,
    /// The batch that was released last.
    batch: Option<B>,
    has_ended: bool,
}

impl<B: Batch> Lane<B> {
    /// Makes an empty lane.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let state = State {
            first: 0,
            places: VecDeque::with_capacity(shape.room),
            free: Vec::with_capacity(shape.room),
            staging: Some(B::default()),
            is_releasing: false,
            overdue: 0,
            stayed: Duration::ZERO,
        };
        Self { state: Mutex::new(state), shape }
    }

    /// Begins to stage a batch, into a buffer that is empty.
    pub fn stage(&self) -> Stage<'_, B> {
        let mut state = self.lock();
        let is_full = state.places.len() >= self.shape.room;
        match state.staging.take() {
            None => Stage::Later,
            batch if is_full => Stage::Full(Stager { lane: self, batch }),
            batch => Stage::Room(Stager { lane: self, batch }),
        }
    }

    /// Begins to release batches, unless another worker does so: that worker finds whatever is done by now.
    pub fn release(&self) -> Option<Releaser<'_, B>> {
        let is_releasing = mem::replace(&mut self.lock().is_releasing, true);
        (!is_releasing).then(|| Releaser { lane: self, batch: None, has_ended: false })
    }

    /// Batches that were staged and not released.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().places.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lane's shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The lane's state.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        let state = self.lock();
        // The first one waits for nothing: the worker that finished it releases it.
        let later = state.places.iter().skip(1);
        Backlog {
            batches: state.places.len(),
            held: later.filter(|place| !matches!(place.batch, Left::Taken)).count(),
            released: state.first,
            stayed: state.stayed,
            overdue: state.overdue,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts what a worker leaves of a batch in its place; gives it back if the batch was given up.
    fn leave(&self, ticket: u64, left: Left<B>) -> Result<(), Left<B>> {
        let mut state = self.lock();
        let at = ticket.checked_sub(state.first).map(|at| at as usize);
        match at.and_then(|at| state.places.get_mut(at)) {
            Some(place) => {
                place.batch = left;
                Ok(())
            }
            None => Err(left),
        }
    }

    /// Takes out the oldest batch that is done; lost and overdue ones before it are passed over.
    fn pop(&self, state: &mut State<B>, now: Duration) -> Option<B> {
        loop {
            let Place { since, batch } = state.places.front()?;
            let stayed = now.saturating_sub(*since);
            let is_overdue = matches!(batch, Left::Taken);
            if is_overdue && stayed < self.shape.patience {
                return None;
            }
            state.stayed += stayed;
            state.overdue += u64::from(is_overdue);
            state.first += 1;
            if let Some(Place { batch: Left::Done(batch), .. }) = state.places.pop_front() {
                return Some(batch);
            }
        }
    }
}

impl<B> State<B> {
    /// Keeps a buffer, if it may be of use.
    fn recycle(&mut self, batch: B) {
        if self.free.len() < self.free.capacity() {
            self.free.push(batch);
        }
    }
}

impl<'l, B: Batch> Stager<'l, B> {
    /// The batch, to be filled.
    pub fn batch(&mut self) -> &mut B {
        let Some(batch) = &mut self.batch else { unreachable!("it is taken by value") };
        batch
    }

    /// Stages the batch at `now`, on any clock that does not go back, and takes it.
    pub fn take(mut self, now: Duration) -> Claim<'l, B> {
        let mut state = self.lane.lock();
        let ticket = state.first + state.places.len() as u64;
        state.places.push_back(Place { since: now, batch: Left::Taken });
        state.staging = Some(state.free.pop().unwrap_or_default());
        drop(state);
        Claim { lane: self.lane, ticket, batch: self.batch.take() }
    }
}

impl<B: Batch> Drop for Stager<'_, B> {
    fn drop(&mut self) {
        if let Some(mut batch) = self.batch.take() {
            batch.clear();
            self.lane.lock().staging = Some(batch);
        }
    }
}

impl<B: Batch> Claim<'_, B> {
    /// Finishes the batch. Returns it if it was given up before: nothing waits for it any more.
    #[must_use]
    pub fn finish(mut self) -> Option<B> {
        let batch = self.batch.take()?;
        match self.lane.leave(self.ticket, Left::Done(batch)) {
            Err(Left::Done(batch)) => Some(batch),
            _ => None,
        }
    }
}

/// Dereferences to the batch, which is there until the claim is finished.
impl<B: Batch> Deref for Claim<'_, B> {
    type Target = B;

    fn deref(&self) -> &B {
        let Some(batch) = &self.batch else { unreachable!("it is finished by value") };
        batch
    }
}

impl<B: Batch> DerefMut for Claim<'_, B> {
    fn deref_mut(&mut self) -> &mut B {
        let Some(batch) = &mut self.batch else { unreachable!("it is finished by value") };
        batch
    }
}

impl<B: Batch> Drop for Claim<'_, B> {
    fn drop(&mut self) {
        if self.batch.take().is_some() {
            // If it was given up, it is lost already.
            let _ = self.lane.leave(self.ticket, Left::Lost);
        }
    }
}

impl<B: Batch> Releaser<'_, B> {
    /// The next batch, in order, if it is done, at `now`: lost and overdue ones are passed over. After
    /// `None` the next worker that finishes a batch may release.
    pub fn next(&mut self, now: Duration) -> Option<&mut B> {
        let mut last = self.batch.take();
        last.iter_mut().for_each(B::clear);
        let mut state = self.lane.lock();
        last.into_iter().for_each(|batch| state.recycle(batch));
        let next = if self.has_ended { None } else { self.lane.pop(&mut state, now) };
        if next.is_none() && !mem::replace(&mut self.has_ended, true) {
            // In one step with looking: what is done later is found by the worker that does it.
            state.is_releasing = false;
        }
        drop(state);
        self.batch = next;
        self.batch.as_mut()
    }
}

impl<B: Batch> Drop for Releaser<'_, B> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.lane.lock().is_releasing = false;
        }
    }
}
