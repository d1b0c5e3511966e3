//! [`WorkerRequests`]: requests to a worker: closures that it runs between two bursts.
//!
//! Contract: anyone may ask; the worker answers between two bursts, in the order in which it was asked, and is woken
//! for it. A turn without a request pays one look at a word that is seldom written. The queue is bounded, and requests
//! time out.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::forward::evaluator::EvaluatorHandle;
use dataplane::publish::Worker;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Requests that wait for one worker, at most.
const MOST: usize = 64;

type Question = Box<dyn FnOnce(&mut Worker) + Send>;

/// The requests to one worker.
#[derive(Default)]
pub(crate) struct WorkerRequests {
    are_any: AtomicBool,
    waiting: Mutex<Vec<Question>>,
}

/// The error for a worker that does not answer; its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoReply(pub(crate) usize);

impl WorkerRequests {
    /// Answers all requests that wait.
    #[inline]
    pub(crate) fn answer(&self, evaluator: &EvaluatorHandle) {
        if self.are_any.load(Ordering::Relaxed) {
            self.answer_all(&mut evaluator.lock().rules);
        }
    }

    #[cold]
    fn answer_all(&self, worker: &mut Worker) {
        // Before it takes them: a later request sets the word again.
        self.are_any.store(false, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *self.lock());
        waiting.into_iter().for_each(|question| question(worker));
    }

    /// Asks, wakes the worker, and waits for its answer; `None` if it gives none.
    pub(crate) fn ask<A: Send + 'static>(
        &self,
        wake: impl FnOnce(),
        question: impl FnOnce(&mut Worker) -> A + Send + 'static,
    ) -> Option<A> {
        let (answers, answer) = sync_channel(1);
        let question = move |worker: &mut Worker| {
            // The asking thread may have given up.
            let _ = answers.send(question(worker));
        };
        if !self.put(Box::new(question)) {
            return None;
        }
        wake();
        answer.recv_timeout(PATIENCE).ok()
    }

    /// Adds a request; returns whether there was room.
    fn put(&self, question: Question) -> bool {
        let mut waiting = self.lock();
        if waiting.len() >= MOST {
            return false;
        }
        waiting.push(question);
        // The wake-up that follows makes the worker see the word, too.
        self.are_any.store(true, Ordering::Relaxed);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Question>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for NoReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} does not answer: it is stuck in its turn, or has ended", self.0)
    }
}

impl fmt::Debug for WorkerRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerRequests").field("are_any", &self.are_any).finish_non_exhaustive()
    }
}
