//! Locks of the studies' engines: the real ones; under `--cfg loom` those whose interleavings loom explores; under `--cfg
//! pauses` real ones beside which a thread may stumble. Words are those of [`words`].

mod words;

#[cfg(loom)]
pub(crate) use model::RwLock;
#[cfg(not(any(loom, pauses)))]
pub(crate) use parking_lot::RwLock;
#[cfg(pauses)]
pub(crate) use paused::RwLock;
pub(crate) use words::{AtomicU64, Ordering, yield_now};

#[cfg(all(test, pauses))]
pub(crate) use words::stop_at;

/// Between two looks at what threads share, where neither is at a word or a lock of these.
#[inline]
pub(crate) fn pause() {
    #[cfg(pauses)]
    words::pause();
}

#[cfg(pauses)]
mod paused {
    use super::pause;
    use parking_lot::{RwLockReadGuard, RwLockWriteGuard};

    /// A lock before and after whose taking a thread may stumble.
    #[derive(Debug, Default)]
    pub(crate) struct RwLock<T>(parking_lot::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(parking_lot::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            pause();
            let guard = self.0.read();
            pause();
            guard
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            pause();
            let guard = self.0.write();
            pause();
            guard
        }

        #[cfg(test)]
        pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
            self.0.try_read()
        }

        #[cfg(test)]
        pub(crate) fn try_read_for(
            &self,
            patience: std::time::Duration,
        ) -> Option<RwLockReadGuard<'_, T>> {
            self.0.try_read_for(patience)
        }
    }
}

#[cfg(loom)]
mod model {
    use std::sync::PoisonError;

    use loom::sync::{Mutex, RwLockReadGuard, RwLockWriteGuard};

    /// loom's lock with the signatures of the real one, and as fair: who reads waits for a writer that waits, so two
    /// locks that are taken in two orders are a deadlock, which loom tells, by readers, too.
    #[derive(Debug)]
    pub(crate) struct RwLock<T> {
        lock: loom::sync::RwLock<T>,
        turn: Mutex<()>,
    }

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self { lock: loom::sync::RwLock::new(value), turn: Mutex::new(()) }
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
            self.lock.read().unwrap()
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.lock.write().unwrap()
        }
    }
}
