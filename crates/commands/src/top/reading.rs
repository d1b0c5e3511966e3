//! [`Reading`]: what a run says of itself at one moment, by its control socket.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use live::answers::{self, Counters, Peers, Status, Talkers};
use live::{Request, ask};
use serde::de::DeserializeOwned;

/// What a run says of itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    pub(super) status: Status,
    /// Empty where a worker was too busy to tell.
    pub(super) counters: Counters,
    pub(super) talkers: Talkers,
    pub(super) peers: Peers,
}

impl Reading {
    /// Asks the run that listens at a socket.
    ///
    /// # Errors
    /// Nobody listens, or the run does not answer.
    pub(super) fn take(socket: &Path) -> io::Result<Self> {
        Ok(Self {
            status: answer(socket, Request::Status {})?,
            counters: answer(socket, Request::Counters { save: false })?,
            talkers: answer(socket, Request::Talkers {})?,
            peers: answer(socket, Request::Peers {})?,
        })
    }

    /// Takes a reading once talkers were counted, a second after they were first asked for.
    ///
    /// # Errors
    /// Nobody listens, or the run does not answer.
    pub(super) fn take_with_talkers(socket: &Path) -> io::Result<Self> {
        const ATTEMPTS: usize = 30;
        for _ in 0..ATTEMPTS {
            let reading = Self::take(socket)?;
            if reading.talkers.seconds > 0.0 {
                return Ok(reading);
            }
            thread::sleep(Duration::from_millis(50));
        }
        Self::take(socket)
    }
}

/// The answer to a request; an empty one where the run refuses it.
fn answer<A: DeserializeOwned + Default>(socket: &Path, request: Request) -> io::Result<A> {
    ask(socket, &request)?.map_or_else(|_| Ok(A::default()), answers::read)
}
