//! A port that loses, repeats, shortens, damages, exchanges and delays what another port receives.
//!
//! Contract: the same seed and the same frames give the same faults, however many come at once. Every frame is
//! counted: those received and those repeated are those handed over, lost, and held back ([`FaultCounts`]).
//! Transmission passes through untouched. A frame that has its memory with it is disturbed in place, its repetition is
//! a copy; a frame without memory is copied: this is for tests.
//!
//! A delay is counted in frames, not in time: a frame comes after a number of others have, or when no others are left.
//! So a run can be repeated, and nothing is held back for good.

mod draw;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::iter;

use crate::burst::Burst;
use crate::envelope::Envelope;
use crate::memory::FrameBuf;
use crate::port::{Port, PortError, Stats};
use crate::readiness::Readiness;
use draw::Draw;

/// Frames that a delayed one lets pass, at most; at least two. One that is reordered lets one pass.
const LONGEST_DELAY: usize = 64;

/// How often each fault strikes, in frames per million. Faults are drawn independently, in this order; a frame that
/// is delayed is not reordered besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// The frame is lost.
    pub drop: u32,
    /// The frame comes twice.
    pub duplicate: u32,
    /// The frame ends early; its length on the wire stays.
    pub truncate: u32,
    /// One bit of the frame is turned.
    pub corrupt: u32,
    /// The frame comes after up to 64 others that were received after it.
    pub delay: u32,
    /// The frame comes after the next received frame.
    pub reorder: u32,
}

/// What happened to the frames so far: `received + duplicated == handed_over + dropped + held`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Frames that the port below received.
    pub received: u64,
    /// Frames that this port handed over.
    pub handed_over: u64,
    /// Frames lost.
    pub dropped: u64,
    /// Frames repeated.
    pub duplicated: u64,
    /// Frames that end early.
    pub truncated: u64,
    /// Frames with a bit turned.
    pub corrupted: u64,
    /// Frames held back for several others.
    pub delayed: u64,
    /// Frames held back for one other.
    pub reordered: u64,
    /// Of those two, the ones still held back, repetitions included.
    pub held: u64,
}

/// Wraps a port and disturbs what it receives.
#[derive(Debug)]
pub struct FaultPort<P> {
    inner: P,
    rates: FaultRates,
    draw: Draw,
    /// The frames as received.
    received: Burst,
    /// The frames held back, in the order in which they come: each with the number of the frame that it comes after.
    held: VecDeque<(u64, FrameBuf)>,
    counts: FaultCounts,
}

impl<P: Port> FaultPort<P> {
    /// Disturbs what `inner` receives; `seed` chooses the faults.
    pub fn new(inner: P, seed: u64, rates: FaultRates) -> Self {
        Self {
            inner,
            rates,
            draw: Draw(seed),
            received: Burst::new(),
            held: VecDeque::new(),
            counts: FaultCounts::default(),
        }
    }

    /// The port that it wraps.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// What happened to the frames so far.
    pub fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// Applies the faults to a frame, and hands over the frames that were waiting for it.
    fn disturb(&mut self, mut frame: FrameBuf, burst: &mut Burst) {
        let Self { rates, draw, counts, .. } = self;
        counts.received += 1;
        if draw.strikes(rates.drop) {
            counts.dropped += 1;
        } else {
            let is_twice = draw.strikes(rates.duplicate);
            if draw.strikes(rates.truncate) {
                frame.length = draw.below(frame.length);
                counts.truncated += 1;
            }
            if draw.strikes(rates.corrupt) && frame.length > 0 {
                let at = draw.below(frame.length);
                frame.bytes_mut()[at] ^= 1 << draw.below(8);
                counts.corrupted += 1;
            }
            let copy = is_twice.then(|| frame.copied());
            counts.duplicated += u64::from(is_twice);
            let passing = self.passing();
            iter::once(frame).chain(copy).for_each(|frame| self.place(frame, passing, burst));
        }
        self.release(self.counts.received, burst);
    }

    /// How many frames this one lets pass.
    fn passing(&mut self) -> u64 {
        let Self { rates, draw, counts, .. } = self;
        let (is_delayed, is_reordered) = (draw.strikes(rates.delay), draw.strikes(rates.reorder));
        counts.delayed += u64::from(is_delayed);
        counts.reordered += u64::from(is_reordered && !is_delayed);
        match (is_delayed, is_reordered) {
            (true, _) => 2 + draw.below(LONGEST_DELAY - 1) as u64,
            (false, true) => 1,
            (false, false) => 0,
        }
    }

    /// Hands the frame over, or holds it back until `passing` others have come.
    fn place(&mut self, frame: FrameBuf, passing: u64, burst: &mut Burst) {
        if passing == 0 {
            burst.push_frame(frame);
            return;
        }
        let after = self.counts.received + passing;
        let at = self.held.partition_point(|(other, _)| *other <= after);
        self.held.insert(at, (after, frame));
        self.counts.held += 1;
    }

    /// Hands over what comes after frame number `received`.
    fn release(&mut self, received: u64, burst: &mut Burst) {
        while let Some((after, _)) = self.held.front()
            && *after <= received
            && let Some((_, frame)) = self.held.pop_front()
        {
            self.counts.held -= 1;
            burst.push_frame(frame);
        }
    }
}

impl<P: Port> Port for FaultPort<P> {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        // A burst of which every frame is lost is not the end: look at the next.
        while burst.is_empty() {
            let mut received = std::mem::take(&mut self.received);
            let count = self.inner.rx_burst(&mut received)?;
            received.drain(usize::MAX).for_each(|frame| self.disturb(frame.into_buf(), burst));
            self.received = received;
            if count == 0 {
                self.release(u64::MAX, burst);
                break;
            }
        }
        self.counts.handed_over += burst.len() as u64;
        Ok(burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.inner.tx_burst(burst)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.inner.flush()
    }

    /// Returns the inner port's readiness, unless frames are held back: they come with the next burst.
    fn readiness(&self) -> Readiness<'_> {
        if self.held.is_empty() { self.inner.readiness() } else { Readiness::Always }
    }

    /// The counters of the port that it wraps; frames lost here are counted as lost.
    fn stats(&self) -> Stats {
        let stats = self.inner.stats();
        Stats { rx_lost: stats.rx_lost + self.counts.dropped, ..stats }
    }

    fn finishes(&self) -> bool {
        self.inner.finishes()
    }

    fn envelope(&self) -> Option<Box<dyn Envelope>> {
        self.inner.envelope()
    }
}
