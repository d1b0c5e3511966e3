//! A whole run whose wire keeps the order of all frames: two workers, rules that take some frames much longer than
//! others, and a port that loses, repeats, delays and exchanges what comes in.
//!
//! Contract: frames are numbered after the faults, in the order in which the wire receives them, and their numbers are
//! looked at where they leave. A frame's port, drawn anew for each, says how many rules it walks past.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dataplane::Config;
use live::config::{Cores, OnPanic, Order, Other, Workers};
use live::{BoxedPort, Run, WireSpec};
use packet::craft::{Addresses, Craft, Message};
use pktio::{Burst, FaultPort, FaultRates, FrameMeta, LinkType, Port, PortError, Readiness, Stats};
use rules::save::{LoadOptions, load};

use super::super::super::document::Row;

/// Frames that are looked at where nothing else is said.
pub const FRAMES: u64 = 2_000_000;
/// Frames that come at once.
const BURST: u64 = 64;
/// Rules that frames walk past, at most.
const RULES: u64 = 1000;
/// Of a million.
const OFTEN: u32 = 5000;
const WORKERS: usize = 2;
/// Where a datagram has its port, and its payload.
const PORT: usize = 36;
const PAYLOAD: usize = 42;

/// Datagrams to ever other ports.
struct Datagrams {
    like: Vec<u8>,
    left: u64,
}

impl Port for Datagrams {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        let wire_length = self.like.len() as u32;
        for _ in 0..self.left.min(BURST) {
            self.left -= 1;
            let port = 1 + (self.left.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % (RULES + 1);
            self.like[PORT..PORT + 2].copy_from_slice(&(port as u16).to_be_bytes());
            let link_type = LinkType::ETHERNET;
            burst.push(&self.like, FrameMeta { link_type, wire_length, ..FrameMeta::default() });
        }
        Ok(burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let sent = burst.len();
        burst.clear();
        Ok(sent)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Always
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// Numbers what another port hands over, in the payload.
struct Numbering<P> {
    of: P,
    last: u64,
}

impl<P: Port> Port for Numbering<P> {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let received = self.of.rx_burst(burst)?;
        for frame in burst.iter_mut() {
            self.last += 1;
            if let Some(payload) = frame.bytes.get_mut(PAYLOAD..PAYLOAD + 8) {
                payload.copy_from_slice(&self.last.to_be_bytes());
            }
        }
        Ok(received)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.of.tx_burst(burst)
    }

    fn readiness(&self) -> Readiness<'_> {
        self.of.readiness()
    }

    fn stats(&self) -> Stats {
        self.of.stats()
    }
}

/// Looks at the numbers of what leaves.
#[derive(Default)]
struct Looking {
    last: u64,
    seen: Arc<[AtomicU64; 2]>,
}

impl Port for Looking {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        Ok(0)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let [sent, reordered] = &*self.seen;
        for frame in burst.iter() {
            let payload = frame.bytes.get(PAYLOAD..PAYLOAD + 8);
            let Some(number) = payload.and_then(|bytes| bytes.try_into().ok()) else { continue };
            let number = u64::from_be_bytes(number);
            reordered.fetch_add(u64::from(number <= self.last), Ordering::Relaxed);
            self.last = number;
        }
        sent.fetch_add(burst.len() as u64, Ordering::Relaxed);
        let count = burst.len();
        burst.clear();
        Ok(count)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Never
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// Rules that accept the port of their number.
fn rules() -> String {
    let rules: String = (1..=RULES)
        .map(|port| format!("-A FORWARD -p udp -m udp --dport {port} -j ACCEPT\n"))
        .collect();
    format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n")
}

/// How many frames left out of their order, of so many that came.
///
/// # Panics
/// One did, or a frame has no fate, or the run did not start.
#[must_use]
pub fn row(frames: u64) -> Row {
    let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
    let craft = Craft { payload_len: 18, ..Craft::new(addresses, Message::udp(4000, 1)) };
    let of = Datagrams { like: craft.frame(), left: frames };
    let rates = FaultRates {
        drop: OFTEN,
        duplicate: OFTEN,
        truncate: 0,
        corrupt: 0,
        delay: OFTEN,
        reorder: OFTEN,
    };
    let near = Numbering { of: FaultPort::new(of, 1, rates), last: 0 };
    let far = Looking::default();
    let seen = Arc::clone(&far.seen);
    let ports: [(String, BoxedPort); 2] =
        [("left".to_owned(), Box::new(near)), ("right".to_owned(), Box::new(far))];
    let crossings = Default::default();
    let ends = vec![WireSpec { ports, crossings, other: Other::Pass, order: Order::Wire }];
    let rules = [Arc::new(load(&rules(), &LoadOptions::default()).expect("rules").ruleset)];
    let workers = Workers { cores: Cores::Any, count: Some(WORKERS) };
    let run = Run::start_on(ends, (&rules, Config::default()), OnPanic::Closed, &workers);
    let told = Mutex::new(Vec::new());
    let tell = |what: &str| {
        told.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_owned());
    };
    let (status, ended) = run.expect("a run").wait(&AtomicBool::new(false), tell);
    let [sent, reordered] = seen.each_ref().map(|count| count.load(Ordering::Relaxed));
    let counted = status.directions[0].frames;
    assert!(ended.is_ok() && counted.balances(), "{ended:?} {counted:?}");
    assert!(counted.sent == sent && reordered == 0, "{reordered} of {sent} out of their order");
    let row = Row::new("live.ordered.wire.reordered", "tamis", "frames", &[reordered as f64]);
    row.with("workers", WORKERS).with("frames", sent).with("fault", "drop duplicate delay reorder")
}
