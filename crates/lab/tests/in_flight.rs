//! Every interleaving of small programs at the bound of packets in flight, by loom.
//!
//! The bound is the real file; its words are stand-ins whose operations are single steps in one order for all threads, as
//! the real ones are, which are `SeqCst` wherever the order counts. Loom's own words would be no judge of that: it takes
//! `SeqCst` for acquire and release, under which who waits and who leaves may miss each other, and no weaker order is
//! used here for it to explore.

// The programs need not all of what the file offers.
#[allow(dead_code)]
#[path = "../src/studies/orchestrate/in_flight.rs"]
mod in_flight;

use in_flight::InFlight;
use loom::sync::Arc;
use loom::thread;

/// What the bound is made of.
mod sync {
    use std::sync::PoisonError;
    use std::sync::atomic::Ordering;

    /// A value whose changes are single steps.
    #[derive(Debug)]
    pub(super) struct Word<T>(loom::sync::Mutex<T>);

    pub(super) type AtomicUsize = Word<usize>;
    pub(super) type AtomicBool = Word<bool>;

    impl<T: Copy> Word<T> {
        pub(super) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        fn change(&self, change: impl FnOnce(T) -> T) -> T {
            let mut value = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let old = *value;
            *value = change(old);
            old
        }

        pub(super) fn load(&self, _: Ordering) -> T {
            self.change(|value| value)
        }

        pub(super) fn store(&self, value: T, _: Ordering) {
            self.change(|_| value);
        }
    }

    impl AtomicUsize {
        pub(super) fn fetch_add(&self, more: usize, _: Ordering) -> usize {
            self.change(|value| value + more)
        }

        pub(super) fn fetch_sub(&self, less: usize, _: Ordering) -> usize {
            self.change(|value| value - less)
        }

        pub(super) fn fetch_max(&self, other: usize, _: Ordering) -> usize {
            self.change(|value| value.max(other))
        }

        pub(super) fn fetch_update(
            &self,
            _: Ordering,
            _: Ordering,
            update: impl FnOnce(usize) -> Option<usize>,
        ) -> Result<usize, usize> {
            let mut is_updated = false;
            let old = self.change(|value| {
                let new = update(value);
                is_updated = new.is_some();
                new.unwrap_or(value)
            });
            if is_updated { Ok(old) } else { Err(old) }
        }
    }

    /// loom's lock, with the signatures of the real one.
    #[derive(Debug)]
    pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

    pub(super) struct Guard<'l, T>(Option<loom::sync::MutexGuard<'l, T>>);

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(super) fn lock(&self) -> Guard<'_, T> {
            Guard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
        }
    }

    /// loom's condition, with the signatures of the real one.
    #[derive(Debug)]
    pub(super) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(super) fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        pub(super) fn wait<T>(&self, guard: &mut Guard<'_, T>) {
            let held = guard.0.take().expect("held");
            guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }

        pub(super) fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}

fn check(program: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(program);
}

/// A thread that waits for ever is told by loom as a deadlock.
#[test]
fn whoever_waits_for_room_gets_it() {
    check(|| {
        let in_flight = Arc::new(InFlight::new(2));
        assert!(in_flight.enter(2));
        let other = thread::spawn({
            let in_flight = Arc::clone(&in_flight);
            move || {
                assert!(in_flight.enter(2));
                in_flight.leave(2);
            }
        });
        in_flight.leave(1);
        in_flight.leave(1);
        other.join().unwrap();
        assert_eq!(in_flight.high_water(), 2);
    });
}

#[test]
fn two_that_wait_take_turns() {
    check(|| {
        let in_flight = Arc::new(InFlight::new(1));
        let threads = [(); 2].map(|()| {
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || {
                assert!(in_flight.enter(1));
                in_flight.leave(1);
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(in_flight.high_water(), 1);
    });
}

#[test]
fn nobody_waits_in_a_run_that_is_given_up() {
    check(|| {
        let in_flight = Arc::new(InFlight::new(1));
        assert!(in_flight.enter(1));
        let other = thread::spawn({
            let in_flight = Arc::clone(&in_flight);
            move || assert!(!in_flight.enter(1))
        });
        in_flight.give_up();
        other.join().unwrap();
    });
}
