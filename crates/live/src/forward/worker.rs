//! A worker: takes the frames of its wires from port to port, each burst to its end, and sleeps while there are none.
//!
//! Contract: one thread's own; what it shares with others is [`WorkerSlots`]. It stops receiving once it was asked to
//! stop and its ports have nothing more, or [`DRAIN`] after the request; or once all its ports have ended, as captures
//! do. Then it takes over what others still give it, and ends when none of them has anything more ([`Phase`]). A panic
//! over a burst costs that burst: it is caught and logged, and from then on no worker evaluates anything, and all
//! frames are dropped or all leave, as configured. A second panic of the same worker, or a port that fails, ends the
//! run: all workers stop.

use std::collections::VecDeque;
use std::iter;
use std::mem;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use conntrack::Listing;
use pktio::{PortError, Readiness};
use smallvec::SmallVec;

use crate::config::{OnPanic, Side};
use crate::forward::account::Reason;
use crate::forward::clock::now;
use crate::forward::evaluator::EvaluatorHandle;
use crate::forward::handover::Handover;
use crate::forward::handover_frame::HandoverFrame;
use crate::forward::middlebox::{Middlebox, Waiting, WorkerRing};
use crate::forward::ordered::Ordered;
use crate::forward::slots::{Phase, WorkerSlots};
use crate::forward::talkers::Sampler;
use crate::forward::wire::{Mode, Turn, Wire};

/// How long frames are still received after a request to stop.
pub const DRAIN: Duration = Duration::from_millis(200);

/// Frames that a worker takes back from its middlebox in a turn, at most.
const TAKEN_BACK: usize = 256;

/// How often a worker checks bursts that other workers have.
const LOOK: Duration = Duration::from_millis(1);

/// Drives its queues of all ports.
pub(crate) struct Worker {
    pub(crate) number: usize,
    pub(crate) wires: Vec<Wire>,
    /// The wires that keep the order of all their frames.
    pub(crate) ordered: Vec<Ordered>,
    pub(crate) evaluator: EvaluatorHandle,
    /// Whether it answers for the evaluator: it has its own, or is the first worker.
    pub(crate) answers: bool,
    pub(crate) handover: Handover,
    pub(crate) sampler: Sampler,
    pub(crate) on_panic: OnPanic,
    pub(crate) shared: Arc<WorkerSlots>,
    /// The waker of its parker.
    pub(crate) waker: Waker,
    pub(crate) stage: Stage,
    /// Frames that others gave it, while it processes them.
    pub(crate) taken: VecDeque<HandoverFrame>,
    /// The middlebox that sees its frames, unless a poller does.
    pub(crate) middlebox: Option<Box<dyn Middlebox>>,
    /// The ring to its poller, and back.
    pub(crate) ring: Option<Box<WorkerRing>>,
}

/// How far a worker's life has got.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    phase: Phase,
    /// When it stops receiving at the latest, once it was asked to stop.
    until: Option<Instant>,
    /// Whether that time has passed.
    is_late: bool,
    has_panicked: bool,
    failed: Option<Failed>,
}

/// Whether there are more steps after one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Goes,
    Ended,
}

/// How a worker ended, and the connections that it leaves.
pub(crate) type Left = (Result<(), Failed>, Listing);

/// Why a worker ended without a request to stop.
#[derive(Debug)]
pub(crate) enum Failed {
    Port(PortError),
    /// A second panic; the worker's number.
    Panicked(usize),
    /// The program that polled the worker dropped it before its end; the worker's number.
    Abandoned(usize),
}

impl Worker {
    /// Processes frames until it is asked to stop, and sees the last ones out.
    pub(crate) fn run(&mut self) -> Result<(), Failed> {
        while self.step(None) == Step::Goes {}
        self.see_out()
    }

    /// Makes all ports send what they hold once the last step is taken; returns how the worker ended.
    pub(crate) fn see_out(&mut self) -> Result<(), Failed> {
        let ended = self.stage.failed.take().map_or(Ok(()), Err);
        let flushed = self.wires.iter_mut().try_for_each(Wire::flush);
        let ordered = self.ordered.iter_mut().try_for_each(Ordered::flush);
        ended.and(flushed.and(ordered).map_err(Failed::Port))
    }

    /// Takes one turn, and sleeps for at most `most` if there is nothing to do.
    pub(crate) fn step(&mut self, most: Option<Duration>) -> Step {
        // Read before the turn, which so sees all that others gave before they got as far.
        let are_all_as_far = self.shared.have_all_reached(self.stage.phase);
        self.note_stop();
        self.shared.seat(self.number).beat();
        let frames = self.caught(Self::turn);
        if self.ring.as_mut().is_some_and(|ring| ring.is_forsaken()) {
            self.gives_up();
        }
        let is_over = self.is_to_stop(frames);
        match self.stage.phase {
            Phase::Receives if is_over => self.go_on_to(Phase::Gives),
            _ if frames > 0 => {}
            _ if self.has_bursts() || self.waits_for_verdicts() => self.sleep(most),
            Phase::Gives if are_all_as_far => {
                self.handover.give_up();
                self.go_on_to(Phase::Takes);
            }
            Phase::Takes if are_all_as_far => return Step::Ended,
            _ => self.sleep(most),
        }
        Step::Goes
    }

    /// Processes frames and returns their number; handles a panic over them, and a port that failed.
    fn caught(&mut self, way: impl FnOnce(&mut Self) -> Result<usize, PortError>) -> usize {
        match catch_unwind(AssertUnwindSafe(|| way(self))) {
            Ok(Ok(frames)) => frames,
            Ok(Err(error)) => self.fail(Failed::Port(error)),
            Err(_) => self.panicked(),
        }
    }

    /// Answers requests, processes one burst of each port of all wires, and what others gave; returns the number of
    /// frames.
    fn turn(&mut self) -> Result<usize, PortError> {
        self.shared.seat(self.number).questions.answer(&self.evaluator);
        let mode = self.mode();
        let Self { evaluator, sampler, handover, shared, wires, ordered, taken, stage, .. } = self;
        let (middlebox, ring) = (&mut self.middlebox, &mut self.ring);
        let now = now();
        if let Some(mut evaluator) = evaluator.if_free() {
            evaluator.shade.turns();
        }
        let causes = &shared.causes;
        let holds = false;
        let mut means = Turn { evaluator, causes, handover, sampler, mode, holds, now };
        let came_back = take_back(ring, wires, &mut means)?;
        let mut frames = 0;
        if stage.phase == Phase::Receives && !stage.is_late {
            for wire in &mut *wires {
                frames += wire.turn(&mut means)?;
            }
        }
        let receives = stage.phase == Phase::Receives;
        for ordered in ordered {
            frames += usize::from(ordered.turn(receives, &mut means, &|| shared.wake_all())?);
        }
        show(middlebox, Side::Before, wires, &mut means)?;
        give(ring, Side::Before, wires, now);
        means.handover.release(false);
        shared.seat(self.number).has_waiting(means.handover.waiting());
        if !means.holds {
            means.handover.take(taken);
        }
        frames += taken.len();
        while let Some(HandoverFrame { wire, from, is_placed, .. }) = taken.front() {
            let (wire, from, is_placed) = (*wire, *from, *is_placed);
            let is_next = |handed: &HandoverFrame| {
                (handed.wire, handed.from, handed.is_placed) == (wire, from, is_placed)
            };
            let some = iter::from_fn(|| Some(taken.pop_front_if(|handed| is_next(handed))?.frame));
            let Some(wire) = wires.get_mut(usize::from(wire)) else { continue };
            wire.take_over(usize::from(from), some, is_placed, &mut means)?;
        }
        show(middlebox, Side::After, wires, &mut means)?;
        give(ring, Side::After, wires, now);
        for (wire, from) in means.handover.dropped() {
            wires[usize::from(wire)].drop_held(usize::from(from));
        }
        means.handover.wake();
        if let Some(mut evaluator) = evaluator.if_free() {
            evaluator.shade.turned(now, frames);
            let flows = if self.answers { evaluator.rules.state().flows() } else { 0 };
            shared.seat(self.number).holds(flows);
        }
        if let (Some(middlebox), 0) = (middlebox, frames) {
            middlebox.idle(now);
        }
        if let Some(ring) = ring {
            ring.wake();
            shared.seat(self.number).has_away(ring.away());
        }
        Ok(frames + came_back)
    }

    /// The frames that wait for the poller, by wire and end.
    pub(crate) fn waiting(&mut self) -> impl Iterator<Item = &mut Waiting> {
        self.wires.iter_mut().flat_map(Wire::waiting)
    }

    /// Carries out the verdicts of the frames that waited.
    pub(crate) fn carry_out(&mut self) {
        self.caught(|worker| {
            let mode = worker.mode();
            let Self { evaluator, sampler, handover, shared, wires, .. } = worker;
            let (causes, now) = (&shared.causes, now());
            let holds = false;
            let mut means = Turn { evaluator, causes, handover, sampler, mode, holds, now };
            wires.iter_mut().try_for_each(|wire| wire.carry_out(&mut means))?;
            means.handover.release(false);
            means.handover.wake();
            Ok(0)
        });
    }

    /// Fails as after a second panic: the poller has ended.
    pub(crate) fn gives_up(&mut self) {
        self.shared.panics(self.number);
        self.fail(Failed::Abandoned(self.number));
    }

    /// The treatment of frames now.
    fn mode(&self) -> Mode {
        match (&self.stage.failed, self.on_panic) {
            (Some(failed), _) => Mode::Dropped(failed.reason()),
            (None, _) if !self.shared.has_panicked() => Mode::Evaluated,
            (None, OnPanic::Open) => Mode::Open,
            (None, OnPanic::Closed) => Mode::Dropped(Reason::Panic),
        }
    }

    fn panicked(&mut self) -> usize {
        let is_second = mem::replace(&mut self.stage.has_panicked, true);
        self.shared.panics(self.number);
        if is_second {
            return self.fail(Failed::Panicked(self.number));
        }
        self.abandon(Reason::Panic);
        // Sleeping workers must learn of it.
        self.shared.wake_all();
        1
    }

    /// Processes nothing more, but takes what others give until they have stopped, too.
    fn fail(&mut self, failed: Failed) -> usize {
        self.abandon(failed.reason());
        self.stage.failed.get_or_insert(failed);
        self.shared.stop();
        self.go_on_to(Phase::Gives);
        0
    }

    /// The connections that it leaves, if they are to be kept.
    pub(crate) fn left(&self, keeps: bool) -> Listing {
        match keeps && self.answers {
            true => self.evaluator.lock().rules.connections(),
            false => Listing::default(),
        }
    }

    /// Gives up all frames that are on their way.
    fn abandon(&mut self, reason: Reason) {
        if let Some(ring) = &mut self.ring {
            ring.abandon();
        }
        for (number, wire) in self.wires.iter_mut().enumerate() {
            let away = self.ring.as_ref().map(|ring| ring.away_of(number));
            wire.abandon(reason, away.unwrap_or_default());
        }
        self.ordered.iter_mut().for_each(|ordered| ordered.abandon(reason));
        for HandoverFrame { wire, from, frame, .. } in self.taken.drain(..) {
            if let Some(wire) = self.wires.get_mut(usize::from(wire)) {
                wire.drop_handed(usize::from(from), reason, Some(&frame));
            }
        }
    }

    /// Notes a request to stop. Before a turn, so that a turn in which nothing came has looked for whatever came before
    /// the request.
    fn note_stop(&mut self) {
        if self.stage.until.is_none() && self.shared.is_stopping() {
            self.stage.until = Some(Instant::now() + DRAIN);
        }
    }

    /// Whether it receives nothing more, given the number of frames received last.
    fn is_to_stop(&mut self, frames: usize) -> bool {
        let is_idle = frames == 0 && !self.has_bursts() && !self.waits_for_verdicts();
        match self.stage.until {
            Some(until) => {
                self.stage.is_late |= Instant::now() >= until;
                is_idle || (self.stage.is_late && !self.waits_for_verdicts())
            }
            None => is_idle && self.ports_have_ended(),
        }
    }

    fn go_on_to(&mut self, phase: Phase) {
        while self.stage.phase < phase {
            self.shared.leaves(self.stage.phase);
            self.stage.phase = self.stage.phase.next();
        }
    }

    fn ports_have_ended(&self) -> bool {
        self.readiness().all(|ready| matches!(ready, Readiness::Never))
    }

    fn readiness(&self) -> impl Iterator<Item = Readiness<'_>> {
        let ordered = self.ordered.iter().flat_map(Ordered::readiness);
        self.wires.iter().flat_map(Wire::readiness).chain(ordered)
    }

    /// Whether bursts of its wires wait for another worker.
    fn has_bursts(&self) -> bool {
        self.ordered.iter().any(Ordered::has_bursts)
    }

    /// Whether frames of its wires are at a poller behind a ring.
    fn waits_for_verdicts(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| !ring.is_empty())
    }

    /// Waits for frames or for a wake-up, for at most `most`.
    fn sleep(&self, most: Option<Duration>) {
        let mut descriptors: SmallVec<[BorrowedFd<'_>; 8]> = SmallVec::new();
        // Another worker's burst may have to be given up.
        let look = self.has_bursts().then_some(LOOK);
        let mut most = sooner(most, look);
        let mut is_awake = false;
        let receives = self.stage.phase == Phase::Receives;
        // Ports and bursts that it waited for may have ended since it looked, and then nobody wakes it any more.
        let mut have_ended = receives && look.is_none() && !self.waits_for_verdicts();
        let holds = self.ring.as_ref().is_some_and(|ring| ring.holds());
        for ready in self.readiness().filter(|_| receives) {
            have_ended &= matches!(ready, Readiness::Never);
            match ready {
                Readiness::Never => {}
                Readiness::Always => is_awake |= !holds,
                Readiness::After(wait) => most = sooner(most, Some(wait)),
                Readiness::Bell(bell) => is_awake |= bell.wakes(&self.waker),
                Readiness::Descriptor(descriptor) => descriptors.push(descriptor),
            }
        }
        is_awake |= have_ended;
        if !is_awake && most != Some(Duration::ZERO) {
            self.shared.seat(self.number).park(&descriptors, most);
        }
    }
}

/// Shows a middlebox on this side of the rules the frames of all wires, if there is one.
fn show(
    middlebox: &mut Option<Box<dyn Middlebox>>,
    side: Side,
    wires: &mut [Wire],
    means: &mut Turn<'_>,
) -> Result<(), PortError> {
    let Some(middlebox) = middlebox else { return Ok(()) };
    wires.iter_mut().try_for_each(|wire| wire.show(side, &mut **middlebox, means))
}

/// Gives the frames of all wires on this side of the rules to the poller, if there is a ring.
fn give(ring: &mut Option<Box<WorkerRing>>, side: Side, wires: &mut [Wire], now: u64) {
    if let Some(ring) = ring {
        wires.iter_mut().for_each(|wire| wire.give(side, ring, now));
    }
}

/// Takes back frames from a ring and processes them; returns their number. Held frames are given as far as there is
/// room then.
fn take_back(
    ring: &mut Option<Box<WorkerRing>>,
    wires: &mut [Wire],
    means: &mut Turn<'_>,
) -> Result<usize, PortError> {
    let Some(ring) = ring else { return Ok(0) };
    let mut frames = 0;
    while let Some((wire, from)) = ring.next()
        && frames < TAKEN_BACK
        && let Some(crossed) = wires.get_mut(usize::from(wire))
    {
        while ring.next() == Some((wire, from)) && frames < TAKEN_BACK {
            ring.take().into_iter().for_each(|away| crossed.comes_back(away));
            frames += 1;
        }
        crossed.carry_out(means)?;
    }
    ring.give_held();
    means.holds = ring.holds();
    Ok(frames)
}

/// The shorter of two waits; `None` has no limit.
fn sooner(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// Dropping a worker completes its remaining phases, so no other worker waits for it.
impl Drop for Worker {
    fn drop(&mut self) {
        if self.stage.phase != Phase::Takes {
            self.shared.stop();
        }
        self.go_on_to(Phase::Takes);
        self.shared.seat(self.number).ends();
    }
}

impl Failed {
    /// The reason of frames that are dropped from then on.
    fn reason(&self) -> Reason {
        match self {
            Self::Port(_) => Reason::Device,
            Self::Panicked(_) | Self::Abandoned(_) => Reason::Panic,
        }
    }
}
