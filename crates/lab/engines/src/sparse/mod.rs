//! `tamis` over any addresses: a word for each address that decides most packets, and a table of immutable
//! entries, each with PNG, R and the count of its bans, which decides the others.
//!
//! Concurrency: `update` enters the address by its word ([`Summary::busy`]), replaces the entry, and releases the word with
//! what is true of the entry now; a second writer of the same address waits, and who names an address for the first time
//! waits for others who do. `decide` takes no lock and never starts again: word of the source, word of the destination,
//! the source's once more, and the entry instead of a word that is busy, or of one that does not tell. Replaced entries
//! are freed by the table when no guard can reach them.
//!
//! Linearization: `update` where it replaces the entry, or where it stores PNG in it if R stays as it is. A word that is
//! not busy says what the entry said at that moment, since no entry changes but while its word is busy. A change that would
//! change nothing is not written: it has its place where that was read, in the word or in the entry. `decide`: the word or
//! the entry of the destination is `R[D]` at the moment *t* it was read. `false` there: at *t*. `true`: with the source
//! free and the same count of bans before and after, the source was free at *t*; else it was banned in between, where
//! `false` is right. The word has 36 bits of the count: an answer could be wrong if the same source were banned exactly
//! 2^36 times between two looks of one reader.

mod places;
mod summary;

use access::RangeSet;

use super::table::{Index, Table};
use crate::sync::{AtomicU64, Ordering};
use crate::tamis::wait;
use crate::{Address, Config, Engine, Packet, Permits};
use places::{Place, Places};
use summary::{Summary, counted};

/// Immutable entries by address, and a word for each.
#[derive(Debug)]
pub struct Sparse<A: Address> {
    default: bool,
    places: Places<A>,
    entries: Table<A, Entry<A>>,
}

/// What is known of an address. R is never changed, but replaced with the entry.
#[derive(Debug)]
struct Entry<A> {
    /// PNG and, above it, the bans so far: stored by the address' writer alone.
    bans: AtomicU64,
    accepts: RangeSet<A>,
}

type Guard<'g, A> = <Table<A, Entry<A>> as Index<A, Entry<A>>>::Guard<'g>;

impl<A: Address> Sparse<A> {
    /// Every address accepts all sources, or none; with room for this number of them, more may come.
    #[must_use]
    pub fn new(default: bool, addresses: usize) -> Self {
        let places = Places::new(addresses, Summary::new(default));
        Self { default, places, entries: Table::with_room(addresses) }
    }

    #[inline]
    fn word(&self, place: Option<&Place<A>>) -> Summary {
        place.map_or(Summary::new(self.default), |place| load(place.word()))
    }

    /// Whether an address is banned, and how often it was, at one moment.
    #[inline]
    fn banned(&self, place: Option<&Place<A>>, address: A, guard: &Guard<'_, A>) -> (bool, u64) {
        let word = self.word(place);
        if !word.is_busy() {
            return (word.persona_non_grata(), word.bans());
        }
        let entry = self.entries.get(address, guard);
        let (banned, bans) = entry.map_or((false, 0), Entry::banned);
        (banned, counted(bans))
    }

    #[inline]
    fn accepts(&self, destination: A, source: A, guard: &Guard<'_, A>) -> bool {
        let word = self.word(self.places.find(destination));
        word.accepts(source).unwrap_or_else(|| {
            let entry = self.entries.get(destination, guard);
            entry.map_or(self.default, |entry| entry.accepts.contains(source))
        })
    }

    #[inline]
    fn decide_under(&self, source: A, destination: A, guard: &Guard<'_, A>) -> bool {
        let place = self.places.find(source);
        let (banned, before) = self.banned(place, source, guard);
        let accepts = self.accepts(destination, source, guard);
        let place = place.or_else(|| self.places.find(source));
        let (_, after) = self.banned(place, source, guard);
        // No branch on what the packet decides: it could not be predicted.
        accepts & !banned & (before == after)
    }

    fn update_under(&self, config: &Config<A>, guard: &Guard<'_, A>) {
        let word = self.places.find_or_add(config.address).word();
        if !self.enter(word, config, guard) {
            return;
        }
        let old = self.entries.get(config.address, guard);
        let after = match old {
            Some(entry) if entry.accepts_as(config) => {
                entry.ban(config.persona_non_grata);
                entry.summary(self.default)
            }
            _ => {
                let entry = Entry::after(old, config, self.default);
                let summary = entry.summary(self.default);
                self.entries.put(config.address, entry, guard);
                summary
            }
        };
        word.store(after.0, Ordering::SeqCst);
    }

    /// Becomes the only writer of an address; `false` if the change would change nothing.
    fn enter(&self, word: &AtomicU64, config: &Config<A>, guard: &Guard<'_, A>) -> bool {
        let mut tries = 0;
        loop {
            let old = load(word);
            if old.is_busy() {
                wait(&mut tries);
                continue;
            }
            if old.persona_non_grata() == config.persona_non_grata
                && (config.end <= config.begin || old.accepts(config.begin) == Some(config.accept))
            {
                return false;
            }
            let entry = self.entries.get(config.address, guard);
            if entry.is_some_and(|entry| entry.holds(config)) {
                return false;
            }
            let swap = (Ordering::SeqCst, Ordering::Relaxed);
            if word.compare_exchange(old.0, old.busy().0, swap.0, swap.1).is_ok() {
                return true;
            }
        }
    }
}

#[inline]
fn load(word: &AtomicU64) -> Summary {
    Summary(word.load(Ordering::SeqCst))
}

impl<A: Address> Entry<A> {
    /// The entry after a change of what may not be there yet.
    fn after(old: Option<&Self>, config: &Config<A>, default: bool) -> Self {
        let Config { persona_non_grata, accept, begin, end, .. } = *config;
        let accepts = match old {
            Some(old) => old.accepts.after(begin, Some(end), accept),
            None => RangeSet::new(default).after(begin, Some(end), accept),
        };
        let bans = old.map_or(0, |old| old.bans.load(Ordering::SeqCst));
        let entry = Self { bans: AtomicU64::new(bans), accepts };
        entry.ban(persona_non_grata);
        entry
    }

    /// Whether the address is banned, and how often it was.
    fn banned(&self) -> (bool, u64) {
        let word = self.bans.load(Ordering::SeqCst);
        (word & 1 == 1, word >> 1)
    }

    /// Bans the address, or lifts that.
    fn ban(&self, persona_non_grata: bool) {
        let (banned, bans) = self.banned();
        let bans = bans + u64::from(persona_non_grata && !banned);
        self.bans.store((bans << 1) | u64::from(persona_non_grata), Ordering::SeqCst);
    }

    fn summary(&self, default: bool) -> Summary {
        let (banned, bans) = self.banned();
        let highest = default ^ (self.accepts.flips() % 2 == 1);
        Summary::of(banned, bans, (self.accepts.last_flip(), highest))
    }

    /// Whether a change would not change R.
    fn accepts_as(&self, config: &Config<A>) -> bool {
        config.end <= config.begin || self.accepts.is_all(config.begin, config.end, config.accept)
    }

    /// Whether a change would change nothing.
    fn holds(&self, config: &Config<A>) -> bool {
        self.banned().0 == config.persona_non_grata && self.accepts_as(config)
    }
}

impl<A: Address> Engine<A> for Sparse<A> {
    fn decide(&self, source: A, destination: A) -> bool {
        self.decide_under(source, destination, &self.entries.guard())
    }

    fn update(&self, config: &Config<A>) {
        self.update_under(config, &self.entries.guard());
    }

    fn bytes(&self) -> usize {
        let mut bytes = self.places.bytes();
        self.entries.for_each(|entry| {
            bytes += size_of::<(A, Entry<A>)>() + entry.accepts.bytes();
        });
        bytes
    }

    fn burst(&self, packets: &[Packet<A>], permits: &mut Permits) {
        let guard = self.entries.guard();
        for (at, packet) in packets.iter().enumerate() {
            match packet {
                Packet::Data(data) => {
                    permits.say(at, self.decide_under(data.source, data.destination, &guard));
                }
                Packet::Config(config) => self.update_under(config, &guard),
            }
        }
    }
}
