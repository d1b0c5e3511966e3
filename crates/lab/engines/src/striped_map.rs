//! `striped_map`: the second study's own hash map: a resizable table of buckets, a fixed array of
//! reader-writer locks, atomic replacement of a value. Initial size, longest bucket and the share of full
//! buckets that makes it grow are [`Settings`].
//!
//! Concurrency: lock `i` of `L` guards the buckets whose number is `i` modulo `L`; the table's size stays a
//! multiple of `L`, so a lock guards twice as many after each doubling and none is ever added. Whoever
//! takes several locks takes them by index: a reader of two addresses its two, growth all of them.
//!
//! Two forms. [`AsPublished`] has one map for PNG and one for R and uses them one after the other; the
//! checker catches it. [`Atomic`] has one map of entries and reads both under their locks; `update`
//! linearizes while it holds its lock, `decide` while it holds both.

use crossbeam_utils::CachePadded;

use super::pause::between_steps;
use super::range_list::RangeList;
use super::sync::{AtomicU64, Ordering, RwLock};
use crate::{Address, Config, Engine};

/// How the table starts and grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Buckets at the start, and locks for ever; at least one.
    pub initial: usize,
    /// The most entries of a bucket that does not count as full.
    pub longest: usize,
    /// How many full buckets, in percent of all, make the table double.
    pub full_percent: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { initial: 1024, longest: 4, full_percent: 10 }
    }
}

type Bucket<A, V> = Vec<(A, V)>;
/// The buckets that one lock guards.
type Stripe<A, V> = CachePadded<RwLock<Vec<Bucket<A, V>>>>;

/// The map.
#[derive(Debug)]
struct StripedMap<A, V> {
    settings: Settings,
    stripes: Box<[Stripe<A, V>]>,
    /// Buckets that are longer than they should be.
    full: AtomicU64,
}

impl<A: Address, V> StripedMap<A, V> {
    fn new(settings: Settings) -> Self {
        let stripe = |_| CachePadded::new(RwLock::new(vec![Vec::new()]));
        let stripes = (0..settings.initial.max(1)).map(stripe).collect();
        Self { settings, stripes, full: AtomicU64::new(0) }
    }

    fn stripe(&self, address: A) -> usize {
        (address.spread() % self.stripes.len() as u64) as usize
    }

    /// The bucket of an address among those of its stripe.
    fn bucket(&self, address: A, buckets: usize) -> usize {
        (address.spread() / self.stripes.len() as u64 % buckets as u64) as usize
    }

    fn find<'v>(&self, buckets: &'v [Bucket<A, V>], address: A) -> Option<&'v V> {
        let bucket = &buckets[self.bucket(address, buckets.len())];
        bucket.iter().find(|(of, _)| *of == address).map(|(_, value)| value)
    }

    /// Looks at the value of an address.
    fn with<R>(&self, address: A, look: impl FnOnce(Option<&V>) -> R) -> R {
        look(self.find(&self.stripes[self.stripe(address)].read(), address))
    }

    /// Looks at the values of two addresses at one moment.
    fn with_both<R>(&self, one: A, other: A, look: impl Fn(Option<&V>, Option<&V>) -> R) -> R {
        let (first, second) = (self.stripe(one), self.stripe(other));
        if first == second {
            let buckets = self.stripes[first].read();
            return look(self.find(&buckets, one), self.find(&buckets, other));
        }
        let low = self.stripes[first.min(second)].read();
        let high = self.stripes[first.max(second)].read();
        let (of_one, of_other) = if first < second { (&low, &high) } else { (&high, &low) };
        look(self.find(of_one, one), self.find(of_other, other))
    }

    /// Replaces the value of an address by what `make` makes of the one there, as one action.
    fn replace(&self, address: A, make: impl FnOnce(Option<&V>) -> V) {
        let mut buckets = self.stripes[self.stripe(address)].write();
        let at = self.bucket(address, buckets.len());
        let bucket = &mut buckets[at];
        if let Some((_, value)) = bucket.iter_mut().find(|(of, _)| *of == address) {
            *value = make(Some(value));
            return;
        }
        bucket.push((address, make(None)));
        if bucket.len() != self.settings.longest + 1 {
            return;
        }
        let (size, stripes) = (buckets.len(), self.stripes.len());
        let full = self.full.fetch_add(1, Ordering::Relaxed) + 1;
        drop(buckets);
        if full as usize * 100 > size * stripes * self.settings.full_percent {
            self.grow(size);
        }
    }

    /// Doubles the table, unless another thread did.
    fn grow(&self, from: usize) {
        let mut all: Vec<_> = self.stripes.iter().map(|stripe| stripe.write()).collect();
        if all[0].len() != from {
            return;
        }
        let mut full = 0;
        for stripe in &mut all {
            let mut new: Vec<Bucket<A, V>> = (0..2 * from).map(|_| Vec::new()).collect();
            for (address, value) in stripe.drain(..).flatten() {
                new[self.bucket(address, 2 * from)].push((address, value));
            }
            full += new.iter().filter(|bucket| bucket.len() > self.settings.longest).count();
            **stripe = new;
        }
        self.full.store(full as u64, Ordering::Relaxed);
    }

    /// Bytes of table and values, each of which `bytes` tells.
    fn bytes(&self, bytes: impl Fn(&V) -> usize) -> usize {
        let of_bucket = |bucket: &Bucket<A, V>| {
            size_of::<Bucket<A, V>>()
                + bucket.capacity() * size_of::<(A, V)>()
                + bucket.iter().map(|(_, value)| bytes(value)).sum::<usize>()
        };
        let stripes = self.stripes.iter();
        stripes.map(|stripe| 128 + stripe.read().iter().map(of_bucket).sum::<usize>()).sum()
    }
}

/// PNG and R apart, as the study has them.
#[derive(Debug)]
pub struct AsPublished<A> {
    default: bool,
    png: StripedMap<A, bool>,
    accepts: StripedMap<A, RangeList<A>>,
}

impl<A: Address> AsPublished<A> {
    /// Every address accepts all sources, or none.
    #[must_use]
    pub fn new(default: bool, settings: Settings) -> Self {
        Self { default, png: StripedMap::new(settings), accepts: StripedMap::new(settings) }
    }
}

impl<A: Address> Engine<A> for AsPublished<A> {
    fn decide(&self, source: A, destination: A) -> bool {
        if self.png.with(source, |png| png.is_some_and(|&png| png)) {
            return false;
        }
        between_steps();
        self.accepts
            .with(destination, |list| list.map_or(self.default, |list| list.contains(source)))
    }

    fn update(&self, config: &Config<A>) {
        self.png.replace(config.address, |_| config.persona_non_grata);
        between_steps();
        self.accepts.replace(config.address, |old| after(old, config, self.default));
    }

    fn bytes(&self) -> usize {
        self.png.bytes(|_| 0) + self.accepts.bytes(RangeList::bytes)
    }
}

/// PNG and R in one entry.
#[derive(Debug)]
pub struct Atomic<A> {
    default: bool,
    entries: StripedMap<A, (bool, RangeList<A>)>,
}

impl<A: Address> Atomic<A> {
    /// Every address accepts all sources, or none.
    #[must_use]
    pub fn new(default: bool, settings: Settings) -> Self {
        Self { default, entries: StripedMap::new(settings) }
    }
}

impl<A: Address> Engine<A> for Atomic<A> {
    fn decide(&self, source: A, destination: A) -> bool {
        self.entries.with_both(source, destination, |from, to| {
            !from.is_some_and(|(png, _)| *png)
                && to.map_or(self.default, |(_, list)| list.contains(source))
        })
    }

    fn update(&self, config: &Config<A>) {
        self.entries.replace(config.address, |old| {
            (config.persona_non_grata, after(old.map(|(_, list)| list), config, self.default))
        });
    }

    fn bytes(&self) -> usize {
        self.entries.bytes(|(_, list)| list.bytes())
    }
}

fn after<A: Address>(
    old: Option<&RangeList<A>>,
    config: &Config<A>,
    default: bool,
) -> RangeList<A> {
    let mut list = old.cloned().unwrap_or_else(|| RangeList::new(default));
    list.set(config.begin, config.end, config.accept);
    list
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn grows_while_threads_read_and_write() {
        let settings = Settings { initial: 2, longest: 1, full_percent: 10 };
        let map = StripedMap::<u32, u32>::new(settings);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let map = &map;
                scope.spawn(move || {
                    for address in 0..500 {
                        map.replace(address, |old| old.copied().unwrap_or(0) + 1);
                        assert!(map.with(address, |value| value.is_some_and(|&value| value > 0)));
                        map.with_both(address, thread, |one, _| assert!(one.is_some()));
                    }
                });
            }
        });
        assert!((0..500).all(|address| map.with(address, |value| value == Some(&3))));
        assert!(map.stripes[0].read().len() > 64, "500 entries in buckets of one or two");
        assert_eq!(map.stripes.len(), 2);
    }
}
