//! Locks of the studies' engines: the real ones, or under `--cfg loom` those whose interleavings loom explores.
//! Words are those of [`access::sync`].

pub(crate) use access::sync::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use model::RwLock;
#[cfg(not(loom))]
pub(crate) use parking_lot::RwLock;

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
}
