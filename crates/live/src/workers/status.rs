//! The state of a worker, and the frames of a direction ([`Direction`]).

use crate::answers::{Queue, Ring, Wire, Worker, WorkerState};
use crate::forward::account::{Accounted, Reason};
use crate::forward::slots::WorkerSlot;

/// One direction of a wire.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction {
    /// The port of arrival.
    pub from: String,
    /// The output port.
    pub to: String,
    /// The frames of the direction, counted by fate.
    pub frames: Accounted,
    /// The bursts between receiving and sending, where the wire keeps the order of all its frames.
    pub queue: Option<Queue>,
}

/// The state of a worker.
pub(crate) fn of_worker(number: usize, seat: &WorkerSlot, core: Option<usize>) -> Worker {
    let state = match () {
        () if seat.has_ended() => WorkerState::Ended,
        () if seat.is_stuck() => WorkerState::Stuck,
        () if seat.is_parked() => WorkerState::Asleep,
        () => WorkerState::Busy,
    };
    Worker {
        number,
        core,
        state,
        panicked: seat.has_panicked(),
        turns: seat.turns(),
        awake_seconds: seat.awake().as_secs_f64(),
        waiting: seat.waiting(),
        connections: seat.flows(),
        ring: seat.ring().map(|[room, frames, most]| Ring { room, frames, most }),
    }
}

impl Direction {
    /// The direction's part of the answer to `status`.
    pub(crate) fn answer(&self) -> Wire {
        let Accounted { received, taken_over, made, sent, unevaluated, .. } = self.frames;
        let owned = |(name, count): (&str, u64)| (name.to_owned(), count);
        Wire {
            input: self.from.clone(),
            output: self.to.clone(),
            received,
            taken_over,
            made,
            sent,
            unevaluated,
            received_bytes: self.frames.received_bytes,
            sent_bytes: self.frames.sent_bytes,
            verdicts: self.frames.verdicts().into_iter().map(owned).collect(),
            dropped: dropped(&self.frames).map(owned).collect(),
            queue: self.queue,
        }
    }
}

/// The reasons that occurred, with their counts.
fn dropped(frames: &Accounted) -> impl Iterator<Item = (&'static str, u64)> {
    let counts = Reason::ALL.into_iter().map(|reason| (reason.name(), frames.of(reason)));
    counts.filter(|(_, count)| *count > 0)
}
