//! [`Shared`]: what the workers of a run share with each other and with whoever started them: what is asked of them,
//! where each sleeps, and how far each is.
//!
//! Contract: anyone may read and stop; each worker writes its own seat. Nothing here is on the way of a frame but the
//! count of turns, which is the worker's own.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::awake::Awake;
use super::causes::Causes;
use super::parker::Parker;
use super::questions::{Questions, Silent};
use super::shadow::Slot;
use super::talkers::Talkers;
use crate::publish::Worker;

/// What workers share.
#[derive(Debug)]
pub(super) struct Shared {
    stop: AtomicBool,
    /// How many workers are not past each phase of their lives, the last excepted.
    in_phase: [AtomicUsize; 2],
    /// One panicked, and none evaluates anything any more.
    panicked: AtomicBool,
    seats: Vec<CachePadded<Seat>>,
    pub(super) causes: Causes,
    /// Rules that are tried beside those in force.
    pub(super) shadow: Arc<Slot>,
    pub(super) talkers: Arc<Talkers>,
}

/// Where a worker is.
#[derive(Debug)]
pub(super) struct Seat {
    parker: Arc<Parker>,
    awake: Awake,
    turns: AtomicU64,
    /// Frames that others had given it when it looked last.
    waiting: AtomicUsize,
    /// Connections that it held then.
    flows: AtomicUsize,
    ring: Ring,
    has_panicked: AtomicBool,
    is_stuck: AtomicBool,
    has_ended: AtomicBool,
    /// For it to answer between bursts.
    pub(super) questions: Questions,
}

/// The ring to its middlebox, if it has one.
#[derive(Debug, Default)]
struct Ring {
    /// Frames that may be there; 0 where there is none.
    room: AtomicUsize,
    /// Those that were when it looked last.
    frames: AtomicUsize,
    /// The most that ever were.
    most: AtomicUsize,
}

/// The phases of a worker's life. It ends when all are in the last one, and it has nothing left.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Frames come by its ports.
    #[default]
    Receives,
    /// They do not any more; of those that others give it, fragments go on to a third.
    Gives,
    /// All that comes is its own.
    Takes,
}

impl Shared {
    /// One seat for each of these.
    pub(super) fn new(parkers: Vec<Arc<Parker>>) -> Self {
        let seat = |parker| {
            CachePadded::new(Seat {
                parker,
                awake: Awake::new(),
                turns: AtomicU64::new(0),
                waiting: AtomicUsize::new(0),
                flows: AtomicUsize::new(0),
                ring: Ring::default(),
                has_panicked: AtomicBool::new(false),
                is_stuck: AtomicBool::new(false),
                has_ended: AtomicBool::new(false),
                questions: Questions::default(),
            })
        };
        Self {
            stop: AtomicBool::new(false),
            in_phase: [(), ()].map(|()| AtomicUsize::new(parkers.len())),
            panicked: AtomicBool::new(false),
            talkers: Arc::new(Talkers::of(parkers.len())),
            seats: parkers.into_iter().map(seat).collect(),
            causes: Causes::default(),
            shadow: Arc::default(),
        }
    }

    pub(super) fn seat(&self, number: usize) -> &Seat {
        &self.seats[number]
    }

    pub(super) fn seats(&self) -> impl ExactSizeIterator<Item = &Seat> {
        self.seats.iter().map(|seat| &**seat)
    }

    pub(super) fn wakers(&self) -> Vec<Waker> {
        self.seats.iter().map(|seat| Waker::from(Arc::clone(&seat.parker))).collect()
    }

    /// Tells all workers to stop once they have handled what their ports still have.
    pub(super) fn stop(&self) {
        // What was sent before it is there for whoever learns of it.
        self.stop.store(true, Ordering::Release);
        self.wake_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Asks a worker, and waits for its answer.
    ///
    /// # Errors
    /// It gives none: it has ended, or is stuck.
    pub(super) fn ask<A: Send + 'static>(
        &self,
        number: usize,
        question: impl FnOnce(&mut Worker) -> A + Send + 'static,
    ) -> Result<A, Silent> {
        let Some(seat) = self.seats.get(number).filter(|seat| !seat.has_ended()) else {
            return Err(Silent(number));
        };
        seat.questions.ask(|| seat.parker.wake_by_ref(), question).ok_or(Silent(number))
    }

    pub(super) fn wake_all(&self) {
        self.seats.iter().for_each(|seat| seat.parker.wake_by_ref());
    }

    /// A worker goes on to its next phase.
    pub(super) fn leaves(&self, phase: Phase) {
        let is_last = |count: &AtomicUsize| count.fetch_sub(1, Ordering::AcqRel) == 1;
        if self.in_phase.get(phase as usize).is_some_and(is_last) {
            self.wake_all();
        }
    }

    /// Whether all workers have reached this phase: what they gave before is in the rings.
    pub(super) fn have_all_reached(&self, phase: Phase) -> bool {
        let before = (phase as usize).checked_sub(1).and_then(|before| self.in_phase.get(before));
        before.is_none_or(|count| count.load(Ordering::Acquire) == 0)
    }

    pub(super) fn panics(&self, number: usize) {
        self.seats[number].has_panicked.store(true, Ordering::Relaxed);
        self.panicked.store(true, Ordering::Release);
    }

    pub(super) fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Acquire)
    }

    /// The workers that panicked.
    pub(super) fn panicked(&self) -> impl Iterator<Item = usize> {
        let all = self.seats.iter().enumerate();
        all.filter(|(_, seat)| seat.has_panicked()).map(|(number, _)| number)
    }
}

impl Phase {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Receives => Self::Gives,
            Self::Gives | Self::Takes => Self::Takes,
        }
    }
}

impl Seat {
    /// One more turn.
    pub(super) fn beat(&self) {
        self.turns.store(self.turns.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    pub(super) fn park(&self, descriptors: &[BorrowedFd<'_>], most: Option<Duration>) {
        self.awake.falls_asleep();
        self.parker.park(descriptors, most);
        self.awake.wakes();
    }

    /// How long it has been awake in all.
    pub(super) fn awake(&self) -> Duration {
        self.awake.so_far()
    }

    /// So many frames of others wait for it.
    pub(super) fn has_waiting(&self, frames: usize) {
        self.waiting.store(frames, Ordering::Relaxed);
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// It holds so many connections.
    pub(super) fn holds(&self, flows: usize) {
        self.flows.store(flows, Ordering::Relaxed);
    }

    pub(super) fn flows(&self) -> usize {
        self.flows.load(Ordering::Relaxed)
    }

    /// So many frames may be at its middlebox while it goes on.
    pub(super) fn has_ring(&self, room: usize) {
        self.ring.room.store(room, Ordering::Relaxed);
    }

    /// So many are.
    pub(super) fn has_away(&self, frames: usize) {
        self.ring.frames.store(frames, Ordering::Relaxed);
        if frames > self.ring.most.load(Ordering::Relaxed) {
            self.ring.most.store(frames, Ordering::Relaxed);
        }
    }

    /// How many may be there, are, and were at most; `None` without a ring.
    pub(super) fn ring(&self) -> Option<[usize; 3]> {
        let Ring { room, frames, most } = &self.ring;
        let counts = [room, frames, most].map(|count| count.load(Ordering::Relaxed));
        (counts[0] > 0).then_some(counts)
    }

    pub(super) fn is_parked(&self) -> bool {
        self.parker.is_parked()
    }

    pub(super) fn ends(&self) {
        self.awake.falls_asleep();
        self.has_ended.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    pub(super) fn has_panicked(&self) -> bool {
        self.has_panicked.load(Ordering::Relaxed)
    }

    pub(super) fn set_stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Ordering::Relaxed);
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }
}
