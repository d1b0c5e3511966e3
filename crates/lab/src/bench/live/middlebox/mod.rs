//! What a middlebox costs a frame: the same run without one, with one that has everything pass, and with [`Router`]; in the
//! worker's own thread, and polled by descriptors.
//!
//! Contract: frames come from memory, 64 at a time, each with a header of its own, and end where they leave; no rule looks
//! at them. Figures are processor time of the thread that drives the worker, for each frame; the ways take turns.

mod router;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use dataplane::Config;
use live::config::{OnPanic, Order, Other, Slot, Workers};
use live::{BoxedPort, Driver, Hosted, Middlebox, Polled, Run, Verdict, Waiting, WireSpec};
use packet::craft::{Addresses, Craft, Message};
use pktio::{Burst, FrameMeta, LinkType, Port, PortError, Readiness, Stats};
use rules::save::{LoadOptions, load};

use super::counts::spent_in;
use crate::bench::document::Row;
use crate::bench::limit;
use crate::bench::rows::Rows;

pub use router::{Denied, Router};

/// Frames that come at once.
const BURST: u64 = 64;
/// Frames of each run.
const FRAMES: u64 = 4_000_000;
/// Headers that differ.
const FLOWS: usize = 1024;
/// Where a thread's own processor time is told.
const SPENT: &str = "/proc/thread-self/schedstat";

/// Who sees the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Nobody.
    None,
    /// One that has everything pass.
    Passes,
    /// [`Router`].
    Router,
    /// Whoever polls, and has everything pass.
    Polled,
}

impl Way {
    const ALL: [Self; 4] = [Self::None, Self::Passes, Self::Router, Self::Polled];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Passes => "passes",
            Self::Router => "router",
            Self::Polled => "polled",
        }
    }

    /// Nanoseconds for each of so many frames.
    fn run(self, frames: u64) -> f64 {
        let port = Datagrams::new(frames);
        let spent = Arc::clone(&port.spent);
        let ports: [(String, BoxedPort); 2] =
            [("left".to_owned(), Box::new(port)), ("right".to_owned(), Box::new(Nowhere))];
        let (crossings, order) = (Default::default(), Order::Flow);
        let ends = vec![WireSpec { ports, crossings, other: Other::Pass, order }];
        let rules = load("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n", &LoadOptions::default());
        let rules = [Arc::new(rules.expect("rules").ruleset)];
        let mut make = |_| -> Box<dyn Middlebox> {
            match self {
                Self::Router => Box::new(router()),
                _ => Box::new(Passes),
            }
        };
        let driver = match self {
            Self::None => Driver::Alone,
            Self::Passes | Self::Router => Driver::With(Slot::default(), &mut make),
            Self::Polled => Driver::Hosted(Slot::default(), 256),
        };
        let (config, workers) = (Config::default(), Workers::default());
        let started = Run::start_driven(ends, (&rules, config), OnPanic::Closed, &workers, driver);
        let (run, hosted) = started.expect("a run");
        let polling: Vec<_> =
            hosted.into_iter().map(|hosted| thread::spawn(|| poll(hosted))).collect();
        let (status, ended) = run.wait(&AtomicBool::new(false), |_| {});
        polling.into_iter().for_each(|thread| thread.join().expect("it polls to the end"));
        let counted = status.directions[0].frames;
        assert!(ended.is_ok() && counted.sent == frames, "{ended:?} {counted:?}");
        spent.load(Ordering::Relaxed) as f64 / frames as f64
    }
}

/// Measures all ways.
///
/// # Panics
/// A frame was lost, or the kernel does not tell processor time.
pub fn run(rounds: usize, quick: bool, out: &mut Rows) {
    let frames = if quick { FRAMES / 8 } else { FRAMES };
    let mut figures = Way::ALL.map(|_| Vec::new());
    for _ in limit::rounds(rounds) {
        for (way, figures) in Way::ALL.into_iter().zip(&mut figures) {
            figures.push(way.run(frames));
        }
    }
    let [alone, ..] = &figures;
    for (way, of_way) in Way::ALL.into_iter().zip(&figures) {
        let row = Row::new("live.middlebox", "tamis", "ns/packet", of_way);
        let row = row.with("middlebox", way.name()).with("burst", BURST);
        out.push(match way {
            Way::None => row,
            _ => row.beside("no middlebox", of_way, alone),
        });
    }
}

/// Has everything pass, and looks at no byte.
struct Passes;

impl Middlebox for Passes {
    fn burst(&mut self, frames: &mut Waiting) {
        frames.frames().for_each(|shown| *shown.verdict = Verdict::Pass);
    }
}

fn poll(mut hosted: Hosted) {
    while hosted.poll(Duration::from_millis(10)) != Polled::Ended {}
}

/// It denies four kinds of packets, none of which comes.
fn router() -> Router {
    let port = |port: u128| Denied { mask: 0xffff << 8 | 0xff, value: port << 8 | 17 };
    Router { denied: [23, 135, 445, 1900].map(port).to_vec(), source: ([192, 0, 2, 1], 61000) }
}

/// Datagrams of many flows.
struct Datagrams {
    like: Vec<Vec<u8>>,
    left: u64,
    /// Nanoseconds on a processor, from the first frames to the last.
    spent: Arc<AtomicU64>,
}

impl Datagrams {
    fn new(left: u64) -> Self {
        let datagram = |flow: usize| {
            let [high, low] = (flow as u16).to_be_bytes();
            let addresses =
                Addresses::V4 { source: [10, 0, high, low], destination: [10, 1, 0, low] };
            let message = Message::udp(4000 + flow as u16, 53);
            Craft { payload_len: 18, ..Craft::new(addresses, message) }.frame()
        };
        let like: Vec<_> = (0..FLOWS).map(datagram).collect();
        Self { like, left, spent: Arc::default() }
    }
}

impl Port for Datagrams {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        let is_first = self.spent.load(Ordering::Relaxed) == 0;
        if is_first || self.left == 0 {
            let now = spent_in(SPENT.as_ref()).expect("the kernel tells processor time");
            let before = self.spent.load(Ordering::Relaxed);
            self.spent.store(now - before, Ordering::Relaxed);
        }
        for _ in 0..self.left.min(BURST) {
            self.left -= 1;
            let bytes = &self.like[self.left as usize % FLOWS];
            let (link_type, wire_length) = (LinkType::ETHERNET, bytes.len() as u32);
            burst.push(bytes, FrameMeta { link_type, wire_length, ..FrameMeta::default() });
        }
        Ok(burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        Ok(0)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Always
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// Takes all frames, and has none.
struct Nowhere;

impl Port for Nowhere {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        Ok(0)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let sent = burst.len();
        burst.clear();
        Ok(sent)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Never
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way takes all frames to their end, and tells a time: there are enough for several ticks of the kernel.
    #[test]
    fn all_ways_are_measured() {
        for way in Way::ALL {
            assert!(way.run(200_000) > 0.0, "{way:?}");
        }
    }
}
