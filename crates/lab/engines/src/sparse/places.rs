//! Where the word of an address lies: tables of places, each address in one place for ever.
//!
//! Concurrency: a look-up takes no lock; to add an address takes one, once for each. A full table is not moved: the next
//! one is four times as large, and look-ups begin with the newest.
//!
//! Linearization: an address is there once its place has its name and the newest table is known. A look-up that finds none
//! finds that there was none when it asked which table is the newest.

use std::sync::OnceLock;

use super::summary::Summary;
use crate::Address;
use crate::sync::{AtomicU64, Ordering, RwLock};

/// Places for each address. A search that goes on beyond the first place cannot be predicted: with two places for each
/// address decisions of preset 8 take 1.4 times as long, with eight they gain little.
const SPARSE: usize = 4;
/// The most tables; each is four times as large as the one before it.
const TABLES: usize = 12;

/// An address and its word.
#[derive(Debug)]
pub(super) struct Place<A> {
    address: OnceLock<A>,
    word: AtomicU64,
}

impl<A> Place<A> {
    #[inline]
    pub(super) fn word(&self) -> &AtomicU64 {
        &self.word
    }
}

/// Places by address.
#[derive(Debug)]
pub(super) struct Places<A> {
    new: Summary,
    tables: [OnceLock<Box<[Place<A>]>>; TABLES],
    /// The number of the newest table, stored whenever an address was added.
    newest: AtomicU64,
    /// Addresses in the newest table.
    added: RwLock<usize>,
}

impl<A: Address> Places<A> {
    /// With room for this number of addresses; what all words say at first.
    pub(super) fn new(addresses: usize, new: Summary) -> Self {
        let first = table((4 * addresses).next_power_of_two(), new);
        let tables = std::array::from_fn(|_| OnceLock::new());
        let _ = tables[0].set(first);
        Self { new, tables, newest: AtomicU64::new(0), added: RwLock::new(0) }
    }

    /// The place of an address.
    #[inline]
    pub(super) fn find(&self, address: A) -> Option<&Place<A>> {
        let newest = self.newest.load(Ordering::Acquire) as usize;
        let mut tables = self.tables[..=newest].iter().rev().filter_map(OnceLock::get);
        tables.find_map(|table| look(table, address).ok())
    }

    /// The place of an address, which is added if it is not there.
    pub(super) fn find_or_add(&self, address: A) -> &Place<A> {
        match self.find(address) {
            Some(place) => place,
            None => self.add(address),
        }
    }

    #[cold]
    fn add(&self, address: A) -> &Place<A> {
        let mut added = self.added.write();
        if let Some(place) = self.find(address) {
            return place;
        }
        let mut newest = self.newest.load(Ordering::Relaxed) as usize;
        let full = self.tables[newest].get().is_some_and(|table| *added >= table.len() / SPARSE);
        if full && newest + 1 < TABLES {
            let len = self.tables[newest].get().map_or(1, |table| table.len());
            newest += 1;
            self.tables[newest].get_or_init(|| table(4 * len, self.new));
            *added = 0;
        }
        *added += 1;
        let place = self.tables[newest].get().and_then(|table| look(table, address).err()?);
        let place = place.expect("a table of 2^22 times the first is never full");
        place.address.get_or_init(|| address);
        self.newest.store(newest as u64, Ordering::Release);
        place
    }

    pub(super) fn bytes(&self) -> usize {
        self.tables.iter().filter_map(OnceLock::get).map(|table| size_of_val(&**table)).sum()
    }
}

fn table<A>(len: usize, new: Summary) -> Box<[Place<A>]> {
    (0..len).map(|_| Place { address: OnceLock::new(), word: AtomicU64::new(new.0) }).collect()
}

/// The place of an address in a table; if it has none, the free one where it would be, unless all are taken.
#[inline]
fn look<A: Address>(table: &[Place<A>], address: A) -> Result<&Place<A>, Option<&Place<A>>> {
    let begin = address.spread() as usize;
    for step in 0..table.len() {
        let place = &table[begin.wrapping_add(step) & (table.len() - 1)];
        match place.address.get() {
            Some(of) if *of == address => return Ok(place),
            Some(_) => {}
            None => return Err(Some(place)),
        }
    }
    Err(None)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_place_for_ever() {
        let places = Places::<u32>::new(1, Summary::new(true));
        let address = |at: u32| at.wrapping_mul(0x9e37_79b1);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let add = || (0..3000).for_each(|at| _ = places.find_or_add(address(at)));
                scope.spawn(add);
            }
        });
        let all = || (0..3000).map(|at| places.find(address(at)).unwrap());
        all().enumerate().for_each(|(at, place)| place.word().store(at as u64, Ordering::SeqCst));
        let words = all().map(|place| place.word().load(Ordering::SeqCst));
        assert!(words.eq(0..3000), "each has its own");
        assert!(places.newest.load(Ordering::Relaxed) >= 4);
        let named = |table: &OnceLock<Box<[Place<u32>]>>| {
            let table = table.get().into_iter().flat_map(|table| table.iter());
            table.filter(|place| place.address.get().is_some()).count()
        };
        assert_eq!(places.tables.iter().map(named).sum::<usize>(), 3000, "and no other");
        assert!(places.find(address(3000)).is_none());
    }
}
