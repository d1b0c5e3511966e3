//! Wires that keep the order of all their frames while several workers evaluate them: the scheme of
//! [`crate::forward::reorder`], for bursts.
//!
//! Contract: each direction has one [`Lane`]. Frames leave through the other port in the order of their arrival, with
//! replies through the port of arrival; frames that a rule made take the place of the frame that they replace. A burst is
//! that of the worker that received it, from its envelopes to its envelopes: so it stays in one processor's caches. Under
//! rules whose packets depend on no others, it is evaluated by that worker, while others evaluate others. Else workers
//! take turns ([`Steering::takes_turns`]): bursts meet the rules one by one, in the order of their arrival, as one worker
//! receives them, or, if they have to be opened before, as one worker sends them.
//! If one burst holds all others up, a live port's frames are received and dropped as `queue`, a burst in a
//! worker's turn, so that what waits is never old; a capture waits, and so does what is for envelopes or came in some: in
//! the kernel. A burst that a worker keeps longer than [`PATIENCE`]
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
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use pktio::{PortError, Readiness};

use self::frames::Frames;
use self::in_hand::InHand;
use crate::answers::Queue;
use crate::forward::account::Reason;
use crate::forward::reorder::{Backlog, Lane, Shape};
use crate::forward::steering::Steering;
use crate::forward::wire::Wire;

/// Bursts between their staging and release, at most, for each direction: while a worker has a whole burst, others may
/// have finished many small ones.
const ROOM: usize = 64;

/// Bursts besides one for each worker where frames have envelopes. What a worker makes of a burst lies in memory of its
/// own, of which there is little; and the counters of sealed datagrams are given as they are sealed, and must not be further
/// apart when they leave than a receiver remembers.
const SEALED: usize = 2;

/// How long a worker may have a burst.
const PATIENCE: Duration = Duration::from_secs(1);

/// The lanes of both directions of an ordered wire, which its workers share.
#[derive(Debug)]
pub(crate) struct Lanes {
    directions: [CachePadded<Lane<Frames>>; 2],
    /// Whether workers take turns at the rules.
    takes_turns: bool,
    /// The moment 0 of its clock.
    start: Instant,
}

/// One worker's part of an ordered wire.
pub(crate) struct Ordered {
    wire: Wire,
    lanes: Arc<Lanes>,
    in_hand: Option<InHand>,
    /// The most frames that each port handed over at once so far: a port that hands over fewer has no more.
    most: [usize; 2],
}

impl Lanes {
    /// Makes the lanes of these workers, between ports of which one has envelopes or none.
    pub(crate) fn new(steering: &Steering, has_envelopes: bool) -> Self {
        let workers = steering.workers();
        let room = if has_envelopes { workers + SEALED } else { ROOM.max(2 * workers) };
        let shape = Shape { room, patience: PATIENCE };
        Self {
            directions: [(), ()].map(|()| CachePadded::new(Lane::new(shape))),
            takes_turns: steering.takes_turns(),
            start: Instant::now(),
        }
    }

    /// The queue of the frames that an end received.
    pub(crate) fn queue(&self, from: usize) -> Queue {
        let lane = &self.directions[from];
        let Backlog { batches, held, released, stayed, overdue } = lane.backlog();
        let (room, stayed_seconds) = (lane.shape().room, stayed.as_secs_f64());
        Queue { bursts: batches, held, room, released, stayed_seconds, overdue }
    }
}

impl Ordered {
    pub(crate) fn new(wire: Wire, lanes: &Arc<Lanes>) -> Self {
        Self { wire, lanes: Arc::clone(lanes), in_hand: None, most: [0; 2] }
    }

    /// Whether any worker has bursts between staging and release.
    pub(crate) fn has_bursts(&self) -> bool {
        self.lanes.directions.iter().any(|lane| !lane.is_empty())
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
