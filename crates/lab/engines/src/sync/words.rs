//! Words that threads share: the real ones; under `--cfg loom` those whose interleavings loom explores; under `--cfg
//! pauses` real ones before which a thread may stumble, so that what recorded histories hold overlaps (`make histories`);
//! under `--cfg loom --cfg orders` loom's own, which know acquire and release.

#[cfg(not(any(loom, pauses)))]
pub(crate) use std::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::Ordering;
#[cfg(not(loom))]
pub(crate) use std::thread::yield_now;

#[cfg(pauses)]
pub(crate) use paused::pause;

#[cfg(loom)]
pub(crate) use loom::sync::atomic::Ordering;
#[cfg(loom)]
pub(crate) use loom::thread::yield_now;
#[cfg(all(loom, not(orders)))]
pub(crate) use model::AtomicU64;
#[cfg(any(pauses, all(loom, orders)))]
pub(crate) use preceded::AtomicU64;

#[cfg(all(test, pauses))]
pub(crate) use paused::stop_at;

#[cfg(pauses)]
mod paused {
    use std::cell::Cell;
    use std::hash::{BuildHasher, RandomState};

    thread_local! {
        static DRAWN: Cell<u64> = Cell::new(RandomState::new().hash_one(0) | 1);
    }

    /// Has this thread call `stopped` at this one of its steps, from now on.
    #[cfg(test)]
    pub(crate) fn stop_at(step: usize, stopped: Box<dyn FnOnce()>) {
        STOP.set(Some((step, stopped)));
    }

    #[cfg(test)]
    type Stop = (usize, Box<dyn FnOnce()>);

    #[cfg(test)]
    thread_local! {
        static STOP: Cell<Option<Stop>> = const { Cell::new(None) };
    }

    #[cfg(test)]
    fn count_down() {
        match STOP.take() {
            Some((0, stopped)) => stopped(),
            Some((step, stopped)) => STOP.set(Some((step - 1, stopped))),
            None => {}
        }
    }

    /// Half of all times nothing; else waits a little, and now and then lets others run.
    pub(crate) fn pause() {
        #[cfg(test)]
        count_down();
        // Xorshift: Marsaglia, 2003.
        let drawn = DRAWN.with(|drawn| {
            let mut next = drawn.get();
            next ^= next << 13;
            next ^= next >> 7;
            next ^= next << 17;
            drawn.replace(next)
        });
        match drawn & 15 {
            0 => std::thread::yield_now(),
            1..8 => (0..drawn >> 4 & 0xff).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }

    /// A thread may stumble there.
    #[derive(Debug, Default)]
    pub(super) struct Before;

    impl Before {
        pub(super) fn happen(&self) {
            pause();
        }
    }
}

#[cfg(all(loom, not(orders)))]
mod model {
    /// A word whose operations are single steps, in one order for all threads.
    ///
    /// loom's own atomics remember one last access of a word, so a load and a compare-and-swap of one
    /// thread hide the loads of others from its search; its locks have no such gap. What is lost is weaker
    /// orders: programs of `--cfg orders` look at those.
    #[derive(Debug)]
    pub(crate) struct AtomicU64(loom::sync::Mutex<u64>);

    impl AtomicU64 {
        /// Holds this value.
        pub(crate) fn new(value: u64) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        /// As the real one.
        pub(crate) fn load(&self, _: super::Ordering) -> u64 {
            *self.0.lock().unwrap()
        }

        /// As the real one.
        pub(crate) fn store(&self, value: u64, _: super::Ordering) {
            *self.0.lock().unwrap() = value;
        }

        /// As the real one.
        pub(crate) fn fetch_add(&self, value: u64, _: super::Ordering) -> u64 {
            let mut word = self.0.lock().unwrap();
            let old = *word;
            *word = old.wrapping_add(value);
            old
        }

        /// As the real one.
        ///
        /// # Errors
        /// The word held another value, which is returned.
        pub(crate) fn compare_exchange(
            &self,
            old: u64,
            new: u64,
            _: super::Ordering,
            _: super::Ordering,
        ) -> Result<u64, u64> {
            let mut word = self.0.lock().unwrap();
            if *word != old {
                return Err(*word);
            }
            *word = new;
            Ok(old)
        }
    }
}

#[cfg(all(loom, orders))]
mod weak {
    use loom::sync::atomic::{AtomicU64, Ordering};

    /// Writes a word that nobody reads, in no order with anything: so each operation is seen to depend on the last one of
    /// another thread, which a thread's own load would hide from loom's search.
    #[derive(Debug)]
    pub(super) struct Before(AtomicU64);

    impl Default for Before {
        fn default() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    impl Before {
        pub(super) fn happen(&self) {
            self.0.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(any(pauses, all(loom, orders)))]
mod preceded {
    #[cfg(loom)]
    use loom::sync::atomic::AtomicU64 as Word;
    #[cfg(not(loom))]
    use std::sync::atomic::AtomicU64 as Word;

    use super::Ordering;
    #[cfg(pauses)]
    use super::paused::Before;
    #[cfg(all(loom, orders))]
    use super::weak::Before;

    /// A word before each of whose operations something happens.
    #[derive(Debug)]
    pub(crate) struct AtomicU64 {
        word: Word,
        before: Before,
    }

    impl AtomicU64 {
        /// Holds this value.
        #[must_use]
        pub(crate) fn new(value: u64) -> Self {
            Self { word: Word::new(value), before: Before::default() }
        }

        fn word(&self) -> &Word {
            self.before.happen();
            &self.word
        }

        /// As the real one.
        pub(crate) fn load(&self, order: Ordering) -> u64 {
            self.word().load(order)
        }

        /// As the real one.
        pub(crate) fn store(&self, value: u64, order: Ordering) {
            self.word().store(value, order);
        }

        /// As the real one.
        pub(crate) fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            self.word().fetch_add(value, order)
        }

        /// As the real one.
        ///
        /// # Errors
        /// The word held another value, which is returned.
        pub(crate) fn compare_exchange(
            &self,
            old: u64,
            new: u64,
            done: Ordering,
            failed: Ordering,
        ) -> Result<u64, u64> {
            self.word().compare_exchange(old, new, done, failed)
        }
    }
}
