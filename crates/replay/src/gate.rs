//! Threads started one after the other, each only where there is memory for it.
//!
//! Where the system limits memory, `pthread_create` may succeed and the new thread find none for its own
//! first words, which the C library and Rust answer by ending the process. So it is looked for before each
//! start; a thread that is up waits, without asking for memory, until all are, and memory is left to work
//! with.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Left for whatever else the process does, in bytes.
const SPARE: usize = 16 << 20;
/// What a thread may take to start: Rust's default stack, its guard, the C library's words, and the 64 MiB of addresses
/// that glibc reserves for its allocations, if there are as many (`HEAP_MAX_SIZE`).
const TO_START: usize = (3 << 20) + (64 << 20);
/// What each thread may need at once when work begins: batches on their way.
const TO_WORK: usize = 1 << 20;

/// Where started threads wait.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Threads that wait, or went through.
    up: usize,
    /// Whether there is work, once that is known.
    open: Option<bool>,
}

impl Gate {
    /// Called by each new thread first: waits for the others. Whether there is work.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.lock();
        state.up += 1;
        self.changed.notify_all();
        let closed = |state: &mut State| state.open.is_none();
        let state = self.changed.wait_while(state, closed);
        state.unwrap_or_else(PoisonError::into_inner).open == Some(true)
    }

    /// Starts `many` threads, each with `start` of its number, which makes it call [`Self::wait`] first.
    ///
    /// # Errors
    /// Where a thread does not start, or memory would be short: then the waiting threads find no work.
    pub(crate) fn start<T>(
        &self,
        many: usize,
        mut start: impl FnMut(usize) -> io::Result<T>,
    ) -> io::Result<Vec<T>> {
        let mut one = |number| {
            room(SPARE + TO_START)?;
            let started = start(number)?;
            let waiting = |state: &mut State| state.up <= number;
            drop(self.changed.wait_while(self.lock(), waiting));
            Ok(started)
        };
        let started: io::Result<Vec<T>> = (0..many).map(&mut one).collect();
        let started = started.and_then(|all| room(SPARE + many * TO_WORK).map(|()| all));
        self.lock().open = Some(started.is_ok());
        self.changed.notify_all();
        started
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there are this many bytes to map. The allocator is not asked: it may have memory of its own, which neither
/// the C library nor the stack of a new thread finds.
#[cfg(target_os = "linux")]
fn room(bytes: usize) -> io::Result<()> {
    let none = |_| io::Error::from(io::ErrorKind::OutOfMemory);
    pktio::would_map(bytes).map_err(none)
}

#[cfg(not(target_os = "linux"))]
fn room(_bytes: usize) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::thread;

    use super::*;

    #[test]
    fn all_start_before_any_works() {
        let (gate, up) = (Gate::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            let work = || {
                up.fetch_add(1, Relaxed);
                (gate.wait(), up.load(Relaxed))
            };
            let threads = gate.start(20, |_| thread::Builder::new().spawn_scoped(scope, work));
            for thread in threads.expect("started") {
                assert_eq!(thread.join().expect("ended"), (true, 20));
            }
        });
    }

    #[test]
    fn where_one_does_not_start_none_works() {
        let (gate, worked) = (Gate::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            let work = || worked.fetch_add(usize::from(gate.wait()), Relaxed);
            let start = |number| match number {
                3 => Err(io::Error::other("no")),
                _ => thread::Builder::new().spawn_scoped(scope, work).map(drop),
            };
            assert!(gate.start(5, start).is_err());
        });
        assert_eq!(worked.into_inner(), 0);
    }
}
