//! [`Questions`]: what a worker is asked about what is its own, or told to do with it, by whoever is beside the run.
//!
//! Contract: anyone may ask; the worker answers between two bursts, in the order in which it was asked, and is woken for
//! it. A turn in which nobody asks pays one look at a word that is seldom written. What waits is bounded: a worker that does
//! not answer is not asked for ever.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::publish::Worker;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Questions that wait for one worker.
const MOST: usize = 64;

type Question = Box<dyn FnOnce(&mut Worker) + Send>;

/// What one worker is asked.
#[derive(Default)]
pub(super) struct Questions {
    are_any: AtomicBool,
    waiting: Mutex<Vec<Question>>,
}

/// A worker does not answer; its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Silent(pub(super) usize);

impl Questions {
    /// The worker answers all that wait.
    #[inline]
    pub(super) fn answer(&self, worker: &mut Worker) {
        if self.are_any.load(Ordering::Relaxed) {
            self.answer_all(worker);
        }
    }

    #[cold]
    fn answer_all(&self, worker: &mut Worker) {
        // Before it takes them: of what comes after that it is told again.
        self.are_any.store(false, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *self.lock());
        waiting.into_iter().for_each(|question| question(worker));
    }

    /// Asks, wakes the worker, and waits for its answer; `None` if it gives none.
    pub(super) fn ask<A: Send + 'static>(
        &self,
        wake: impl FnOnce(),
        question: impl FnOnce(&mut Worker) -> A + Send + 'static,
    ) -> Option<A> {
        let (answers, answer) = sync_channel(1);
        let question = move |worker: &mut Worker| {
            // Who asked may have given up.
            let _ = answers.send(question(worker));
        };
        if !self.put(Box::new(question)) {
            return None;
        }
        wake();
        answer.recv_timeout(PATIENCE).ok()
    }

    /// Whether there was room for one more.
    fn put(&self, question: Question) -> bool {
        let mut waiting = self.lock();
        if waiting.len() >= MOST {
            return false;
        }
        waiting.push(question);
        // Whoever wakes the worker after this has it see the word, too.
        self.are_any.store(true, Ordering::Relaxed);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Question>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} does not answer: it is stuck in its turn, or has ended", self.0)
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions").field("are_any", &self.are_any).finish_non_exhaustive()
    }
}
