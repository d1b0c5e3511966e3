//! A worker: takes the frames of its wires from port to port, each burst to its end, and sleeps while there are none.
//!
//! Contract: one thread's own; what it shares with others is [`Shared`]. It stops receiving once it is told to and its
//! ports have nothing more, or [`DRAIN`] after that; or once all its ports have ended, which those of captures do. Then it
//! takes over what others still give it, and ends when none of them has anything more ([`Phase`]). A panic over a burst costs that
//! burst: it is caught and told, and from then on no worker evaluates anything, and all frames are dropped or all leave,
//! as configured. A second one of the same worker, or a port that fails, ends the run: all workers stop.

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

use super::account::Reason;
use super::clock::now;
use super::config::{OnPanic, Side};
use super::handed::Handed;
use super::handover::Handover;
use super::middlebox::{Middlebox, Waiting, WorkerRing};
use super::ordered::Ordered;
use super::shadow::Shade;
use super::shared::{Phase, Shared};
use super::talkers::Sampler;
use super::wire::{Means, Mode, Wire};
use crate::publish;

/// How long frames are still taken that come after it is told to stop.
pub const DRAIN: Duration = Duration::from_millis(200);

/// Frames that a worker takes back from its middlebox in a turn, at most.
const TAKEN_BACK: usize = 256;

/// How often a worker looks after bursts that others have.
const LOOK: Duration = Duration::from_millis(1);

/// Drives its queues of all ports.
pub(super) struct Worker {
    pub(super) number: usize,
    pub(super) wires: Vec<Wire>,
    /// Those that keep the order of all their frames.
    pub(super) ordered: Vec<Ordered>,
    pub(super) rules: publish::Worker,
    pub(super) shade: Shade,
    pub(super) handover: Handover,
    pub(super) sampler: Sampler,
    pub(super) on_panic: OnPanic,
    pub(super) shared: Arc<Shared>,
    /// Of its parker.
    pub(super) waker: Waker,
    pub(super) stage: Stage,
    /// What others gave it, under way.
    pub(super) taken: VecDeque<Handed>,
    /// Who sees its frames, unless that is whoever polls it.
    pub(super) middlebox: Option<Box<dyn Middlebox>>,
    /// The way to who polls it, and back.
    pub(super) ring: Option<Box<WorkerRing>>,
}

/// How far a worker is with its life.
#[derive(Debug, Default)]
pub(super) struct Stage {
    phase: Phase,
    /// When it stops receiving at the latest: it was told to stop.
    until: Option<Instant>,
    /// That is over.
    is_late: bool,
    has_panicked: bool,
    failed: Option<Failed>,
}

/// Whether there are more steps after one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Goes,
    Ended,
}

/// How a worker ended, and the connections that it leaves.
pub(super) type Left = (Result<(), Failed>, Listing);

/// Why a worker ended before it was told to.
#[derive(Debug)]
pub(super) enum Failed {
    Port(PortError),
    /// A second time; the worker's number.
    Panicked(usize),
    /// Whoever hosted it let it go before its end; the worker's number.
    Abandoned(usize),
}

impl Worker {
    /// Takes frames on their way until it is told to stop, and sees them out.
    pub(super) fn run(&mut self) -> Result<(), Failed> {
        while self.step(None) == Step::Goes {}
        self.see_out()
    }

    /// Sees to it that nothing is held back once the last step is taken: how it ended.
    pub(super) fn see_out(&mut self) -> Result<(), Failed> {
        let ended = self.stage.failed.take().map_or(Ok(()), Err);
        let flushed = self.wires.iter_mut().try_for_each(Wire::flush);
        let ordered = self.ordered.iter_mut().try_for_each(Ordered::flush);
        ended.and(flushed.and(ordered).map_err(Failed::Port))
    }

    /// One turn, and sleep for at most `most` if there is nothing to do.
    pub(super) fn step(&mut self, most: Option<Duration>) -> Step {
        // Looked at before the turn, which so sees all that others gave before they got as far.
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

    /// So many frames went on their way, unless it panicked over them, or a port failed.
    fn caught(&mut self, way: impl FnOnce(&mut Self) -> Result<usize, PortError>) -> usize {
        match catch_unwind(AssertUnwindSafe(|| way(self))) {
            Ok(Ok(frames)) => frames,
            Ok(Err(error)) => self.fail(Failed::Port(error)),
            Err(_) => self.panicked(),
        }
    }

    /// What it is asked, one burst from each port of all wires, and what others gave it: how many frames there were.
    fn turn(&mut self) -> Result<usize, PortError> {
        self.shared.seat(self.number).questions.answer(&mut self.rules);
        let mode = self.mode();
        let Self { rules, shade, sampler, handover, shared, wires, ordered, taken, stage, .. } =
            self;
        let (middlebox, ring) = (&mut self.middlebox, &mut self.ring);
        let now = now();
        shade.turns();
        let causes = &shared.causes;
        let holds = false;
        let mut means = Means { rules, causes, shade, handover, sampler, mode, holds, now };
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
        while let Some(Handed { wire, from, is_placed, .. }) = taken.front() {
            let (wire, from, is_placed) = (*wire, *from, *is_placed);
            let is_next = |handed: &Handed| {
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
        means.shade.turned(now, frames);
        if let (Some(middlebox), 0) = (middlebox, frames) {
            middlebox.idle(now);
        }
        shared.seat(self.number).holds(rules.state().flows());
        if let Some(ring) = ring {
            ring.wake();
            shared.seat(self.number).has_away(ring.away());
        }
        Ok(frames + came_back)
    }

    /// The frames that wait for whoever polls it, by wire and end.
    pub(super) fn waiting(&mut self) -> impl Iterator<Item = &mut Waiting> {
        self.wires.iter_mut().flat_map(Wire::waiting)
    }

    /// Has what waited go on as its verdicts say.
    pub(super) fn carry_out(&mut self) {
        self.caught(|worker| {
            let mode = worker.mode();
            let Self { rules, shade, sampler, handover, shared, wires, .. } = worker;
            let (causes, now) = (&shared.causes, now());
            let holds = false;
            let mut means = Means { rules, causes, shade, handover, sampler, mode, holds, now };
            wires.iter_mut().try_for_each(|wire| wire.carry_out(&mut means))?;
            means.handover.release(false);
            means.handover.wake();
            Ok(0)
        });
    }

    /// Goes on as one that panicked for a second time does: whoever polled it is no more.
    pub(super) fn gives_up(&mut self) {
        self.shared.panics(self.number);
        self.fail(Failed::Abandoned(self.number));
    }

    /// What becomes of frames now.
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
        // Whoever sleeps is to know.
        self.shared.wake_all();
        1
    }

    /// Goes no further, but takes what others give it until they have stopped, too.
    fn fail(&mut self, failed: Failed) -> usize {
        self.abandon(failed.reason());
        self.stage.failed.get_or_insert(failed);
        self.shared.stop();
        self.go_on_to(Phase::Gives);
        0
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
        for Handed { wire, from, frame, .. } in self.taken.drain(..) {
            if let Some(wire) = self.wires.get_mut(usize::from(wire)) {
                wire.drop_handed(usize::from(from), reason, Some(&frame));
            }
        }
    }

    /// Takes note of being told to stop. Before a turn, so that one in which nothing came has looked for whatever came
    /// before that.
    fn note_stop(&mut self) {
        if self.stage.until.is_none() && self.shared.is_stopping() {
            self.stage.until = Some(Instant::now() + DRAIN);
        }
    }

    /// Whether it receives nothing more, where so many frames were received last.
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

    /// Whether frames of its wires are at whoever polls it by a ring.
    fn waits_for_verdicts(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| !ring.is_empty())
    }

    /// Waits for frames, or for somebody who wakes it, for at most `most`.
    fn sleep(&self, most: Option<Duration>) {
        let mut descriptors: SmallVec<[BorrowedFd<'_>; 8]> = SmallVec::new();
        // Another worker's burst may have to be given up.
        let look = self.has_bursts().then_some(LOOK);
        let mut most = sooner(most, look);
        let mut is_awake = false;
        let holds = self.ring.as_ref().is_some_and(|ring| ring.holds());
        for ready in self.readiness().filter(|_| self.stage.phase == Phase::Receives) {
            match ready {
                Readiness::Never => {}
                Readiness::Always => is_awake |= !holds,
                Readiness::After(wait) => most = sooner(most, Some(wait)),
                Readiness::Bell(bell) => is_awake |= bell.wakes(&self.waker),
                Readiness::Descriptor(descriptor) => descriptors.push(descriptor),
            }
        }
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
    means: &mut Means<'_>,
) -> Result<(), PortError> {
    let Some(middlebox) = middlebox else { return Ok(()) };
    wires.iter_mut().try_for_each(|wire| wire.show(side, &mut **middlebox, means))
}

/// Gives the frames of all wires on this side of the rules to whoever polls, if that is by a ring.
fn give(ring: &mut Option<Box<WorkerRing>>, side: Side, wires: &mut [Wire], now: u64) {
    if let Some(ring) = ring {
        wires.iter_mut().for_each(|wire| wire.give(side, ring, now));
    }
}

/// Has frames go on that come back by a ring: how many. What was held is given as far as there is room then.
fn take_back(
    ring: &mut Option<Box<WorkerRing>>,
    wires: &mut [Wire],
    means: &mut Means<'_>,
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

/// The shorter of two waits, where nothing is as long as it takes.
fn sooner(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// A worker that is no more holds nobody up, however it ended.
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
    /// Why frames are dropped from then on.
    fn reason(&self) -> Reason {
        match self {
            Self::Port(_) => Reason::Device,
            Self::Panicked(_) | Self::Abandoned(_) => Reason::Panic,
        }
    }
}
