//! [`Watch`]: whether workers go on. It reports a worker that has panicked, or has not finished a turn for
//! [`PATIENCE`].
//!
//! Contract: the control thread's own. A worker that sleeps is not stuck; a worker that was reported as stuck is
//! reported again when it goes on.

use std::time::{Duration, Instant};

use tracing::info_span;

use crate::answers::panicked;
use crate::forward::slots::{WorkerSlot, WorkerSlots};

/// How long a turn may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// The last sight of each worker.
#[derive(Debug)]
pub(crate) struct Watch {
    workers: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    turns: u64,
    /// When it was first seen at this turn.
    since: Instant,
    is_told_panicked: bool,
}

impl Watch {
    pub(crate) fn new(shared: &WorkerSlots) -> Self {
        let now = Instant::now();
        let watched = |seat: &WorkerSlot| Watched {
            turns: seat.turns(),
            since: now,
            is_told_panicked: false,
        };
        Self { workers: shared.seats().map(watched).collect() }
    }

    /// Reports what is new of any worker.
    pub(crate) fn look(&mut self, shared: &WorkerSlots, tell: &mut impl FnMut(&str)) {
        self.look_at(Instant::now(), shared, tell);
    }

    fn look_at(&mut self, now: Instant, shared: &WorkerSlots, tell: &mut impl FnMut(&str)) {
        for number in shared.panicked() {
            if !std::mem::replace(&mut self.workers[number].is_told_panicked, true) {
                info_span!("worker", worker = number).in_scope(|| tell(&panicked(number)));
            }
        }
        for (number, (watched, seat)) in self.workers.iter_mut().zip(shared.seats()).enumerate() {
            let turns = seat.turns();
            if turns != watched.turns || seat.is_parked() || seat.has_ended() {
                (watched.turns, watched.since) = (turns, now);
            }
            let is_stuck = now.saturating_duration_since(watched.since) >= PATIENCE;
            if is_stuck != seat.is_stuck() {
                seat.set_stuck(is_stuck);
                let what = if is_stuck { "is stuck in its turn" } else { "goes on" };
                info_span!("worker", worker = number)
                    .in_scope(|| tell(&format!("worker {number} {what}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::parker::Parker;
    use std::sync::Arc;

    fn shared(workers: usize) -> WorkerSlots {
        WorkerSlots::new((0..workers).map(|_| Arc::new(Parker::new().unwrap())).collect())
    }

    #[test]
    fn a_worker_whose_turn_does_not_end_is_named_until_it_goes_on() {
        let shared = shared(2);
        let mut watch = Watch::new(&shared);
        let start = Instant::now();
        let mut told = Vec::new();
        let mut look = |after: Duration, told: &mut Vec<String>| {
            watch.look_at(start + after, &shared, &mut |what: &str| told.push(what.to_owned()));
        };
        shared.seat(0).beat();
        look(PATIENCE / 2, &mut told);
        assert!(told.is_empty());
        look(PATIENCE * 4 / 3, &mut told);
        look(PATIENCE * 4 / 3, &mut told);
        assert_eq!(told, ["worker 1 is stuck in its turn"]);
        assert!(shared.seat(1).is_stuck() && !shared.seat(0).is_stuck());
        shared.seat(1).beat();
        shared.seat(0).ends();
        look(PATIENCE * 3, &mut told);
        assert_eq!(told[1..], ["worker 1 goes on"]);
        assert!(!shared.seat(1).is_stuck());
    }

    #[test]
    fn a_panic_is_told_once_and_whose_it_was() {
        let shared = shared(3);
        let mut watch = Watch::new(&shared);
        shared.panics(2);
        let mut told = Vec::new();
        for _ in 0..2 {
            watch.look(&shared, &mut |what: &str| told.push(what.to_owned()));
        }
        assert_eq!(told, ["worker 2 panicked: no rule sees a frame any more"]);
    }
}
