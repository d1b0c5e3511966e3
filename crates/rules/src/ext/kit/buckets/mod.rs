//! [`Buckets`]: a table of `-m hashlimit`, as the kernel keeps it, and what is not known of it.
//!
//! An entry begins with the first packet of its addresses and ports and goes when it was not asked about for as long as
//! entries last, with the next look of the collector, whose turns are not known: in between it may be there or not. A new
//! entry where the table is full is a hot drop.
//!
//! Contract: what is computed with the kernel's clock, which ticks at a rate and from a time that are not known, lies
//! between bounds ([`table::TICK`]), and so does what packets in doubt leave behind. Entries are bounded as the kernel
//! bounds them.
//!
//! Source: Linux 6.18 `net/netfilter/xt_hashlimit.c`, revision 3.

mod bytes;
mod packets;
mod table;
mod window;

use std::collections::HashMap;

use crate::outcome::Outcome;
use bytes::Bytes;
use packets::Packets;
use table::{MOST, TICK};
use window::Windows;

pub use table::TableConfig;
pub(crate) use table::{Key, Speed, Visit, by};

/// Entries that are no reason to look for dead ones.
const FEW: usize = 1024;

impl Speed {
    /// Whether no kernel takes it: what a full bucket holds overflows, or 16 bytes cost nothing.
    pub(crate) fn is_refused(self) -> bool {
        match self {
            Self::Packets { period, burst } => packets::is_refused(period, burst),
            Self::Bytes { cost, .. } => bytes::is_refused(cost),
        }
    }
}

/// What an entry holds.
#[derive(Debug)]
enum Level {
    Packets(Packets),
    Bytes(Bytes),
    Windows(Windows),
}

#[derive(Debug)]
struct Entry {
    level: Level,
    /// When a packet last surely reached it, and when one may have.
    surely: u64,
    last: u64,
    /// Whether the entry was made without a doubt.
    is_there: bool,
    /// How many packets without a known key had been seen by then.
    vague: u64,
}

/// Whether there is room for a new entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Surely,
    Maybe,
    None,
}

/// The entries of a table.
#[derive(Debug)]
pub(crate) struct Buckets {
    config: TableConfig,
    entries: HashMap<Key, Entry>,
    /// Packets of which it is not known whose entry they found, and when the last one came.
    vague: u64,
    last_vague: u64,
    latest: u64,
    /// Entries that are surely there until the next look for dead ones.
    sure: usize,
    next_look: u64,
    /// As many entries are reason for a look.
    many: usize,
}

impl Buckets {
    pub(crate) fn new(config: TableConfig) -> Self {
        let entries = HashMap::new();
        let (vague, last_vague, latest, sure, next_look) = (0, 0, 0, 0, 0);
        Self { config, entries, vague, last_vague, latest, sure, next_look, many: FEW }
    }

    pub(crate) fn config(&self) -> &TableConfig {
        &self.config
    }

    /// Any entry may have been asked about.
    pub(crate) fn make_indeterminate(&mut self) {
        self.vague += 1;
        self.last_vague = self.latest;
    }

    /// Whether a packet of this entry is within the limit, or is dropped as there is no room for one. The second value
    /// says what the bucket holds, in packets.
    pub(crate) fn ask(
        &mut self,
        rule: &TableConfig,
        key: Key,
        visit: &Visit,
    ) -> (Outcome, Option<[i64; 2]>) {
        self.latest = self.latest.max(visit.now);
        let (mut outcome, is_there) = match self.find(key, visit) {
            Some(found) => found,
            None => return (Outcome::HOT_DROP, None),
        };
        let is_like = self.config.is_like(rule);
        let Some(entry) = self.entries.get_mut(&key) else {
            return (Outcome::MAYBE.or(Outcome::HOT_DROP), None);
        };
        entry.last = entry.last.max(visit.now);
        if visit.certain {
            entry.surely = entry.last;
            entry.is_there |= is_there;
        }
        let answer = match is_like {
            true => entry.level.take(visit),
            // One holds what the other does not.
            false => {
                entry.level.blur(visit.now);
                Outcome::MAYBE
            }
        };
        outcome = if outcome == Outcome::NO { answer } else { answer.or(outcome) };
        (outcome, entry.level.holds())
    }

    /// Finds or makes the entry, brought up to now. What may happen instead (no, if nothing may), and whether it is
    /// surely there then; `None` if there is no room.
    fn find(&mut self, key: Key, visit: &Visit) -> Option<(Outcome, bool)> {
        let (config, now) = (self.config, visit.now);
        let (vague, last_vague) = (self.vague, self.last_vague);
        let is_gone = |entry: &Entry| now.saturating_sub(entry.last) >= config.collected();
        if let Some(entry) = self.entries.get_mut(&key) {
            if entry.vague != vague {
                entry.vague = vague;
                entry.last = entry.last.max(last_vague);
                entry.level.blur(last_vague);
            }
            if !is_gone(entry) {
                entry.level.pass(now);
                let is_old = now.saturating_sub(entry.surely) + TICK >= config.lasts();
                if !is_old && entry.is_there {
                    return Some((Outcome::NO, true));
                }
                entry.level.or_fresh(now);
                return match self.room(now) {
                    Room::Surely => Some((Outcome::NO, true)),
                    Room::Maybe | Room::None => Some((Outcome::HOT_DROP, false)),
                };
            }
            self.entries.remove(&key);
        }
        let room = self.room(now);
        if room == Room::None {
            return None;
        }
        if self.entries.len() >= MOST as usize {
            return Some((Outcome::HOT_DROP, false));
        }
        let mut level = Level::fresh(&config, now);
        if vague > 0 && now.saturating_sub(last_vague) < config.collected() {
            level.blur(last_vague);
            level.pass(now);
        }
        let is_there = room == Room::Surely && visit.certain;
        self.sure += usize::from(is_there && now + config.lasts() > self.next_look + TICK);
        self.entries.insert(key, Entry { level, surely: now, last: now, is_there, vague });
        Some((if room == Room::Surely { Outcome::NO } else { Outcome::HOT_DROP }, is_there))
    }

    fn room(&mut self, now: u64) -> Room {
        let [least, most] = self.config.room();
        let is_far = self.entries.len() < least;
        if is_far && self.entries.len() < self.many {
            return Room::Surely;
        }
        if now >= self.next_look || is_far {
            self.look(now);
        }
        match self.entries.len() < least {
            true => Room::Surely,
            false if self.sure >= most => Room::None,
            false => Room::Maybe,
        }
    }

    /// Forgets entries that have been removed, and counts the rest.
    fn look(&mut self, now: u64) {
        let (config, step) = (self.config, (self.config.collected() / 8).max(1_000_000));
        self.next_look = now.saturating_add(step);
        self.entries.retain(|_, entry| {
            // A packet that nobody could name may have kept it.
            let last = if entry.vague == self.vague { entry.last } else { self.last_vague };
            now.saturating_sub(last.max(entry.last)) < config.collected()
        });
        let stays =
            |entry: &Entry| entry.is_there && entry.surely + config.lasts() > self.next_look + TICK;
        self.sure = self.entries.values().filter(|entry| stays(entry)).count();
        self.many = (2 * self.entries.len()).max(FEW);
    }
}

impl Level {
    fn fresh(config: &TableConfig, now: u64) -> Self {
        match (config.rate_match, config.speed) {
            (Some(interval), speed) => Self::Windows(Windows::new(speed, interval, now)),
            (None, Speed::Packets { period, burst }) => {
                Self::Packets(Packets::new(period, burst, now))
            }
            (None, Speed::Bytes { cost, burst }) => Self::Bytes(Bytes::new(cost, burst, now)),
        }
    }

    /// Time passes.
    fn pass(&mut self, now: u64) {
        match self {
            Self::Packets(level) => level.pass(now),
            Self::Bytes(level) => level.pass(now),
            Self::Windows(_) => {}
        }
    }

    /// Notes that the bucket may have been made just now.
    fn or_fresh(&mut self, now: u64) {
        match self {
            Self::Packets(level) => level.or_full(),
            Self::Bytes(level) => level.or_full(),
            Self::Windows(level) => level.or_new(now),
        }
    }

    /// Nothing was known of it any more at that time.
    fn blur(&mut self, at: u64) {
        match self {
            Self::Packets(level) => level.blur(at),
            Self::Bytes(level) => level.blur(at),
            Self::Windows(level) => level.blur(at),
        }
    }

    fn take(&mut self, visit: &Visit) -> Outcome {
        match self {
            Self::Packets(level) => level.take(visit),
            Self::Bytes(level) => level.take(visit),
            Self::Windows(level) => level.take(visit),
        }
    }

    /// Packets that it holds, at least and at most, if it counts packets.
    fn holds(&self) -> Option<[i64; 2]> {
        match self {
            Self::Packets(level) => Some(level.holds()),
            Self::Bytes(_) | Self::Windows(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
