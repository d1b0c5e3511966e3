//! `optimistic`: nobody waits. A writer copies the entry, changes the copy and publishes it by
//! compare-and-swap; a reader looks at two entries and then again whether they are still the ones there.
//!
//! Concurrency: `update` is lock-free: a compare-and-swap fails only if another one succeeded. `decide` is
//! obstruction-free: it starts again only if one of its two entries was replaced meanwhile; how often is
//! counted. Entries that were replaced are freed by the table once no reader's guard can reach them.
//!
//! Linearization: `update` at its compare-and-swap. `decide` at its second reading of the source: between
//! the first and the second reading of each entry that entry did not change (entries are immutable, their
//! places not used again under the guard, and absent ones appear but once), and both spans hold that
//! moment.

use crossbeam_utils::CachePadded;

use super::entry::{Accepts, Entry, permits};
use super::sync::{AtomicU64, Ordering};
use super::table::{Index, Table};
use crate::{Address, Config, Engine, Packet, Permits};
use access::RangeSet;

type Entries<A, R> = Table<A, Entry<A, R>>;
type Guard<'g, A, R> = <Entries<A, R> as Index<A, Entry<A, R>>>::Guard<'g>;

/// Entries that are never changed, but replaced. `R` is the form of R; the sorted set unless another one is named.
#[derive(Debug)]
pub struct Optimistic<A: Address, R: 'static = RangeSet<A>> {
    default: bool,
    entries: Entries<A, R>,
    retries: CachePadded<AtomicU64>,
}

impl<A: Address, R: Accepts<A>> Optimistic<A, R> {
    /// Every address accepts all sources, or none; with room for this number of them; more may come.
    #[must_use]
    pub fn new(default: bool, addresses: usize) -> Self {
        let retries = CachePadded::new(AtomicU64::new(0));
        Self { default, entries: Table::with_room(addresses), retries }
    }

    fn decide_under(&self, source: A, destination: A, guard: &Guard<'_, A, R>) -> bool {
        loop {
            let from = self.entries.get(source, guard);
            let to = self.entries.get(destination, guard);
            let answer = permits(from, to, source, self.default);
            if same(from, self.entries.get(source, guard))
                && same(to, self.entries.get(destination, guard))
            {
                return answer;
            }
            self.retries.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn same<T>(one: Option<&T>, other: Option<&T>) -> bool {
    one.map(std::ptr::from_ref) == other.map(std::ptr::from_ref)
}

impl<A: Address, R: Accepts<A>> Engine<A> for Optimistic<A, R> {
    fn decide(&self, source: A, destination: A) -> bool {
        self.decide_under(source, destination, &self.entries.guard())
    }

    fn update(&self, config: &Config<A>) {
        let guard = self.entries.guard();
        let make = |old: Option<&Entry<A, R>>| Entry::after(old, config, self.default);
        self.entries.replace(config.address, make, &guard);
    }

    fn bytes(&self) -> usize {
        let mut bytes = 0;
        self.entries.for_each(|entry| bytes += size_of::<A>() + entry.bytes());
        bytes
    }

    fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    fn burst(&self, packets: &[Packet<A>], permits: &mut Permits) {
        let guard = self.entries.guard();
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
