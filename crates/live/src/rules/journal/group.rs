//! Group commit: callers that wait together share one transaction.
//!
//! Contract: whoever finds nobody writing writes all that has been given so far, its own records among them, and the
//! others wait for it. So a record waits for the transaction before it, at most, and then for its own.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::store::Store;
use super::{JournalError, Record};

#[derive(Debug, Default)]
pub(super) struct Group {
    turn: Mutex<Turn>,
    written: Condvar,
}

#[derive(Debug, Default)]
struct Turn {
    /// What has been given since the last transaction began.
    batch: Batch,
    /// Somebody writes.
    is_writing: bool,
}

/// Records of one transaction.
#[derive(Debug, Default)]
struct Batch {
    records: Vec<Record>,
    /// Set once it has been written, or refused.
    outcome: Arc<OnceLock<Result<(), JournalError>>>,
}

impl Group {
    pub(super) fn record(
        &self,
        records: Vec<Record>,
        store: &Mutex<Store>,
    ) -> Result<(), JournalError> {
        let mut turn = lock(&self.turn);
        turn.batch.records.extend(records);
        let outcome = Arc::clone(&turn.batch.outcome);
        loop {
            if let Some(outcome) = outcome.get() {
                return outcome.clone();
            }
            turn = match turn.is_writing {
                true => self.written.wait(turn).unwrap_or_else(PoisonError::into_inner),
                false => self.write(turn, store),
            };
        }
    }

    /// Writes what there is, for all who gave it.
    fn write<'g>(
        &'g self,
        mut turn: MutexGuard<'g, Turn>,
        store: &Mutex<Store>,
    ) -> MutexGuard<'g, Turn> {
        turn.is_writing = true;
        let batch = mem::take(&mut turn.batch);
        drop(turn);
        let writing = Writing { group: self, outcome: &batch.outcome };
        let written = lock(store).commit(&batch.records);
        // Nobody else has set it.
        let _ = batch.outcome.set(written);
        drop(writing);
        lock(&self.turn)
    }
}

/// While it is there somebody writes; also one who panics has an outcome for those who wait.
struct Writing<'g> {
    group: &'g Group,
    outcome: &'g OnceLock<Result<(), JournalError>>,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.outcome
            .get_or_init(|| Err(JournalError::new("journal".as_ref(), "its writer panicked")));
        lock(&self.group.turn).is_writing = false;
        self.group.written.notify_all();
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
