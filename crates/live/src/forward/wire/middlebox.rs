//! The steps of a [`Wire`] at a middlebox: frames wait, are shown, and go on as their verdicts say.
//!
//! Contract: nothing waits while a worker takes its turn; the verdicts of shown frames are carried out before the next
//! turn.

use std::iter;
use std::mem;

use pktio::{Frame, PortError, Readiness, Taken};

use super::waits::Waits;
use super::{End, Mode, Turn, Wire};
use crate::config::{OnError, Side, Slot};
use crate::forward::account::Reason;
use crate::forward::middlebox::{Away, Middlebox, Verdict, Waiting, WorkerRing};

impl Wire {
    /// Makes frames wait for a middlebox there from now on.
    pub(crate) fn open(&mut self, slot: Slot) {
        let ends = [0, 1].map(|from| Waiting::new(self.number, from));
        self.waits = Some(Box::new(Waits { slot, ends }));
    }

    /// The frames that wait, by end of arrival; empty where there is no middlebox.
    pub(crate) fn waiting(&mut self) -> &mut [Waiting] {
        self.waits.as_mut().map_or(&mut [], |waits| &mut waits.ends)
    }

    /// Makes the frames that an end received wait, if a middlebox sees them before the rules.
    pub(super) fn waits_before(&mut self, from: usize, means: &Turn<'_>) -> bool {
        let Self { waits: Some(waits), ends, .. } = self else { return false };
        if waits.slot.side != Side::Before || means.mode != Mode::Evaluated {
            return false;
        }
        waits.ends[from].take(&mut ends[from].burst, means.now, iter::empty());
        true
    }

    /// Makes the frames that leave wait, if a middlebox sees them after the rules.
    pub(super) fn waits_after(&mut self, from: usize, now: u64) -> bool {
        let Self { waits: Some(waits), ends, out, headers, fates, .. } = self else {
            return false;
        };
        if waits.slot.side != Side::After {
            return false;
        }
        match out.is_empty() {
            true => {
                // Where no headers were looked for there are no fates.
                let leave = headers.iter().zip(fates).filter(|(_, fate)| fate.reason().is_none());
                let known = leave.map(|(found, _)| found.as_ref().ok());
                waits.ends[from].take(&mut ends[from].burst, now, known);
            }
            // A burst that is received into has a buffer, and this one has none.
            false => waits.ends[from].take_each(out, now),
        }
        true
    }

    /// Shows a middlebox on this side of the rules the waiting frames, and carries out its verdicts.
    pub(crate) fn show(
        &mut self,
        side: Side,
        middlebox: &mut dyn Middlebox,
        means: &mut Turn<'_>,
    ) -> Result<(), PortError> {
        if !self.waits.as_ref().is_some_and(|waits| waits.slot.side == side) {
            return Ok(());
        }
        for waiting in self.waiting().iter_mut().filter(|waiting| !waiting.is_empty()) {
            middlebox.burst(waiting);
        }
        self.carry_out(means)
    }

    /// Gives the waiting frames on this side of the rules to a middlebox through its ring.
    pub(crate) fn give(&mut self, side: Side, ring: &mut WorkerRing, now: u64) {
        let Self { waits: Some(waits), ends, tap, .. } = self else { return };
        let is_on = waits.slot.side == side;
        for (from, waiting) in waits.ends.iter_mut().enumerate() {
            if !is_on || waiting.is_empty() {
                continue;
            }
            let End { port, account, .. } = &ends[from];
            // Nothing that is read from a capture is lost, nor what another worker reads, which waits in its turn.
            let may_wait = matches!(port.readiness(), Readiness::Always | Readiness::Never);
            tap.begins(now);
            let mut refused = 0;
            for away in waiting.leave() {
                if let Some(Away { frame, .. }) = ring.give(away, may_wait) {
                    tap.dropped(from, Reason::MiddleboxRing, Some(frame.frame()));
                    refused += 1;
                }
            }
            account.dropped(Reason::MiddleboxRing, refused);
            waiting.clear();
        }
    }

    /// Takes back a frame from the ring with its verdict, which is to be carried out.
    pub(crate) fn comes_back(&mut self, away: Away) {
        if let Some(waits) = &mut self.waits {
            waits.ends[usize::from(away.from)].push_judged(away);
        }
    }

    /// Carries out the verdicts of the waiting frames, if there are any.
    pub(crate) fn carry_out(&mut self, means: &mut Turn<'_>) -> Result<(), PortError> {
        for from in [0, 1] {
            let Some(waits) = &self.waits else { return Ok(()) };
            if waits.ends[from].is_empty() {
                continue;
            }
            let side = waits.slot.side;
            self.tap.begins(means.now);
            self.judge_waiting(from);
            if let Mode::Dropped(reason) = means.mode {
                self.drop_judged(from, reason);
                continue;
            }
            match side {
                Side::After => self.transmit(from)?,
                Side::Before => {
                    self.send_back(from)?;
                    self.pass(from, self.ends[from].steers, means)?;
                }
            }
        }
        Ok(())
    }

    /// Drops all frames that have a verdict, whatever it is.
    fn drop_judged(&mut self, from: usize, reason: Reason) {
        let Self { ends, back, tap, .. } = self;
        ends[from].account.dropped(reason, back.len());
        back.iter().for_each(|frame| tap.dropped(from, reason, Some(frame)));
        back.clear();
        self.drop_burst(from, reason);
    }

    /// Sorts the waiting frames: what goes on is left in the end's burst, what goes back is in `back`, and the rest is
    /// dropped.
    fn judge_waiting(&mut self, from: usize) {
        let Self { waits: Some(waits), ends, back, tap, .. } = self else { return };
        let (burst, account) = (&mut ends[from].burst, &ends[from].account);
        let (on_error, waiting) = (waits.slot.on_error, &mut waits.ends[from]);
        let (frames, verdicts) = waiting.judged();
        let mut fates = verdicts.iter().map(|verdict| fate(*verdict, on_error));
        let mut lose = |reason, frame: Frame<'_>| {
            account.dropped(reason, 1);
            tap.dropped(from, reason, Some(frame));
        };
        if !verdicts.contains(&Verdict::Back) {
            let is_whole = verdicts.iter().all(|verdict| *verdict == Verdict::Pass);
            mem::swap(frames, burst);
            if !is_whole {
                burst.retain(|frame| match fates.next() {
                    Some(Next::Dropped(reason)) => {
                        lose(reason, frame);
                        false
                    }
                    _ => true,
                });
            }
            return waiting.clear();
        }
        for (frame, fate) in frames.drain(usize::MAX).zip(fates) {
            match fate {
                Next::Goes => burst.append(frame),
                Next::Back => back.append(frame),
                Next::Dropped(reason) => lose(reason, lent(&frame)),
            }
        }
        waiting.clear();
    }
}

/// A frame on its way out of a burst, to be looked at.
fn lent<'f>(taken: &'f Taken<'_>) -> Frame<'f> {
    match taken {
        Taken::Lent { bytes, meta } => Frame { bytes, meta },
        Taken::Moved(frame) => Frame { bytes: frame.bytes(), meta: &frame.meta },
    }
}

/// The next step of a frame, by its verdict.
enum Next {
    Goes,
    Back,
    Dropped(Reason),
}

fn fate(verdict: Verdict, on_error: OnError) -> Next {
    match (verdict, on_error) {
        (Verdict::Pass, _) | (Verdict::Error, OnError::Pass) => Next::Goes,
        (Verdict::Back, _) => Next::Back,
        (Verdict::Drop, _) => Next::Dropped(Reason::Middlebox),
        (Verdict::Error, OnError::Drop) => Next::Dropped(Reason::Handler),
    }
}
