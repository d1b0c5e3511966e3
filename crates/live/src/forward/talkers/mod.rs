//! [`Talkers`]: the busiest sources and services, counted while a client asks.
//!
//! Contract: while nobody asks, a burst costs a worker one relaxed load; nobody counts as asking once [`PATIENCE`] has
//! passed. Otherwise one frame in `every` is looked at, drawn at random, so that traffic in step with the count is not
//! missed, and counts for all of them; `every` follows the traffic, so that a link with few frames is counted exactly.
//! A worker counts by itself, under a lock that is its own except for one moment of each [`WINDOW`]. The answer is the
//! window before: all clients get the same. Frames that no rules are for are not looked at.

mod top;

use std::mem;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use packet::{FlowKey, Headers, Link, Packet, Read};
use pktio::Burst;

use crate::answers;
use top::{Top, Volume};

/// The length of the counted windows.
const WINDOW: Duration = Duration::from_secs(1);

/// How long counting goes on after a client asked.
const PATIENCE: Duration = Duration::from_secs(5);

/// Frames that are looked at in a window, about.
const LOOKED_AT: u64 = 4096;

/// One frame in this number is looked at: at first, and at most.
const FIRST: u32 = 64;
const MOST: u32 = 256;

/// The number of talkers in an answer.
const TOLD: usize = 20;

/// The counters of all workers.
#[derive(Debug)]
pub(crate) struct Talkers {
    /// One frame in this number is looked at; none where it is 0.
    every: AtomicU32,
    workers: Vec<Mutex<Counted>>,
    windows: Mutex<Windows>,
}

/// The counters of a worker in this window.
#[derive(Debug, Default)]
struct Counted {
    sources: Top<IpAddr>,
    services: Top<Service>,
    frames: u64,
}

/// A service: the protocol, and the lower one of both ports, which mostly is the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Service {
    protocol: u8,
    port: Option<u16>,
}

#[derive(Debug, Default)]
struct Windows {
    /// When a client asked last.
    asked: Option<Instant>,
    /// When the present window began; `None` while nobody asks.
    since: Option<Instant>,
    last: Talk,
}

/// The counters of a window that has ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Talk {
    length: Duration,
    every: u32,
    frames: u64,
    sources: Vec<(IpAddr, Volume)>,
    services: Vec<(Service, Volume)>,
}

impl Talkers {
    /// Makes the counters of this number of workers.
    pub(crate) fn of(workers: usize) -> Self {
        Self {
            every: AtomicU32::new(0),
            workers: (0..workers).map(|_| Mutex::default()).collect(),
            windows: Mutex::default(),
        }
    }

    /// The window before, if one has ended since the first question.
    pub(crate) fn ask(&self, now: Instant) -> Talk {
        let mut windows = lock(&self.windows);
        windows.asked = Some(now);
        if windows.since.is_none() {
            windows.since = Some(now);
            self.every.store(FIRST, Ordering::Relaxed);
        }
        windows.last.clone()
    }

    /// Ends a window when it is time, and all counting where nobody asks any more.
    pub(crate) fn look(&self, now: Instant) {
        let mut windows = lock(&self.windows);
        let Some(since) = windows.since else { return };
        let length = now.saturating_duration_since(since);
        if length < WINDOW {
            return;
        }
        let every = self.every.load(Ordering::Relaxed);
        let all = self.take();
        windows.last = Talk {
            length,
            every,
            frames: all.frames,
            sources: all.sources.most(TOLD),
            services: all.services.most(TOLD),
        };
        let is_over = |asked: Instant| now.saturating_duration_since(asked) >= PATIENCE;
        if windows.asked.is_none_or(is_over) {
            self.every.store(0, Ordering::Relaxed);
            *windows = Windows::default();
            // Counts of bursts that began before.
            drop(self.take());
            return;
        }
        windows.since = Some(now);
        let next = (all.frames / LOOKED_AT).clamp(1, MOST.into()) as u32;
        self.every.store(next, Ordering::Relaxed);
    }

    /// Takes what all workers counted; they start again from zero.
    fn take(&self) -> Counted {
        let mut all = Counted::default();
        for worker in &self.workers {
            let Counted { sources, services, frames } = mem::take(&mut *lock(worker));
            all.sources.merge(sources);
            all.services.merge(services);
            all.frames += frames;
        }
        all
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker's access to its counters.
#[derive(Debug)]
pub(crate) struct Sampler {
    talkers: Arc<Talkers>,
    worker: usize,
    /// Frames that are passed over before the next one.
    passes: u32,
    /// The state of a sequence without a pattern (SplitMix64); nothing depends on its being hard to foresee.
    random: u64,
}

impl Sampler {
    pub(crate) fn of(talkers: &Arc<Talkers>, worker: usize) -> Self {
        Self { talkers: Arc::clone(talkers), worker, passes: 0, random: worker as u64 }
    }

    /// Whether a client asks.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.talkers.every.load(Ordering::Relaxed) > 0
    }

    /// Counts some frames of a burst, whose headers are found by their places.
    #[cold]
    pub(crate) fn sample<'h>(
        &mut self,
        burst: &mut Burst,
        headers: impl Fn(usize) -> Option<&'h (Link, Headers)>,
    ) {
        let talkers = Arc::clone(&self.talkers);
        let every = talkers.every.load(Ordering::Relaxed).max(1);
        let Some(worker) = talkers.workers.get(self.worker) else { return };
        // The last draw may have been for a larger `every`.
        let mut at = self.passes.min(2 * every - 2) as usize;
        let mut counted = None;
        while at < burst.len() {
            if let (Some(frame), Some((_, found))) = (burst.get_mut(at), headers(at)) {
                let bytes = frame.bytes.len() as u64;
                let packet = Packet::with_headers(frame.bytes, *found);
                if let Read::Known(key) = FlowKey::of(&packet) {
                    let counted = counted.get_or_insert_with(|| lock(worker));
                    counted.add(key, u64::from(every), bytes);
                }
            }
            at += self.gap(every);
        }
        self.passes = (at - burst.len()) as u32;
    }

    /// A random number from 1 to `2 * every - 1`, evenly distributed.
    fn gap(&mut self, every: u32) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        1 + (z % u64::from(2 * every - 1)) as usize
    }
}

impl Counted {
    /// Counts a frame that stands for `frames` frames like it.
    fn add(&mut self, key: FlowKey, frames: u64, bytes: u64) {
        let volume = Volume { frames, bytes: bytes * frames };
        self.frames += frames;
        self.sources.add(key.source, volume);
        self.services.add(Service::of(&key), volume);
    }
}

impl Service {
    fn of(key: &FlowKey) -> Self {
        let port = key.source_port.min(key.destination_port);
        let protocol = key.protocol;
        Self { protocol, port: name(protocol).and_then(|(_, has_ports)| has_ports.then_some(port)) }
    }

    fn answer(self, Volume { frames, bytes }: Volume) -> answers::Service {
        let Self { protocol, port } = self;
        let name = name(protocol).map_or_else(|| protocol.to_string(), |(name, _)| name.to_owned());
        answers::Service { protocol: name, port, frames, bytes }
    }
}

/// The name of a protocol, and whether it has ports.
fn name(protocol: u8) -> Option<(&'static str, bool)> {
    Some(match protocol {
        1 => ("icmp", false),
        6 => ("tcp", true),
        17 => ("udp", true),
        33 => ("dccp", true),
        47 => ("gre", false),
        50 => ("esp", false),
        58 => ("icmpv6", false),
        132 => ("sctp", true),
        136 => ("udplite", true),
        _ => return None,
    })
}

impl Talk {
    /// The answer to `talkers`.
    pub(crate) fn answer(&self) -> answers::Talkers {
        let source = |(address, Volume { frames, bytes }): &(IpAddr, Volume)| answers::Source {
            address: address.to_string(),
            frames: *frames,
            bytes: *bytes,
        };
        answers::Talkers {
            seconds: self.length.as_secs_f64(),
            every: self.every,
            frames: self.frames,
            sources: self.sources.iter().map(source).collect(),
            services: self.services.iter().map(|(service, it)| service.answer(*it)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
