//! The steps of a [`Wire`], one by one: what is received, evaluated and transmitted here is not the same burst.

use std::sync::Arc;

use packet::Headers;
use pktio::{Burst, PortError};

use super::super::account::Account;
use super::super::wire::{Means, Wire, ends_from};
use super::frames::Frames;

impl Wire {
    /// What an end received, and the headers of each frame if it was looked into; none of those whose fate does not
    /// depend on them.
    pub(super) fn received(
        &mut self,
        from: usize,
    ) -> (&mut Burst, impl Iterator<Item = Option<&Headers>>) {
        let headers = self.headers.iter().map(|found| found.as_ref().ok().map(|found| &found.1));
        (&mut self.ends[from].burst, headers)
    }

    /// What leaves in place of what an end received, and what goes back.
    pub(super) fn leaving(&mut self) -> [&mut Burst; 2] {
        [&mut self.out, &mut self.back]
    }

    /// Has bursts change places with those of this wire.
    pub(super) fn exchange(&mut self, from: usize, frames: &mut Frames) {
        std::mem::swap(&mut self.ends[from].burst, &mut frames.burst);
        std::mem::swap(&mut self.out, &mut frames.out);
        std::mem::swap(&mut self.back, &mut frames.back);
    }

    /// Receives frames that are left in their envelopes, if they have any: how many, and whether they are.
    pub(super) fn receive_closed(&mut self, from: usize) -> Result<(usize, bool), PortError> {
        match self.ends[from].has_envelopes() {
            true => Ok((self.ends[from].receive()?, true)),
            false => Ok((self.receive(from)?, false)),
        }
    }

    /// Takes frames out of their envelopes.
    pub(super) fn open_envelopes(&mut self, from: usize) {
        self.ends[from].open(from, &mut self.tap);
    }

    /// Puts what leaves into envelopes, where it needs them.
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

    /// Finds the fates of the frames that came in by an end, and carries them out, but for sending.
    pub(super) fn judge(&mut self, from: usize, means: &mut Means<'_>) {
        self.tap.begins(means.now);
        let mut guard = means.rules.burst();
        self.find_headers(from, guard.program());
        self.sample(from, means.sampler);
        self.evaluate(from, &mut guard, means.causes, means.shade, means.now);
        drop(guard);
        self.settle(from);
    }

    /// Transmits what leaves. So many of those frames no rule saw.
    pub(super) fn send(&mut self, from: usize, unseen: usize) -> Result<(), PortError> {
        let account = Arc::clone(&self.ends[from].account);
        let before = account.read().sent;
        self.transmit(from)?;
        let sent = account.read().sent - before;
        account.unevaluated(unseen.min(sent as usize));
        Ok(())
    }

    /// What this worker counts of the frames that come in by an end.
    pub(super) fn account(&self, from: usize) -> &Account {
        &self.ends[from].account
    }

    /// Lets go of all frames, whose fates are counted.
    pub(super) fn clear(&mut self) {
        self.ends.iter_mut().for_each(|end| end.burst.clear());
        for burst in [&mut self.own, &mut self.made, &mut self.out, &mut self.back] {
            burst.clear();
        }
    }
}
