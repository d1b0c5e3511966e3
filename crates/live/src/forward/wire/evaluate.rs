//! A burst's frames, taken through the rules one by one: the fate of each.
//!
//! Contract: as for [`Wire`]. What all frames of a burst have in common is written down once.

use std::sync::Arc;

use packet::{Headers, Link, pppoe, reply};
use pktio::{Burst, Direction, Port, Readiness};

use super::end::{End, ends_from};
use super::{Wire, push};
use crate::config::Other;
use crate::forward::account::{Account, Reason};
use crate::forward::causes::{Causes, OfBurst, Seen};
use crate::forward::fate::{Fate, unruled};
use crate::forward::replies::Rate;
use crate::forward::shadow::{ShadowWorker, Watched};
use crate::forward::taps::{Decision, Judged, Tap};
use crate::ports::offload::longest;
use dataplane::publish::BurstGuard;
use dataplane::{Arrival, Disposition, FinalVerdict, Origin, Outcome, Skip};
use dataplane::{BURST, Leaves};

/// A burst on its way through the rules.
struct Evaluation<'w> {
    from: usize,
    burst: &'w mut Burst,
    headers: &'w [Result<(Link, Headers), Fate>],
    /// What is given of the present frame; most of it is the same for all frames.
    arrival: Arrival<'w>,
    /// The time of frames without a time of their own.
    now: u64,
    other: Other,
    account: &'w Account,
    rate: &'w mut Rate,
    /// Frames that leave in place of others, replies, and the buffer where a frame is reassembled.
    made: &'w mut Burst,
    back: &'w mut Burst,
    frame: &'w mut Vec<u8>,
    of_burst: &'w mut OfBurst,
    tap: &'w mut Tap,
}

impl Wire {
    /// Finds the fate of all frames; where no rule is for any, they have it already, and none is written down.
    pub(crate) fn evaluate(
        &mut self,
        from: usize,
        guard: &mut BurstGuard<'_>,
        causes: &Causes,
        shade: &mut ShadowWorker,
        now: u64,
    ) {
        self.fates.clear();
        if self.are_unseen {
            return;
        }
        let Self { ends, crossings, headers, made, back, frame, of_burst, tap, .. } = self;
        let [End { name: input, port, burst, account, rate, .. }, End { name: output, .. }] =
            ends_from(ends, from);
        // Frames that are read from a capture are not lost while they wait.
        let may_be_lost = !matches!(port.readiness(), Readiness::Always);
        let mut watched = shade.burst(now, headers.len(), may_be_lost);
        let arrival = Arrival {
            direction: Direction::Inbound,
            interface: Some(input),
            input: Some(input),
            output: Some(output),
            wire: Some(&crossings[from]),
            origin: Origin::Wire,
            ..Arrival::new(0, Link::Wire, 0)
        };
        let other = self.other;
        let of = Evaluation {
            from,
            burst,
            headers,
            arrival,
            now,
            other,
            account,
            rate,
            made,
            back,
            frame,
            of_burst,
            tap,
        };
        of.fates(guard, watched.as_mut(), &mut self.fates);
        causes.add(&mut self.of_burst, guard.program());
    }
}

impl Evaluation<'_> {
    /// The fate of each frame.
    fn fates(
        mut self,
        guard: &mut BurstGuard<'_>,
        mut watched: Option<&mut Watched<'_>>,
        fates: &mut Vec<Fate>,
    ) {
        for at in 0..self.headers.len() {
            if at % BURST == 0 {
                let frames = self.burst.range(at..at + BURST);
                let headers = &self.headers[at..];
                guard.prefetch(
                    frames
                        .zip(headers)
                        .filter_map(|(frame, found)| Some((frame.bytes, &found.as_ref().ok()?.1))),
                );
            }
            let fate = match &self.headers[at] {
                Ok((link, headers)) => {
                    self.handle(at, *link, headers, guard, watched.as_deref_mut())
                }
                Err(fate) => *fate,
            };
            if self.tap.wants(fate.reason()) {
                self.tell(at, fate.reason(), guard);
            }
            fates.push(fate);
        }
    }

    /// Reports a frame to the taps.
    #[cold]
    fn tell(&mut self, at: usize, reason: Option<Reason>, guard: &BurstGuard<'_>) {
        let Some(frame) = self.burst.get(at) else { return };
        let decision = |judged| Decision { judged, program: Arc::clone(guard.shared_program()) };
        self.tap.decided(self.from, at, frame, reason, decision);
    }
}

impl<'w> Evaluation<'w> {
    /// Takes a frame through the rules.
    #[inline]
    fn handle(
        &mut self,
        at: usize,
        link: Link,
        headers: &'w Headers,
        guard: &mut BurstGuard<'_>,
        mut watched: Option<&mut Watched<'_>>,
    ) -> Fate {
        let Self { burst, arrival, .. } = self;
        let ages = arrival.wire.is_some_and(|wire| wire.ages);
        let segments = if ages { burst.live(at).and_then(|live| live.segments) } else { None };
        let Some(frame) = burst.get_mut(at) else { return Fate::Dropped(Reason::Truncated) };
        let (bytes, meta) = (frame.bytes, frame.meta);
        let came = bytes.len();
        if (meta.wire_length as usize) > came {
            return Fate::Dropped(Reason::Truncated);
        }
        let given = meta.timestamp.and_then(|time| u64::try_from(time.as_nanos()).ok());
        let now = given.unwrap_or(self.now);
        arrival.number = meta.number;
        arrival.link = link;
        arrival.wire_len = came;
        arrival.time = Some(now);
        arrival.segment = segments.and_then(|segments| longest(bytes, headers, segments));
        arrival.headers = Some(headers);
        self.tap.came(at, bytes);
        if let Some(watched) = &mut watched {
            watched.keep(bytes);
        }
        let mut seen = Seen::default();
        let egress = guard.handle(bytes, arrival, &mut seen);
        let Outcome { end, tuple, .. } = &egress.outcome;
        let verdict = &end.verdict;
        if matches!(verdict, FinalVerdict::Unknown) {
            seen.count(self.of_burst);
        }
        let fate = match egress.leaves {
            Leaves::InPlace(len) if len == came => Fate::Passes,
            Leaves::InPlace(len) => Fate::Leaves(len),
            Leaves::Others(frames) => {
                for bytes in frames.iter() {
                    compose(self.frame, bytes, headers.network);
                    push(self.made, self.frame, meta);
                }
                Fate::Replaced(frames.len())
            }
            Leaves::Nothing if matches!(verdict, FinalVerdict::Skip(Skip::Family)) => {
                unruled(headers.link.ethertype, self.other)
            }
            Leaves::Nothing => Fate::Dropped(Reason::of(verdict)),
        };
        if self.tap.wants(fate.reason()) {
            let Disposition { verdict, family, .. } = *end;
            self.tap.judged(Judged { verdict, family, why: seen.first() });
        }
        if let Some(answer) = egress.reply
            && reply::framed(bytes, headers, answer.bytes, self.frame).is_ok()
        {
            self.account.made(1);
            if self.rate.allows(now) {
                push(self.back, self.frame, meta);
            } else {
                self.account.dropped(Reason::ReplyRate, 1);
                self.tap.reply(self.from, self.frame, meta);
            }
        }
        if let Some(watched) = watched {
            watched.compare((*end, *tuple), guard.program(), arrival);
        }
        fate
    }
}

/// Builds a frame from a packet that was made.
fn compose(to: &mut Vec<u8>, bytes: &[u8], network: usize) {
    to.clear();
    to.extend_from_slice(bytes);
    pppoe::set_length(to, network);
}
