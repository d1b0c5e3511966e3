//! `striped`: a fixed array of reader-writer locks, each around the entries of the addresses that fall on
//! it. The count is a parameter.
//!
//! Concurrency: a reader holds the stripes of source and destination for reading, a writer one stripe for
//! writing. **Lock order: by stripe index**, one lock where both addresses share a stripe. The published
//! design orders by *address*; two addresses may fall on stripes in the opposite order, and with a lock
//! that lets waiting writers go first two readers then wait for each other for ever. [`Order::ByAddress`]
//! keeps that order for the test that shows it; nothing else uses it.
//!
//! Linearization: `update` anywhere while it holds its stripe, `decide` anywhere while it holds both: no
//! entry that it reads can change in between.

use std::collections::HashMap;

use crossbeam_utils::CachePadded;

use super::entry::{Accepts, Entry, permits};
use super::sync::RwLock;
use crate::{Address, Config, Engine, Mix};
use access::RangeSet;

type Stripe<A, R> = CachePadded<RwLock<HashMap<A, Entry<A, R>, Mix>>>;

/// In which order a reader takes its two stripes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// By their index: free of deadlock.
    #[default]
    ByStripe,
    /// By the addresses, as published: not free of deadlock.
    ByAddress,
}

/// Entries by the stripe that their address falls on. `R` is the form of R; the sorted set unless another one is named.
#[derive(Debug)]
pub struct Striped<A, R = RangeSet<A>> {
    default: bool,
    order: Order,
    stripes: Box<[Stripe<A, R>]>,
}

impl<A: Address, R: Accepts<A>> Striped<A, R> {
    /// Every address accepts all sources, or none; this number of stripes, at least one.
    #[must_use]
    pub fn new(default: bool, stripes: usize) -> Self {
        Self::ordered(default, stripes, Order::ByStripe)
    }

    /// The same with a lock order, for the test of the published one.
    #[must_use]
    pub fn ordered(default: bool, stripes: usize, order: Order) -> Self {
        let stripe = |_| CachePadded::new(RwLock::new(HashMap::default()));
        Self { default, order, stripes: (0..stripes.max(1)).map(stripe).collect() }
    }

    /// The stripe of an address: its number modulo the count, as published.
    #[must_use]
    pub fn stripe(&self, address: A) -> usize {
        let number = address.index().unwrap_or_else(|| address.spread() as usize);
        number % self.stripes.len()
    }

    /// The stripes of source and destination in the order in which they are locked.
    fn lock_order(&self, source: A, destination: A) -> (usize, usize) {
        let (from, to) = (self.stripe(source), self.stripe(destination));
        let swap = match self.order {
            Order::ByStripe => to < from,
            Order::ByAddress => destination < source,
        };
        if swap { (to, from) } else { (from, to) }
    }
}

impl<A: Address, R: Accepts<A>> Engine<A> for Striped<A, R> {
    fn decide(&self, source: A, destination: A) -> bool {
        let (first, second) = self.lock_order(source, destination);
        let one = self.stripes[first].read();
        if first == second {
            return permits(one.get(&source), one.get(&destination), source, self.default);
        }
        let other = self.stripes[second].read();
        let at_source = self.stripe(source) == first;
        let (from, to) = if at_source { (&one, &other) } else { (&other, &one) };
        permits(from.get(&source), to.get(&destination), source, self.default)
    }

    fn update(&self, config: &Config<A>) {
        let mut entries = self.stripes[self.stripe(config.address)].write();
        let entry = entries.entry(config.address);
        entry.or_insert_with(|| Entry::new(self.default)).change(config);
    }

    fn bytes(&self) -> usize {
        let entries = |stripe: &Stripe<A, R>| -> usize {
            stripe.read().values().map(|entry| size_of::<A>() + entry.bytes()).sum()
        };
        let locks = self.stripes.len() * size_of::<Stripe<A, R>>();
        locks + self.stripes.iter().map(entries).sum::<usize>()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use parking_lot::{Condvar, Mutex, MutexGuard};

    /// Pairs of stripes that some reader takes in this order.
    fn orders(striped: &Striped<u32>) -> Vec<(usize, usize)> {
        let pairs = (0..8).flat_map(|source| (0..8).map(move |to| (source, to)));
        let mut orders: Vec<_> = pairs.map(|(source, to)| striped.lock_order(source, to)).collect();
        orders.retain(|(first, second)| first != second);
        orders
    }

    #[test]
    fn stripes_are_taken_in_one_order() {
        let orders = orders(&Striped::<u32>::new(true, 3));
        assert!(orders.iter().all(|(first, second)| first < second));
    }

    /// Addresses 0 and 4 of 3 stripes lie on stripes 0 and 1, addresses 1 and 3 on stripes 1 and 0: in
    /// the order of addresses one reader goes from 0 to 1, the other from 1 to 0.
    #[test]
    fn the_published_order_has_a_cycle() {
        let orders = orders(&Striped::<u32>::ordered(true, 3, Order::ByAddress));
        assert!(orders.contains(&(0, 1)) && orders.contains(&(1, 0)));
    }

    /// The cycle closes as soon as a writer waits on each stripe. Nobody gets further within the time that
    /// a thousand uncontended locks take many times over; then the readers give up and all end.
    #[test]
    fn readers_and_waiting_writers_deadlock_in_the_published_order() {
        let stripes = [RwLock::new(()), RwLock::new(())];
        let reading = Barrier::new(2);
        let got_both = std::thread::scope(|scope| {
            let reader = |first: usize| {
                let (stripes, reading) = (&stripes, &reading);
                scope.spawn(move || {
                    let _one = stripes[first].read();
                    reading.wait();
                    scope.spawn(move || drop(stripes[first].write()));
                    while stripes[1 - first].try_read().is_some() {
                        std::thread::yield_now();
                    }
                    stripes[1 - first].try_read_for(Duration::from_millis(200)).is_some()
                })
            };
            let (one, other) = (reader(0), reader(1));
            (one.join().unwrap(), other.join().unwrap())
        });
        assert!(!got_both.0 || !got_both.1, "a waiting writer goes first, so at least one starves");
    }

    /// A lock that lets readers pass a writer that waits, as locks of the study may.
    #[derive(Default)]
    struct Passed {
        readers: Mutex<usize>,
        left: Condvar,
    }

    impl Passed {
        fn read(&self) {
            *self.readers.lock() += 1;
        }

        fn leave(&self) {
            *self.readers.lock() -= 1;
            self.left.notify_all();
        }

        fn write(&self) -> MutexGuard<'_, usize> {
            let mut readers = self.readers.lock();
            self.left.wait_while(&mut readers, |readers| *readers > 0);
            readers
        }
    }

    /// Two readers who relieve each other keep a writer out for as long as they like.
    #[test]
    fn a_writer_starves_where_readers_pass_it() {
        let (lock, written) = (Passed::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            lock.read();
            let writer = scope.spawn(|| {
                let _all = lock.write();
                written.store(true, Ordering::SeqCst);
            });
            for turn in 0..10_000 {
                lock.read();
                lock.leave();
                if turn % 100 == 0 {
                    std::thread::yield_now();
                }
            }
            assert!(!written.load(Ordering::SeqCst), "for as long as they relieve each other");
            lock.leave();
            writer.join().unwrap();
        });
        assert!(written.load(Ordering::SeqCst));
    }

    /// Nobody passes a writer at the engines' lock: who asks after it waits for it.
    #[test]
    fn a_writer_does_not_starve_at_the_lock_of_the_engines() {
        let (lock, written) = (RwLock::new(()), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let one = lock.read();
            scope.spawn(|| {
                let _all = lock.write();
                written.store(true, Ordering::SeqCst);
            });
            while lock.try_read().is_some() {
                std::thread::yield_now();
            }
            let next = scope.spawn(|| {
                let _next = lock.read();
                written.load(Ordering::SeqCst)
            });
            drop(one);
            assert!(next.join().unwrap(), "the writer was first");
        });
    }
}
