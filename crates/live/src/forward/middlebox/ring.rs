//! A ring between a worker and its poller, the program part that polls it: the worker goes on while its middlebox is
//! slow, and takes frames back with their verdicts as they come.
//!
//! Contract: [`WorkerRing`] is the worker's end, [`PollerRing`] the other. At most `room` frames are at the middlebox,
//! from being given to being taken back: each of both rings has room for all of them, so that neither end ever waits
//! for the other. Frames that find no room are dropped, except frames that must not be lost, such as a capture's: they
//! are held, and nothing more is received until they have left. All frames keep their order. Dropping an end wakes the
//! other one, which finds nothing more to come once it has taken what was there. The rings are `rtrb`'s.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::task::Waker;
use std::time::{Duration, Instant};

use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::away::Away;
use super::descriptor::Descriptor;
use super::shown::{Polled, show, take_back};
use super::waiting::Waiting;
use crate::forward::parker::Parker;

/// The worker's end.
#[derive(Debug)]
pub(crate) struct WorkerRing {
    to: Producer<Away>,
    back: Consumer<Away>,
    /// Frames that may be at the middlebox.
    room: usize,
    /// The number of frames that are there, of each direction of each wire, and of all.
    away: Vec<[usize; 2]>,
    all_away: usize,
    /// Frames that wait for room, in order.
    held: VecDeque<Away>,
    has_new: bool,
    /// Whether it is known and reported that the poller has ended.
    is_forsaken: bool,
    poller: Rouses,
}

/// The poller's end.
#[derive(Debug)]
pub(super) struct PollerRing {
    to: Consumer<Away>,
    back: Producer<Away>,
    /// Frames that were taken, in runs of the same direction.
    runs: Vec<Waiting>,
    /// The number of runs that have frames.
    used: usize,
    parker: Arc<Parker>,
    worker: Rouses,
}

/// Wakes the other end, also when this end is dropped; so it is the last part of an end to be dropped.
#[derive(Debug)]
struct Rouses(Waker);

impl Drop for Rouses {
    fn drop(&mut self) {
        self.0.wake_by_ref();
    }
}

/// Both ends of a ring for `room` frames, between a worker of `wires` wires and its poller.
///
/// # Errors
/// The machine has no descriptors left.
pub(super) fn ring(
    room: usize,
    wires: usize,
    worker: Waker,
) -> io::Result<(WorkerRing, PollerRing)> {
    let parker = Arc::new(Parker::new()?);
    let (to, taken) = RingBuffer::new(room);
    let (given, back) = RingBuffer::new(room);
    let (poller, worker) = (Rouses(Waker::from(Arc::clone(&parker))), Rouses(worker));
    let (away, held) = (vec![[0; 2]; wires], VecDeque::new());
    let (all_away, has_new, is_forsaken) = (0, false, false);
    Ok((
        WorkerRing { to, back, room, away, all_away, held, has_new, is_forsaken, poller },
        PollerRing { to: taken, back: given, runs: Vec::new(), used: 0, parker, worker },
    ))
}

impl WorkerRing {
    /// Gives a frame to the middlebox; returns it where there is no room, unless the frame `waits` for that.
    pub(crate) fn give(&mut self, away: Away, waits: bool) -> Option<Away> {
        let refused = if self.held.is_empty() { self.push(away)? } else { away };
        if !waits {
            return Some(refused);
        }
        self.held.push_back(refused);
        None
    }

    /// Returns the frame if there is no room for it.
    fn push(&mut self, away: Away) -> Option<Away> {
        if self.all_away == self.room {
            return Some(away);
        }
        let (wire, from) = (usize::from(away.wire), usize::from(away.from));
        match self.to.push(away) {
            Ok(()) => {
                self.away[wire][from] += 1;
                self.all_away += 1;
                self.has_new = true;
                None
            }
            Err(PushError::Full(back)) => Some(back),
        }
    }

    /// The direction of the frame that comes back next.
    pub(crate) fn next(&self) -> Option<(u16, u8)> {
        self.back.peek().ok().map(|away| (away.wire, away.from))
    }

    /// The frame that comes back next, with its verdict.
    pub(crate) fn take(&mut self) -> Option<Away> {
        let away = self.back.pop().ok()?;
        self.away[usize::from(away.wire)][usize::from(away.from)] -= 1;
        self.all_away -= 1;
        Some(away)
    }

    /// Gives the frames that were held, as far as there is room now.
    pub(crate) fn give_held(&mut self) {
        while let Some(held) = self.held.pop_front() {
            if let Some(back) = self.push(held) {
                return self.held.push_front(back);
            }
        }
    }

    /// Wakes the poller, if there are frames to be seen.
    pub(crate) fn wake(&mut self) {
        if mem::take(&mut self.has_new) {
            self.poller.0.wake_by_ref();
        }
    }

    /// Frames that are at the middlebox.
    pub(crate) fn away(&self) -> usize {
        self.all_away
    }

    /// Frames of each direction of a wire that are at the middlebox.
    pub(crate) fn away_of(&self, wire: usize) -> [usize; 2] {
        self.away.get(wire).copied().unwrap_or_default()
    }

    /// Whether frames wait for room.
    pub(crate) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether no frame is at the middlebox, or waits to be.
    pub(crate) fn is_empty(&self) -> bool {
        self.all_away == 0 && self.held.is_empty()
    }

    /// Drops the frames that wait for room. The poller has the others.
    pub(crate) fn abandon(&mut self) {
        self.held.clear();
        self.wake();
    }

    /// Whether the poller has ended; true once, after every frame that will return has returned: other frames are not
    /// away any more.
    pub(crate) fn is_forsaken(&mut self) -> bool {
        let is_news = !self.is_forsaken && self.to.is_abandoned() && {
            // What was given back before is seen after this.
            fence(Ordering::Acquire);
            self.back.is_empty()
        };
        if is_news {
            self.is_forsaken = true;
            self.away.fill([0; 2]);
            self.all_away = 0;
        }
        is_news
    }
}

impl PollerRing {
    /// Gives back the frames of these descriptors with their verdicts, and shows others: returns their number, or that
    /// none came within `timeout`.
    pub(super) fn poll(
        &mut self,
        shown: usize,
        descriptors: &mut [Descriptor],
        timeout: Duration,
    ) -> Polled {
        if shown > 0 {
            self.give_back(&descriptors[..shown]);
        }
        let mut until = None;
        loop {
            match self.show(descriptors) {
                0 if self.has_ended() => return Polled::Ended,
                0 => {}
                shown => return Polled::Frames(shown),
            }
            let now = Instant::now();
            let left = until.get_or_insert_with(|| now + timeout).saturating_duration_since(now);
            if left.is_zero() {
                return Polled::Idle;
            }
            self.parker.park(&[], Some(left));
        }
    }

    /// Takes as many frames as there is room for, and shows them.
    fn show(&mut self, descriptors: &mut [Descriptor]) -> usize {
        for _ in 0..descriptors.len() {
            let Ok(away) = self.to.pop() else { break };
            self.run_of(&away).push(away);
        }
        show(self.runs[..self.used].iter_mut(), descriptors)
    }

    /// The run that takes a frame which comes after the frames before it.
    fn run_of(&mut self, away: &Away) -> &mut Waiting {
        let last = self.used.checked_sub(1);
        if !last.is_some_and(|last| self.runs[last].is_of(away)) {
            if self.used == self.runs.len() {
                self.runs.push(Waiting::without_buffer());
            }
            self.runs[self.used].turn_to(away);
            self.used += 1;
        }
        &mut self.runs[self.used - 1]
    }

    fn give_back(&mut self, descriptors: &[Descriptor]) {
        let runs = &mut self.runs[..mem::take(&mut self.used)];
        take_back(runs.iter_mut(), descriptors);
        for run in runs {
            for away in run.leave() {
                let pushed = self.back.push(away);
                debug_assert!(pushed.is_ok(), "there is room for all that are away");
            }
            run.clear();
        }
        self.worker.0.wake_by_ref();
    }

    /// Whether the worker has ended, and all that it gave was seen.
    fn has_ended(&self) -> bool {
        self.to.is_abandoned() && {
            // What it gave before is seen after this.
            fence(Ordering::Acquire);
            self.to.is_empty()
        }
    }
}
