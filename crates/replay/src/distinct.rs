//! [`Distinct`]: what packets meet, each once a packet, and how many packets it counted for.
//!
//! Contract: an addition costs the same however much was met before, and no hash where a packet meets what the one
//! before it met; memory is bounded by what all packets met.

use std::collections::HashMap;
use std::hash::Hash;

/// What all packets met, and the current one.
#[derive(Debug)]
pub(crate) struct Distinct<T> {
    known: Vec<Known<T>>,
    /// Places in `known`.
    places: HashMap<T, usize>,
    /// Places of what the current packet met.
    met: Vec<usize>,
    /// Number of the current packet.
    round: u64,
    /// What packets met first, the last time.
    first: usize,
}

#[derive(Debug)]
struct Known<T> {
    what: T,
    /// The packet that met it last.
    round: u64,
    /// Packets that it counted for.
    packets: u64,
    /// What was met after it, the last time.
    next: usize,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        let (known, met) = (Vec::new(), Vec::new());
        Self { known, places: HashMap::new(), met, round: 1, first: 0 }
    }
}

impl<T: Copy + Eq + Hash> Distinct<T> {
    /// The current packet meets this.
    pub(crate) fn add(&mut self, one: T) {
        let last = self.met.last().and_then(|last| self.known.get(*last));
        let expected = last.map_or(self.first, |last| last.next);
        let place = match self.known.get(expected) {
            Some(known) if known.what == one => expected,
            _ => {
                let place = self.place(one);
                self.expect(place);
                place
            }
        };
        if let Some(known) = self.known.get_mut(place)
            && known.round != self.round
        {
            known.round = self.round;
            self.met.push(place);
        }
    }

    /// Expects the next packet to meet what lies at this place where the current one did.
    fn expect(&mut self, place: usize) {
        match self.met.last().and_then(|last| self.known.get_mut(*last)) {
            Some(last) => last.next = place,
            None => self.first = place,
        }
    }

    fn place(&mut self, what: T) -> usize {
        let known = &mut self.known;
        *self.places.entry(what).or_insert_with(|| {
            known.push(Known { what, round: 0, packets: 0, next: 0 });
            known.len() - 1
        })
    }

    /// The next packet has met nothing yet.
    pub(crate) fn clear(&mut self) {
        self.met.clear();
        self.round += 1;
    }

    /// What the current packet met, the first one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.met.iter().filter_map(|place| Some(&self.known.get(*place)?.what))
    }

    /// Counts the current packet for all that it met.
    pub(crate) fn count(&mut self) {
        for place in &self.met {
            if let Some(known) = self.known.get_mut(*place) {
                known.packets += 1;
            }
        }
    }

    /// Returns what packets counted for, and how many.
    pub(crate) fn counted(self) -> impl Iterator<Item = (T, u64)> {
        let counted = self.known.into_iter().filter(|known| known.packets > 0);
        counted.map(|known| (known.what, known.packets))
    }

    /// Adds what others counted; the current packet stays.
    pub(crate) fn merge(&mut self, other: Self) {
        for (what, packets) in other.counted() {
            let place = self.place(what);
            if let Some(known) = self.known.get_mut(place) {
                known.packets += packets;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use proptest::prelude::*;

    use super::*;

    thread_local! {
        static COMPARED: Cell<usize> = const { Cell::new(0) };
        static HASHED: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Debug, Clone, Copy, Eq)]
    struct Counted(u32);

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    impl Hash for Counted {
        fn hash<H: Hasher>(&self, state: &mut H) {
            HASHED.set(HASHED.get() + 1);
            self.0.hash(state);
        }
    }

    proptest! {
        #[test]
        fn each_is_met_once_a_packet_in_order_and_counts_for_it(
            packets in proptest::collection::vec(proptest::collection::vec(0u8..6, 0..8), 0..12),
        ) {
            let mut halves = [Distinct::default(), Distinct::default()];
            let mut counts: HashMap<u8, u64> = HashMap::new();
            for (at, packet) in packets.iter().enumerate() {
                let set = &mut halves[at % 2];
                set.clear();
                packet.iter().for_each(|one| set.add(*one));
                let mut expected = Vec::new();
                for one in packet {
                    if !expected.contains(one) {
                        expected.push(*one);
                    }
                }
                prop_assert_eq!(set.iter().copied().collect::<Vec<_>>(), expected.clone());
                if at % 3 != 0 {
                    set.count();
                    expected.iter().for_each(|one| *counts.entry(*one).or_default() += 1);
                }
            }
            let [mut all, other] = halves;
            all.merge(other);
            prop_assert_eq!(all.counted().collect::<HashMap<_, _>>(), counts);
        }
    }

    #[test]
    fn many_cost_no_more_each_than_few_and_the_same_again_no_hash() {
        const MANY: u32 = 10_000;
        let mut set = Distinct::default();
        (0..MANY).for_each(|one| set.add(Counted(one)));
        let hashed = HASHED.get();
        set.clear();
        (0..MANY).for_each(|one| set.add(Counted(one)));
        assert_eq!(set.iter().count(), MANY as usize);
        assert!(COMPARED.get() < 4 * MANY as usize, "{}", COMPARED.get());
        assert_eq!(HASHED.get(), hashed);
    }
}
