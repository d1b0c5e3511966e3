//! [`Lists`]: the connections that a rule saw, by what they count for.
//!
//! The kernel keeps a list for each key and looks each entry up in the connection table when a packet passes: entries
//! whose connection is not there, or is TCP and over, are taken out. Not all of that is known from a capture. It looks
//! a list through once in a clock tick; an entry of another processor it spares for two ticks; and which other lists it
//! looks through when it makes a new one depends on a secret number. So an entry is *surely* in the list or it may be,
//! and a count is a range.
//!
//! What is sure after the longest tick is taken for sure (100 ticks a second). Bounded: beyond [`MOST`] entries, or
//! [`LONGEST`] in one list, nothing is known any more.
//!
//! Source: Linux 6.18.44 `net/netfilter/nf_conncount.c` (`__nf_conncount_add`, `__nf_conncount_gc_list`, `insert_tree`,
//! `find_or_evict`): an assured connection is not entered in an existing list, but the list is looked through; another
//! is entered unless the walk, which stops there, finds it; in the tick of the last walk an unconfirmed connection is
//! entered without a walk. A walk takes out at most [`AT_ONCE`] and one.

mod entry;
mod flows;

use std::collections::HashMap;
use std::sync::Arc;

use conntrack::{Life, Tuple};
use entry::{Entry, Reach, Walk};
use flows::TICK;

pub(super) use flows::{Fate, Flows, Standing, Visit};

/// Entries that a walk takes out before it ends with the next.
const AT_ONCE: usize = 64;
/// Entries in all, and lists.
const MOST: usize = 262_144;
/// Entries in a list: what a packet may cost.
const LONGEST: usize = 16_384;
/// By then what was put off until after a new list was made is done.
const SETTLED: u64 = 2 * TICK;

/// What connections are counted by: a masked address and a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// IPv4 in the first 4 bytes.
    pub(super) address: [u8; 16],
    /// The zone's number.
    pub(super) zone: u16,
}

/// How many connections there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// At least.
    pub(super) least: u32,
    /// At most, if that is known.
    pub(super) most: Option<u32>,
}

/// The lists of one rule.
#[derive(Debug, Default)]
pub(super) struct Lists {
    by_key: HashMap<Key, List>,
    entries: usize,
    /// Whether there may be entries and lists from before the first packet.
    midway: bool,
    /// Too much happened that is not known.
    indeterminate: bool,
    /// When lists other than a packet's own were last looked through, maybe.
    stirred: Option<u64>,
    /// The lists that the packet under way, by its connection's first frame and tuple, was entered in before it was
    /// confirmed.
    entered: (Option<(u64, Tuple)>, Vec<Key>),
    fates: Vec<Fate>,
}

/// The connections of one key.
#[derive(Debug, Default)]
struct List {
    entries: Vec<Entry>,
    is_there: There,
    /// Whether there may be other entries.
    blurred: bool,
    /// The last walk that may have been.
    walked: u64,
    /// The last packet.
    visited: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum There {
    #[default]
    No,
    Maybe,
    Surely,
}

impl Lists {
    /// One list, which is there and empty.
    pub(super) fn of_one(key: Key) -> Self {
        let list = List { is_there: There::Surely, ..List::default() };
        Self { by_key: HashMap::from([(key, list)]), ..Self::default() }
    }

    /// Notes that there may have been connections before the first packet.
    pub(super) fn starts_midway(&mut self, midway: bool) {
        self.midway |= midway;
    }

    /// Nothing is known from now on.
    pub(super) fn make_indeterminate(&mut self) {
        *self = Self { indeterminate: true, ..Self::default() };
    }

    /// Lists may be looked through.
    pub(super) fn stirred(&mut self, now: u64) {
        self.stirred = Some(now);
    }

    /// Counts a packet of an unknown connection.
    pub(super) fn blur(&mut self, key: Key, now: u64) -> Counted {
        self.stirred(now);
        if !self.indeterminate {
            let list = self.by_key.entry(key).or_default();
            list.blurred = true;
            if list.is_there == There::No {
                list.is_there = There::Maybe;
            }
            self.bound(key);
        }
        Counted { least: 0, most: None }
    }

    /// Counts a packet's connection in.
    pub(super) fn count(&mut self, key: Key, visit: &Visit, flows: &mut impl Flows) -> Counted {
        // Of what it is entered in, if it is, it is one.
        let itself = u32::from(matches!(visit.standing, Standing::Begins | Standing::Confirmed));
        if self.indeterminate {
            return Counted { least: itself, most: None };
        }
        let mut list = self.by_key.remove(&key).unwrap_or_default();
        self.entries -= list.entries.len();
        if list.is_there == There::No && self.midway {
            list.is_there = There::Maybe;
        }
        let fates = &mut self.fates;
        fates.clear();
        let fate = |entry: &Entry| match &entry.life {
            Some(life) if !flows.has(&entry.tuple, life) => entry.told(life.at(visit.now)),
            _ => flows.fate(&entry.tuple, entry.zone, visit.now),
        };
        fates.extend(list.entries.iter().map(fate));
        list.catch_up(visit.now, self.stirred, fates);
        let may_be_made = list.least() == 0;
        list.come_by(visit, fates);
        if let Some(life) = flows.life(&visit.tuple).filter(|_| visit.is_flow) {
            list.give(&visit.tuple, &life);
        }
        if may_be_made && !self.by_key.is_empty() {
            self.stirred(visit.now);
        }
        self.note_entered(key, visit, may_be_made);
        let Counted { least, most } = list.counted(self.midway);
        self.entries += list.entries.len();
        self.by_key.insert(key, list);
        self.bound(key);
        Counted { least: least.max(itself), most }
    }

    /// What this very packet was entered in is not found in the table yet, so a walk may take it out again.
    fn note_entered(&mut self, key: Key, visit: &Visit, stirs: bool) {
        let (of, keys) = &mut self.entered;
        let this = Some((visit.born, visit.tuple));
        if *of != this {
            *of = this;
            keys.clear();
        }
        if visit.born == 0 || visit.standing != Standing::Begins {
            return;
        }
        for other in keys.iter().filter(|_| stirs) {
            let list = self.by_key.get_mut(other);
            let entries = list.into_iter().flat_map(|list| &mut list.entries);
            let same = |entry: &&mut Entry| (entry.born, entry.tuple) == (visit.born, visit.tuple);
            entries.filter(same).for_each(|entry| entry.surely = false);
        }
        keys.push(key);
    }

    fn bound(&mut self, key: Key) {
        let longest = self.by_key.get(&key).map_or(0, |list| list.entries.len());
        if self.entries + self.by_key.len() > MOST || longest > LONGEST {
            self.make_indeterminate();
        }
    }
}

impl List {
    fn least(&self) -> u32 {
        self.entries.iter().filter(|entry| entry.surely).count() as u32
    }

    fn counted(&self, midway: bool) -> Counted {
        let most = self.entries.len() as u32;
        Counted { least: self.least(), most: (!midway && !self.blurred).then_some(most) }
    }

    /// The packet's connection is known to all workers by this.
    fn give(&mut self, tuple: &Tuple, life: &Arc<Life>) {
        let entries = self.entries.iter_mut().filter(|entry| entry.tuple == *tuple);
        entries.for_each(|entry| entry.life = Some(Arc::clone(life)));
    }

    /// What may have been done to it since the last packet.
    fn catch_up(&mut self, now: u64, stirred: Option<u64>, fates: &[Fate]) {
        let stirred = stirred.map(|at| at + SETTLED).filter(|until| *until >= self.visited);
        for (entry, fate) in self.entries.iter_mut().zip(fates) {
            let lived_on = matches!(fate, Fate::Living(born, _) if *born == entry.born);
            entry.surely &= lived_on || stirred.is_none();
            match fate {
                Fate::Living(born, _) => (entry.born, entry.dead) = (*born, None),
                _ => entry.dead = entry.dead.or(Some(now)),
            }
        }
        self.visited = now;
        let Some(until) = stirred else { return };
        self.walked = self.walked.max(until.min(now));
        if self.least() == 0 && self.is_there == There::Surely {
            self.is_there = There::Maybe;
        }
    }

    fn come_by(&mut self, visit: &Visit, fates: &[Fate]) {
        let was_there = self.is_there;
        match visit.standing {
            _ if was_there == There::No => self.enter(visit, fates),
            Standing::Begins | Standing::Confirmed => self.enter(visit, fates),
            Standing::Assured if was_there == There::Surely => self.clean(visit, fates),
            // Entered where the list is made for it.
            Standing::Assured | Standing::Unknown => {
                self.clean(visit, fates);
                if self.entries.iter().all(|entry| entry.tuple != visit.tuple) {
                    self.entries.push(Entry::of(visit, false));
                }
            }
        }
        if visit.certain {
            self.is_there = There::Surely;
        } else if was_there == There::No {
            self.is_there = There::Maybe;
        }
    }

    /// Whether a walk now would surely not be the second of its tick.
    fn is_due(&self, now: u64) -> bool {
        now.saturating_sub(self.walked) >= TICK
    }

    /// The result of a walk that surely takes place, or may.
    fn reach(&self, now: u64, is_sure: bool, fates: &[Fate]) -> Reach {
        let dead = || self.entries.iter().zip(fates).filter(|(_, fate)| fate.is_dead());
        if dead().count() <= AT_ONCE {
            return Reach::All;
        }
        let is_known = dead().all(|(entry, fate)| entry.surely && entry.is_taken(*fate, now));
        match is_sure && is_known && self.entries.iter().all(|entry| entry.placed) {
            true => Reach::Known,
            false => Reach::Unknown,
        }
    }

    /// Takes a packet of an assured connection: a walk removes entries whose connection has ended.
    fn clean(&mut self, visit: &Visit, fates: &[Fate]) {
        let certain = visit.certain && visit.standing == Standing::Assured;
        let is_sure = certain && self.is_there == There::Surely && self.is_due(visit.now);
        let reach = self.reach(visit.now, is_sure, fates);
        let (mut fates, mut taken, mut ended) = (fates.iter(), 0, false);
        self.entries.retain_mut(|entry| {
            let Some(fate) = fates.next().filter(|_| !ended) else { return true };
            let stays = entry.stays(*fate, visit.now, Walk { certain, is_sure, reach });
            taken += usize::from(!stays);
            ended = stays && taken > AT_ONCE;
            stays
        });
        self.walked = visit.now;
    }

    /// Any other's: a walk that also looks for its entry, and ends there; where there is none, one is made.
    fn enter(&mut self, visit: &Visit, fates: &[Fate]) {
        let walks = visit.standing == Standing::Confirmed || self.is_due(visit.now);
        let is_sure = visit.certain && walks && self.is_there == There::Surely;
        let reach = self.reach(visit.now, is_sure, fates);
        let pairs = self.entries.iter().zip(fates);
        let same = pairs.filter(|(entry, fate)| entry.ends_walk(visit, **fate)).count();
        let (mut fates, mut taken, mut is_ended) = (fates.iter(), 0, false);
        let (mut is_met, mut may_be_more) = (false, false);
        self.entries.retain_mut(|entry| {
            let is_over = is_ended || taken > AT_ONCE;
            let Some(fate) = fates.next().filter(|_| !is_over) else { return true };
            if !entry.ends_walk(visit, *fate) {
                // One that may be further back may not be met before the walk ends.
                let certain = visit.certain && !is_met && (entry.placed || same == 0);
                let walk = Walk { certain, is_sure: is_sure && certain, reach };
                let stays = entry.stays(*fate, visit.now, walk);
                taken += usize::from(!stays);
                return stays;
            }
            let is_found = entry.surely && !matches!(fate, Fate::Gone | Fate::Open);
            is_ended = is_sure && !is_met && is_found && entry.placed && reach != Reach::Unknown;
            is_met = true;
            if !is_ended && same > 1 {
                may_be_more = true;
                entry.surely &= is_found;
            } else if !is_ended {
                // It stays, or is made again after the others.
                may_be_more = !walks || reach == Reach::Unknown;
                entry.surely |= visit.certain;
                (entry.since, entry.dead) = (visit.now, None);
            }
            entry.placed &= is_found;
            true
        });
        if !is_met || may_be_more {
            self.entries.push(Entry::of(visit, visit.certain && !is_met));
        }
        if !is_ended {
            self.walked = visit.now;
        }
    }
}

#[cfg(test)]
mod tests;
