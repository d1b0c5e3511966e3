//! [`One`]: a state, private to a walker or shared by several, as the kernel has it once for all processors.
//!
//! Contract: a private state takes no lock. A shared state is locked while [`One::hold`]'s result lives: the time of
//! one match, as the kernel holds `priv->lock` of `xt_limit` or `recent_lock`. A holder takes no other lock. A lock
//! whose holder panicked is taken on: states are plain values.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A state, and whose it is.
#[derive(Debug)]
pub(crate) enum One<T> {
    /// The walker's own.
    Own(T),
    /// One for all that hold on to it.
    Shared(Arc<Mutex<T>>),
}

/// The state while nobody else has it.
pub(crate) enum Held<'a, T> {
    Own(&'a mut T),
    Locked(MutexGuard<'a, T>),
}

impl<T> One<T> {
    /// Takes it for a moment.
    #[inline]
    pub(crate) fn hold(&mut self) -> Held<'_, T> {
        match self {
            Self::Own(state) => Held::Own(state),
            Self::Shared(state) => Held::Locked(lock(state)),
        }
    }
}

/// The value, even where a thread that held it panicked.
pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Own(state) => state,
            Self::Locked(state) => state,
        }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Self::Own(state) => state,
            Self::Locked(state) => state,
        }
    }
}
