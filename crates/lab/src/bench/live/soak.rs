//! A soak: millions of frames through rules that track connections, by a port that loses, doubles, delays, cuts and
//! corrupts some of them, while a link goes down and up, and rules and bans change ([`super::changing`]). Memory has to
//! stay flat, and every frame has one fate.
//!
//! Memory is the process's resident set (`VmRSS`), read [`READINGS`] times. The first tenth of the frames fills tables
//! and pools. Corrupted frames are of ever new connections, of which the table holds a few thousand.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::changing::{Changes, change};
use super::kinds::Backend;
use super::line::{Line, last_core};
use super::running::{Running, start_tamis};
use super::source::Pace;
use crate::oracle::netns::{in_fresh, ip};

/// Readings of the process's memory.
pub const READINGS: u64 = 20;
/// How far memory may grow after the first tenth, in bytes.
pub const SLACK: u64 = 2 << 20;
/// How long the far link is up, and down.
const UP: Duration = Duration::from_millis(900);
const DOWN: Duration = Duration::from_millis(100);
/// How often the number of frames is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Without any frame for so long, it has stopped.
const STUCK: Duration = Duration::from_secs(20);

const RULES: &str = "*filter\n:FORWARD ACCEPT [0:0]\n\
    -A FORWARD -m conntrack --ctstate INVALID -j DROP\n\
    -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
    -A FORWARD -p udp -m udp --dport 9 -j ACCEPT\n\
    -A FORWARD -p udp -j REJECT --reject-with icmp-port-unreachable\nCOMMIT\n";
/// Their last line, and what changes before it.
const LAST: &str = "COMMIT\n";
const CHANGING: &str = "-A FORWARD -s 198.51.100.";
/// Where metrics are read, in the namespace.
const METRICS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9469);
const WIRE: &str = "[[port]]\nname = \"bad\"\nkind = \"fault\"\nof = \"left\"\nseed = 1\n\
    drop = 5000\nduplicate = 5000\ntruncate = 5000\ncorrupt = 5000\ndelay = 5000\nreorder = 5000\n\
    [[wire]]\nports = [\"bad\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
    [conntrack]\nmax = 4096\n[control]\nsocket = \"control.sock\"\njournal = \"journal\"\n\
    [metrics]\nlisten = \"127.0.0.1:9469\"\nrules = true\n";

/// What came of it.
#[derive(Clone, Debug)]
pub struct Soaked {
    /// Frames that the wire received.
    pub frames: u64,
    /// How often the link went down.
    pub flaps: u64,
    /// What was changed meanwhile.
    pub changes: Changes,
    /// Resident bytes after each part.
    pub resident: Vec<u64>,
    /// Whether `received + made = sent + dropped` in both directions, once it was over.
    pub is_accounted: bool,
    /// What `tamis status` says of the frames at the end.
    pub status: Value,
}

impl Soaked {
    /// How many bytes memory grew by after the first tenth of the frames.
    #[must_use]
    pub fn growth(&self) -> u64 {
        let settled = self.resident.get(self.resident.len() / 10).copied().unwrap_or_default();
        self.resident.last().copied().unwrap_or_default().saturating_sub(settled)
    }

    /// Whether it is as it must be.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let changes = self.changes.rules > 0 && self.changes.pages > 0;
        self.is_accounted && self.growth() <= SLACK && self.flaps > 0 && changes
    }
}

/// Sends until the wire has received so many frames. Needs root.
///
/// # Errors
/// tamis does not start, or no frames come any more.
pub fn run(tamis: &Path, frames: u64) -> io::Result<Soaked> {
    in_fresh(|| {
        let line = Line::new()?;
        let running = start_tamis(tamis, Backend::AfPacket, WIRE, RULES, last_core())?;
        let stop = AtomicBool::new(false);
        let socket = running.folder().join("control.sock");
        let (resident, flaps, changes) = line.along(&running, 0, Pace::Behind, || {
            thread::scope(|scope| {
                let flaps = scope.spawn(|| flap(&stop));
                let changes = scope.spawn(|| change(&socket, METRICS, rules, &stop));
                let resident = watch(tamis, &running, frames);
                stop.store(true, Ordering::Relaxed);
                Ok((resident?, ended(flaps)?, ended(changes)?))
            })
        })?;
        let status = settled(tamis, &running)?;
        let wires = status["wires"].as_array().cloned().unwrap_or_default();
        let is_accounted = wires.len() == 2 && wires.iter().all(is_accounted);
        Ok(Soaked { frames: received(&status), flaps, changes, resident, is_accounted, status })
    })
}

/// What a thread came to.
fn ended<T>(thread: ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The rules, with one more that no frame matches.
fn rules(number: u64) -> String {
    let other = format!("{CHANGING}{}/32 -j DROP\n{LAST}", number % 256);
    RULES.replace(LAST, &other)
}

/// Reads memory whenever another part of the frames has come.
fn watch(tamis: &Path, running: &Running, frames: u64) -> io::Result<Vec<u64>> {
    let mut resident = Vec::new();
    let (mut before, mut moved) = (0, Instant::now());
    while (resident.len() as u64) < READINGS {
        let come = received(&status(tamis, running)?);
        if come > before {
            (before, moved) = (come, Instant::now());
        } else if moved.elapsed() > STUCK {
            return Err(io::Error::other(format!("no frame comes any more after {come}")));
        }
        if come >= (resident.len() as u64 + 1) * frames / READINGS {
            resident.push(running.resident()?);
        }
        thread::sleep(LOOK);
    }
    Ok(resident)
}

/// Takes the far link down and up until it is told to stop; how often.
fn flap(stop: &AtomicBool) -> io::Result<u64> {
    let mut flaps = 0;
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(UP);
        ip("link set b0 down\n")?;
        thread::sleep(DOWN);
        ip("link set b0 up\n")?;
        flaps += 1;
    }
    Ok(flaps)
}

fn status(tamis: &Path, running: &Running) -> io::Result<Value> {
    let socket = running.folder().join("control.sock");
    let mut command = Command::new(tamis);
    command.args(["ctl", "--socket"]).arg(socket).args(["--json", "status"]);
    let output = command.output()?;
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout)?);
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// The status once no more frames come.
fn settled(tamis: &Path, running: &Running) -> io::Result<Value> {
    let mut before = status(tamis, running)?;
    for _ in 0..100 {
        thread::sleep(LOOK);
        let now = status(tamis, running)?;
        if now == before {
            break;
        }
        before = now;
    }
    Ok(before)
}

fn received(status: &Value) -> u64 {
    status["wires"][0]["received"].as_u64().unwrap_or(0)
}

fn is_accounted(wire: &Value) -> bool {
    let count = |key: &str| wire[key].as_u64();
    let dropped = wire["dropped"].as_object().into_iter().flatten();
    let dropped: u64 = dropped.filter_map(|(_, count)| count.as_u64()).sum();
    match (count("received"), count("made"), count("sent")) {
        (Some(received), Some(made), Some(sent)) => received + made == sent + dropped,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soaked(resident: &[u64]) -> Soaked {
        Soaked {
            frames: 1,
            flaps: 1,
            changes: Changes { rules: 1, bans: 1, pages: 1 },
            resident: resident.to_vec(),
            is_accounted: true,
            status: Value::Null,
        }
    }

    #[test]
    fn growth_is_counted_after_the_first_tenth() {
        let mut resident = vec![1 << 20, 8 << 20, 9 << 20];
        resident.resize(20, 9 << 20);
        assert_eq!(soaked(&resident).growth(), 0);
        resident.push(12 << 20);
        assert!(soaked(&resident).growth() == 3 << 20 && !soaked(&resident).is_good());
    }
}
