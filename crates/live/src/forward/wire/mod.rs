//! [`Wire`]: two ports; a frame that one receives and the rules accept leaves through the other. [`Wire::pass`] is a
//! frame's whole way: headers found once, given to its owner if that is another worker, handled, its fate settled,
//! transmitted.
//!
//! Contract: one thread's own; each worker has its own of every wire. No allocation once its buffers have grown; for a
//! burst the evaluator is locked, which is the worker's own unless workers take turns (an unknown verdict takes one lock more). Frames leave in the order in which they came. All frames of a
//! burst go through one program. Every frame ends in the [`Account`] of its direction.

mod end;
mod evaluate;
mod middlebox;
mod waits;

use std::mem;
use std::sync::Arc;

use packet::{Headers, Link, pppoe};
use pktio::{Burst, Frame, FrameBuf, FrameMeta, Port, PortError, Readiness, Taken};

use crate::config::Other;
use crate::forward::account::{Account, Reason};
use crate::forward::causes::{Causes, OfBurst};
use crate::forward::evaluator::{Evaluator, EvaluatorHandle};
use crate::forward::fate::{Fate, unseen};
use crate::forward::handover::{Handover, Place};
use crate::forward::handover_frame::HandoverFrame;
use crate::forward::talkers::Sampler;
use crate::forward::taps::Tap;
use dataplane::{Crossing, Origin, Program, find_headers_into, link_of};
use waits::Waits;

pub(crate) use end::{Driven, End, ends_from};

/// A wire: two joined ports.
pub(crate) struct Wire {
    number: u16,
    pub(crate) ends: [End; 2],
    other: Other,
    /// How the frames that each end receives cross the wire.
    crossings: [Crossing; 2],
    /// What is known of each frame before it is handled: its headers, or its fate.
    pub(crate) headers: Vec<Result<(Link, Headers), Fate>>,
    /// No rule is for any of the frames: all leave unchanged.
    are_unseen: bool,
    /// The owner of each frame, where several workers share them.
    places: Vec<Place>,
    /// A worker's own frames, where frames of others were among them.
    pub(crate) own: Burst,
    fates: Vec<Fate>,
    /// Frames that leave in place of others.
    pub(crate) made: Burst,
    /// What leaves, in order, where that is not what came.
    pub(crate) out: Burst,
    /// Replies, which leave through the port of arrival.
    pub(crate) back: Burst,
    /// The buffer where a frame is reassembled.
    frame: Vec<u8>,
    of_burst: OfBurst,
    /// Reports frames to watching clients.
    pub(crate) tap: Tap,
    /// Frames that a middlebox is to see.
    waits: Option<Box<Waits>>,
}

/// What a worker lends its wires for one turn.
pub(crate) struct Turn<'w> {
    pub(crate) evaluator: &'w EvaluatorHandle,
    pub(crate) causes: &'w Causes,
    pub(crate) handover: &'w mut Handover,
    pub(crate) sampler: &'w mut Sampler,
    pub(crate) mode: Mode,
    /// Frames that must not be lost wait for room: no others of that kind are received.
    pub(crate) holds: bool,
    /// Nanoseconds since the Unix epoch, for frames without a time of their own.
    pub(crate) now: u64,
}

/// The treatment of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// By the rules.
    Evaluated,
    /// After a panic: all frames leave.
    Open,
    /// After a panic, or a failure: no frame leaves.
    Dropped(Reason),
}

impl Wire {
    pub(crate) fn new(
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

    /// The counters of the frames that each end received, by fate.
    pub(crate) fn accounts(&self) -> [Arc<Account>; 2] {
        self.ends.each_ref().map(|end| Arc::clone(&end.account))
    }

    /// How to wait for frames on the ports; a port that has ended never has any.
    pub(crate) fn readiness(&self) -> [Readiness<'_>; 2] {
        self.ends.each_ref().map(|end| match end.has_ended {
            true => Readiness::Never,
            false => end.port.readiness(),
        })
    }

    /// Processes one burst of each end; returns the number of frames received.
    pub(crate) fn turn(&mut self, means: &mut Turn<'_>) -> Result<usize, PortError> {
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

    /// Processes frames that another worker received, at the end `from`; frames that are not `placed` may go on to a
    /// third worker.
    pub(crate) fn take_over(
        &mut self,
        from: usize,
        frames: impl Iterator<Item = FrameBuf>,
        is_placed: bool,
        means: &mut Turn<'_>,
    ) -> Result<(), PortError> {
        let End { burst, account, .. } = &mut self.ends[from];
        burst.clear();
        frames.for_each(|frame| burst.push_frame(frame));
        account.taken_over(burst.len());
        self.pass(from, !is_placed, means)
    }

    /// Processes the frames that an end received.
    fn pass(&mut self, from: usize, steers: bool, means: &mut Turn<'_>) -> Result<(), PortError> {
        self.tap.begins(means.now);
        match means.mode {
            Mode::Evaluated => {
                let mut evaluator = means.evaluator.lock();
                let Evaluator { rules, shade } = &mut *evaluator;
                let mut guard = rules.burst();
                self.find_headers(from, guard.program());
                if steers {
                    self.hand_over(from, means.handover, means.now);
                }
                self.sample(from, means.sampler);
                self.evaluate(from, &mut guard, means.causes, shade, means.now);
                drop(guard);
                drop(evaluator);
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

    /// Drops all frames of an end.
    pub(crate) fn drop_burst(&mut self, from: usize, reason: Reason) {
        let Self { ends, tap, .. } = self;
        let End { burst, account, .. } = &mut ends[from];
        account.dropped(reason, burst.len());
        burst.iter().for_each(|frame| tap.dropped(from, reason, Some(frame)));
        burst.clear();
    }

    /// Drops a fragment that was held, and that nothing waits for any more.
    pub(crate) fn drop_held(&mut self, from: usize) {
        self.drop_handed(from, Reason::Fragment, None);
    }

    /// Drops a frame that another worker handed to this one.
    pub(crate) fn drop_handed(&mut self, from: usize, reason: Reason, frame: Option<&FrameBuf>) {
        let account = &self.ends[from].account;
        account.taken_over(1);
        account.dropped(reason, 1);
        let frame = frame.map(|frame| Frame { bytes: frame.bytes(), meta: &frame.meta });
        self.tap.dropped(from, reason, frame);
    }

    /// Makes the ports send all that they took.
    pub(crate) fn flush(&mut self) -> Result<(), PortError> {
        self.ends.iter_mut().try_for_each(|end| end.port.flush())
    }

    /// Gives up the burst that is on its way, except the frames of each end that are at a middlebox.
    pub(crate) fn abandon(&mut self, reason: Reason, away: [usize; 2]) {
        for (end, away) in self.ends.iter_mut().zip(away) {
            end.count_unopened();
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

    pub(crate) fn receive(&mut self, from: usize) -> Result<usize, PortError> {
        let received = self.ends[from].receive()?;
        if received == 0 {
            return Ok(0);
        }
        Ok(self.ends[from].open(from, &mut self.tap))
    }

    /// Parses every frame, except those whose EtherType alone decides their fate.
    pub(crate) fn find_headers(&mut self, from: usize, program: &Program) {
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
            // Sharing frames out needs their addresses, whatever rules there are.
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

    /// Gives the frames of other workers to them, and keeps its own with their headers.
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
        // Frames that are read from a capture are not lost on the way: reading waits.
        let waits = matches!(port.readiness(), Readiness::Always);
        let hand = |frame: Taken<'_>, is_placed| HandoverFrame {
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
                        Some(HandoverFrame { frame, .. }) => {
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

    /// Counts talkers, while a client asks for them.
    #[inline]
    pub(crate) fn sample(&mut self, from: usize, sampler: &mut Sampler) {
        if sampler.is_asked() {
            sampler.sample(&mut self.ends[from].burst, |at| self.headers.get(at)?.as_ref().ok());
        }
    }

    /// Carries the fates out: what leaves stands in `burst`, or in `out` if other frames are among it.
    pub(crate) fn settle(&mut self, from: usize) {
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
                    // The last fragment counts as the first of the frames that leave.
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
        // Where no rule is for any frame, no fates are written down.
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

    pub(crate) fn transmit(&mut self, from: usize) -> Result<(), PortError> {
        let Self { ends, out, tap, .. } = self;
        let [end, to] = ends_from(ends, from);
        let leaving = if out.is_empty() { &mut end.burst } else { out };
        to.transmit(leaving, &end.account, from, tap)?;
        self.tell_too_long(from);
        self.send_back(from)
    }

    /// Sends ICMP errors to the senders of packets that did not leave because of their length.
    pub(crate) fn tell_too_long(&mut self, from: usize) {
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

    /// Transmits what leaves through the port of arrival of its cause.
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
