//! [`Trend`]: what a daemon has from second to second: bytes that lie in memory, and threads.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::overlay::Daemon;

/// Between two looks at the clock.
const LOOK: Duration = Duration::from_millis(50);

/// One second of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Since the load began.
    pub(super) second: u32,
    pub(super) bytes: u64,
    pub(super) threads: usize,
}

/// All seconds, the first one before the load.
pub(super) type Trend = Vec<Moment>;

/// Carries out work, and looks at a daemon each second from before it until `after` its end.
pub(super) fn during<T: Send>(
    daemon: &Daemon,
    after: Duration,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<(T, Trend)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(daemon, &is_over));
        let done = work();
        if done.is_ok() && !daemon.is_nobody() {
            thread::sleep(after);
        }
        is_over.store(true, Ordering::Relaxed);
        let trend = watcher.join().map_err(|_| io::Error::other("the watcher panicked"))?;
        Ok((done?, trend?))
    })
}

fn watch(daemon: &Daemon, is_over: &AtomicBool) -> io::Result<Trend> {
    let (since, mut trend) = (Instant::now(), Trend::new());
    while !daemon.is_nobody() && !is_over.load(Ordering::Relaxed) {
        let second = since.elapsed().as_secs() as u32;
        if trend.last().is_none_or(|last| last.second < second) {
            let (bytes, threads) = (daemon.resident()?, daemon.threads()?);
            trend.push(Moment { second, bytes, threads });
        }
        thread::sleep(LOOK);
    }
    Ok(trend)
}
