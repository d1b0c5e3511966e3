//! [`Reload`]: reads the files again while a run goes on, on a thread of its own and within a time limit.
//!
//! Contract: a file system that does not answer holds up the thread that reads, and nothing else: after [`LIMIT`] what it
//! may still find is nobody's. One such thread is there at a time, so asking again and again costs nothing more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::rules::load::{Loaded, RulesText};

/// How long reading may take.
const LIMIT: Duration = Duration::from_secs(30);

pub(super) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the files say, or why they are refused.
pub(super) type Read = Result<(Vec<RulesText>, Loaded), String>;

/// Reads the files again on request.
#[derive(Debug, Default)]
pub(super) struct Reload {
    asked: Mutex<Arc<AtomicBool>>,
    reading: Mutex<Option<Reading>>,
}

#[derive(Debug)]
struct Reading {
    read: Receiver<Read>,
    until: Instant,
    is_given_up: bool,
}

impl Reload {
    /// From now on who raises this asks for it.
    pub(super) fn asked_by(&self, asked: Arc<AtomicBool>) {
        *lock(&self.asked) = asked;
    }

    /// Starts `read` on its own thread if that was requested; gives its result once there is one.
    pub(super) fn look(
        &self,
        now: Instant,
        read: impl FnOnce() -> Read + Send + 'static,
    ) -> Option<Read> {
        let mut reading = lock(&self.reading);
        let Some(current) = reading.as_mut() else {
            if !lock(&self.asked).swap(false, Ordering::Relaxed) {
                return None;
            }
            let (done, result) = sync_channel(1);
            let started = thread::Builder::new().name("reload".to_owned()).spawn(move || {
                // The run no longer waits for it.
                let _ = done.send(read());
            });
            return match started {
                Ok(_) => {
                    let until = now + LIMIT;
                    *reading = Some(Reading { read: result, until, is_given_up: false });
                    None
                }
                Err(error) => Some(Err(error.to_string())),
            };
        };
        let ended = match current.read.try_recv() {
            Ok(read) => read,
            Err(TryRecvError::Disconnected) => Err("who read the files panicked".to_owned()),
            Err(TryRecvError::Empty) => return current.waited(now, &lock(&self.asked)),
        };
        let is_wanted = !current.is_given_up;
        *reading = None;
        is_wanted.then_some(ended)
    }
}

impl Reading {
    fn waited(&mut self, now: Instant, asked: &AtomicBool) -> Option<Read> {
        let what = match self.is_given_up {
            true if asked.swap(false, Ordering::Relaxed) => {
                "the files of the last time are still being read"
            }
            false if now >= self.until => {
                "expected the files to be read within 30 s: one of them does not answer"
            }
            _ => return None,
        };
        self.is_given_up = true;
        Some(Err(what.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn refused(read: Option<Read>) -> String {
        read.expect("it is told").map(drop).expect_err("it is refused")
    }

    /// A file that never answers holds up nobody, and reading it is given up after a while.
    #[test]
    fn what_hangs_is_given_up_and_what_it_finds_later_is_left() {
        let (reload, asked) = (Reload::default(), Arc::new(AtomicBool::new(true)));
        reload.asked_by(Arc::clone(&asked));
        let (release, hang) = channel::<()>();
        let start = Instant::now();
        let never = || -> Read { unreachable!("nobody asks, or somebody reads already") };
        let hanging = move || {
            let _ = hang.recv();
            Err("found late".to_owned())
        };
        assert!(reload.look(start, hanging).is_none());
        asked.store(true, Ordering::Relaxed);
        assert!(reload.look(start, never).is_none());
        assert!(refused(reload.look(start + LIMIT, never)).contains("within 30 s"));
        assert!(refused(reload.look(start + LIMIT, never)).contains("are still being read"));
        assert!(reload.look(start + LIMIT, never).is_none(), "it is told once for each time");
        drop(release);
        while lock(&reload.reading).is_some() {
            assert!(reload.look(start + LIMIT, never).is_none());
        }
        asked.store(true, Ordering::Relaxed);
        let mut read = reload.look(start, || Err("found".to_owned()));
        while read.is_none() {
            read = reload.look(start, never);
        }
        assert_eq!(refused(read), "found");
    }
}
