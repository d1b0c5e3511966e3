//! [`List`]: the addresses of one list of `-m recent`, as the kernel keeps them, and what is not known of them.
//!
//! Contract: at most [`MOST`] addresses, each with at most as many times as a rule of the list asks for. A packet that
//! may not have reached its rule leaves an address, or a time, that may not be there; a list of which not even the
//! order is known in which addresses are forgotten is indeterminate once it is full.
//!
//! Source: Linux 6.18 `net/netfilter/xt_recent.c`.

use super::ring::{Age, Ring};
use crate::model::Family;
use crate::outcome::Outcome;

/// Addresses that a list holds, both families together (`ip_list_tot`).
const MOST: usize = 100;

/// What a rule does with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Set,
    Check,
    Update,
    Remove,
}

/// What a rule asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub(crate) action: Action,
    pub(crate) invert: bool,
    /// Older times do not count.
    pub(crate) seconds: Option<u32>,
    /// Fewer times do not match.
    pub(crate) hits: u32,
    /// The address is another one with another TTL.
    pub(crate) by_ttl: bool,
    /// The oldest address goes if it is too old.
    pub(crate) reaps: bool,
}

/// The owner of an entry. Addresses of the two families are never the same, however they read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) family: Family,
    /// Masked.
    pub(crate) address: [u8; 16],
}

/// The packet that it asks about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visitor {
    pub(crate) who: Who,
    /// As it was before forwarding; `None` where that is not known.
    pub(crate) ttl: Option<u8>,
    /// Nanoseconds.
    pub(crate) now: u64,
    /// Whether it surely reached the rule.
    pub(crate) certain: bool,
}

#[derive(Debug)]
struct Entry {
    who: Who,
    ttl: Option<u8>,
    times: Ring,
    /// Whether the entry is surely there.
    sure: bool,
}

/// One list, the address that was entered or updated longest ago first.
#[derive(Debug)]
pub(crate) struct List {
    entries: Vec<Entry>,
    /// Times of each address.
    room: usize,
    /// The order is not certain.
    is_vague: bool,
    is_indeterminate: bool,
    /// How often the address was seen that the last rule asked about, at least and at most, where it asked that.
    seen: Option<[usize; 2]>,
}

impl List {
    pub(crate) fn new(room: usize) -> Self {
        Self { entries: Vec::new(), room, is_vague: false, is_indeterminate: false, seen: None }
    }

    /// Makes room for `room` times of each address. A list with less room ends, and begins again.
    pub(crate) fn widen(&mut self, room: usize) {
        if room > self.room {
            *self = Self::new(room);
        }
    }

    /// Nothing is known of it any more.
    pub(crate) fn make_indeterminate(&mut self) {
        self.is_indeterminate = true;
        self.entries.clear();
    }

    /// How often the address that the last rule asked about was seen, at least and at most.
    pub(crate) fn seen(&self) -> Option<[usize; 2]> {
        self.seen
    }

    /// Does what the rule says, and tells whether it matches.
    pub(crate) fn ask(&mut self, question: &Question, visitor: &Visitor) -> Outcome {
        let Question { action, invert, .. } = *question;
        self.seen = None;
        if self.is_indeterminate {
            return if action == Action::Set {
                Outcome::from_bool(!invert)
            } else {
                Outcome::MAYBE
            };
        }
        let found = self.find(question, visitor);
        let outcome = match (action, found) {
            (Action::Set, found) => {
                self.enter(found.map(|(at, _)| at), visitor);
                Outcome::YES
            }
            (_, None) => Outcome::NO,
            (Action::Remove, Some((at, sure))) => self.remove(at, sure, visitor.certain),
            (Action::Check | Action::Update, Some((at, sure))) => {
                return self.check(question, visitor, at, sure);
            }
        };
        outcome.invert(invert)
    }

    /// Where the address is, and whether it surely is.
    fn find(&self, question: &Question, visitor: &Visitor) -> Option<(usize, bool)> {
        let at = self.entries.iter().position(|entry| entry.who == visitor.who)?;
        let entry = &self.entries[at];
        if !question.by_ttl {
            return Some((at, entry.sure));
        }
        match entry.ttl.zip(visitor.ttl) {
            None => Some((at, false)),
            Some((own, other)) if own == other || own == 0 || other == 0 => Some((at, entry.sure)),
            Some(_) => None,
        }
    }

    fn enter(&mut self, found: Option<usize>, visitor: &Visitor) {
        let Some(at) = found else { return self.begin(visitor) };
        self.stamp(at, visitor.certain, visitor);
        if let Some(entry) = self.entries.last_mut() {
            entry.sure |= visitor.certain;
        }
    }

    fn begin(&mut self, visitor: &Visitor) {
        if self.entries.len() >= MOST {
            let all_sure = self.entries.iter().all(|entry| entry.sure);
            if self.is_vague || !visitor.certain || !all_sure {
                return self.make_indeterminate();
            }
            self.entries.remove(0);
        }
        let times = Ring::new(visitor.now, visitor.certain);
        let Visitor { who, ttl, certain: sure, .. } = *visitor;
        self.entries.push(Entry { who, ttl, times, sure });
    }

    /// Notes the time, and moves the address to the end.
    fn stamp(&mut self, at: usize, sure: bool, visitor: &Visitor) {
        let mut entry = self.entries.remove(at);
        entry.times.push(visitor.now, sure, self.room);
        entry.ttl = if sure || entry.ttl == visitor.ttl { visitor.ttl } else { None };
        self.entries.push(entry);
        self.is_vague |= !sure;
    }

    fn remove(&mut self, at: usize, sure: bool, certain: bool) -> Outcome {
        let is_there = self.entries[at].sure;
        // With another TTL it may be another one.
        if certain && sure == is_there {
            self.entries.remove(at);
        } else {
            self.entries[at].loosen();
        }
        if sure { Outcome::YES } else { Outcome::MAYBE }
    }

    fn check(&mut self, question: &Question, visitor: &Visitor, at: usize, sure: bool) -> Outcome {
        let [least, most] = self.entries[at].times.within(question.seconds, visitor.now);
        self.seen = Some([least, most]);
        let need = question.hits.max(1) as usize;
        let outcome = match (least >= need, most >= need) {
            (true, _) if sure => Outcome::YES,
            (_, false) => Outcome::NO,
            _ => Outcome::MAYBE,
        };
        let outcome = outcome.invert(question.invert);
        let updates = question.action == Action::Update && outcome != Outcome::NO;
        if question.reaps {
            let kept = updates.then_some(self.entries[at].who);
            let kept_surely = outcome == Outcome::YES && sure;
            self.reap(question.seconds.unwrap_or(0), visitor, kept, kept_surely);
        }
        let at = self.entries.iter().position(|entry| entry.who == visitor.who);
        if let Some(at) = at.filter(|_| updates) {
            self.stamp(at, outcome == Outcome::YES && sure && visitor.certain, visitor);
        }
        outcome
    }

    /// Forgets the oldest address, unless its last time is young enough or it is about to be updated.
    fn reap(&mut self, seconds: u32, visitor: &Visitor, kept: Option<Who>, surely: bool) {
        let is_exact = !self.is_vague && self.entries.first().is_some_and(|entry| entry.sure);
        let candidates = if is_exact { 1 } else { self.entries.len() };
        for at in (0..candidates).rev() {
            let entry = &mut self.entries[at];
            let is_kept = kept == Some(entry.who);
            match entry.times.age(seconds, visitor.now) {
                Age::Young => {}
                _ if is_kept && surely => {}
                Age::Old if is_exact && !is_kept && visitor.certain => {
                    self.entries.remove(at);
                }
                Age::Old | Age::Unknown => entry.loosen(),
            }
        }
    }
}

impl Entry {
    /// Notes that the entry may have been removed.
    fn loosen(&mut self) {
        self.sure = false;
        self.times.loosen();
    }
}
