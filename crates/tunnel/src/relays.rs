//! [`Relays`]: the relays by which a peer is reached, one of which is used.
//!
//! All of them carry the peer's path, and surveys send a probe by each: so routers remember us for every relay, and it is known which
//! answer, and after how long. The used relay is left when it does not answer and another does, or does by a quarter sooner. A
//! survey begins every [`DIRECT_IDLE`]; where data is not answered for [`DIRECT_SILENCE`]; where the peer is heard by another relay
//! alone, as it may have left ours; and soon again where an answer is missing, a few times. With one relay there is none.
//!
//! Contract: pure; time is passed in. Bounded by [`RELAYS`]. Either end chooses for itself: each relay forwards both ways.

use std::net::SocketAddr;

use crate::limits::{
    DIRECT_AGAIN, DIRECT_IDLE, DIRECT_LOST, DIRECT_SILENCE, RELAY_BETTER, RELAY_LATE, RELAYS,
    SILENCE_TIMEOUT,
};

/// A relay.
#[derive(Clone, Copy, Debug)]
struct Relay {
    at: SocketAddr,
    /// How long probes by it took to be answered, of late.
    delay: Option<u64>,
    /// When the peer was heard by it.
    heard: Option<u64>,
    /// It has answered in this survey.
    is_answered: bool,
}

/// Relays, the first of which is used.
#[derive(Debug)]
pub(crate) struct Relays {
    all: Vec<Relay>,
    /// When the survey began.
    began: u64,
    /// The count of its first probe, and of the first that is none of its.
    counts: (u32, u32),
    /// The next relay that it probes.
    turn: usize,
    /// It is not decided yet.
    is_open: bool,
    /// Surveys in a row in which an answer was missing.
    missed: u32,
    /// When the next one begins anyhow.
    due: u64,
    /// When it begins because the peer is heard by other relays than the used one.
    suspected: Option<u64>,
    /// When the survey is decided.
    until: u64,
}

impl Relays {
    /// Of these relays, the first of which is used first; at most [`RELAYS`] of them.
    pub(crate) fn new(first: SocketAddr, others: &[SocketAddr]) -> Self {
        let mut all = vec![first];
        for other in others {
            if !all.contains(other) && all.len() < RELAYS {
                all.push(*other);
            }
        }
        let relay = |at| Relay { at, delay: None, heard: None, is_answered: false };
        let all: Vec<Relay> = all.into_iter().map(relay).collect();
        let turn = all.len();
        let (began, due, until, suspected) = (0, 0, 0, None);
        let (counts, is_open, missed) = ((0, 0), false, 0);
        Self { all, began, counts, turn, is_open, missed, due, suspected, until }
    }

    /// The relay that is used.
    pub(crate) fn used(&self) -> SocketAddr {
        self.all[0].at
    }

    /// The other relays.
    pub(crate) fn others(&self) -> impl Iterator<Item = SocketAddr> {
        self.all.iter().skip(1).map(|relay| relay.at)
    }

    /// Whether there is more than one.
    pub(crate) fn are_many(&self) -> bool {
        self.all.len() > 1
    }

    /// Whether this is one of them.
    pub(crate) fn has(&self, at: SocketAddr) -> bool {
        self.all.iter().any(|relay| relay.at == at)
    }

    /// The peer was heard from there; returns whether another relay is used from now on.
    pub(crate) fn heard(&mut self, from: SocketAddr, now: u64) -> bool {
        let Some(place) = self.all.iter().position(|relay| relay.at == from) else { return false };
        self.all[place].heard = Some(now);
        if place == 0 {
            self.suspected = None;
            return false;
        }
        match self.all[0].heard {
            // It has never carried anything.
            None => self.all.swap(0, place),
            Some(heard) if now >= heard.saturating_add(DIRECT_AGAIN) => {
                self.suspected.get_or_insert(now.saturating_add(RELAY_LATE));
            }
            Some(_) => {}
        }
        self.used() == from
    }

    /// When the next step is due. `silence` is when data will have been unanswered for [`SILENCE_TIMEOUT`].
    pub(crate) fn deadline(&self, silence: Option<u64>) -> Option<u64> {
        if !self.are_many() {
            return None;
        }
        if self.turn < self.all.len() {
            return Some(self.began);
        }
        let silent = silence.map(|end| end.saturating_sub(SILENCE_TIMEOUT - DIRECT_SILENCE));
        let suspected = [silent, self.suspected].into_iter().flatten().min();
        let suspected = suspected.map(|at| at.max(self.began.saturating_add(DIRECT_SILENCE)));
        let next = suspected.map_or(self.due, |at| at.min(self.due));
        Some(if self.is_open { self.until } else { next })
    }

    /// The relay that a survey probes next, by the probe of this count.
    pub(crate) fn probe(
        &mut self,
        silence: Option<u64>,
        count: u32,
        now: u64,
    ) -> Option<SocketAddr> {
        if self.turn >= self.all.len() {
            if self.is_open || self.deadline(silence).is_none_or(|at| at > now) {
                return None;
            }
            self.all.iter_mut().for_each(|relay| relay.is_answered = false);
            (self.turn, self.is_open, self.began) = (0, true, now);
            (self.counts.0, self.due) = (count, now.saturating_add(DIRECT_IDLE));
            (self.until, self.suspected) = (now.saturating_add(DIRECT_AGAIN), None);
        }
        let relay = self.all.get(self.turn)?;
        self.turn += 1;
        self.counts.1 = count.wrapping_add(1);
        Some(relay.at)
    }

    /// A probe of this count was answered from there; returns whether another relay is used from now on.
    pub(crate) fn answered(&mut self, count: u32, from: SocketAddr, now: u64) -> bool {
        let is_of_survey = self.is_open && (self.counts.0..self.counts.1).contains(&count);
        let relay = self.all.iter_mut().find(|relay| relay.at == from && is_of_survey);
        let Some(relay) = relay else { return false };
        let took = now.saturating_sub(self.began);
        relay.is_answered = true;
        relay.delay = Some(relay.delay.map_or(took, |delay| (3 * delay + took) / 4));
        // What takes many times as long as another one is lost.
        self.until = self.until.min(now.saturating_add(RELAY_LATE + 3 * took));
        let is_whole = self.turn >= self.all.len() && self.all.iter().all(|it| it.is_answered);
        is_whole && self.decide(now)
    }

    /// Ends a survey whose answers are overdue; returns whether another relay is used from now on.
    pub(crate) fn settle(&mut self, now: u64) -> bool {
        self.is_open && now >= self.until && self.decide(now)
    }

    fn decide(&mut self, now: u64) -> bool {
        self.is_open = false;
        self.suspected = None;
        let is_missing = self.all.iter().any(|relay| !relay.is_answered);
        self.missed = if is_missing { self.missed.saturating_add(1) } else { 0 };
        if is_missing && self.missed < DIRECT_LOST {
            self.due = self.due.min(now.saturating_add(DIRECT_SILENCE));
        }
        let used = self.all[0];
        let answers = self.all.iter().enumerate().skip(1).filter(|(_, relay)| relay.is_answered);
        let best = answers.min_by_key(|(_, relay)| relay.delay);
        let Some((place, best)) = best else { return false };
        let is_better = match (used.delay, best.delay) {
            (Some(used), Some(best)) => used > best + (used / 4).max(RELAY_BETTER),
            _ => false,
        };
        let moves = !used.is_answered || is_better;
        if moves {
            self.all.swap(0, place);
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SECOND;

    const MILLISECOND: u64 = SECOND / 1_000;

    fn place(number: u8) -> SocketAddr {
        ([192, 0, 2, number], 52_000).into()
    }

    fn relays(count: u8) -> Relays {
        let others: Vec<SocketAddr> = (2..=count).map(place).collect();
        Relays::new(place(1), &others)
    }

    /// Plays a survey that begins now, in which relays answer after these milliseconds; returns when it was decided.
    fn survey(relays: &mut Relays, answers: &[(u8, u64)], now: u64) -> u64 {
        let probed = |relays: &mut Relays, count| relays.probe(Some(0), count, now);
        let count = relays.counts.1 + 7;
        let all: Vec<_> = (count..).map_while(|count| probed(relays, count)).collect();
        assert_eq!(all.len(), relays.all.len());
        for (number, took) in answers {
            let at = all.iter().position(|it| *it == place(*number)).unwrap() as u32;
            relays.answered(count + at, place(*number), now + took * MILLISECOND);
        }
        relays.settle(now + DIRECT_AGAIN);
        assert!(!relays.is_open);
        now + DIRECT_AGAIN
    }

    #[test]
    fn a_relay_that_does_not_answer_is_left_for_the_quickest_that_does() {
        let mut relays = relays(3);
        survey(&mut relays, &[(1, 40), (2, 50), (3, 45)], 10 * SECOND);
        assert_eq!(relays.used(), place(1));
        survey(&mut relays, &[(2, 50), (3, 45)], 30 * SECOND);
        assert_eq!(relays.used(), place(3));
        // Nothing is known of any: it stays.
        survey(&mut relays, &[], 50 * SECOND);
        assert_eq!(relays.used(), place(3));
    }

    #[test]
    fn a_relay_that_is_much_quicker_is_used_and_one_that_is_little_quicker_is_not() {
        let mut relays = relays(2);
        survey(&mut relays, &[(1, 40), (2, 31)], 10 * SECOND);
        assert_eq!(relays.used(), place(1));
        survey(&mut relays, &[(1, 40), (2, 20)], 30 * SECOND);
        assert_eq!(relays.used(), place(2), "{relays:?}");
        survey(&mut relays, &[(1, 1), (2, 1)], 50 * SECOND);
        assert_eq!(relays.used(), place(2));
    }

    #[test]
    fn a_survey_begins_where_data_is_not_answered_and_otherwise_now_and_then() {
        let mut relays = relays(2);
        let decided = survey(&mut relays, &[(1, 1), (2, 1)], 10 * SECOND);
        assert_eq!(relays.deadline(None), Some(10 * SECOND + DIRECT_IDLE));
        let unanswered = decided + SECOND;
        assert_eq!(
            relays.deadline(Some(unanswered + SILENCE_TIMEOUT)),
            Some(unanswered + DIRECT_SILENCE)
        );
        // Not more often than each second, whatever is silent.
        assert_eq!(relays.deadline(Some(0)), Some(10 * SECOND + DIRECT_SILENCE));
        // An answer that is missing is asked for again, a few times.
        for lost in 1..5 {
            let now = lost * 30 * SECOND;
            let decided = survey(&mut relays, &[(1, 1)], now);
            let soon = lost < u64::from(DIRECT_LOST);
            let again = if soon { decided + DIRECT_SILENCE } else { now + DIRECT_IDLE };
            assert_eq!(relays.deadline(None), Some(again), "{lost}");
        }
    }

    #[test]
    fn answers_count_once_they_are_of_the_survey_and_of_the_relay() {
        let mut relays = relays(2);
        let count = 7;
        assert_eq!(relays.probe(Some(0), count, SECOND), Some(place(1)));
        assert_eq!(relays.probe(Some(0), count + 1, SECOND), Some(place(2)));
        relays.answered(count - 1, place(2), SECOND);
        relays.answered(count + 2, place(2), SECOND);
        relays.answered(count, place(9), SECOND);
        relays.settle(SECOND + DIRECT_AGAIN);
        assert_eq!(relays.used(), place(1));
    }

    #[test]
    fn where_the_peer_is_heard_by_another_relay_alone_ours_is_in_doubt() {
        let mut relays = relays(2);
        assert!(relays.heard(place(2), SECOND), "the first one never carried anything");
        let decided = survey(&mut relays, &[(1, 1), (2, 1)], SECOND);
        let idle = relays.deadline(None);
        assert!(
            !relays.heard(place(1), SECOND + DIRECT_AGAIN - 1) && relays.deadline(None) == idle
        );
        let doubted = decided + SECOND;
        assert!(!relays.heard(place(1), doubted) && !relays.heard(place(9), doubted));
        assert_eq!(relays.deadline(None), Some(doubted + RELAY_LATE));
        // It was only late.
        assert!(!relays.heard(place(2), doubted + 1));
        assert_eq!(relays.deadline(None), idle);
    }

    #[test]
    fn one_relay_is_surveyed_by_nobody() {
        let mut relays = relays(1);
        assert_eq!((relays.deadline(Some(0)), relays.probe(Some(0), 1, SECOND)), (None, None));
    }
}
