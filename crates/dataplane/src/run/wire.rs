//! [`Wire`]: two ports; what comes in by one and is accepted leaves by the other. [`Wire::turn`] is a frame's whole
//! way: received, headers found once, handled, its fate settled, transmitted.
//!
//! Contract: one thread's own. No allocation once its buffers have grown, no lock (an unknown verdict takes one for
//! its burst). Frames leave in the order in which they came. All frames of a burst go through one program. Every
//! frame ends in the [`Account`] of its direction.

use std::mem;
use std::sync::Arc;

use packet::{
    Checksums, Headers, Link, checksum, ethernet, ethertype, parse, pppoe, reply, unfinished,
};
use pktio::{
    Burst, ChecksumState, Direction, FrameMeta, FrameMut, Port, PortError, Readiness, VlanTag,
};

use super::account::{Account, Reason};
use super::causes::{Causes, OfBurst, Seen};
use super::config::Other;
use super::replies::Rate;
use crate::arrival::{Arrival, Origin};
use crate::disposition::{FinalVerdict, Skip};
use crate::egress::Leaves;
use crate::handler::BURST;
use crate::headers::find_headers;
use crate::link::link_of;
use crate::publish::{BurstGuard, Worker};

/// A port that a worker drives.
pub type BoxedPort = Box<dyn Port + Send>;

/// Two ports, joined.
pub(super) struct Wire {
    ends: [End; 2],
    other: Other,
    /// What is known of each frame before it is handled: `None` where nobody can read it.
    headers: Vec<Option<(Link, Headers)>>,
    fates: Vec<Fate>,
    /// Frames that leave in place of others.
    made: Burst,
    /// What leaves, where that is not what came, in order.
    out: Burst,
    /// Replies, back by the port of arrival.
    back: Burst,
    /// Where a frame is put together.
    frame: Vec<u8>,
    of_burst: OfBurst,
}

/// One end of a wire, with the frames that come in by it.
struct End {
    name: Arc<str>,
    port: BoxedPort,
    burst: Burst,
    account: Arc<Account>,
    rate: Rate,
    has_ended: bool,
}

/// What becomes of a frame of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its first bytes leave.
    Leaves(usize),
    /// So many of those that were made leave in its place.
    Replaced(usize),
    Dropped(Reason),
}

impl Wire {
    pub(super) fn new(ends: [(Arc<str>, BoxedPort); 2], other: Other) -> Self {
        let end = |(name, port)| End {
            name,
            port,
            burst: Burst::new(),
            account: Arc::default(),
            rate: Rate::new(),
            has_ended: false,
        };
        Self {
            ends: ends.map(end),
            other,
            headers: Vec::new(),
            fates: Vec::new(),
            made: Burst::with_capacity(0),
            out: Burst::with_capacity(0),
            back: Burst::with_capacity(0),
            frame: Vec::new(),
            of_burst: OfBurst::new(),
        }
    }

    /// What became of the frames that came in by each end.
    pub(super) fn accounts(&self) -> [Arc<Account>; 2] {
        self.ends.each_ref().map(|end| Arc::clone(&end.account))
    }

    /// The names of its ends.
    pub(super) fn names(&self) -> [Arc<str>; 2] {
        self.ends.each_ref().map(|end| Arc::clone(&end.name))
    }

    /// What tells when its ports have frames; those that have ended never have.
    pub(super) fn readiness(&self) -> [Readiness<'_>; 2] {
        self.ends.each_ref().map(|end| match end.has_ended {
            true => Readiness::Never,
            false => end.port.readiness(),
        })
    }

    /// Takes one burst from each end on its way: how many frames came. `now` is in nanoseconds since the Unix epoch,
    /// for frames without a time of their own.
    pub(super) fn turn(
        &mut self,
        worker: &mut Worker,
        causes: &Causes,
        now: u64,
    ) -> Result<usize, PortError> {
        let mut frames = 0;
        for from in [0, 1] {
            let received = self.receive(from)?;
            if received > 0 {
                self.evaluate(from, worker, causes, now);
                self.settle(from);
                self.transmit(from)?;
            }
            frames += received;
        }
        Ok(frames)
    }

    /// As [`Wire::turn`], after a panic: nothing is evaluated, and all leaves or nothing does.
    pub(super) fn turn_unevaluated(&mut self, is_open: bool) -> Result<usize, PortError> {
        let mut frames = 0;
        for from in [0, 1] {
            let received = self.receive(from)?;
            let [end, to] = self.ends_from(from);
            if is_open {
                end.account.unevaluated(transmit(&mut end.burst, to, &end.account)?);
            } else {
                end.account.dropped(Reason::Panic, received);
                end.burst.clear();
            }
            frames += received;
        }
        Ok(frames)
    }

    /// Gives up the burst that is on its way.
    pub(super) fn abandon(&mut self, reason: Reason) {
        for end in &mut self.ends {
            end.account.abandon(reason);
            end.burst.clear();
        }
        self.made.clear();
        self.out.clear();
        self.back.clear();
    }

    fn receive(&mut self, from: usize) -> Result<usize, PortError> {
        let end = &mut self.ends[from];
        if end.has_ended {
            return Ok(0);
        }
        let received = end.port.rx_burst(&mut end.burst)?;
        end.account.received(received);
        complete_checksums(&mut end.burst);
        // A capture has nothing more then; a live port has nothing now, and says what to wait for.
        end.has_ended =
            received == 0 && matches!(end.port.readiness(), Readiness::Always | Readiness::Never);
        Ok(received)
    }

    /// Finds the headers of all frames, and each one's fate.
    fn evaluate(&mut self, from: usize, worker: &mut Worker, causes: &Causes, now: u64) {
        let mut guard = worker.burst();
        let program = guard.program();
        self.headers.clear();
        self.headers.extend(self.ends[from].burst.iter().map(|frame| {
            let link = match link_of(frame.meta.link_type)? {
                Link::Ethernet => Link::Wire,
                link => link,
            };
            let headers = find_headers(program, frame.bytes, link, frame.bytes.len(), Origin::Wire);
            Some((link, headers))
        }));
        self.fates.clear();
        for at in 0..self.headers.len() {
            if at % BURST == 0 {
                let frames = self.ends[from].burst.range(at..at + BURST);
                let headers = &self.headers[at..];
                guard.prefetch(
                    frames
                        .zip(headers)
                        .filter_map(|(frame, found)| Some((frame.bytes, &found.as_ref()?.1))),
                );
            }
            let fate = self.handle(from, at, &mut guard, now);
            self.fates.push(fate);
        }
        causes.add(&mut self.of_burst, guard.program());
    }

    /// Takes a frame through the rules.
    fn handle(&mut self, from: usize, at: usize, guard: &mut BurstGuard<'_>, now: u64) -> Fate {
        let [End { name: input, burst, account, rate, .. }, End { name: output, .. }] =
            ends_from(&mut self.ends, from);
        let vlan = burst.live(at).and_then(|live| live.vlan);
        let Some(frame) = burst.get_mut(at) else { return Fate::Dropped(Reason::Truncated) };
        let (bytes, meta) = (frame.bytes, *frame.meta);
        let Some((link, headers)) = &self.headers[at] else {
            return Fate::Dropped(Reason::LinkType);
        };
        if (meta.wire_length as usize) > bytes.len() {
            return Fate::Dropped(Reason::Truncated);
        }
        let given = meta.timestamp.and_then(|time| u64::try_from(time.as_nanos()).ok());
        let now = given.unwrap_or(now);
        let arrival = Arrival {
            time: Some(now),
            direction: Direction::Inbound,
            interface: Some(input),
            input: Some(input),
            output: Some(output),
            on_wire: true,
            origin: Origin::Wire,
            headers: Some(headers),
            ..Arrival::new(meta.number, *link, bytes.len())
        };
        let mut seen = Seen::default();
        let egress = guard.handle(bytes, &arrival, &mut seen);
        let verdict = egress.outcome.end.verdict;
        if verdict == FinalVerdict::Unknown {
            seen.count(&mut self.of_burst);
        }
        let fate = match egress.leaves {
            Leaves::InPlace(len) => Fate::Leaves(len),
            Leaves::Others(frames) => {
                for bytes in frames.iter() {
                    compose(&mut self.frame, bytes, vlan, headers.network);
                    push(&mut self.made, &self.frame, &meta);
                }
                Fate::Replaced(frames.len())
            }
            Leaves::Nothing if verdict == FinalVerdict::Skip(Skip::Family) => {
                unruled(bytes.len(), headers, self.other)
            }
            Leaves::Nothing => Fate::Dropped(Reason::of(&verdict)),
        };
        if let Some(answer) = egress.reply
            && reply::framed(bytes, headers, answer.bytes, &mut self.frame).is_ok()
        {
            account.made(1);
            if rate.allows(now) {
                retag(&mut self.frame, vlan);
                push(&mut self.back, &self.frame, &meta);
            } else {
                account.dropped(Reason::ReplyRate, 1);
            }
        }
        fate
    }

    /// Carries the fates out: what leaves stands in `burst`, or in `out` if other frames are among it.
    fn settle(&mut self, from: usize) {
        let End { burst, account, .. } = &mut self.ends[from];
        let mut is_replaced = false;
        for (at, fate) in self.fates.iter().enumerate() {
            match *fate {
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
                Fate::Dropped(reason) => account.dropped(reason, 1),
            }
        }
        let mut fates = self.fates.iter();
        if !is_replaced {
            burst.retain(|_| matches!(fates.next(), Some(Fate::Leaves(_))));
            return;
        }
        for (frame, fate) in burst.drain(usize::MAX).zip(fates) {
            match *fate {
                Fate::Leaves(_) => self.out.append(frame),
                Fate::Replaced(count) => {
                    self.made.drain(count).for_each(|frame| self.out.append(frame));
                }
                Fate::Dropped(_) => {}
            }
        }
    }

    fn transmit(&mut self, from: usize) -> Result<(), PortError> {
        let [end, to] = ends_from(&mut self.ends, from);
        let leaving = if self.out.is_empty() { &mut end.burst } else { &mut self.out };
        transmit(leaving, to, &end.account)?;
        if !self.back.is_empty() {
            let account = Arc::clone(&end.account);
            transmit(&mut self.back, end, &account)?;
        }
        Ok(())
    }

    fn ends_from(&mut self, from: usize) -> [&mut End; 2] {
        ends_from(&mut self.ends, from)
    }
}

/// Completes the checksums that the kernel left unfinished: rules update those that are right. A superframe keeps its
/// segments, of which the kernel sums each anew.
fn complete_checksums(burst: &mut Burst) {
    for at in 0..burst.len() {
        let Some(live) = burst.live_mut(at) else { continue };
        let state = mem::replace(&mut live.checksum, ChecksumState::NotKnown);
        let Some(FrameMut { bytes, .. }) = burst.get_mut(at) else { continue };
        match state {
            ChecksumState::NotKnown | ChecksumState::Verified => {}
            ChecksumState::Unfinished { start, offset } => {
                checksum::complete(bytes, start.into(), offset.into());
            }
            // Before any rule, under rules of any family, and after a panic: so these headers are its own.
            ChecksumState::MaybeUnfinished => {
                let headers = parse(Link::Wire, bytes, bytes.len(), Checksums::Ignore);
                unfinished::complete(bytes, &headers);
            }
        }
    }
}

/// The end by which frames come in, and the one by which they leave.
fn ends_from(ends: &mut [End; 2], from: usize) -> [&mut End; 2] {
    let [first, second] = ends;
    if from == 0 { [first, second] } else { [second, first] }
}

/// Transmits a burst: how many frames the port took. The others are dropped, as by a card whose ring is full.
fn transmit(burst: &mut Burst, to: &mut End, account: &Account) -> Result<usize, PortError> {
    if burst.is_empty() {
        return Ok(0);
    }
    let sent = to.port.tx_burst(burst)?;
    account.sent(sent);
    account.dropped(Reason::TxFull, burst.len());
    burst.clear();
    Ok(sent)
}

/// A frame for whose family there are no rules: IP passes, as without rules in the kernel, else the wire decides.
fn unruled(len: usize, headers: &Headers, other: Other) -> Fate {
    let is_ip = matches!(headers.link.ethertype, ethertype::IPV4 | ethertype::IPV6);
    match other {
        _ if is_ip => Fate::Leaves(len),
        Other::Pass => Fate::Leaves(len),
        Other::Drop => Fate::Dropped(Reason::Other),
    }
}

/// A frame that was made, as it leaves.
fn compose(to: &mut Vec<u8>, bytes: &[u8], vlan: Option<VlanTag>, network: usize) {
    to.clear();
    to.extend_from_slice(bytes);
    pppoe::set_length(to, network);
    retag(to, vlan);
}

/// Puts the tag back in that the port took out of the frame that came: what is made has none with it.
fn retag(frame: &mut Vec<u8>, vlan: Option<VlanTag>) {
    let Some(VlanTag { tci, tpid }) = vlan else { return };
    if frame.len() >= ethernet::TYPE.start {
        let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
        frame.splice(ethernet::TYPE.start..ethernet::TYPE.start, [a, b, c, d]);
    }
}

fn push(burst: &mut Burst, bytes: &[u8], like: &FrameMeta) {
    burst.push(bytes, FrameMeta { wire_length: bytes.len() as u32, ..*like });
}
