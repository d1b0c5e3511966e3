//! [`Hand`]: a worker at one lane: how frames get into it, are evaluated, and leave.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use packet::Packet;
use pktio::{Burst, PortError, Readiness};

use super::Ordered;
use super::frames::{Frames, merge};
use super::in_hand::InHand;
use crate::forward::account::{Account, Reason};
use crate::forward::fragments::Piece;
use crate::forward::reorder::{Batch, Came, Part, Way};
use crate::forward::steering::{Follows, Steering};
use crate::forward::wire::{Mode, Turn, Wire};

/// A worker's turn at one direction of a wire.
pub(super) struct Hand<'h, 'm> {
    pub(super) ordered: &'h mut Ordered,
    pub(super) from: usize,
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
            let mut hand = Hand { ordered: self, from, means, wake };
            is_busy |= direction.lane.turn(number, receives, &mut hand)?;
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

    /// Takes frames out of their envelopes, if they are in any.
    fn open(&mut self, part: &mut Frames) {
        if !part.is_closed {
            return;
        }
        let from = self.from;
        self.wire().exchange(from, part);
        self.wire().open_envelopes(from);
        self.wire().exchange(from, part);
        part.is_closed = false;
    }

    /// Puts what leaves into envelopes, if its port needs them.
    fn seal(&mut self, part: &mut Frames) {
        let from = self.from;
        self.wire().exchange(from, part);
        self.wire().seal(from);
        self.wire().exchange(from, part);
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
        let unseen = |part: &mut Frames| match part.is_unevaluated {
            true => part.leaving().len(),
            false => 0,
        };
        let Some(second) = second else {
            let unseen = unseen(first);
            wire.exchange(*from, first);
            return wire.send(*from, unseen);
        };
        let mut all: smallvec::SmallVec<[&mut Frames; 8]> = [first, second].into_iter().collect();
        all.extend(done);
        let unseen = all.iter_mut().map(|part| unseen(part)).sum();
        let [out, back] = wire.leaving();
        merge(all.iter_mut().map(|part| part.leaving()), out);
        merge(all.iter_mut().map(|part| &mut part.back), back);
        wire.send(*from, unseen)
    }
}

impl Way<Frames> for Hand<'_, '_> {
    type Error = PortError;

    fn now(&self) -> Duration {
        self.ordered.lanes.start.elapsed()
    }

    fn stage(&mut self, parts: &mut [Frames]) -> Result<Came, PortError> {
        self.takes(0);
        let from = self.from;
        let mut is_closed = parts.len() == 1;
        let came = self.receive(&mut is_closed)?;
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
        let wire = &self.ordered.wire;
        if wire.has_envelopes() || matches!(wire.readiness()[from], Readiness::Always) {
            return Ok(Came::default());
        }
        self.takes(0);
        let came = self.receive(&mut false)?;
        self.wire().drop_burst(from, Reason::Queue);
        self.lets_go();
        Ok(came)
    }

    fn call(&mut self) {
        (self.wake)();
    }

    fn work(&mut self, part: &mut Frames) {
        self.takes(if part.is_closed { 0 } else { part.len() });
        self.open(part);
        match self.means.mode {
            Mode::Evaluated => self.evaluate(part),
            Mode::Open => part.is_unevaluated = true,
            Mode::Dropped(reason) => {
                self.drops(reason, part);
                part.clear();
            }
        }
        self.seal(part);
        self.lets_go();
    }

    fn late(&mut self, part: Frames) {
        self.drops(Reason::Overdue, &part);
    }

    fn release(&mut self, parts: &mut [Part<Frames>]) -> Result<(), PortError> {
        self.takes(parts.iter_mut().filter_map(any).map(|part| part.len()).sum());
        for part in parts.iter_mut() {
            let reason = match (&*part, self.means.mode) {
                (Part::Overdue { .. }, _) => Reason::Overdue,
                (Part::Done(_), Mode::Dropped(reason)) => reason,
                (Part::Done(_), Mode::Evaluated | Mode::Open) => continue,
            };
            if let Some(part) = any(part) {
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
