//! [`Direct`]: the way to a peer without the relay through which it is reached first.
//!
//! An attempt sends probes to the places where the peer may be, while the relay carries the traffic. The peer's endpoint
//! moves to the place from which one is answered. There it stays while probes are answered: one goes out where data was sent
//! and nothing came, where the peer is heard through the relay, and now and then. Once several in a row are lost, the endpoint
//! is the relay again. The endpoint of such a peer moves by nothing else, but from one of its relays to another: that a datagram came
//! from somewhere does not show that one arrives there.
//!
//! Contract: pure; time is passed in. Bounded by [`CANDIDATES`]. An attempt ends, whether anybody answers or not.

use std::net::SocketAddr;

use crate::limits::{
    ATTEMPT_ROUNDS, ATTEMPT_STEP, ATTEMPT_WAIT, CANDIDATES, DIRECT_AGAIN, DIRECT_IDLE, DIRECT_LOST,
    DIRECT_RETRY, DIRECT_SILENCE, SILENCE_TIMEOUT,
};
use crate::relays::Relays;

/// How a peer is reached that the relay reaches, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Through the relay.
    Relay,
    /// At one of its own addresses.
    Direct,
}

/// What was tried to reach a peer without its relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Attempts that were begun.
    pub attempts: u32,
    /// Whether one is under way, or waits for its time.
    pub is_trying: bool,
    /// Places that the last one tries.
    pub places: usize,
    /// Direct paths that were there and were given up.
    pub lost: u32,
}

/// A number of ours has this bit, which probes of the length have not; then a count, then the place that it went to: so an
/// answer counts where it comes from that place.
const NUMBERS: u32 = 1 << 31;
/// Bits of the place among the candidates.
const PLACE: u32 = 4;
/// The place of the endpoint, of a peer that is reached directly.
const HELD: usize = 15;
/// The place of all relays: which one it is, the answer shows.
const RELAYED: usize = 14;
/// The number of a probe whose sender waits for no answer.
pub(crate) const ASIDE: u32 = u32::MAX;
const _: () = assert!(CANDIDATES <= RELAYED);

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A probe of this number goes there.
    Probe(SocketAddr, u32),
    /// The relay is to know where we are, and so are routers on the way to it.
    Keep(SocketAddr),
    /// The relay is the endpoint again.
    FallBack(SocketAddr),
    /// Another relay is the endpoint.
    Move(SocketAddr),
}

/// Where a peer may be, and how it is there.
#[derive(Debug)]
pub(crate) struct Direct {
    relays: Relays,
    candidates: Vec<SocketAddr>,
    attempt: Option<Attempt>,
    /// Another place from which the peer was heard, which is probed once.
    stray: Option<SocketAddr>,
    /// When a stray may be probed again.
    stray_at: u64,
    /// The counts of probes whose answers are taken: from the first to the last before the next.
    first: u32,
    next: u32,
    /// When the direct path was probed last, how many probes were not answered since, and when the next one is due.
    sent: u64,
    unanswered: u32,
    due: u64,
    /// When something went through the relay last.
    kept: u64,
    /// Attempts that were begun, and direct paths that were given up.
    counts: (u32, u32),
}

/// An attempt: probes to all candidates in turn, some times.
#[derive(Debug)]
struct Attempt {
    /// When the next round begins.
    at: u64,
    /// When it ends if there is no session to probe by.
    until: u64,
    rounds: u32,
    /// The next candidate of the round.
    turn: usize,
}

impl Attempt {
    /// Whether it sends probes at that time.
    fn is_on(&self, now: u64) -> bool {
        self.at <= now.saturating_add(ATTEMPT_STEP)
    }
}

impl Direct {
    pub(crate) fn new(relays: Relays) -> Self {
        Self {
            relays,
            candidates: Vec::new(),
            attempt: None,
            stray: None,
            stray_at: 0,
            first: 0,
            next: 0,
            sent: 0,
            unanswered: 0,
            due: 0,
            kept: 0,
            counts: (0, 0),
        }
    }

    pub(crate) fn path(&self, endpoint: SocketAddr) -> Path {
        if self.relays.has(endpoint) { Path::Relay } else { Path::Direct }
    }

    /// What was tried.
    pub(crate) fn tried(&self) -> Tried {
        let ((attempts, lost), places) = (self.counts, self.candidates.len());
        Tried { attempts, is_trying: self.attempt.is_some(), places, lost }
    }

    /// Begins an attempt at that time. Where the peer is reached directly, it only notes where else it may be.
    pub(crate) fn attempt(&mut self, candidates: &[SocketAddr], endpoint: SocketAddr, at: u64) {
        let others = candidates.iter().filter(|candidate| !self.relays.has(**candidate));
        self.candidates = others.take(CANDIDATES).copied().collect();
        self.first = self.next;
        if self.relays.has(endpoint) {
            self.begin(at);
        }
    }

    fn begin(&mut self, at: u64) {
        let until = at.saturating_add(ATTEMPT_WAIT);
        self.first = self.next;
        self.counts.0 = self.counts.0.saturating_add(1);
        self.attempt = Some(Attempt { at, until, rounds: ATTEMPT_ROUNDS, turn: 0 });
    }

    /// The relays besides the endpoint, of a peer that is reached by one of several.
    pub(crate) fn other_relays(&self, endpoint: SocketAddr) -> Vec<SocketAddr> {
        let is_by_relay = self.relays.used() == endpoint;
        self.relays.others().filter(|_| is_by_relay).collect()
    }

    /// Something authentic came from there; returns what is the endpoint from now on, if that is another one.
    pub(crate) fn heard(
        &mut self,
        from: SocketAddr,
        endpoint: Option<SocketAddr>,
        now: u64,
    ) -> Option<SocketAddr> {
        let used = self.relays.used();
        if self.relays.are_many() && self.relays.heard(from, now) && endpoint == Some(used) {
            return Some(from);
        }
        if endpoint != Some(from) {
            self.heard_elsewhere(from, now);
        }
        None
    }

    #[cold]
    fn heard_elsewhere(&mut self, from: SocketAddr, now: u64) {
        if self.relays.has(from) {
            // The peer may have lost the direct path.
            if now >= self.sent.saturating_add(DIRECT_SILENCE) {
                self.due = self.due.min(now);
            }
        } else if !self.attempt.as_ref().is_some_and(|attempt| attempt.is_on(now))
            || !self.candidates.contains(&from)
        {
            self.stray.get_or_insert(from);
        }
    }

    /// When the next step is due. `silence` is when data will have been unanswered for [`SILENCE_TIMEOUT`].
    pub(crate) fn deadline(
        &self,
        (endpoint, silence): (SocketAddr, Option<u64>),
        is_up: bool,
    ) -> Option<u64> {
        let is_direct = !self.relays.has(endpoint);
        let held = is_direct.then(|| self.held_until(silence));
        let kept = (is_direct && !self.relays.are_many()).then(|| self.kept_until());
        let stray = self.stray.map(|_| self.stray_at);
        let attempt = self.attempt.as_ref().map(|attempt| attempt.at);
        let survey = self.relays.deadline(silence.filter(|_| !is_direct)).filter(|_| is_up);
        [held, kept, stray, attempt, survey].into_iter().flatten().min()
    }

    fn kept_until(&self) -> u64 {
        self.kept.saturating_add(DIRECT_IDLE)
    }

    /// When the direct path is probed next, or given up.
    fn held_until(&self, silence: Option<u64>) -> u64 {
        if self.unanswered > 0 {
            return self.sent.saturating_add(DIRECT_AGAIN);
        }
        let silent = |end: u64| end.saturating_sub(SILENCE_TIMEOUT - DIRECT_SILENCE);
        silence.map_or(self.due, |end| self.due.min(silent(end)))
    }

    /// The next step, if one is due. `is_up` says whether there is a session to probe by.
    pub(crate) fn step(
        &mut self,
        (endpoint, silence): (SocketAddr, Option<u64>),
        is_up: bool,
        now: u64,
    ) -> Option<Step> {
        let is_direct = !self.relays.has(endpoint);
        if is_direct && self.held_until(silence) <= now {
            return Some(self.hold(endpoint, now));
        }
        if is_direct && !self.relays.are_many() && self.kept_until() <= now {
            self.kept = now;
            return Some(Step::Keep(self.relays.used()));
        }
        if self.relays.are_many() && is_up {
            if self.relays.settle(now) && !is_direct {
                return Some(Step::Move(self.relays.used()));
            }
            let suspicion = silence.filter(|_| !is_direct);
            if let Some(relay) = self.relays.probe(suspicion, self.next, now) {
                return Some(self.probe(relay, RELAYED));
            }
        }
        if self.stray_at <= now
            && let Some(stray) = self.stray.take()
        {
            self.stray_at = now.saturating_add(2 * ATTEMPT_STEP);
            let place = self.remember(stray);
            return Some(self.probe(stray, place));
        }
        self.go_on(is_up, now)
    }

    fn hold(&mut self, endpoint: SocketAddr, now: u64) -> Step {
        if self.unanswered >= DIRECT_LOST {
            // It may come back, by itself or by both ends trying.
            self.unanswered = 0;
            self.counts.1 = self.counts.1.saturating_add(1);
            self.remember(endpoint);
            self.begin(now.saturating_add(DIRECT_RETRY));
            return Step::FallBack(self.relays.used());
        }
        self.unanswered += 1;
        self.sent = now;
        self.due = now.saturating_add(DIRECT_IDLE);
        self.probe(endpoint, HELD)
    }

    /// The next probe of an attempt.
    fn go_on(&mut self, is_up: bool, now: u64) -> Option<Step> {
        let attempt = self.attempt.as_mut().filter(|attempt| attempt.at <= now)?;
        let is_over = if is_up { attempt.rounds == 0 } else { attempt.until <= now };
        if is_over {
            self.attempt = None;
            return None;
        }
        let place = attempt.turn;
        let candidate = self.candidates.get(place).copied().filter(|_| is_up);
        attempt.turn += 1;
        let Some(candidate) = candidate else {
            attempt.rounds -= u32::from(is_up);
            (attempt.turn, attempt.at) = (0, now.saturating_add(ATTEMPT_STEP));
            return None;
        };
        Some(self.probe(candidate, place))
    }

    fn probe(&mut self, to: SocketAddr, place: usize) -> Step {
        let number = NUMBERS | self.next << PLACE | place as u32;
        self.next = (self.next + 1) & (NUMBERS - 1) >> PLACE;
        Step::Probe(to, number)
    }

    /// Counts an address among the candidates, instead of the last one if there are too many; returns its place.
    fn remember(&mut self, candidate: SocketAddr) -> usize {
        let known = self.candidates.iter().position(|it| *it == candidate);
        known.unwrap_or_else(|| {
            if self.candidates.len() >= CANDIDATES {
                self.candidates.truncate(CANDIDATES - 1);
                self.first = self.next;
            }
            self.candidates.push(candidate);
            self.candidates.len() - 1
        })
    }

    /// Whether a probe of this number is none of the path's length.
    pub(crate) fn is_its(number: u32) -> bool {
        number >= NUMBERS
    }

    /// Nanoseconds since the last probe of the path was sent, if that probe is answered from there.
    pub(crate) fn round_trip(
        &self,
        number: u32,
        (from, endpoint): (SocketAddr, SocketAddr),
        now: u64,
    ) -> Option<u64> {
        let last = NUMBERS | (self.next.wrapping_sub(1) & (NUMBERS - 1) >> PLACE) << PLACE;
        let is_last = number == last | HELD as u32 && from == endpoint && self.unanswered > 0;
        is_last.then(|| now.saturating_sub(self.sent))
    }

    /// A probe was answered from there: returns what is the endpoint from now on, if that is another one.
    pub(crate) fn answered(
        &mut self,
        number: u32,
        (from, endpoint): (SocketAddr, SocketAddr),
        now: u64,
    ) -> Option<SocketAddr> {
        let (count, place) = ((number & !NUMBERS) >> PLACE, (number as usize) & HELD);
        if place == RELAYED {
            let moves = self.relays.answered(count, from, now) && self.relays.has(endpoint);
            return moves.then(|| self.relays.used());
        }
        let candidate = self.candidates.get(place).copied();
        let asked = if place == HELD { Some(endpoint) } else { candidate };
        if !(self.first..self.next).contains(&count) || asked != Some(from) || self.relays.has(from)
        {
            return None;
        }
        if from == endpoint {
            self.unanswered = 0;
            return None;
        }
        let moves = self.relays.has(endpoint) || self.unanswered > 0;
        if moves {
            (self.attempt, self.unanswered, self.first) = (None, 0, self.next);
            (self.sent, self.kept, self.due) = (now, now, now.saturating_add(DIRECT_IDLE));
        }
        moves.then_some(from)
    }
}
