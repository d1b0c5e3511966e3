//! Locks and atomics: the real ones, or under `--cfg loom` those whose interleavings loom explores.

#[cfg(not(loom))]
pub(crate) use parking_lot::RwLock;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::thread::yield_now;

#[cfg(loom)]
pub(crate) use loom::sync::atomic::Ordering;
#[cfg(loom)]
pub(crate) use loom::thread::yield_now;
#[cfg(loom)]
pub(crate) use model::{AtomicU64, RwLock};

#[cfg(loom)]
mod model {
    use loom::sync::{RwLockReadGuard, RwLockWriteGuard};

    /// loom's lock with the signatures of the real one.
    #[derive(Debug)]
    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().unwrap()
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().unwrap()
        }
    }

    /// A word whose operations are single steps, in one order for all threads.
    ///
    /// loom's own atomics remember one last access of a word, so a load and a compare-and-swap of one
    /// thread hide the loads of others from its search; its locks have no such gap. What is lost is weaker
    /// orders: the engines argue for those in their files.
    #[derive(Debug)]
    pub(crate) struct AtomicU64(loom::sync::Mutex<u64>);

    impl AtomicU64 {
        pub(crate) fn new(value: u64) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn load(&self, _: super::Ordering) -> u64 {
            *self.0.lock().unwrap()
        }

        pub(crate) fn store(&self, value: u64, _: super::Ordering) {
            *self.0.lock().unwrap() = value;
        }

        pub(crate) fn fetch_add(&self, value: u64, _: super::Ordering) -> u64 {
            let mut word = self.0.lock().unwrap();
            let old = *word;
            *word = old.wrapping_add(value);
            old
        }

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
