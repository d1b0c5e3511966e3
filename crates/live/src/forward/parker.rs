//! [`Parker`]: puts a worker to sleep until a port has frames, a bell rings, or a thread wakes it; all in one
//! `poll(2)`.
//!
//! Contract: one thread parks, any other may wake it, as a [`Waker`](std::task::Waker). A thread that is woken while
//! awake does not sleep the next time: so what is put in place before `wake`, and looked for before `park`, is not
//! slept through. Waking a thread that is awake is one swap of a word, no system call. It may wake without a reason.
//!
//! Only the parker's thread changes the word from awake to parked, which fails if it was woken before. Both swaps
//! release and acquire: a thread that finds itself woken sees all that was done before that.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Wake;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use smallvec::SmallVec;

const AWAKE: u8 = 0;
const WOKEN: u8 = 1;
const PARKED: u8 = 2;

/// The place where a worker sleeps.
#[derive(Debug)]
pub(crate) struct Parker {
    state: AtomicU8,
    /// The socket that a waking thread writes to.
    to: UnixStream,
    from: UnixStream,
}

impl Parker {
    pub(crate) fn new() -> io::Result<Self> {
        let (to, from) = UnixStream::pair()?;
        to.set_nonblocking(true)?;
        from.set_nonblocking(true)?;
        Ok(Self { state: AtomicU8::new(AWAKE), to, from })
    }

    /// Sleeps until one of these is readable or has failed, it is woken, or this much time has passed.
    pub(crate) fn park(&self, descriptors: &[BorrowedFd<'_>], most: Option<Duration>) {
        let parked =
            self.state.compare_exchange(AWAKE, PARKED, Ordering::AcqRel, Ordering::Acquire);
        if parked.is_err() {
            self.state.swap(AWAKE, Ordering::AcqRel);
            return;
        }
        let mut polled: SmallVec<[PollFd<'_>; 8]> = SmallVec::new();
        polled.push(PollFd::new(&self.from, PollFlags::IN));
        polled.extend(descriptors.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        // A signal ends the sleep early, as anything else may.
        let _ = poll(&mut polled, most.as_ref());
        self.state.swap(AWAKE, Ordering::AcqRel);
        if !polled[0].revents().is_empty() {
            self.drain();
        }
    }

    /// Whether its thread sleeps.
    pub(crate) fn is_parked(&self) -> bool {
        self.state.load(Ordering::Relaxed) == PARKED
    }

    /// Reads the bytes of the wake-ups.
    fn drain(&self) {
        let mut bytes = [0; 64];
        loop {
            match (&self.from).read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(64) => {}
                _ => return,
            }
        }
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == PARKED {
            // Where there is no room for a byte, one is there already.
            let _ = (&self.to).write(&[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::sync::atomic::AtomicU64;
    use std::thread;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn who_is_woken_before_does_not_sleep() {
        let parker = Arc::new(Parker::new().unwrap());
        let start = Instant::now();
        parker.wake_by_ref();
        parker.park(&[], Some(LONG));
        assert!(start.elapsed() < LONG);
        parker.park(&[], Some(Duration::from_millis(1)));
        assert!(!parker.is_parked());
    }

    #[test]
    fn a_descriptor_that_is_readable_wakes() {
        let parker = Parker::new().unwrap();
        let (mut to, from) = UnixStream::pair().unwrap();
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| parker.park(&[from.as_fd()], Some(LONG)));
            while !parker.is_parked() {
                thread::yield_now();
            }
            to.write_all(&[1]).unwrap();
        });
        assert!(start.elapsed() < LONG);
    }

    /// A wake-up that were slept through would never end the sleep: nothing else wakes.
    #[test]
    fn nothing_is_slept_through() {
        const ROUNDS: u64 = 20_000;
        let [ours, theirs] = [(), ()].map(|()| Arc::new(Parker::new().unwrap()));
        let (asked, answered) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    while asked.load(Ordering::Acquire) < round {
                        theirs.park(&[], None);
                    }
                    answered.store(round, Ordering::Release);
                    ours.wake_by_ref();
                }
            });
            for round in 1..=ROUNDS {
                asked.store(round, Ordering::Release);
                theirs.wake_by_ref();
                while answered.load(Ordering::Acquire) < round {
                    ours.park(&[], None);
                }
            }
        });
        assert_eq!(answered.load(Ordering::Relaxed), ROUNDS);
    }
}
