//! [`Lane`]: batches between staging and release, in order of their tickets.
//!
//! A batch has one part, which the worker that stages it takes with that ([`Stager::take`]): a batch stays in one processor's
//! caches. Or it has one part for each worker, which only that worker takes ([`Lane::claim`]). Each part is staged, taken,
//! and then done or lost; a batch is released once none of its parts is staged or taken.

use std::collections::VecDeque;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

use super::sync::{Mutex, MutexGuard};

/// A buffer that a lane carries, and uses again.
pub trait Batch: Default {
    /// Whether there is nothing to work on.
    fn is_empty(&self) -> bool;

    /// Drops what it holds, and keeps its room.
    fn clear(&mut self);
}

/// Batches in the order in which they were staged.
#[derive(Debug)]
pub struct Lane<B> {
    state: Mutex<State<B>>,
    shape: Shape,
}

/// The shape of a lane: its bounds and its patience.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Batches that it holds at most.
    pub room: usize,
    /// Batches that wait for a worker at most, where each has its part: what comes meanwhile makes the next one larger.
    pub ready: usize,
    /// How long batches have to leave frames behind until more is taken to come than can be worked on.
    pub flood: Duration,
    /// Parts of each batch: one, which its worker takes as it stages it, or one for each worker.
    pub parts: usize,
    /// How long a worker may have a part.
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
    /// Parts that were given up so far.
    pub overdue: u64,
}

#[derive(Debug)]
struct State<B> {
    /// Ticket of the oldest batch here: earlier batches were released.
    first: u64,
    /// When each batch was staged.
    staged: VecDeque<Duration>,
    /// The parts of all batches, one batch after the other.
    cells: VecDeque<Cell<B>>,
    columns: Vec<Column>,
    /// Buffers that are not in use.
    free: Vec<B>,
    /// The buffers that are staged next; `None` while a worker stages.
    staging: Option<Vec<B>>,
    /// Where what is released is put; `None` while a worker releases.
    releasing: Option<Vec<Part<B>>>,
    /// Parts that were given up.
    overdue: u64,
    /// How long the batches that were released were here.
    stayed: Duration,
    /// Since when no batch has taken all that had come.
    behind: Option<Duration>,
}

/// One part of all batches.
#[derive(Debug, Default, Clone)]
struct Column {
    /// Ticket of the first batch whose part was not taken.
    next: u64,
    /// Whether a part was given up, and its worker has not been seen since.
    is_late: bool,
}

#[derive(Debug)]
enum Cell<B> {
    Staged(B),
    Taken { worker: usize, since: Duration },
    Done(B),
    Lost,
}

/// A part of a batch that is released.
#[derive(Debug)]
pub enum Part<B> {
    /// The part was worked on.
    Done(B),
    /// The part's worker did not finish in time. The part is there if it was not even begun.
    Overdue {
        /// The worker.
        worker: usize,
        /// The part, if no worker took it.
        part: Option<B>,
    },
}

/// Whether a batch may be staged.
#[derive(Debug)]
pub enum Stage<'l, B: Batch> {
    /// Yes.
    Room(Stager<'l, B>),
    /// No: another worker does so now, or enough is ready.
    Later,
    /// No: there is no room, or enough is ready and more comes than can be worked on. The caller may receive and drop
    /// it.
    Full(Stager<'l, B>),
}

/// Stages one batch; another one can be staged once it is dropped.
#[derive(Debug)]
pub struct Stager<'l, B: Batch> {
    lane: &'l Lane<B>,
    parts: Vec<B>,
    /// Whether something came, and was staged or refused.
    is_used: bool,
}

/// A part that a worker has. If it is dropped before it is finished, the part is lost.
#[derive(Debug)]
pub struct Claim<'l, B: Batch> {
    lane: &'l Lane<B>,
    ticket: u64,
    column: usize,
    part: Option<B>,
}

/// Releases batches; another worker can once this is dropped, or has found none.
#[derive(Debug)]
pub struct Releaser<'l, B: Batch> {
    lane: &'l Lane<B>,
    /// `None` once it has ended.
    parts: Option<Vec<Part<B>>>,
}

impl<B: Batch> Lane<B> {
    /// Makes an empty lane.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let Shape { room, parts, .. } = shape;
        let state = State {
            first: 0,
            staged: VecDeque::with_capacity(room),
            cells: VecDeque::with_capacity(room * parts),
            columns: vec![Column::default(); parts],
            free: Vec::with_capacity(room * parts),
            staging: Some((0..parts).map(|_| B::default()).collect()),
            releasing: Some(Vec::with_capacity(parts)),
            overdue: 0,
            stayed: Duration::ZERO,
            behind: None,
        };
        Self { state: Mutex::new(state), shape }
    }

    /// Begins to stage a batch, into buffers that are empty, at `now`, on any clock that does not go back.
    pub fn stage(&self, now: Duration) -> Stage<'_, B> {
        let mut state = self.lock();
        let is_ready = state.ready() >= self.shape.ready;
        let is_over = |since| now.saturating_sub(since) >= self.shape.flood;
        let is_full = state.staged.len() >= self.shape.room
            || (is_ready && state.behind.is_some_and(is_over));
        match state.staging.take_if(|_| is_full || !is_ready) {
            Some(parts) if is_full => Stage::Full(Stager { lane: self, parts, is_used: false }),
            Some(parts) => Stage::Room(Stager { lane: self, parts, is_used: false }),
            None => Stage::Later,
        }
    }

    /// The oldest of this worker's parts that it has not taken, at `now`.
    pub fn claim(&self, column: usize, now: Duration) -> Option<Claim<'_, B>> {
        let mut state = self.lock();
        state.columns.get_mut(column)?.is_late = false;
        loop {
            let ticket = state.columns[column].next;
            let at = self.cell(&state, ticket, column)?;
            let cell = &mut state.cells[at];
            let part = match mem::replace(cell, Cell::Taken { worker: column, since: now }) {
                Cell::Staged(part) => Some(part),
                other => {
                    *cell = other;
                    None
                }
            };
            state.columns[column].next += 1;
            if part.is_some() {
                return Some(Claim { lane: self, ticket, column, part });
            }
        }
    }

    /// Begins to release batches, unless another worker does so: that worker finds whatever is done by now.
    pub fn release(&self) -> Option<Releaser<'_, B>> {
        let parts = self.lock().releasing.take()?;
        Some(Releaser { lane: self, parts: Some(parts) })
    }

    /// Batches that were staged and not released.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().staged.len()
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
        let is_done = |cell: &Cell<B>| matches!(cell, Cell::Done(_) | Cell::Lost);
        let mut batches = 0..state.staged.len();
        let parts = self.shape.parts;
        let is_held = |at: &usize| state.cells.range(at * parts..(at + 1) * parts).all(is_done);
        // The first one waits for nothing: the worker that finished it releases it.
        batches.next();
        Backlog {
            batches: state.staged.len(),
            held: batches.filter(is_held).count(),
            released: state.first,
            stayed: state.stayed,
            overdue: state.overdue,
        }
    }

    /// Whether something waits for a worker to take it.
    #[must_use]
    pub fn has_unclaimed(&self) -> bool {
        let state = self.lock();
        let end = state.end();
        state.columns.iter().any(|column| column.next < end)
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a part is, of a batch that is here.
    fn cell(&self, state: &State<B>, ticket: u64, column: usize) -> Option<usize> {
        let at = ticket.checked_sub(state.first)?;
        (at < state.staged.len() as u64).then(|| at as usize * self.shape.parts + column)
    }

    /// Puts what a worker leaves of a part in its place; an error if the batch has been released.
    fn leave(&self, ticket: u64, column: usize, cell: Cell<B>) -> Result<(), Cell<B>> {
        let mut state = self.lock();
        state.columns[column].is_late = false;
        match self.cell(&state, ticket, column) {
            Some(at) => {
                state.cells[at] = cell;
                Ok(())
            }
            None => Err(cell),
        }
    }

    /// Takes the oldest batch out if it waits for no worker, or for none any more.
    fn pop(&self, state: &mut State<B>, now: Duration, parts: &mut Vec<Part<B>>) -> bool {
        let Some(staged) = state.staged.front() else { return false };
        let is_over = |since: Duration| now.saturating_sub(since) >= self.shape.patience;
        let columns = state.columns.iter();
        let is_ready = state.cells.iter().zip(columns).all(|(cell, column)| match cell {
            Cell::Done(_) | Cell::Lost => true,
            Cell::Taken { since, .. } => is_over(*since),
            Cell::Staged(_) => column.is_late || is_over(*staged),
        });
        if !is_ready {
            return false;
        }
        state.stayed += now.saturating_sub(*staged);
        state.staged.pop_front();
        state.first += 1;
        let (first, mut overdue) = (state.first, 0);
        for (worker, (column, cell)) in
            state.columns.iter_mut().zip(state.cells.drain(..self.shape.parts)).enumerate()
        {
            column.next = column.next.max(first);
            let (worker, part) = match cell {
                Cell::Done(part) => {
                    parts.push(Part::Done(part));
                    continue;
                }
                Cell::Lost => continue,
                Cell::Taken { worker, .. } => (worker, None),
                Cell::Staged(part) => (worker, Some(part)),
            };
            (column.is_late, overdue) = (true, overdue + 1);
            parts.push(Part::Overdue { worker, part });
        }
        state.overdue += overdue;
        true
    }

    /// Keeps buffers, as many as it can use.
    fn recycle(&self, state: &mut State<B>, parts: impl Iterator<Item = B>) {
        let most = self.shape.room * self.shape.parts;
        state.free.extend(parts);
        state.free.truncate(most);
    }
}

impl<B> State<B> {
    /// The ticket of the next batch to be staged.
    fn end(&self) -> u64 {
        self.first + self.staged.len() as u64
    }

    fn is_behind(&mut self, is_behind: bool, now: Duration) {
        self.behind = self.behind.or(Some(now)).filter(|_| is_behind);
    }

    /// Batches that wait for the worker that has the fewest.
    fn ready(&self) -> usize {
        let next = self.columns.iter().map(|column| column.next).max();
        next.map_or(0, |next| self.end().saturating_sub(next) as usize)
    }
}

impl<'l, B: Batch> Stager<'l, B> {
    /// The parts of the batch, to be filled.
    pub fn parts(&mut self) -> &mut [B] {
        &mut self.parts
    }

    /// Stages a batch at `now` whose parts are for others to claim, too; `is_behind` if more had come than it took. Empty parts
    /// need no work.
    pub fn put(mut self, now: Duration, is_behind: bool) {
        self.is_used = true;
        let mut state = self.lane.lock();
        state.is_behind(is_behind, now);
        state.staged.push_back(now);
        for part in self.parts.iter_mut() {
            let next = state.free.pop().unwrap_or_default();
            let part = mem::replace(part, next);
            let cell = if part.is_empty() { Cell::Done(part) } else { Cell::Staged(part) };
            state.cells.push_back(cell);
        }
    }

    /// Stages a batch of one part at `now`, and takes the part.
    pub fn take(mut self, worker: usize, now: Duration) -> Claim<'l, B> {
        self.is_used = true;
        let mut state = self.lane.lock();
        let ticket = state.end();
        state.staged.push_back(now);
        state.cells.push_back(Cell::Taken { worker, since: now });
        state.columns[0] = Column { next: ticket + 1, is_late: false };
        let next = state.free.pop().unwrap_or_default();
        drop(state);
        let part = self.parts.first_mut().map(|part| mem::replace(part, next));
        Claim { lane: self.lane, ticket, column: 0, part }
    }

    /// Notes that what came at `now` was not staged; `is_behind` if more had come than that.
    pub fn refuse(mut self, now: Duration, is_behind: bool) {
        self.is_used = true;
        self.lane.lock().is_behind(is_behind, now);
    }
}

impl<B: Batch> Drop for Stager<'_, B> {
    fn drop(&mut self) {
        let mut parts = mem::take(&mut self.parts);
        parts.iter_mut().for_each(B::clear);
        let mut state = self.lane.lock();
        state.staging = Some(parts);
        if !self.is_used {
            state.behind = None;
        }
    }
}

impl<B: Batch> Claim<'_, B> {
    /// Finishes the part. Returns it if it was given up before: nothing waits for it any more.
    #[must_use]
    pub fn finish(mut self) -> Option<B> {
        let part = self.part.take()?;
        match self.lane.leave(self.ticket, self.column, Cell::Done(part)) {
            Err(Cell::Done(part)) => Some(part),
            _ => None,
        }
    }
}

/// Dereferences to the part, which is there until the claim is finished.
impl<B: Batch> Deref for Claim<'_, B> {
    type Target = B;

    fn deref(&self) -> &B {
        let Some(part) = &self.part else { unreachable!("it is finished by value") };
        part
    }
}

impl<B: Batch> DerefMut for Claim<'_, B> {
    fn deref_mut(&mut self) -> &mut B {
        let Some(part) = &mut self.part else { unreachable!("it is finished by value") };
        part
    }
}

impl<B: Batch> Drop for Claim<'_, B> {
    fn drop(&mut self) {
        if self.part.take().is_some() {
            // If it was given up, it is lost already.
            let _ = self.lane.leave(self.ticket, self.column, Cell::Lost);
        }
    }
}

impl<B: Batch> Releaser<'_, B> {
    /// The next batch, in order, if it is done, at `now`: its parts, except lost ones. After `None` the next worker
    /// that finishes a batch may release.
    pub fn next(&mut self, now: Duration) -> Option<&mut [Part<B>]> {
        let mut parts = self.parts.take()?;
        parts.iter_mut().for_each(Part::clear);
        let mut state = self.lane.lock();
        self.lane.recycle(&mut state, parts.drain(..).filter_map(Part::into_buffer));
        if !self.lane.pop(&mut state, now, &mut parts) {
            // In one step with looking: what is done later is found by the worker that does it.
            state.releasing = Some(parts);
            return None;
        }
        drop(state);
        Some(self.parts.insert(parts))
    }
}

impl<B: Batch> Drop for Releaser<'_, B> {
    fn drop(&mut self) {
        if let Some(mut parts) = self.parts.take() {
            parts.clear();
            self.lane.lock().releasing = Some(parts);
        }
    }
}

impl<B: Batch> Part<B> {
    fn clear(&mut self) {
        if let Self::Done(part) | Self::Overdue { part: Some(part), .. } = self {
            part.clear();
        }
    }

    fn into_buffer(self) -> Option<B> {
        match self {
            Self::Done(part) => Some(part),
            Self::Overdue { part, .. } => part,
        }
    }
}
