//! `hopscotch`: the engine of [`super::fine`] over a table of our own, Herlihy, Shavit and Tzafrir's hopscotch table, which
//! the second study names as future work: an entry lies within a few buckets of its home, whose word has a bit for each of
//! them; where the first free bucket is farther away, entries move up into it until it is near.
//!
//! Entries are never removed, so a bucket holds the number of an entry, and entries lie in an arena and stay where they
//! are. Unlike the published one, insertions of new addresses take turns (one lock, once for each address, in place of
//! one for each segment), and a table in which nothing can be moved is not rehashed: new entries go into the next one, of
//! twice its buckets, and look-ups begin with the newest.
//!
//! Concurrency: a look-up takes no lock. It reads how often entries of its home have moved, before and after, and looks
//! again if one has; it is held up by nobody, as each time another thread has put an entry in.
//!
//! Linearization of the table: an insertion where its bit is set in the home; a look-up that finds nothing where it read
//! the bits of the newest table. That of the engine: see [`super::fine`].
//!
//! Source: M. Herlihy, N. Shavit, M. Tzafrir, Hopscotch Hashing, 2008.

use std::sync::OnceLock;

use super::fine::{Fine, Locked};
use super::sync::{AtomicU64, Ordering, RwLock};
use super::table::Index;
use crate::Address;
use crate::arena::Arena;
use access::RangeSet;

/// The engine.
pub type Hopscotch<A> = Fine<A, RangeSet<A>, Hops<A, Locked<A>>>;

/// Buckets that an entry may be away from its home, its home included; half of a table of fewer than twice as many.
const NEAR: usize = 32;
/// Buckets that are looked at for a free one.
const PROBED: usize = 1024;
/// The most tables, each of twice the buckets of the one before it.
const TABLES: usize = 24;

/// Tables of buckets, and the entries that they name.
#[derive(Debug)]
pub struct Hops<A, V> {
    entries: Arena<Slot<A, V>>,
    tables: [OnceLock<Box<[Bucket]>>; TABLES],
    newest: AtomicU64,
    /// Whoever puts an entry in holds it.
    inserting: RwLock<()>,
}

/// An entry, once it is there.
#[derive(Debug)]
struct Slot<A, V>(OnceLock<(A, V)>);

impl<A, V> Default for Slot<A, V> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

#[derive(Debug)]
struct Bucket {
    /// Of the entries whose home this is: bit `n` stands for the bucket `n` farther on.
    hops: AtomicU64,
    /// How often one of them has moved.
    moved: AtomicU64,
    /// The number of the entry here plus one, below the upper half of its hash; 0 if it is free.
    entry: AtomicU64,
}

impl Bucket {
    fn free() -> Self {
        let word = || AtomicU64::new(0);
        Self { hops: word(), moved: word(), entry: word() }
    }
}

/// Buckets, as many as a power of two.
#[derive(Clone, Copy)]
struct Table<'t>(&'t [Bucket]);

impl<'t> Table<'t> {
    fn bucket(self, at: usize) -> &'t Bucket {
        &self.0[at & (self.0.len() - 1)]
    }

    fn near(self) -> usize {
        NEAR.min(self.0.len() / 2).max(1)
    }

    /// The first of what `is_it` is asked about in the buckets of a home.
    fn find<T>(self, hash: u64, is_it: impl Fn(u64) -> Option<T>) -> Option<T> {
        let home = self.bucket(hash as usize);
        loop {
            let moved = home.moved.load(Ordering::SeqCst);
            let mut hops = home.hops.load(Ordering::SeqCst);
            while hops != 0 {
                let at = hash as usize + hops.trailing_zeros() as usize;
                let found = is_it(self.bucket(at).entry.load(Ordering::SeqCst));
                if found.is_some() {
                    return found;
                }
                hops &= hops - 1;
            }
            if home.moved.load(Ordering::SeqCst) == moved {
                return None;
            }
        }
    }

    /// Puts an entry in; not where no free bucket can be brought near its home. One at a time.
    fn put(self, hash: u64, entry: u64) -> bool {
        let home = hash as usize;
        let is_free = |far: &usize| self.bucket(home + far).entry.load(Ordering::SeqCst) == 0;
        let Some(mut far) = (0..self.0.len().min(PROBED)).find(is_free) else { return false };
        while far >= self.near() {
            match self.moved_into(home + far) {
                Some(closer) => far -= closer,
                None => return false,
            }
        }
        self.bucket(home + far).entry.store(entry, Ordering::SeqCst);
        let hops = &self.bucket(home).hops;
        hops.store(hops.load(Ordering::SeqCst) | 1 << far, Ordering::SeqCst);
        true
    }

    /// Moves an entry up into a free bucket, farthest first. How much closer the bucket is that becomes free.
    fn moved_into(self, free: usize) -> Option<usize> {
        for back in (1..self.near()).rev() {
            let home = self.bucket(free.wrapping_sub(back));
            let hops = home.hops.load(Ordering::SeqCst);
            let hop = hops.trailing_zeros() as usize;
            if hop >= back {
                continue;
            }
            let from = self.bucket(free.wrapping_sub(back - hop));
            let entry = from.entry.load(Ordering::SeqCst);
            self.bucket(free).entry.store(entry, Ordering::SeqCst);
            // It is in both, then the move is counted, then in the new one alone: who looked for it at the old one looks again.
            home.hops.store(hops | 1 << back, Ordering::SeqCst);
            home.moved.store(home.moved.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
            home.hops.store((hops | 1 << back) & !(1 << hop), Ordering::SeqCst);
            from.entry.store(0, Ordering::SeqCst);
            return Some(back - hop);
        }
        None
    }
}

impl<A: Address, V> Hops<A, V> {
    fn table(&self, at: usize) -> Option<Table<'_>> {
        self.tables[at].get().map(|buckets| Table(buckets))
    }

    fn find(&self, address: A, hash: u64) -> Option<&V> {
        let newest = self.newest.load(Ordering::SeqCst) as usize;
        let is_it = |named: u64| {
            let number = (named as u32).checked_sub(1)?;
            let is_alike = named >> 32 == hash >> 32;
            let (of, value) = self.entries.get(number as usize).0.get().filter(|_| is_alike)?;
            (*of == address).then_some(value)
        };
        (0..=newest).rev().find_map(|at| self.table(at)?.find(hash, is_it))
    }

    #[cold]
    fn add(&self, address: A, hash: u64, make: impl FnOnce() -> V) -> &V {
        let _alone = self.inserting.write();
        if let Some(value) = self.find(address, hash) {
            return value;
        }
        let number = self.entries.reserve();
        let (_, value) = self.entries.get(number as usize).0.get_or_init(|| (address, make()));
        let named = hash >> 32 << 32 | u64::from(number + 1);
        let mut newest = self.newest.load(Ordering::SeqCst) as usize;
        while !self.table(newest).is_some_and(|table| table.put(hash, named)) {
            let buckets = self.table(newest).map_or(1, |table| table.0.len());
            newest += 1;
            assert!(newest < TABLES, "a table of 2^23 times the first one's buckets is full");
            let _ = self.tables[newest].set(free(2 * buckets));
            self.newest.store(newest as u64, Ordering::SeqCst);
        }
        value
    }
}

fn free(buckets: usize) -> Box<[Bucket]> {
    (0..buckets).map(|_| Bucket::free()).collect()
}

impl<A: Address, V: Send + Sync> Index<A, V> for Hops<A, V> {
    type Guard<'a>
        = ()
    where
        Self: 'a;

    fn with_room(addresses: usize) -> Self {
        let tables = std::array::from_fn(|_| OnceLock::new());
        let _ = tables[0].set(free((2 * addresses).next_power_of_two()));
        let (newest, inserting) = (AtomicU64::new(0), RwLock::new(()));
        Self { entries: Arena::default(), tables, newest, inserting }
    }

    fn guard(&self) {}

    fn get<'g>(&'g self, address: A, _guard: &'g ()) -> Option<&'g V> {
        self.find(address, address.spread())
    }

    fn get_or_insert<'g>(&'g self, address: A, make: impl FnOnce() -> V, _guard: &'g ()) -> &'g V {
        let hash = address.spread();
        match self.find(address, hash) {
            Some(value) => value,
            None => self.add(address, hash, make),
        }
    }

    fn for_each(&self, mut each: impl FnMut(&V)) {
        for number in 0.. {
            match self.entries.get(number).0.get() {
                Some((_, value)) => each(value),
                None => return,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn buckets(hops: &Hops<u32, u32>) -> Vec<usize> {
        hops.tables.iter().filter_map(|table| Some(table.get()?.len())).collect()
    }

    #[test]
    fn holds_what_threads_insert_at_a_time() {
        let hops = Hops::<u32, u32>::with_room(1);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for address in 0..2000 {
                        assert_eq!(*hops.get_or_insert(address, || address * 7, &()), address * 7);
                        assert_eq!(hops.get(address / 2, &()), Some(&(address / 2 * 7)));
                    }
                });
            }
        });
        assert!((0..2000).all(|address| hops.get(address, &()) == Some(&(address * 7))));
        assert_eq!(hops.get(2000, &()), None);
        let mut values = 0;
        hops.for_each(|_| values += 1);
        assert_eq!(values, 2000, "each address once");
        assert!(buckets(&hops).len() > 4, "{:?}", buckets(&hops));
    }

    #[test]
    fn a_table_fills_up_by_moving_entries() {
        let hops = Hops::<u32, u32>::with_room(2048);
        let mut known = HashMap::new();
        let mut random = fastrand::Rng::with_seed(1);
        while buckets(&hops).len() == 1 {
            let address = random.u32(..);
            hops.get_or_insert(address, || address ^ 1, &());
            known.insert(address, address ^ 1);
        }
        assert!(known.len() > 4096 * 4 / 5, "{} of 4,096 buckets are taken", known.len());
        let table = hops.table(0).unwrap();
        let moved: u64 = table.0.iter().map(|home| home.moved.load(Ordering::SeqCst)).sum();
        assert!(moved > 100, "{moved} moves");
        for (address, value) in &known {
            assert_eq!(hops.get(*address, &()), Some(value));
        }
        assert!((0..10_000).all(|address| hops.get(address, &()) == known.get(&address)));
    }
}
