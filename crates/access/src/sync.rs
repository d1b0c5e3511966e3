//! Words that threads share: the real ones, or under `--cfg loom` those whose interleavings loom explores.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
pub use std::thread::yield_now;

#[cfg(loom)]
pub use loom::sync::atomic::Ordering;
#[cfg(loom)]
pub use loom::thread::yield_now;
#[cfg(loom)]
pub use model::AtomicU64;

#[cfg(loom)]
mod model {
    /// A word whose operations are single steps, in one order for all threads.
    ///
    /// loom's own atomics remember one last access of a word, so a load and a compare-and-swap of one
    /// thread hide the loads of others from its search; its locks have no such gap. What is lost is weaker
    /// orders: the engines argue for those in their files.
    #[derive(Debug)]
    pub struct AtomicU64(loom::sync::Mutex<u64>);

    impl AtomicU64 {
        /// Holds this value.
        pub fn new(value: u64) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        /// As the real one.
        pub fn load(&self, _: super::Ordering) -> u64 {
            *self.0.lock().unwrap()
        }

        /// As the real one.
        pub fn store(&self, value: u64, _: super::Ordering) {
            *self.0.lock().unwrap() = value;
        }

        /// As the real one.
        pub fn fetch_add(&self, value: u64, _: super::Ordering) -> u64 {
            let mut word = self.0.lock().unwrap();
            let old = *word;
            *word = old.wrapping_add(value);
            old
        }

        /// As the real one.
        ///
        /// # Errors
        /// The word held another value, which is returned.
        pub fn compare_exchange(
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
