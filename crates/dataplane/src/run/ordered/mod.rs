//! Wires that keep the order of all their frames while several workers evaluate them: the scheme of
//! [`crate::ordered`], for bursts.
//!
//! Contract: each direction has one [`Lane`]. What came in by a port leaves by the other in that order, with replies by
//! the port of arrival; frames that a rule made stand where the one stood that they replace. Under rules whose packets
//! depend on no others, a burst is any worker's. Else it has a part for each worker, with the frames that are its own
//! by the [`Steering`], and each worker evaluates its parts in order. While enough bursts are ready, frames stay in
//! their port, so that the next burst is larger. Where more come than are evaluated for [`FLOOD`], or one burst holds all others up,
//! a live port's are received and dropped as `queue`, a burst in a worker's turn, so that what waits is never old; a
//! capture waits. What a worker keeps longer than [`PATIENCE`] is not waited for, and dropped as `overdue` when the worker brings it:
//! until then it counts as on its way.
//!
//! A wire's own steps do the work ([`Wire`]): this only has bursts change places between them.

mod frames;
mod hand;
mod steps;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use pktio::{PortError, Readiness};

use self::frames::Frames;
use self::hand::{Hand, InHand};
use super::account::Reason;
use super::steering::Steering;
use super::wire::{Means, Wire};
use crate::ordered::{Backlog, Lane, Shape};

/// Bursts between their staging and release, for each direction: while a worker has a whole burst, others may be
/// through with many small ones.
const ROOM: usize = 64;

/// Bursts that wait for each worker.
const READY: usize = 2;

/// How long bursts may leave frames in their port before more come than are evaluated: shorter than that, it is as if
/// the workers had not been on their processors.
const FLOOD: Duration = Duration::from_millis(10);

/// How long a worker may have a burst.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the workers of such a wire share: both directions.
#[derive(Debug)]
pub(super) struct Lanes {
    directions: [Direction; 2],
    steering: Steering,
    /// When its clock was 0.
    start: Instant,
}

#[derive(Debug)]
struct Direction {
    lane: Lane<Frames>,
    /// Frames that were shared out between owners: the number of the next one.
    number: AtomicU64,
}

/// How many bursts a direction has between staging and release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Now.
    pub bursts: usize,
    /// Of those, the ones that are evaluated and wait for one before them.
    pub held: usize,
    /// At most.
    pub room: usize,
    /// Bursts that were released so far.
    pub released: u64,
    /// How long those were there, from being received to being sent, all together.
    pub stayed: Duration,
    /// Parts of bursts that were given up so far: their workers did not finish in time.
    pub overdue: u64,
}

/// One worker's part of such a wire.
pub(super) struct Ordered {
    wire: Wire,
    lanes: Arc<Lanes>,
    /// The worker.
    number: usize,
    in_hand: Option<InHand>,
    /// Frames that each port handed over at once, at most so far: one that hands over fewer has no more.
    most: [usize; 2],
    /// Whose each frame of a burst is.
    owners: Vec<usize>,
}

impl Lanes {
    /// For workers who share frames out in this way.
    pub(super) fn new(steering: &Steering) -> Self {
        let workers = steering.workers();
        let parts = if steering.couples() { workers } else { 1 };
        let ready = if parts == 1 { READY * workers } else { READY };
        let room = ROOM.max(2 * ready);
        let shape = Shape { room, ready, flood: FLOOD, parts, patience: PATIENCE };
        let direction = || Direction { lane: Lane::new(shape), number: AtomicU64::new(0) };
        Self {
            directions: [direction(), direction()],
            steering: steering.clone(),
            start: Instant::now(),
        }
    }

    /// What waits of the frames that come in by an end.
    pub(super) fn queue(&self, from: usize) -> Queue {
        let lane = &self.directions[from].lane;
        let Backlog { batches, held, released, stayed, overdue } = lane.backlog();
        Queue { bursts: batches, held, room: lane.shape().room, released, stayed, overdue }
    }
}

impl Ordered {
    pub(super) fn new(wire: Wire, lanes: &Arc<Lanes>, number: usize) -> Self {
        Self {
            wire,
            lanes: Arc::clone(lanes),
            number,
            in_hand: None,
            most: [0; 2],
            owners: Vec::new(),
        }
    }

    /// One turn at each of its lanes: whether there was something to do. It wakes others by `wake` if something is there
    /// for them.
    pub(super) fn turn(
        &mut self,
        receives: bool,
        means: &mut Means<'_>,
        wake: &dyn Fn(),
    ) -> Result<bool, PortError> {
        let mut is_busy = false;
        let lanes = Arc::clone(&self.lanes);
        self.wire.tap.begins(means.now);
        for (from, direction) in lanes.directions.iter().enumerate() {
            let number = self.number;
            let mut hand = Hand { ordered: self, from, means, wake };
            is_busy |= direction.lane.turn(number, receives, &mut hand)?;
        }
        Ok(is_busy)
    }

    /// Whether bursts are between staging and release, whoever has them.
    pub(super) fn has_bursts(&self) -> bool {
        self.lanes.directions.iter().any(|direction| !direction.lane.is_empty())
    }

    /// As [`Wire::readiness`].
    pub(super) fn readiness(&self) -> [Readiness<'_>; 2] {
        self.wire.readiness()
    }

    /// As [`Wire::flush`].
    pub(super) fn flush(&mut self) -> Result<(), PortError> {
        self.wire.flush()
    }

    /// Gives up what this worker has in hand.
    pub(super) fn abandon(&mut self, reason: Reason) {
        if let Some(in_hand) = self.in_hand.take() {
            in_hand.drop_as(reason, &self.wire);
        }
        self.wire.clear();
    }
}
