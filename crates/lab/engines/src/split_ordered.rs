//! `split_ordered`: the engine of [`super::fine`] over a table of our own, Shalev and Shavit's split-ordered
//! list, which the second study names as future work: one list in the order of reversed hashes, into which
//! buckets point; the table doubles by adding pointers, and no entry ever moves.
//!
//! Entries are never removed, which leaves the list without marks and without reclamation: nodes live in an
//! arena of doubling chunks, links are their numbers. A reader takes no lock in the list and walks from its
//! bucket's sentinel; a writer links a node in by compare-and-swap on the link before it.
//!
//! Linearization of the table: an insertion at the compare-and-swap that links its node; a look-up that
//! finds nothing where it read the link that passes over the place. That of the engine: see
//! [`super::fine`].
//!
//! Source: O. Shalev, N. Shavit, Split-Ordered Lists: Lock-Free Extensible Hash Tables, 2006.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::fine::{Fine, Locked};
use super::sync::pause;
use super::table::Index;
use crate::Address;
use crate::arena::Arena;
use access::RangeSet;

/// The engine.
pub type SplitOrdered<A> = Fine<A, RangeSet<A>, List<A, Locked<A>>>;

/// Entries for each bucket, on average, before the table doubles.
const LOAD: usize = 2;
/// The most buckets.
const MOST_BUCKETS: usize = 1 << 24;
/// No node.
const END: u32 = u32::MAX;

/// The list with its buckets.
#[derive(Debug)]
pub struct List<A, V> {
    nodes: Arena<Node<A, V>>,
    /// For each bucket the number of its sentinel plus one; 0 while it has none.
    sentinels: Arena<AtomicU32>,
    buckets: AtomicUsize,
    entries: AtomicUsize,
}

#[derive(Debug)]
struct Node<A, V> {
    filled: OnceLock<Filled<A, V>>,
    next: AtomicU32,
}

#[derive(Debug)]
struct Filled<A, V> {
    /// The hash with its bits reversed; the lowest tells entries (1) from sentinels (0).
    order: u64,
    entry: Option<(A, V)>,
}

impl<A, V> Default for Node<A, V> {
    fn default() -> Self {
        Self { filled: OnceLock::new(), next: AtomicU32::new(END) }
    }
}

impl<A: Address, V> Default for List<A, V> {
    fn default() -> Self {
        let list = Self {
            nodes: Arena::default(),
            sentinels: Arena::default(),
            buckets: AtomicUsize::new(2),
            entries: AtomicUsize::new(0),
        };
        let first = list.add(0, None);
        list.sentinels.get(0).store(first + 1, Ordering::Release);
        list
    }
}

impl<A: Address, V> List<A, V> {
    /// A new node that nothing links to yet.
    fn add(&self, order: u64, entry: Option<(A, V)>) -> u32 {
        let at = self.nodes.reserve();
        // The number was never handed out before, so nobody else fills the node.
        let _ = self.nodes.get(at as usize).filled.set(Filled { order, entry });
        at
    }

    fn node(&self, at: u32) -> Option<&Filled<A, V>> {
        if at == END { None } else { self.nodes.get(at as usize).filled.get() }
    }

    /// From a sentinel: the last node before the place of (order, address), and the node there or after it.
    fn find(&self, sentinel: u32, order: u64, address: Option<A>) -> (u32, u32, bool) {
        let mut before = sentinel;
        loop {
            pause();
            let at = self.nodes.get(before as usize).next.load(Ordering::SeqCst);
            let Some(node) = self.node(at) else { return (before, at, false) };
            let there = node.entry.as_ref().map(|(of, _)| *of) == address;
            if node.order > order || (node.order == order && there) {
                return (before, at, node.order == order && there);
            }
            before = at;
        }
    }

    /// Links a node in after a sentinel, unless its like is there. The number of the one there.
    fn link(&self, sentinel: u32, order: u64, entry: Option<(A, V)>) -> u32 {
        let address = entry.as_ref().map(|(of, _)| *of);
        let new = self.add(order, entry);
        loop {
            let (before, at, there) = self.find(sentinel, order, address);
            if there {
                return at;
            }
            let link = |at: u32| &self.nodes.get(at as usize).next;
            link(new).store(at, Ordering::Relaxed);
            pause();
            let linked =
                link(before).compare_exchange(at, new, Ordering::SeqCst, Ordering::Relaxed);
            if linked.is_ok() {
                return new;
            }
        }
    }

    /// The sentinel of a bucket. A bucket without one gets it after that of its parent, the bucket that
    /// held its entries before the table doubled.
    fn sentinel(&self, bucket: usize) -> u32 {
        let mut missing = Vec::new();
        let mut at = bucket;
        let mut sentinel = loop {
            pause();
            match self.sentinels.get(at).load(Ordering::Acquire) {
                0 => missing.push(at),
                number => break number - 1,
            }
            at &= !(1 << at.ilog2());
        };
        while let Some(bucket) = missing.pop() {
            sentinel = self.link(sentinel, (bucket as u64).reverse_bits(), None);
            self.sentinels.get(bucket).store(sentinel + 1, Ordering::Release);
        }
        sentinel
    }

    fn place(&self, address: A) -> (u32, u64) {
        let hash = address.spread();
        let bucket = hash as usize & (self.buckets.load(Ordering::Relaxed) - 1);
        (self.sentinel(bucket), hash.reverse_bits() | 1)
    }
}

impl<A: Address, V: Send + Sync> Index<A, V> for List<A, V> {
    type Guard<'a>
        = ()
    where
        Self: 'a;

    fn with_room(_addresses: usize) -> Self {
        Self::default()
    }

    fn guard(&self) {}

    fn get<'g>(&'g self, address: A, _guard: &'g ()) -> Option<&'g V> {
        let (sentinel, order) = self.place(address);
        let (_, at, there) = self.find(sentinel, order, Some(address));
        let node = self.node(at).filter(|_| there)?;
        node.entry.as_ref().map(|(_, value)| value)
    }

    fn get_or_insert<'g>(&'g self, address: A, make: impl FnOnce() -> V, guard: &'g ()) -> &'g V {
        if let Some(value) = self.get(address, guard) {
            return value;
        }
        let value = make();
        let (sentinel, order) = self.place(address);
        let at = self.link(sentinel, order, Some((address, value)));
        let entries = self.entries.fetch_add(1, Ordering::Relaxed) + 1;
        let buckets = self.buckets.load(Ordering::Relaxed);
        pause();
        if entries > LOAD * buckets && buckets < MOST_BUCKETS {
            let doubled = 2 * buckets;
            let relaxed = Ordering::Relaxed;
            let _ = self.buckets.compare_exchange(buckets, doubled, relaxed, relaxed);
        }
        let entry = self.node(at).and_then(|node| node.entry.as_ref());
        entry.map(|(_, value)| value).expect("an address names an entry, never a sentinel")
    }

    fn for_each(&self, mut each: impl FnMut(&V)) {
        let mut at = 0;
        while let Some(node) = self.node(at) {
            if let Some((_, value)) = &node.entry {
                each(value);
            }
            at = self.nodes.get(at as usize).next.load(Ordering::SeqCst);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn holds_what_threads_insert_at_a_time() {
        let list = List::<u32, u32>::default();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for address in 0..2000 {
                        assert_eq!(*list.get_or_insert(address, || address * 7, &()), address * 7);
                    }
                });
            }
        });
        assert!((0..2000).all(|address| list.get(address, &()) == Some(&(address * 7))));
        assert_eq!(list.get(2000, &()), None);
        let mut values = 0;
        list.for_each(|_| values += 1);
        assert_eq!(values, 2000, "each address once");
        assert!(list.buckets.load(Ordering::Relaxed) >= 512);
    }
}
