//! Rules and bans that change while frames cross a wire, and metrics that are read: what a run bears for months, in
//! minutes.
//!
//! Contract: a ban is lifted again after a hundred others, and rules change by one alone, so that what is kept of them
//! does not grow.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use live::{Request, ask};

/// Bans and what lifts them for each change of rules.
const BANS: u64 = 10;
/// How many addresses are banned at a time, of the 254 that are.
const BANNED: u64 = 100;
/// Between two changes of rules.
const PAUSE: Duration = Duration::from_millis(20);
/// How often metrics are read.
const SCRAPED: Duration = Duration::from_secs(1);

/// How often what was changed, each time with success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Whole rules, each a revision in the journal.
    pub rules: u64,
    /// Addresses that were banned, each by a request of its own.
    pub bans: u64,
    /// Pages of metrics that were whole.
    pub pages: u64,
}

/// Changes the rules by `rules(n)`, and bans, until it is told to stop.
///
/// # Errors
/// A change is refused, or a page of metrics is not whole.
pub(super) fn change(
    socket: &Path,
    metrics: SocketAddr,
    rules: impl Fn(u64) -> String,
    stop: &AtomicBool,
) -> io::Result<Changes> {
    let mut changes = Changes::default();
    let mut read = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        carried_out(socket, &apply(rules(changes.rules)))?;
        changes.rules += 1;
        for _ in 0..BANS {
            let lifted = address(changes.bans.wrapping_sub(BANNED));
            let text = format!("ban {}\nunban {lifted}\n", address(changes.bans));
            carried_out(socket, &Request::Bans { text, action: None, line: 1 })?;
            changes.bans += 1;
        }
        if read.elapsed() >= SCRAPED {
            page(metrics)?;
            (read, changes.pages) = (Instant::now(), changes.pages + 1);
        }
        thread::sleep(PAUSE);
    }
    Ok(changes)
}

/// Of a network whose hosts send nothing.
fn address(number: u64) -> String {
    format!("203.0.113.{}", number % 254 + 1)
}

/// Rules that take the place of those in force.
pub(super) fn apply(text: String) -> Request {
    Request::Apply {
        text,
        name: String::new(),
        family: None,
        noflush: false,
        if_rev: None,
        dry_run: false,
        confirm: None,
    }
}

/// Asks for it; a refusal is an error.
pub(super) fn carried_out(socket: &Path, request: &Request) -> io::Result<()> {
    match ask(socket, request)? {
        Ok(_) => Ok(()),
        Err(refusal) => Err(io::Error::other(refusal.what)),
    }
}

/// One page, from its status line to the end that OpenMetrics asks for.
fn page(metrics: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(metrics)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    if page.starts_with("HTTP/1.1 200") && page.trim_end().ends_with("# EOF") {
        return Ok(());
    }
    Err(io::Error::other(format!("metrics are not whole: {page:.200}")))
}
