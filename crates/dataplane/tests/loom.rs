//! Every interleaving of small programs at the desk, by loom.
//!
//! The desk is the real file, its cell a stand-in whose swap is one step: crossbeam answers for that. What
//! the ledger does with counts of `Arc`s is done here with loom's.

use std::sync::atomic::Ordering::Relaxed;

use desk::{Desk, Seat};
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

#[path = "../src/publish/desk.rs"]
mod desk;

/// The atomic cell of the desk.
mod sync {
    /// A cell whose swaps are single steps.
    pub(super) struct AtomicCell<T>(loom::sync::Mutex<T>);

    impl<T> AtomicCell<T> {
        pub(super) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(super) fn swap(&self, value: T) -> T {
            let mut held = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            std::mem::replace(&mut held, value)
        }
    }
}

/// An array of two counters with one writer, which must never be seen half counted.
#[derive(Default)]
struct Array {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Array {
    fn count(&self) {
        self.packets.store(self.packets.load(Relaxed) + 1, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + 10, Relaxed);
    }

    fn get(&self) -> (u64, u64) {
        (self.packets.load(Relaxed), self.bytes.load(Relaxed))
    }
}

/// A worker's work in the model: a revision, and an array.
type Work = (Arc<u64>, Arc<Array>);

fn seat(number: u64, revision: &Arc<u64>, array: &Arc<Array>) -> Seat<Work> {
    Seat { number, what: (Arc::clone(revision), Arc::clone(array)) }
}

/// Bursts of a worker: what revisions they saw.
fn bursts(desk: &Desk<Work>, count: usize) -> Vec<u64> {
    let burst = |_| {
        let seat = desk.take().expect("left");
        let revision = *seat.what.0;
        seat.what.1.count();
        desk.leave(seat);
        revision
    };
    (0..count).map(burst).collect()
}

fn check(program: impl Fn() + Send + Sync + 'static) {
    loom::model::Builder::new().check(program);
}

#[test]
fn revisions_rise_and_the_last_one_is_left() {
    check(|| {
        let (one, two, three) = (Arc::new(1), Arc::new(2), Arc::new(3));
        let array = Arc::new(Array::default());
        let desk = Arc::new(Desk::new(seat(1, &one, &array)));
        let worker = thread::spawn({
            let desk = Arc::clone(&desk);
            move || bursts(&desk, 2)
        });
        desk.post(seat(2, &two, &array));
        desk.post(seat(3, &three, &array));
        let seen = worker.join().expect("no panic");
        assert!(seen.is_sorted(), "{seen:?}");
        // A burst that begins after the last post sees what was posted.
        assert_eq!(bursts(&desk, 1), [3]);
        // Nobody has the others, and the worker rests.
        assert!(Arc::try_unwrap(one).is_ok() && Arc::try_unwrap(two).is_ok());
        assert_eq!(array.get(), (3, 30));
    });
}

/// Whatever is reclaimed while a worker walks is nothing that it walks: loom looks at each access to it.
#[test]
fn a_revision_is_reclaimed_after_its_last_burst() {
    use loom::cell::UnsafeCell;
    check(|| {
        let words = |value: u64| Arc::new(UnsafeCell::new(value));
        let (one, two) = (words(1), words(2));
        let post = |number, what: &Arc<_>| Seat { number, what: Arc::clone(what) };
        let desk = Arc::new(Desk::new(post(1, &one)));
        let worker = thread::spawn({
            let desk = Arc::clone(&desk);
            move || {
                let seat = desk.take().expect("left");
                seat.what.with(|_| ());
                desk.leave(seat);
            }
        });
        desk.post(post(2, &two));
        // What the ledger does: if it is the last to hold it, it is its own to change.
        if let Ok(old) = Arc::try_unwrap(one) {
            old.with_mut(|_| ());
        }
        worker.join().expect("no panic");
        assert_eq!(Arc::strong_count(&two), 2, "the desk's and ours");
    });
}

/// The snapshot's hand-over: an array that the worker has left has whole bursts in it and no later ones.
#[test]
fn an_array_is_summed_as_of_a_boundary() {
    check(|| {
        let revision = Arc::new(1);
        let (first, second) = (Arc::new(Array::default()), Arc::new(Array::default()));
        let desk = Arc::new(Desk::new(seat(1, &revision, &first)));
        let worker = thread::spawn({
            let desk = Arc::clone(&desk);
            move || bursts(&desk, 2)
        });
        desk.post(seat(2, &revision, &second));
        let early = Arc::try_unwrap(first).map(|array| array.get());
        worker.join().expect("no panic");
        let (packets, bytes) = match early {
            Ok(sum) => sum,
            Err(first) => Arc::try_unwrap(first).map(|array| array.get()).unwrap_or((99, 0)),
        };
        let (more, more_bytes) = second.get();
        assert_eq!((packets + more, bytes + more_bytes), (2, 20));
        assert_eq!(bytes, packets * 10);
    });
}

/// A rule's counter is set to zero for the next rule of that slot, once the revision of the last one is
/// reclaimed: no count of either is lost or added to the other.
#[test]
fn a_slot_is_given_again_when_nobody_counts_in_it() {
    check(|| {
        let (one, two, three) = (Arc::new(1), Arc::new(2), Arc::new(3));
        let array = Arc::new(Array::default());
        let desk = Arc::new(Desk::new(seat(1, &one, &array)));
        let worker = thread::spawn({
            let desk = Arc::clone(&desk);
            move || {
                // Revision 2 has no rule in the slot.
                let burst = |_| {
                    let seat = desk.take().expect("left");
                    let revision = *seat.what.0;
                    if revision != 2 {
                        seat.what.1.count();
                    }
                    desk.leave(seat);
                    u64::from(revision == 3)
                };
                (0..2).map(burst).sum::<u64>()
            }
        });
        desk.post(seat(2, &two, &array));
        if Arc::try_unwrap(one).is_ok() {
            array.packets.store(0, Relaxed);
            array.bytes.store(0, Relaxed);
            desk.post(seat(3, &three, &array));
            let counted = worker.join().expect("no panic");
            assert_eq!(array.get(), (counted, counted * 10));
        } else {
            worker.join().expect("no panic");
        }
    });
}
