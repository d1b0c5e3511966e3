//! How long a frame takes from one end of the line to the other, at a rate far below what a forwarder can do.
//!
//! A frame carries the time at which it was sent; the kernel notes when it comes out at the far end, both by the clock
//! of the machine. So a delay is the way of a frame through two veth pairs and the forwarder, without that of whoever reads
//! it. Frames are sent by one thread, some at a time, which sleeps in between: a thread of real time that never does is
//! stopped by the kernel for 50 ms of a second where other threads wait for its core.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pktio::{AfPacketConfig, AfPacketPort, Burst, FrameMeta, Pool, Port, Timestamp};

use super::forward::contest;
use super::forwarder::{Forwarder, IO};
use super::kinds::{Backend, Tool};
use super::line::{Line, last_core};
use super::plan::Plan;
use super::source::{self, FRAME_BYTES, HEADERS, RULES, Shape};
use crate::bench::document::Row;
use crate::bench::rows::Rows;
use crate::oracle::netns;

/// Frames per second, and how many are sent at a time.
const PACES: [(u64, u64); 2] = [(1_000, 1), (100_000, 10)];
/// So many of a hundred frames were no later.
const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// Frames before those that count.
const WARM_UP: Duration = Duration::from_millis(300);
/// How long the last frames have to come.
const LAST: Duration = Duration::from_millis(100);
/// The longest delay that is told from longer ones, in nanoseconds.
const LONGEST: u64 = 10_000_000_000;

/// Delays of a run.
struct Delays {
    nanos: Histogram<u64>,
    lost: u64,
}

/// Delays at each pace, of each back end beside testpmd's, and of rules beside the kernel's.
pub(super) fn delays(tamis: &Path, plan: Plan, out: &mut Rows) -> io::Result<()> {
    use Backend::{AfPacket, AfXdp};
    let testpmd = |by| Forwarder::Testpmd { by, mode: IO };
    let rules = (RULES, Shape::Addresses);
    let kernel = Forwarder::Kernel { tool: Tool::Legacy, rules };
    for (by, rules, peer) in
        [(AfPacket, 0, testpmd(AfPacket)), (AfXdp, 0, testpmd(AfXdp)), (AfPacket, RULES, kernel)]
    {
        for (rate, at_once) in PACES {
            let ours = Forwarder::Tamis { tamis, by, rules: (rules, Shape::Addresses) };
            let found = netns::in_fresh(|| {
                Line::new()?;
                contest(&ours, &[peer], plan, out, |who| {
                    measure(who, (rate, at_once), plan.seconds())
                })
            })?;
            tell(&found, by, rules, rate, out);
        }
    }
    Ok(())
}

/// A row for each percentile.
fn tell(
    found: &[(&'static str, Vec<Delays>)],
    by: Backend,
    rules: usize,
    rate: u64,
    out: &mut Rows,
) {
    let [mine, theirs @ ..] = found else { return };
    for percentile in PERCENTILES {
        let at = |(peer, runs): &(&'static str, Vec<Delays>)| {
            let nanos = runs.iter().map(|run| run.nanos.value_at_percentile(percentile) as f64);
            (*peer, nanos.collect::<Vec<_>>())
        };
        let row = Row::new("live.latency", "tamis", "ns", &at(mine).1)
            .with("backend", by.name())
            .with("rules", rules)
            .with("rate", rate)
            .with("percentile", percentile)
            .with("lost", mine.1.iter().map(|run| run.lost).sum::<u64>());
        out.push_beside(row, &at(mine).1, theirs.iter().map(at));
    }
}

fn measure(
    forwarder: &Forwarder<'_>,
    (rate, at_once): (u64, u64),
    seconds: f64,
) -> io::Result<Delays> {
    let running = forwarder.start(last_core())?;
    let to = running.destination();
    let (every, span) = (Duration::from_nanos(1_000_000_000 * at_once / rate), seconds);
    thread::scope(|scope| {
        let sent = scope.spawn(|| {
            source::settle(0)?;
            Probe::new(to)?.run(at_once, every, Duration::from_secs_f64(span))
        });
        sent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Both ends of the line, and what is sent along it.
struct Probe {
    near: AfPacketPort,
    far: AfPacketPort,
    frame: Vec<u8>,
    burst: Burst,
    /// Frames with a time before this are not counted.
    since: i64,
    sent: u64,
    nanos: Histogram<u64>,
}

impl Probe {
    fn new(to: [u8; 6]) -> io::Result<Self> {
        let open = |device: &str| {
            let mut config = AfPacketConfig::new(device);
            config.promiscuous = device == "b0";
            AfPacketPort::open(&config, &Pool::new(64, 2048, 0)).map_err(io::Error::other)
        };
        let mut frame = source::frame(to, 0);
        // No checksum: what is sent changes.
        frame[HEADERS - 2..HEADERS].fill(0);
        let nanos = Histogram::new_with_bounds(1, LONGEST, 3).map_err(io::Error::other)?;
        let burst = Burst::new();
        Ok(Self { near: open("a0")?, far: open("b0")?, frame, burst, since: 0, sent: 0, nanos })
    }

    /// Sends so many frames at a time, and takes in what has come.
    fn run(mut self, at_once: u64, every: Duration, span: Duration) -> io::Result<Delays> {
        let start = Instant::now();
        let mut due = start;
        let mut is_warm = false;
        while start.elapsed() < WARM_UP + span {
            if !is_warm && start.elapsed() >= WARM_UP {
                (is_warm, self.since, self.sent) = (true, Timestamp::now().as_nanos(), 0);
            }
            self.send(at_once)?;
            self.receive()?;
            due += every;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let until = Instant::now() + LAST;
        while Instant::now() < until {
            self.receive()?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(Delays { lost: self.sent.saturating_sub(self.nanos.len()), nanos: self.nanos })
    }

    fn send(&mut self, frames: u64) -> io::Result<()> {
        for _ in 0..frames {
            self.burst.clear();
            self.frame[HEADERS..HEADERS + 8]
                .copy_from_slice(&Timestamp::now().as_nanos().to_be_bytes());
            let wire_length = self.frame.len() as u32;
            self.burst.push(&self.frame, FrameMeta { wire_length, ..FrameMeta::default() });
            self.sent += self.near.tx_burst(&mut self.burst).map_err(io::Error::other)? as u64;
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<()> {
        while self.far.rx_burst(&mut self.burst).map_err(io::Error::other)? > 0 {
            for frame in self.burst.iter() {
                // After the Ethernet addresses nothing but the TTL and the checksum over it changes on the way.
                let is_ours = frame.bytes.len() == FRAME_BYTES
                    && frame.bytes[26..HEADERS - 2] == self.frame[26..HEADERS - 2];
                let sent =
                    frame.bytes.get(HEADERS..HEADERS + 8).and_then(|bytes| bytes.try_into().ok());
                let (Some(sent), Some(came), true) =
                    (sent.map(i64::from_be_bytes), frame.meta.timestamp, is_ours)
                else {
                    continue;
                };
                if sent >= self.since {
                    let delay = u64::try_from(came.as_nanos() - sent).unwrap_or_default();
                    self.nanos.saturating_record(delay);
                }
            }
        }
        Ok(())
    }
}
