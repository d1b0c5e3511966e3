//! [`Hand`]: a worker at one lane: how frames get into it, are evaluated, and leave.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use packet::Packet;
use pktio::{Burst, PortError, Readiness};
use smallvec::SmallVec;

use super::frames::{Frames, merge};
use super::in_hand::InHand;
use super::{Ordered, Work};
use crate::forward::account::{Account, Reason};
use crate::forward::fragments::Piece;
use crate::forward::reorder::{Batch, Came, Part, Way};
use crate::forward::steering::{Follows, Steering};
use crate::forward::wire::{Mode, Turn, Wire};

/// A worker's turn at one lane of a direction of a wire.
pub(super) struct Hand<'h, 'm> {
    pub(super) ordered: &'h mut Ordered,
    pub(super) from: usize,
    /// The lane's place among the direction's lanes.
    pub(super) at: usize,
    pub(super) means: &'h mut Turn<'m>,
    /// Wakes the other workers.
    pub(super) wake: &'h dyn Fn(),
}

impl Ordered {
    /// Takes one turn at each lane: returns whether there was something to do. It calls `wake` if something is there
    /// for other workers.
    pub(crate) fn turn(
        &mut self,
        receives: bool,
        means: &mut Turn<'_>,
        wake: &dyn Fn(),
    ) -> Result<bool, PortError> {
        let mut is_busy = false;
        let lanes = Arc::clone(&self.lanes);
        self.wire.tap.begins(means.now);
        for (from, direction) in lanes.directions.iter().enumerate() {
            let number = self.number;
            for (at, (_, lane)) in direction.lanes.iter().enumerate() {
                let mut hand = Hand { ordered: self, from, at, means, wake };
                is_busy |= lane.turn(number, receives || at > 0, &mut hand)?;
            }
        }
        Ok(is_busy)
    }
}

impl Hand<'_, '_> {
    fn wire(&mut self) -> &mut Wire {
        &mut self.ordered.wire
    }

    fn account(&self) -> &Account {
        self.ordered.wire.account(self.from)
    }

    /// Notes that this number of frames are in this worker's hand, until it lets go of them.
    fn takes(&mut self, frames: usize) {
        let before = self.account().on_its_way();
        self.ordered.in_hand = Some(InHand::new(self.from, frames, before));
    }

    /// Drops all frames of a part.
    fn drops(&mut self, reason: Reason, part: &Frames) {
        let from = self.from;
        if part.is_closed {
            self.account().received(part.len());
        }
        self.account().dropped(reason, part.len());
        let Frames { burst, out, back, .. } = part;
        let frames = [burst, out, back].into_iter().flat_map(Burst::iter);
        frames.for_each(|frame| self.wire().tap.dropped(from, reason, Some(frame)));
    }

    fn lets_go(&mut self) {
        self.ordered.in_hand = None;
    }

    /// Receives into the wire's own burst. With `is_closed`, frames stay in their envelopes if they have any; else
    /// `is_closed` is cleared.
    fn receive(&mut self, is_closed: &mut bool) -> Result<Came, PortError> {
        let from = self.from;
        let frames = match *is_closed {
            true => {
                let (frames, closed) = self.wire().receive_closed(from)?;
                *is_closed = closed;
                frames
            }
            false => self.wire().receive(from)?,
        };
        let most = &mut self.ordered.most[from];
        *most = frames.max(*most);
        Ok(Came { frames, is_more: frames > 0 && frames == *most })
    }

    /// Gives the frames that were received to their owners' parts, numbered in their order.
    fn share_out(&mut self, parts: &mut [Frames]) {
        let Self { ordered: Ordered { wire, lanes, owners, number: own, .. }, from, means, .. } =
            self;
        let guard = means.rules.burst();
        wire.find_headers(*from, guard.program());
        drop(guard);
        let (burst, headers) = wire.received(*from);
        let first = &lanes.directions[*from].number;
        // Read by the worker that stages next, after this one.
        let first = first.fetch_add(burst.len() as u64, Ordering::Relaxed);
        burst.metas_mut().zip(first..).for_each(|(meta, number)| meta.number = number);
        owners.clear();
        owners.extend(burst.iter_mut().zip(headers).map(|(frame, found)| match found {
            Some(headers) => owner(&lanes.steering, frame.bytes, headers),
            // The frame cannot be read, or need not be.
            None => *own,
        }));
        for (frame, owner) in burst.drain(usize::MAX).zip(&*owners) {
            if let Some(part) = parts.get_mut(*owner) {
                part.burst.append(frame);
            }
        }
    }

    fn work_here(&self) -> Work {
        self.ordered.lanes.directions[self.from].lanes[self.at].0
    }

    /// Does something with the frames of a part as the wire's own.
    fn with(&mut self, part: &mut Frames, does: impl FnOnce(&mut Wire, usize)) {
        let from = self.from;
        self.wire().exchange(from, part);
        does(self.wire(), from);
        self.wire().exchange(from, part);
    }

    /// Stages what the lane before this one has done.
    fn pull(&mut self, parts: &mut [Frames]) -> Result<Came, PortError> {
        let lanes = Arc::clone(&self.ordered.lanes);
        let before = self.at.checked_sub(1);
        let before = before.and_then(|at| lanes.directions[self.from].lanes.get(at));
        let Some(mut releaser) = before.and_then(|(_, lane)| lane.release()) else {
            return Ok(Came::default());
        };
        let mut frames = 0;
        // A burst may hold nothing for anybody: then the next one is looked at.
        while frames == 0
            && let Some(done) = releaser.next(self.now())
        {
            self.begins(done);
            frames = match self.work_here() {
                Work::Seal => self.stage_to_seal(done, parts),
                Work::Decipher | Work::Evaluate => self.stage_to_evaluate(done, parts),
            };
            self.lets_go();
        }
        Ok(Came { frames, is_more: frames > 0 })
    }

    /// Takes the frames of a deciphered burst out of their envelopes, and shares them out if they have owners.
    fn stage_to_evaluate(&mut self, done: &mut [Part<Frames>], parts: &mut [Frames]) -> usize {
        let Some(done) = done.iter_mut().find_map(self::done) else { return 0 };
        self.with(done, |wire, from| wire.release(from));
        done.is_closed = false;
        let frames = done.len();
        match parts {
            [all] => mem::swap(all, done),
            parts => {
                let from = self.from;
                self.wire().exchange(from, done);
                self.share_out(parts);
                self.wire().exchange(from, done);
            }
        }
        frames
    }

    /// Puts the parts of an evaluated burst together, and gives its frames their places.
    fn stage_to_seal(&mut self, done: &mut [Part<Frames>], parts: &mut [Frames]) -> usize {
        let [all] = parts else { return 0 };
        let mut done = done.iter_mut().filter_map(self::done);
        let (Some(first), second) = (done.next(), done.next()) else { return 0 };
        if let Some(second) = second {
            let mut each: SmallVec<[&mut Frames; 8]> = [first, second].into_iter().collect();
            each.extend(done);
            all.unevaluated = each.iter().map(|part| part.unevaluated).sum();
            merge(each.iter_mut().map(|part| part.leaving()), &mut all.burst);
            merge(each.iter_mut().map(|part| &mut part.back), &mut all.back);
        } else {
            mem::swap(all, first);
            if !all.out.is_empty() {
                mem::swap(&mut all.burst, &mut all.out);
                all.out.clear();
            }
        }
        let frames = all.len();
        self.with(all, Wire::place);
        frames
    }

    /// Notes that the frames of a burst whose turn it is are in this worker's hand, and drops the frames of parts that were not
    /// finished in time.
    fn begins(&mut self, parts: &mut [Part<Frames>]) {
        let counted = |part: &mut Frames| if part.is_closed { 0 } else { part.len() };
        self.takes(parts.iter_mut().filter_map(any).map(counted).sum());
        for part in parts.iter_mut() {
            if let Part::Overdue { part: Some(part), .. } = part {
                self.drops(Reason::Overdue, part);
                part.clear();
            }
        }
    }

    /// Seals what has its place. A superframe becomes several frames: where no rule saw any, none saw those.
    fn seal(&mut self, part: &mut Frames) {
        let is_unevaluated = part.unevaluated > 0 && part.unevaluated == part.leaving().len();
        self.with(part, Wire::seal);
        if is_unevaluated {
            part.unevaluated = part.leaving().len();
        }
    }

    /// Whether a burst leaves once this lane's work on it is done.
    fn is_last(&self) -> bool {
        self.at + 1 == self.ordered.lanes.directions[self.from].lanes.len()
    }

    fn evaluate(&mut self, part: &mut Frames) {
        let Self { ordered: Ordered { wire, .. }, from, means, .. } = self;
        wire.exchange(*from, part);
        wire.judge(*from, means);
        wire.exchange(*from, part);
    }

    /// Transmits parts of a burst that were all done, in order.
    fn transmit(&mut self, parts: &mut [Part<Frames>]) -> Result<(), PortError> {
        let Self { ordered: Ordered { wire, .. }, from, .. } = self;
        let mut done = parts.iter_mut().filter_map(done);
        let (Some(first), second) = (done.next(), done.next()) else { return Ok(()) };
        let Some(second) = second else {
            let unevaluated = first.unevaluated;
            wire.exchange(*from, first);
            return wire.send(*from, unevaluated);
        };
        let mut all: SmallVec<[&mut Frames; 8]> = [first, second].into_iter().collect();
        all.extend(done);
        let unevaluated = all.iter().map(|part| part.unevaluated).sum();
        let [out, back] = wire.leaving();
        merge(all.iter_mut().map(|part| part.leaving()), out);
        merge(all.iter_mut().map(|part| &mut part.back), back);
        wire.send(*from, unevaluated)
    }
}

impl Way<Frames> for Hand<'_, '_> {
    type Error = PortError;

    fn now(&self) -> Duration {
        self.ordered.lanes.start.elapsed()
    }

    fn stage(&mut self, parts: &mut [Frames]) -> Result<Came, PortError> {
        if self.at > 0 {
            return self.pull(parts);
        }
        self.takes(0);
        let from = self.from;
        let mut is_closed = parts.len() == 1;
        let came = self.receive(&mut is_closed)?;
        if came.frames > 0 && !self.ordered.watches(self.means.now) {
            // The first worker did not see them, or is slow.
            self.ordered.lanes.called.store(self.means.now, Ordering::Relaxed);
        }
        match parts {
            _ if came.frames == 0 => {}
            [all] => {
                mem::swap(self.wire().received(from).0, &mut all.burst);
                all.is_closed = is_closed;
            }
            parts => self.share_out(parts),
        }
        self.lets_go();
        Ok(came)
    }

    fn refuse(&mut self) -> Result<Came, PortError> {
        let from = self.from;
        // What another lane has done waits there.
        if self.at > 0 || matches!(self.ordered.wire.readiness()[from], Readiness::Always) {
            return Ok(Came::default());
        }
        self.takes(0);
        let came = self.receive(&mut false)?;
        self.wire().drop_burst(from, Reason::Queue);
        self.lets_go();
        Ok(came)
    }

    fn call(&mut self) {
        let (_, lane) = &self.ordered.lanes.directions[self.from].lanes[self.at];
        // A part of one worker's own is no sign of more work than one does.
        if lane.shape().parts == 1 {
            self.ordered.lanes.called.store(self.means.now, Ordering::Relaxed);
        }
        (self.wake)();
    }

    fn work(&mut self, part: &mut Frames) {
        self.takes(if part.is_closed { 0 } else { part.len() });
        match (self.work_here(), self.means.mode) {
            (Work::Decipher, _) => self.with(part, |wire, from| wire.decipher(from)),
            (_, Mode::Dropped(reason)) => {
                self.drops(reason, part);
                part.clear();
            }
            (Work::Evaluate, mode) => {
                match mode {
                    Mode::Evaluated => self.evaluate(part),
                    Mode::Open | Mode::Dropped(_) => part.unevaluated = part.leaving().len(),
                }
                if self.is_last() {
                    // Only replies may have to be sealed.
                    self.with(part, Wire::place);
                }
            }
            (Work::Seal, _) => self.seal(part),
        }
        self.lets_go();
    }

    fn late(&mut self, part: Frames) {
        self.drops(Reason::Overdue, &part);
    }

    fn releases(&self) -> bool {
        self.is_last()
    }

    fn release(&mut self, parts: &mut [Part<Frames>]) -> Result<(), PortError> {
        self.begins(parts);
        if let Mode::Dropped(reason) = self.means.mode {
            for part in parts.iter_mut().filter_map(any) {
                self.drops(reason, part);
                part.clear();
            }
        }
        self.transmit(parts)?;
        self.lets_go();
        Ok(())
    }
}

/// A part that its worker has finished, if anything is left of it.
fn done(part: &mut Part<Frames>) -> Option<&mut Frames> {
    match part {
        Part::Done(part) if part.len() > 0 => Some(part),
        Part::Done(_) | Part::Overdue { .. } => None,
    }
}

/// The part's frames, if they are there.
fn any(part: &mut Part<Frames>) -> Option<&mut Frames> {
    match part {
        Part::Done(part) => Some(part),
        Part::Overdue { part, .. } => part.as_mut(),
    }
}

/// The owner of a frame. Fragments have no ports: where ports matter there is no ordered wire.
fn owner(steering: &Steering, bytes: &mut [u8], headers: &packet::Headers) -> usize {
    match Piece::of(&Packet::with_headers(bytes, *headers))
        .map(|piece| steering.of_fragment(&piece))
    {
        Some(Follows::Addresses(owner) | Follows::First(owner)) => owner,
        None => steering.owner(bytes, headers),
    }
}
