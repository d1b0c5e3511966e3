//! [`WorkerSlots`]: what the workers of a run share with each other and with the threads that started them: requests to
//! them, where each sleeps, and how far each is.
//!
//! Contract: anyone may read and stop; each worker writes its own seat. A frame costs nothing here except the count of
//! turns, which is the worker's own.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::forward::awake::Awake;
use crate::forward::causes::Causes;
use crate::forward::parker::Parker;
use crate::forward::requests::{NoReply, WorkerRequests};
use crate::forward::shadow::Slot;
use crate::forward::talkers::Talkers;
use dataplane::publish::Worker;

/// The state that workers share.
#[derive(Debug)]
pub(crate) struct WorkerSlots {
    stop: AtomicBool,
    /// The number of workers still in each phase; the last phase is not counted.
    in_phase: [AtomicUsize; 2],
    /// Whether a worker panicked, after which none evaluates anything any more.
    panicked: AtomicBool,
    seats: Vec<CachePadded<WorkerSlot>>,
    pub(crate) causes: Causes,
    /// The shadow: candidate rules that see a copy of every frame.
    pub(crate) shadow: Arc<Slot>,
    pub(crate) talkers: Arc<Talkers>,
}

/// The seat of one worker.
#[derive(Debug)]
pub(crate) struct WorkerSlot {
    parker: Arc<Parker>,
    awake: Awake,
    turns: AtomicU64,
    /// The number of frames from other workers that waited when it looked last.
    waiting: AtomicUsize,
    /// The number of connections that it held then.
    flows: AtomicUsize,
    ring: Ring,
    has_panicked: AtomicBool,
    is_stuck: AtomicBool,
    has_ended: AtomicBool,
    /// Requests that it answers between bursts.
    pub(crate) questions: WorkerRequests,
}

/// The ring to its middlebox, if it has one.
#[derive(Debug, Default)]
struct Ring {
    /// The number of frames that may be there; 0 where there is no ring.
    room: AtomicUsize,
    /// The number of frames there when it looked last.
    frames: AtomicUsize,
    /// The highest number so far.
    most: AtomicUsize,
}

/// The phases of a worker's life. It ends when all workers are in the last one, and it has nothing left.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The worker receives frames on its ports.
    #[default]
    Receives,
    /// The worker receives no more; fragments that other workers give it may go on to a third one.
    Gives,
    /// The worker takes frames that other workers give it, all of which are its own.
    Takes,
}

impl WorkerSlots {
    /// Makes one seat for each parker.
    pub(crate) fn new(parkers: Vec<Arc<Parker>>) -> Self {
        let seat = |parker| {
            CachePadded::new(WorkerSlot {
                parker,
                awake: Awake::new(),
                turns: AtomicU64::new(0),
                waiting: AtomicUsize::new(0),
                flows: AtomicUsize::new(0),
                ring: Ring::default(),
                has_panicked: AtomicBool::new(false),
                is_stuck: AtomicBool::new(false),
                has_ended: AtomicBool::new(false),
                questions: WorkerRequests::default(),
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

    pub(crate) fn seat(&self, number: usize) -> &WorkerSlot {
        &self.seats[number]
    }

    pub(crate) fn seats(&self) -> impl ExactSizeIterator<Item = &WorkerSlot> {
        self.seats.iter().map(|seat| &**seat)
    }

    pub(crate) fn wakers(&self) -> Vec<Waker> {
        self.seats.iter().map(|seat| Waker::from(Arc::clone(&seat.parker))).collect()
    }

    /// Asks all workers to stop once they have handled what their ports still have.
    pub(crate) fn stop(&self) {
        // A worker that reads it sees what was sent before.
        self.stop.store(true, Ordering::Release);
        self.wake_all();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Asks a worker, and waits for its answer.
    ///
    /// # Errors
    /// The worker has ended, or is stuck.
    pub(crate) fn ask<A: Send + 'static>(
        &self,
        number: usize,
        question: impl FnOnce(&mut Worker) -> A + Send + 'static,
    ) -> Result<A, NoReply> {
        let Some(seat) = self.seats.get(number).filter(|seat| !seat.has_ended()) else {
            return Err(NoReply(number));
        };
        seat.questions.ask(|| seat.parker.wake_by_ref(), question).ok_or(NoReply(number))
    }

    pub(crate) fn wake_all(&self) {
        self.seats.iter().for_each(|seat| seat.parker.wake_by_ref());
    }

    /// Notes that a worker has left a phase.
    pub(crate) fn leaves(&self, phase: Phase) {
        let is_last = |count: &AtomicUsize| count.fetch_sub(1, Ordering::AcqRel) == 1;
        if self.in_phase.get(phase as usize).is_some_and(is_last) {
            self.wake_all();
        }
    }

    /// Whether all workers have reached this phase: what they gave before is in the rings.
    pub(crate) fn have_all_reached(&self, phase: Phase) -> bool {
        let before = (phase as usize).checked_sub(1).and_then(|before| self.in_phase.get(before));
        before.is_none_or(|count| count.load(Ordering::Acquire) == 0)
    }

    pub(crate) fn panics(&self, number: usize) {
        self.seats[number].has_panicked.store(true, Ordering::Relaxed);
        self.panicked.store(true, Ordering::Release);
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Acquire)
    }

    /// The workers that panicked.
    pub(crate) fn panicked(&self) -> impl Iterator<Item = usize> {
        let all = self.seats.iter().enumerate();
        all.filter(|(_, seat)| seat.has_panicked()).map(|(number, _)| number)
    }
}

impl Phase {
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Receives => Self::Gives,
            Self::Gives | Self::Takes => Self::Takes,
        }
    }
}

impl WorkerSlot {
    /// Counts one more turn.
    pub(crate) fn beat(&self) {
        self.turns.store(self.turns.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    pub(crate) fn park(&self, descriptors: &[BorrowedFd<'_>], most: Option<Duration>) {
        self.awake.falls_asleep();
        self.parker.park(descriptors, most);
        self.awake.wakes();
    }

    /// How long the worker has been awake in all.
    pub(crate) fn awake(&self) -> Duration {
        self.awake.so_far()
    }

    /// Notes the number of frames from other workers that wait.
    pub(crate) fn has_waiting(&self, frames: usize) {
        self.waiting.store(frames, Ordering::Relaxed);
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Notes the number of connections that the worker holds.
    pub(crate) fn holds(&self, flows: usize) {
        self.flows.store(flows, Ordering::Relaxed);
    }

    pub(crate) fn flows(&self) -> usize {
        self.flows.load(Ordering::Relaxed)
    }

    /// Notes the number of frames that may be at the middlebox while the worker goes on.
    pub(crate) fn has_ring(&self, room: usize) {
        self.ring.room.store(room, Ordering::Relaxed);
    }

    /// Notes the number of frames that are at the middlebox.
    pub(crate) fn has_away(&self, frames: usize) {
        self.ring.frames.store(frames, Ordering::Relaxed);
        if frames > self.ring.most.load(Ordering::Relaxed) {
            self.ring.most.store(frames, Ordering::Relaxed);
        }
    }

    /// Capacity, occupancy and high-water mark of the ring, if there is one.
    pub(crate) fn ring(&self) -> Option<[usize; 3]> {
        let Ring { room, frames, most } = &self.ring;
        let counts = [room, frames, most].map(|count| count.load(Ordering::Relaxed));
        (counts[0] > 0).then_some(counts)
    }

    pub(crate) fn is_parked(&self) -> bool {
        self.parker.is_parked()
    }

    pub(crate) fn ends(&self) {
        self.awake.falls_asleep();
        self.has_ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.has_panicked.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Ordering::Relaxed);
    }

    pub(crate) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }
}
