//! Wires that keep the order of all their frames while several workers evaluate them: the scheme of
//! [`crate::forward::reorder`], for bursts.
//!
//! Contract: each direction has a [`Lane`] for each kind of work on a burst: deciphering, where its frames come in envelopes;
//! evaluating; sealing, where they leave in envelopes ([`Work`]). A lane stages what the one before it has done: that is
//! where bursts are in their order, are released from their envelopes, are shared out, and get their places. Frames leave through the other port in the order of their arrival, with
//! replies through the port of arrival; frames that a rule made take the place of the frame that they replace. Any worker
//! deciphers or seals a burst. Under rules whose packets depend on no others, any worker evaluates it. Else it has a part
//! for each worker then, with the frames that are its own by the [`Steering`], and each worker evaluates its parts in order. While enough bursts are
//! ready, frames stay in their port, so that the next burst is larger. Where more come than are evaluated for
//! [`FLOOD`], or one burst holds all others up, a live port's frames are received and dropped as `queue`, a burst in a
//! worker's turn, so that what waits is never old; a capture waits. A part that a worker keeps longer than [`PATIENCE`]
//! is not waited for, and dropped as `overdue` when the worker brings it: until then it counts as on its way.
//!
//! A wire's own steps do the work ([`Wire`]): this only makes bursts change places between them.

mod frames;
mod hand;
mod in_hand;
mod steps;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pktio::{PortError, Readiness};
use smallvec::SmallVec;

use self::frames::Frames;
use self::in_hand::InHand;
use crate::answers::Queue;
use crate::forward::account::Reason;
use crate::forward::reorder::{Backlog, Lane, Shape};
use crate::forward::steering::Steering;
use crate::forward::wire::Wire;

/// Bursts between their staging and release, at most, where they are evaluated: while a worker has a whole burst, others may
/// have finished many small ones.
const ROOM: usize = 64;

/// Bursts between their staging and release, at least, where they are sealed: of 256 KiB and superframes mostly, so a
/// worker that seals them all while another one holds them up has memory for them.
const SEALED: usize = 8;

/// Bursts that wait for each worker, at most.
const READY: usize = 2;

/// How long bursts may leave frames in their port until more are taken to come than are evaluated: a shorter time may
/// mean that the workers were just not scheduled.
const FLOOD: Duration = Duration::from_millis(10);

/// How long workers still look out for frames after there was work for several.
const LULL: Duration = Duration::from_millis(20);

/// How long a worker may have a burst.
const PATIENCE: Duration = Duration::from_secs(1);

/// The lanes of both directions of an ordered wire, which its workers share.
#[derive(Debug)]
pub(crate) struct Lanes {
    directions: [Direction; 2],
    steering: Steering,
    /// The moment 0 of its clock.
    start: Instant,
    /// When there was work for another worker last, in nanoseconds since the Unix epoch.
    called: AtomicU64,
}

#[derive(Debug)]
struct Direction {
    /// The lanes, in the order in which a burst passes them.
    lanes: SmallVec<[(Work, Lane<Frames>); 3]>,
    /// The number of the next frame that is shared out between owners.
    number: AtomicU64,
}

/// The work on the bursts of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Frames are deciphered in their envelopes.
    Decipher,
    /// Frames meet the rules.
    Evaluate,
    /// Frames are sealed at their places.
    Seal,
}

/// One worker's part of an ordered wire.
pub(crate) struct Ordered {
    wire: Wire,
    lanes: Arc<Lanes>,
    /// The worker's number.
    number: usize,
    in_hand: Option<InHand>,
    /// The most frames that each port handed over at once so far: a port that hands over fewer has no more.
    most: [usize; 2],
    /// The owner of each frame of a burst.
    owners: Vec<usize>,
}

impl Lanes {
    /// Makes the lanes of workers that share frames out in this way, for two ports of which some may have envelopes.
    pub(crate) fn new(steering: &Steering, have_envelopes: [bool; 2]) -> Self {
        let workers = steering.workers();
        let parts = if steering.couples() { workers } else { 1 };
        let shape = |work| match work {
            Work::Evaluate if parts > 1 => (ROOM, READY, parts),
            Work::Decipher | Work::Evaluate => (ROOM.max(2 * READY * workers), READY * workers, 1),
            // What is sealed already holds memory of the tunnel's until it leaves.
            Work::Seal => (SEALED.max(READY * workers), READY * workers, 1),
        };
        let lane = |work| {
            let (room, ready, parts) = shape(work);
            Lane::new(Shape { room, ready, flood: FLOOD, parts, patience: PATIENCE })
        };
        let direction = |[comes, leaves]: [bool; 2]| {
            let works = [(Work::Decipher, comes), (Work::Evaluate, true), (Work::Seal, leaves)];
            let works = works.into_iter().filter(|(_, is_done)| *is_done);
            let lanes = works.map(|(work, _)| (work, lane(work))).collect();
            Direction { lanes, number: AtomicU64::new(0) }
        };
        let [first, second] = have_envelopes;
        Self {
            directions: [direction([first, second]), direction([second, first])],
            steering: steering.clone(),
            start: Instant::now(),
            called: AtomicU64::new(0),
        }
    }

    /// The queue of the frames that an end received.
    pub(crate) fn queue(&self, from: usize) -> Queue {
        let mut queue = Queue::default();
        for (_, lane) in &self.directions[from].lanes {
            let Backlog { batches, held, released, stayed, overdue } = lane.backlog();
            queue.bursts += batches;
            queue.held += held;
            queue.room += lane.shape().room;
            // What has passed the last one has left.
            queue.released = released;
            queue.stayed_seconds += stayed.as_secs_f64();
            queue.overdue += overdue;
        }
        queue
    }
}

impl Ordered {
    pub(crate) fn new(wire: Wire, lanes: &Arc<Lanes>, number: usize) -> Self {
        Self {
            wire,
            lanes: Arc::clone(lanes),
            number,
            in_hand: None,
            most: [0; 2],
            owners: Vec::new(),
        }
    }

    /// Whether any worker has bursts between staging and release.
    pub(crate) fn has_bursts(&self) -> bool {
        let mut lanes = self.lanes.directions.iter().flat_map(|direction| &direction.lanes);
        lanes.any(|(_, lane)| !lane.is_empty())
    }

    /// Whether this worker wakes up when frames come: the first one always does, and the others after times in which there
    /// was work for them. Else a frame now and then would wake them all for nothing; the first one calls them.
    pub(crate) fn watches(&self, now: u64) -> bool {
        let called = self.lanes.called.load(Ordering::Relaxed);
        self.number == 0 || now.saturating_sub(called) < LULL.as_nanos() as u64
    }

    /// How to wait for frames on the ports; see [`Wire::readiness`].
    pub(crate) fn readiness(&self) -> [Readiness<'_>; 2] {
        self.wire.readiness()
    }

    /// Makes the ports send all that they took; see [`Wire::flush`].
    pub(crate) fn flush(&mut self) -> Result<(), PortError> {
        self.wire.flush()
    }

    /// Gives up what this worker has in hand.
    pub(crate) fn abandon(&mut self, reason: Reason) {
        if let Some(in_hand) = self.in_hand.take() {
            self.wire.count_unopened();
            in_hand.drop_as(reason, &self.wire);
        }
        self.wire.clear();
    }
}
