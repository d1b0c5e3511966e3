//! [`Wire`]: two ports; what comes in by one and is accepted leaves by the other. [`Wire::pass`] is a frame's whole
//! way: headers found once, given to its owner if that is another worker, handled, its fate settled, transmitted.
//!
//! Contract: one thread's own; each worker has its own of every wire. No allocation once its buffers have grown, no lock
//! (an unknown verdict takes one for its burst). Frames leave in the order in which they came. All frames of a burst go through one program. Every
//! frame ends in the [`Account`] of its direction.

mod end;
mod evaluate;
mod middlebox;
mod too_long;

use std::mem;
use std::sync::Arc;

use packet::{Headers, Link, pppoe};
use pktio::{Burst, Frame, FrameBuf, FrameMeta, Port, PortError, Readiness, Taken};

use super::account::{Account, Reason};
use super::causes::{Causes, OfBurst};
use super::config::Other;
use super::fate::{Fate, unseen};
use super::handed::Handed;
use super::handover::{Handover, Place};
use super::shadow::Shade;
use super::talkers::Sampler;
use super::taps::Tap;
use crate::arrival::Origin;
use crate::headers::find_headers_into;
use crate::link::link_of;
use crate::program::Program;
use crate::publish::Worker;
use crate::wires::Crossing;
use end::End;
use middlebox::Waits;

pub use end::BoxedPort;
pub(super) use end::{Driven, ends_from};
#[cfg(any(test, fuzzing))]
pub(super) use too_long::TooLong;

/// Two ports, joined.
pub(super) struct Wire {
    number: u16,
    pub(super) ends: [End; 2],
    other: Other,
    /// How frames cross it that come in by each end.
    crossings: [Crossing; 2],
    /// What is known of each frame before it is handled: its headers, or its fate.
    pub(super) headers: Vec<Result<(Link, Headers), Fate>>,
    /// No rule is for any of them: all leave as they lie.
    are_unseen: bool,
    /// Whose each frame is, where several workers share them.
    places: Vec<Place>,
    /// A worker's own frames, where others were among them.
    pub(super) own: Burst,
    fates: Vec<Fate>,
    /// Frames that leave in place of others.
    pub(super) made: Burst,
    /// What leaves, where that is not what came, in order.
    pub(super) out: Burst,
    /// Replies, back by the port of arrival.
    pub(super) back: Burst,
    /// Where a frame is put together.
    frame: Vec<u8>,
    of_burst: OfBurst,
    /// For those who watch what is dropped.
    pub(super) tap: Tap,
    /// Frames that a middlebox is to see.
    waits: Option<Box<Waits>>,
}

/// What a worker takes frames on their way by.
pub(super) struct Means<'w> {
    pub(super) rules: &'w mut Worker,
    pub(super) causes: &'w Causes,
    pub(super) shade: &'w mut Shade,
    pub(super) handover: &'w mut Handover,
    pub(super) sampler: &'w mut Sampler,
    pub(super) mode: Mode,
    /// Frames that may not be lost wait for room: no others of that kind are received.
    pub(super) holds: bool,
    /// Nanoseconds since the Unix epoch, for frames without a time of their own.
    pub(super) now: u64,
}

/// What becomes of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// What the rules say.
    Evaluated,
    /// After a panic: all leave.
    Open,
    /// After a panic, or a failure: none leaves.
    Dropped(Reason),
}

impl Wire {
    pub(super) fn new(
        number: u16,
        ends: [Driven; 2],
        other: Other,
        crossings: [Crossing; 2],
        workers: usize,
        tap: Tap,
    ) -> Self {
        let steers = ends.iter().any(|end| end.steers);
        let finishes = ends.each_ref().map(|end| end.port.finishes());
        let mut ends = ends.map(|end| End::new(end, workers));
        (ends[0].leaves_whole, ends[1].leaves_whole) = (finishes[1], finishes[0]);
        Self {
            number,
            ends,
            other,
            crossings,
            headers: Vec::new(),
            are_unseen: false,
            places: Vec::new(),
            own: if steers { Burst::new() } else { Burst::with_capacity(0) },
            fates: Vec::new(),
            made: Burst::with_capacity(0),
            out: Burst::with_capacity(0),
            back: Burst::with_capacity(0),
            frame: Vec::new(),
            of_burst: OfBurst::new(),
            tap,
            waits: None,
        }
    }

    /// The counts of the frames that came in by each end, by fate.
    pub(super) fn accounts(&self) -> [Arc<Account>; 2] {
        self.ends.each_ref().map(|end| Arc::clone(&end.account))
    }

    /// What tells when its ports have frames; those that have ended never have.
    pub(super) fn readiness(&self) -> [Readiness<'_>; 2] {
        self.ends.each_ref().map(|end| match end.has_ended {
            true => Readiness::Never,
            false => end.port.readiness(),
        })
    }

    /// Takes one burst from each end on its way: how many frames came.
    pub(super) fn turn(&mut self, means: &mut Means<'_>) -> Result<usize, PortError> {
        let mut frames = 0;
        for from in [0, 1] {
            if means.holds && matches!(self.ends[from].port.readiness(), Readiness::Always) {
                continue;
            }
            let received = self.receive(from)?;
            if received > 0 && !self.waits_before(from, means) {
                self.pass(from, self.ends[from].steers, means)?;
            }
            frames += received;
        }
        Ok(frames)
    }

    /// Takes frames on their way that another worker received, from its end `from`; those that are not `placed` may go on
    /// to a third one.
    pub(super) fn take_over(
        &mut self,
        from: usize,
        frames: impl Iterator<Item = FrameBuf>,
        is_placed: bool,
        means: &mut Means<'_>,
    ) -> Result<(), PortError> {
        let End { burst, account, .. } = &mut self.ends[from];
        burst.clear();
        frames.for_each(|frame| burst.push_frame(frame));
        account.taken_over(burst.len());
        self.pass(from, !is_placed, means)
    }

    /// Takes the frames that came in by an end on their way.
    fn pass(&mut self, from: usize, steers: bool, means: &mut Means<'_>) -> Result<(), PortError> {
        self.tap.begins(means.now);
        match means.mode {
            Mode::Evaluated => {
                let mut guard = means.rules.burst();
                self.find_headers(from, guard.program());
                if steers {
                    self.hand_over(from, means.handover, means.now);
                }
                self.sample(from, means.sampler);
                self.evaluate(from, &mut guard, means.causes, means.shade, means.now);
                drop(guard);
                self.settle(from);
                match self.waits_after(from, means.now) {
                    true => self.send_back(from),
                    false => self.transmit(from),
                }
            }
            Mode::Open => {
                let [end, to] = ends_from(&mut self.ends, from);
                let sent = to.transmit(&mut end.burst, &end.account, from, &mut self.tap)?;
                end.account.unevaluated(sent);
                Ok(())
            }
            Mode::Dropped(reason) => {
                self.drop_burst(from, reason);
                Ok(())
            }
        }
    }

    /// All frames of an end are dropped.
    pub(super) fn drop_burst(&mut self, from: usize, reason: Reason) {
        let Self { ends, tap, .. } = self;
        let End { burst, account, .. } = &mut ends[from];
        account.dropped(reason, burst.len());
        burst.iter().for_each(|frame| tap.dropped(from, reason, Some(frame)));
        burst.clear();
    }

    /// A fragment that was held, and that nobody waits for any more, is dropped.
    pub(super) fn drop_held(&mut self, from: usize) {
        self.drop_handed(from, Reason::Fragment, None);
    }

    /// A frame that another worker gave up to this one is dropped.
    pub(super) fn drop_handed(&mut self, from: usize, reason: Reason, frame: Option<&FrameBuf>) {
        let account = &self.ends[from].account;
        account.taken_over(1);
        account.dropped(reason, 1);
        let frame = frame.map(|frame| Frame { bytes: frame.bytes(), meta: &frame.meta });
        self.tap.dropped(from, reason, frame);
    }

    /// Sees to it that its ports hold nothing back of what they took.
    pub(super) fn flush(&mut self) -> Result<(), PortError> {
        self.ends.iter_mut().try_for_each(|end| end.port.flush())
    }

    /// Gives up the burst that is on its way, but for the frames of each end that are at a middlebox.
    pub(super) fn abandon(&mut self, reason: Reason, away: [usize; 2]) {
        for (end, away) in self.ends.iter_mut().zip(away) {
            self.tap.lose(end.account.abandon(reason, away));
            end.burst.clear();
        }
        if let Some(waits) = &mut self.waits {
            waits.clear();
        }
        self.own.clear();
        self.made.clear();
        self.out.clear();
        self.back.clear();
    }

    pub(super) fn receive(&mut self, from: usize) -> Result<usize, PortError> {
        let received = self.ends[from].receive()?;
        if received == 0 {
            return Ok(0);
        }
        Ok(self.ends[from].open(from, &mut self.tap))
    }

    /// Finds the headers of all frames, but of those whose fate does not depend on them.
    pub(super) fn find_headers(&mut self, from: usize, program: &Program) {
        let End { burst, steers, .. } = &self.ends[from];
        self.headers.clear();
        self.are_unseen = true;
        for frame in burst.iter() {
            let link = match link_of(frame.meta.link_type) {
                Some(Link::Ethernet) => Link::Wire,
                Some(link) => link,
                None => {
                    self.are_unseen = false;
                    self.headers.push(Err(Fate::Dropped(Reason::LinkType)));
                    continue;
                }
            };
            // Whoever shares frames out looks at addresses, whatever rules there are.
            if !steers && let Some(fate) = unseen(frame, link, program, self.other) {
                self.are_unseen &= fate == Fate::Passes;
                self.headers.push(Err(fate));
                continue;
            }
            self.are_unseen = false;
            self.headers.push(Ok((link, Headers::default())));
            if let Some(Ok((_, headers))) = self.headers.last_mut() {
                let (bytes, len) = (frame.bytes, frame.bytes.len());
                find_headers_into(headers, program, bytes, link, len, Origin::Wire);
            }
        }
    }

    /// Gives the frames of others to their workers, and keeps its own with their headers.
    fn hand_over(&mut self, from: usize, handover: &mut Handover, now: u64) {
        let Self { number: wire, ends, headers, places, own, tap, .. } = self;
        let End { burst, port, account, keeps, .. } = &mut ends[from];
        places.clear();
        for (frame, found) in burst.iter_mut().zip(&*headers) {
            places.push(match found {
                Ok((_, found)) => handover.place(frame.bytes, found, *keeps, now),
                Err(_) => Place::Own,
            });
        }
        if places.iter().all(|place| *place == Place::Own) {
            return;
        }
        // Nothing that is read from a capture is lost on the way: its reading waits.
        let waits = matches!(port.readiness(), Readiness::Always);
        let hand = |frame: Taken<'_>, is_placed| Handed {
            wire: *wire,
            from: from as u8,
            is_placed,
            frame: frame.into_buf(),
        };
        let (mut handed, mut refused) = (0, 0);
        for (frame, place) in burst.drain(usize::MAX).zip(&*places) {
            match *place {
                Place::Own => own.append(frame),
                Place::Of { worker, is_placed } => {
                    handover.release(waits);
                    match handover.give(worker, hand(frame, is_placed), waits) {
                        None => handed += 1,
                        Some(Handed { frame, .. }) => {
                            let frame = Frame { bytes: frame.bytes(), meta: &frame.meta };
                            tap.dropped(from, Reason::Handover, Some(frame));
                            refused += 1;
                        }
                    }
                }
                Place::Held(piece) => {
                    handover.hold(piece, now, hand(frame, true));
                    handed += 1;
                }
            }
        }
        handover.release(waits);
        account.handed_over(handed);
        account.dropped(Reason::Handover, refused);
        mem::swap(burst, own);
        let mut places = places.iter();
        headers.retain(|_| places.next() == Some(&Place::Own));
    }

    /// Counts who talks, while somebody asks for it.
    #[inline]
    pub(super) fn sample(&mut self, from: usize, sampler: &mut Sampler) {
        if sampler.is_asked() {
            sampler.sample(&mut self.ends[from].burst, |at| self.headers.get(at)?.as_ref().ok());
        }
    }

    /// Carries the fates out: what leaves stands in `burst`, or in `out` if other frames are among it.
    pub(super) fn settle(&mut self, from: usize) {
        let End { burst, account, .. } = &mut self.ends[from];
        let (mut is_replaced, mut dropped) = (false, 0);
        for (at, fate) in self.fates.iter().enumerate() {
            match *fate {
                Fate::Passes => {}
                Fate::Leaves(len) => {
                    let came = burst.get(at).map_or(0, |frame| frame.bytes.len());
                    if len < came {
                        burst.trim_back(at, came - len);
                        let network = self.headers[at].as_ref().map_or(0, |found| found.1.network);
                        if let Some(frame) = burst.get_mut(at) {
                            pppoe::set_length(frame.bytes, network);
                        }
                    }
                }
                Fate::Replaced(frames) => {
                    // The last fragment counts as the first of those that leave.
                    account.made(frames);
                    account.dropped(Reason::Fragment, 1);
                    is_replaced = true;
                }
                Fate::Dropped(reason) => {
                    account.dropped(reason, 1);
                    dropped += 1;
                }
            }
        }
        // Where all are unseen, no fates are written down.
        account.accepted(if self.are_unseen { burst.len() } else { self.fates.len() - dropped });
        if !is_replaced && dropped == 0 {
            return;
        }
        let mut fates = self.fates.iter();
        if !is_replaced {
            burst.retain(|_| matches!(fates.next(), Some(Fate::Passes | Fate::Leaves(_))));
            return;
        }
        for (frame, fate) in burst.drain(usize::MAX).zip(fates) {
            match *fate {
                Fate::Passes | Fate::Leaves(_) => self.out.append(frame),
                Fate::Replaced(count) => {
                    self.made.drain(count).for_each(|frame| self.out.append(frame));
                }
                Fate::Dropped(_) => {}
            }
        }
    }

    pub(super) fn transmit(&mut self, from: usize) -> Result<(), PortError> {
        let Self { ends, out, tap, .. } = self;
        let [end, to] = ends_from(ends, from);
        let leaving = if out.is_empty() { &mut end.burst } else { out };
        to.transmit(leaving, &end.account, from, tap)?;
        self.tell_too_long(from);
        self.send_back(from)
    }

    /// Tells the senders of packets that did not leave because of their length.
    pub(super) fn tell_too_long(&mut self, from: usize) {
        let Self { ends, frame, back, tap, .. } = self;
        let [end, to] = ends_from(ends, from);
        if to.too_long.is_empty() {
            return;
        }
        while let Some(meta) = to.too_long.answer(frame) {
            end.account.made(1);
            let now = meta.timestamp.and_then(|time| u64::try_from(time.as_nanos()).ok());
            if now.is_some_and(|now| end.rate.allows(now)) {
                push(back, frame, &meta);
            } else {
                end.account.dropped(Reason::ReplyRate, 1);
                tap.reply(from, frame, &meta);
            }
        }
    }

    /// Transmits what leaves by the port that its cause came in by.
    fn send_back(&mut self, from: usize) -> Result<(), PortError> {
        let Self { ends, back, tap, .. } = self;
        if back.is_empty() {
            return Ok(());
        }
        let account = Arc::clone(&ends[from].account);
        ends[from].transmit(back, &account, from, tap).map(drop)
    }
}

fn push(burst: &mut Burst, bytes: &[u8], like: &FrameMeta) {
    burst.push(bytes, FrameMeta { wire_length: bytes.len() as u32, ..*like });
}
