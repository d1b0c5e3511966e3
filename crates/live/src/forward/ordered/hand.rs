//! [`Hand`]: a worker at one lane: how frames get into it, are evaluated, and leave.

use std::sync::Arc;
use std::time::Duration;

use pktio::{Burst, PortError, Readiness};

use super::Ordered;
use super::frames::Frames;
use super::in_hand::InHand;
use crate::forward::account::{Account, Reason};
use crate::forward::reorder::{Batch, Came, Way};
use crate::forward::wire::{Mode, Turn, Wire};

/// When frames meet the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    /// As they are received: one worker at a time does so.
    Received,
    /// While other workers evaluate other frames.
    InWork,
    /// As they leave: one worker at a time sees to that.
    Leaving,
}

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
        for (from, lane) in lanes.directions.iter().enumerate() {
            let mut hand = Hand { ordered: self, from, means, wake };
            is_busy |= lane.turn(receives, &mut hand)?;
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

    /// When frames of this direction meet the rules.
    fn met(&self) -> Met {
        let Ordered { wire, lanes, .. } = &*self.ordered;
        match (lanes.takes_turns, wire.opens(self.from)) {
            (false, _) => Met::InWork,
            (true, false) => Met::Received,
            (true, true) => Met::Leaving,
        }
    }

    /// Notes that this number of frames are in this worker's hand, until it lets go of them.
    fn takes(&mut self, frames: usize) {
        let before = self.account().on_its_way();
        self.ordered.in_hand = Some(InHand::new(self.from, frames, before));
    }

    /// Drops all frames of a burst.
    fn drops(&mut self, reason: Reason, frames: &Frames) {
        let from = self.from;
        if frames.is_closed {
            self.account().received(frames.len());
        }
        self.account().dropped(reason, frames.len());
        let Frames { burst, out, back, .. } = frames;
        let all = [burst, out, back].into_iter().flat_map(Burst::iter);
        all.for_each(|frame| self.wire().tap.dropped(from, reason, Some(frame)));
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

    /// Takes frames out of their envelopes, if they are in any.
    fn open(&mut self, frames: &mut Frames) {
        if !frames.is_closed {
            return;
        }
        let from = self.from;
        self.wire().exchange(from, frames);
        self.wire().open_envelopes(from);
        self.wire().exchange(from, frames);
        frames.is_closed = false;
    }

    /// Puts what leaves into envelopes, if its port needs them.
    fn seal(&mut self, frames: &mut Frames) {
        let from = self.from;
        self.wire().exchange(from, frames);
        self.wire().seal(from);
        self.wire().exchange(from, frames);
    }

    /// Takes frames through the rules, as they are treated now, if they meet them `now`.
    fn meet(&mut self, now: Met, frames: &mut Frames) {
        if self.met() != now || frames.is_unevaluated {
            return;
        }
        match self.means.mode {
            Mode::Evaluated => {
                let Self { ordered: Ordered { wire, .. }, from, means, .. } = self;
                wire.exchange(*from, frames);
                wire.judge(*from, means);
                wire.exchange(*from, frames);
            }
            Mode::Open => frames.is_unevaluated = true,
            Mode::Dropped(reason) => {
                self.drops(reason, frames);
                frames.clear();
            }
        }
    }
}

impl Way<Frames> for Hand<'_, '_> {
    type Error = PortError;

    fn now(&self) -> Duration {
        self.ordered.lanes.start.elapsed()
    }

    fn stage(&mut self, frames: &mut Frames) -> Result<Came, PortError> {
        self.takes(0);
        let (from, mut is_closed) = (self.from, true);
        let came = self.receive(&mut is_closed)?;
        if came.frames > 0 {
            self.wire().exchange(from, frames);
            frames.is_closed = is_closed;
            self.meet(Met::Received, frames);
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

    fn work(&mut self, frames: &mut Frames) {
        self.takes(if frames.is_closed { 0 } else { frames.len() });
        self.open(frames);
        self.meet(Met::InWork, frames);
        if self.met() != Met::Leaving {
            self.seal(frames);
        }
        self.lets_go();
    }

    fn late(&mut self, frames: Frames) {
        self.drops(Reason::Overdue, &frames);
    }

    fn release(&mut self, frames: &mut Frames) -> Result<(), PortError> {
        self.takes(frames.len());
        if self.met() == Met::Leaving {
            self.meet(Met::Leaving, frames);
            self.seal(frames);
        } else if let Mode::Dropped(reason) = self.means.mode {
            self.drops(reason, frames);
            frames.clear();
        }
        if frames.len() > 0 {
            let unseen = if frames.is_unevaluated { frames.leaving().len() } else { 0 };
            let from = self.from;
            self.wire().exchange(from, frames);
            self.wire().send(from, unseen)?;
        }
        self.lets_go();
        Ok(())
    }
}
