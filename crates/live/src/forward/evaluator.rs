//! [`Evaluator`]: the rules in force with the state that packets leave behind, and the shadow: what a burst is taken
//! through.
//!
//! Contract: a worker has one of its own, or all workers of a run have one and take turns at it. It is locked for the
//! evaluation of one burst, never while frames are received, opened, sealed or sent, and no other lock is waited for
//! meanwhile that is held for as long. A burst that a worker panicked over is lost; nothing is evaluated after it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crossbeam_utils::CachePadded;

use crate::forward::shadow::ShadowWorker;
use dataplane::publish::Worker;

/// The rules with what packets leave behind.
pub(crate) struct Evaluator {
    pub(crate) rules: Worker,
    pub(crate) shade: ShadowWorker,
}

/// A worker's way to an evaluator, its own or that of all workers. No two evaluators share a line of the caches.
#[derive(Clone)]
pub(crate) struct EvaluatorHandle(Arc<CachePadded<Mutex<Evaluator>>>);

impl EvaluatorHandle {
    pub(crate) fn new(rules: Worker, shade: ShadowWorker) -> Self {
        Self(Arc::new(CachePadded::new(Mutex::new(Evaluator { rules, shade }))))
    }

    /// Waits until no other worker evaluates.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Evaluator> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The evaluator, unless another worker evaluates now.
    pub(crate) fn if_free(&self) -> Option<MutexGuard<'_, Evaluator>> {
        match self.0.try_lock() {
            Ok(evaluator) => Some(evaluator),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
