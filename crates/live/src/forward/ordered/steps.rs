//! The steps of a [`Wire`], one by one: the bursts that are received, evaluated and transmitted here differ.

use std::sync::Arc;

use pktio::PortError;

use super::frames::Frames;
use crate::forward::account::Account;
use crate::forward::evaluator::Evaluator;
use crate::forward::wire::{End, Turn, Wire, ends_from};

impl Wire {
    /// Swaps these bursts with the bursts of this wire.
    pub(super) fn exchange(&mut self, from: usize, frames: &mut Frames) {
        std::mem::swap(&mut self.ends[from].burst, &mut frames.burst);
        std::mem::swap(&mut self.out, &mut frames.out);
        std::mem::swap(&mut self.back, &mut frames.back);
    }

    /// Receives frames and leaves them in their envelopes, if they have any; returns their number, and whether they are
    /// in envelopes.
    pub(super) fn receive_closed(&mut self, from: usize) -> Result<(usize, bool), PortError> {
        match self.ends[from].has_envelopes() {
            true => Ok((self.ends[from].receive()?, true)),
            false => Ok((self.receive(from)?, false)),
        }
    }

    /// Whether frames of a port come and leave in envelopes.
    pub(super) fn has_envelopes(&self) -> bool {
        self.ends.iter().any(End::has_envelopes)
    }

    /// Whether the frames that an end receives are in envelopes.
    pub(super) fn opens(&self, from: usize) -> bool {
        self.ends[from].has_envelopes()
    }

    /// Takes frames out of their envelopes.
    pub(super) fn open_envelopes(&mut self, from: usize) {
        self.ends[from].open(from, &mut self.tap);
    }

    /// Counts the frames that a panic kept from being opened as received.
    pub(super) fn count_unopened(&mut self) {
        self.ends.iter_mut().for_each(End::count_unopened);
    }

    /// Puts what leaves into envelopes, where its port needs them.
    pub(super) fn seal(&mut self, from: usize) {
        let Self { ends, out, tap, .. } = self;
        let [end, to] = ends_from(ends, from);
        let leaving = if out.is_empty() { &mut end.burst } else { out };
        to.seal(leaving, &end.account, from, tap);
        self.tell_too_long(from);
        let Self { ends, back, tap, .. } = self;
        let end = &mut ends[from];
        let account = Arc::clone(&end.account);
        end.seal(back, &account, from, tap);
    }

    /// Finds the fates of the frames that an end received, and carries them out, except for sending.
    pub(super) fn judge(&mut self, from: usize, means: &mut Turn<'_>) {
        self.tap.begins(means.now);
        let mut evaluator = means.evaluator.lock();
        let Evaluator { rules, shade } = &mut *evaluator;
        let mut guard = rules.burst();
        self.find_headers(from, guard.program());
        self.sample(from, means.sampler);
        self.evaluate(from, &mut guard, means.causes, shade, means.now);
        drop(guard);
        drop(evaluator);
        self.settle(from);
    }

    /// Transmits what leaves, of which `unseen` frames were seen by no rule.
    pub(super) fn send(&mut self, from: usize, unseen: usize) -> Result<(), PortError> {
        let account = Arc::clone(&self.ends[from].account);
        let before = account.read().sent;
        self.transmit(from)?;
        let sent = account.read().sent - before;
        account.unevaluated(unseen.min(sent as usize));
        Ok(())
    }

    /// This worker's account of the frames that an end received.
    pub(super) fn account(&self, from: usize) -> &Account {
        &self.ends[from].account
    }

    /// Drops all frames, whose fates are counted.
    pub(super) fn clear(&mut self) {
        self.ends.iter_mut().for_each(|end| end.burst.clear());
        for burst in [&mut self.own, &mut self.made, &mut self.out, &mut self.back] {
            burst.clear();
        }
    }
}
