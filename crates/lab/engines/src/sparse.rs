//! `tamis` over any addresses: a table of immutable entries, each with PNG, R and the count of its bans.
//!
//! Concurrency: `update` copies the entry and publishes the copy by compare-and-swap; lock-free. `decide`
//! takes no lock and never starts again: entry of the source, entry of the destination, the source's once
//! more, under one guard; replaced entries are freed by the table when no guard can reach them.
//!
//! Linearization: `update` at its compare-and-swap. `decide`: the entry of the destination is `R[D]` at the
//! moment *t* it was read. `false` there: at *t*. `true`: with the source free and the same count of bans
//! before and after, the source was free at *t*; else it was banned in between, where `false` is right.

use super::entry::Entry;
use super::table::{Index, Table};
use crate::{Address, Config, Engine, Packet, Permits};

/// Immutable entries by address.
#[derive(Debug)]
pub struct Sparse<A: Address> {
    default: bool,
    entries: Table<A, Counted<A>>,
}

#[derive(Debug)]
struct Counted<A> {
    bans: u64,
    entry: Entry<A>,
}

impl<A: Address> Sparse<A> {
    /// Every address accepts all sources, or none; with room for some addresses, more may come.
    #[must_use]
    pub fn new(default: bool) -> Self {
        Self { default, entries: Table::with_room(1 << 12) }
    }

    #[inline]
    fn decide_under(
        &self,
        source: A,
        destination: A,
        guard: &<Table<A, Counted<A>> as Index<A, Counted<A>>>::Guard<'_>,
    ) -> bool {
        let free = |png: Option<&Counted<A>>| !png.is_some_and(|from| from.entry.persona_non_grata);
        let bans = |from: Option<&Counted<A>>| from.map_or(0, |from| from.bans);
        let before = self.entries.get(source, guard);
        if !free(before) {
            return false;
        }
        let to = self.entries.get(destination, guard);
        to.map_or(self.default, |to| to.entry.accepts.contains(source))
            && bans(self.entries.get(source, guard)) == bans(before)
    }
}

impl<A: Address> Engine<A> for Sparse<A> {
    fn decide(&self, source: A, destination: A) -> bool {
        self.decide_under(source, destination, &self.entries.guard())
    }

    fn update(&self, config: &Config<A>) {
        let make = |old: Option<&Counted<A>>| {
            let entry = Entry::after(old.map(|old| &old.entry), config, self.default);
            let banned = old.is_some_and(|old| old.entry.persona_non_grata);
            let bans = old.map_or(0, |old| old.bans);
            Counted { bans: bans + u64::from(entry.persona_non_grata && !banned), entry }
        };
        self.entries.replace(config.address, make, &self.entries.guard());
    }

    fn bytes(&self) -> usize {
        let mut bytes = 0;
        self.entries.for_each(|counted| bytes += 8 + size_of::<A>() + counted.entry.bytes());
        bytes
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
