//! [`Reading`]: what a run says of itself at one moment, by its control socket.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use dataplane::run::{Request, ask};
use serde_json::Value;

/// What a run says of itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    /// `tamis.status/1`.
    pub(super) status: Value,
    /// `tamis.counters/1`; null where a worker was too busy to tell.
    pub(super) counters: Value,
    /// `tamis.talkers/1`.
    pub(super) talkers: Value,
    /// `tamis.peers/1`.
    pub(super) peers: Value,
}

impl Reading {
    /// Asks who listens at a socket.
    ///
    /// # Errors
    /// Nobody does, or does not answer.
    pub(super) fn take(socket: &Path) -> io::Result<Self> {
        let answer = |request| ask(socket, &request).map(Result::unwrap_or_default);
        Ok(Self {
            status: answer(Request::Status {})?,
            counters: answer(Request::Counters { save: false })?,
            talkers: answer(Request::Talkers {})?,
            peers: answer(Request::Peers {})?,
        })
    }

    /// The same once talkers were counted, which takes a second from when they were asked for first.
    ///
    /// # Errors
    /// As [`Reading::take`].
    pub(super) fn take_with_talkers(socket: &Path) -> io::Result<Self> {
        const ATTEMPTS: usize = 30;
        for _ in 0..ATTEMPTS {
            let reading = Self::take(socket)?;
            if reading.talkers["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0) {
                return Ok(reading);
            }
            thread::sleep(Duration::from_millis(50));
        }
        Self::take(socket)
    }
}
