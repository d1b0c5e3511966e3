//! `fine`: one table, each entry with PNG, R and a lock of its own; entries are never removed.
//!
//! Concurrency: a reader holds the locks of the entries of source and destination for reading, in the order
//! of the addresses (each lock belongs to one address, so that is an order of locks); a writer one lock.
//!
//! Linearization: `update` while it holds the lock. `decide` with both entries there: while it holds both
//! locks. With neither: where it found the source absent; the destination, absent later, was absent then.
//! With one: where it looked at that entry; it then looks again for the other, and since entries stay,
//! one still absent was absent then. If it has appeared, start again.

use std::marker::PhantomData;

use super::entry::{Accepts, Entry, permits};
use super::sync::RwLock;
use super::table::{Index, Table};
use crate::{Address, Config, Engine, Packet, Permits};
use access::RangeSet;

/// Entries with a lock each. `R` is the form of R, `T` the index; the sorted set and the maintained map unless others
/// are named.
#[derive(Debug)]
pub struct Fine<A: Address, R = RangeSet<A>, T = Table<A, Locked<A, R>>> {
    default: bool,
    index: T,
    entries: PhantomData<(A, R)>,
}

/// An entry with its lock.
#[derive(Debug)]
pub struct Locked<A, R = RangeSet<A>>(RwLock<Entry<A, R>>);

impl<A: Address, R: Accepts<A>, T: Index<A, Locked<A, R>>> Fine<A, R, T> {
    /// Every address accepts all sources, or none; with room for this number of them; more may come.
    #[must_use]
    pub fn new(default: bool, addresses: usize) -> Self {
        Self { default, index: T::with_room(addresses), entries: PhantomData }
    }

    /// Both entries are there and are locked together.
    fn both(&self, source: (A, &Locked<A, R>), destination: (A, &Locked<A, R>)) -> bool {
        let (from, to) = (&source.1.0, &destination.1.0);
        if source.0 == destination.0 {
            let entry = from.read();
            return permits(Some(&entry), Some(&entry), source.0, self.default);
        }
        let (from, to) = if source.0 < destination.0 {
            let from = from.read();
            (from, to.read())
        } else {
            let to = to.read();
            (from.read(), to)
        };
        permits(Some(&from), Some(&to), source.0, self.default)
    }

    fn decide_under(&self, source: A, destination: A, guard: &T::Guard<'_>) -> bool {
        loop {
            let from = self.index.get(source, guard);
            let to = self.index.get(destination, guard);
            let (answer, absent) = match (from, to) {
                (None, None) => return self.default,
                (Some(from), Some(to)) => return self.both((source, from), (destination, to)),
                (None, Some(to)) => (to.0.read().accepts.contains(source), source),
                (Some(from), None) => {
                    (self.default && !from.0.read().persona_non_grata, destination)
                }
            };
            if self.index.get(absent, guard).is_none() {
                return answer;
            }
        }
    }
}

impl<A: Address, R: Accepts<A>, T: Index<A, Locked<A, R>>> Engine<A> for Fine<A, R, T> {
    fn decide(&self, source: A, destination: A) -> bool {
        self.decide_under(source, destination, &self.index.guard())
    }

    fn update(&self, config: &Config<A>) {
        let guard = self.index.guard();
        let make = || Locked(RwLock::new(Entry::new(self.default)));
        self.index.get_or_insert(config.address, make, &guard).0.write().change(config);
    }

    fn bytes(&self) -> usize {
        let mut bytes = 0;
        self.index.for_each(|entry| {
            bytes += size_of::<(A, Locked<A, R>)>() + entry.0.read().accepts.bytes();
        });
        bytes
    }

    fn burst(&self, packets: &[Packet<A>], permits: &mut Permits) {
        let guard = self.index.guard();
        for (at, packet) in packets.iter().enumerate() {
            match packet {
                Packet::Data(data) => {
                    permits.say(at, self.decide_under(data.source, data.destination, &guard));
                }
                Packet::Config(config) => self.update(config),
            }
        }
    }
}
