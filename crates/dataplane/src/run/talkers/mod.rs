//! [`Talkers`]: who talks most, by source and by port, while somebody asks.
//!
//! Contract: while nobody asks, a burst costs a worker one relaxed load, and nobody has asked once [`PATIENCE`] has
//! passed. Then one frame in so many is looked at, drawn at random, so that traffic in step with the count is not missed,
//! and counts for all of them; how many they are follows the traffic, so that a link with few frames is counted
//! exactly. A worker counts by itself, under a lock that is its own but for one moment of each [`WINDOW`]. What is told is
//! the window before: everyone who asks is told the same. Frames that no rules are for are not looked at.

mod top;

use std::mem;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use packet::{FlowKey, Headers, Link, Packet, Read};
use pktio::Burst;
use serde_json::{Value, json};

use top::{Top, Volume};

/// How long what is told was counted.
const WINDOW: Duration = Duration::from_secs(1);

/// How long it goes on after somebody asked.
const PATIENCE: Duration = Duration::from_secs(5);

/// Frames that are looked at in a window, about.
const LOOKED_AT: u64 = 4096;

/// One in so many at first, and at most.
const FIRST: u32 = 64;
const MOST: u32 = 256;

/// Talkers that are told.
const TOLD: usize = 20;

/// Who talks.
#[derive(Debug)]
pub(super) struct Talkers {
    /// One frame in so many is looked at; none where it is 0.
    every: AtomicU32,
    workers: Vec<Mutex<Counted>>,
    windows: Mutex<Windows>,
}

/// What a worker counted in this window.
#[derive(Debug, Default)]
struct Counted {
    sources: Top<IpAddr>,
    services: Top<Service>,
    frames: u64,
}

/// Where a conversation is held: the protocol, and the lower one of its ports, which mostly is the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Service {
    protocol: u8,
    port: Option<u16>,
}

#[derive(Debug, Default)]
struct Windows {
    /// When somebody asked last.
    asked: Option<Instant>,
    /// When the window of now began; none does while nobody asks.
    since: Option<Instant>,
    last: Talk,
}

/// What was counted in a window.
#[derive(Debug, Clone, Default)]
pub(super) struct Talk {
    length: Duration,
    every: u32,
    frames: u64,
    sources: Vec<(IpAddr, Volume)>,
    services: Vec<(Service, Volume)>,
}

impl Talkers {
    /// Of so many workers.
    pub(super) fn of(workers: usize) -> Self {
        Self {
            every: AtomicU32::new(0),
            workers: (0..workers).map(|_| Mutex::default()).collect(),
            windows: Mutex::default(),
        }
    }

    /// What was counted in the window before, if one has ended since somebody asked first.
    pub(super) fn ask(&self, now: Instant) -> Talk {
        let mut windows = lock(&self.windows);
        windows.asked = Some(now);
        if windows.since.is_none() {
            windows.since = Some(now);
            self.every.store(FIRST, Ordering::Relaxed);
        }
        windows.last.clone()
    }

    /// Ends a window when it is time, and all of it where nobody asks any more.
    pub(super) fn look(&self, now: Instant) {
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
            // Of bursts that began before.
            drop(self.take());
            return;
        }
        windows.since = Some(now);
        let next = (all.frames / LOOKED_AT).clamp(1, MOST.into()) as u32;
        self.every.store(next, Ordering::Relaxed);
    }

    /// What all workers counted, who begin anew.
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

/// A worker's way to count.
#[derive(Debug)]
pub(super) struct Sampler {
    talkers: Arc<Talkers>,
    worker: usize,
    /// Frames that are passed over before the next one.
    passes: u32,
    /// Of a sequence without a pattern (SplitMix64); nothing depends on its being hard to foresee.
    random: u64,
}

impl Sampler {
    pub(super) fn of(talkers: &Arc<Talkers>, worker: usize) -> Self {
        Self { talkers: Arc::clone(talkers), worker, passes: 0, random: worker as u64 }
    }

    /// Whether somebody asks.
    #[inline]
    pub(super) fn is_asked(&self) -> bool {
        self.talkers.every.load(Ordering::Relaxed) > 0
    }

    /// Counts some frames of a burst, whose headers are found by their places.
    #[cold]
    pub(super) fn sample<'h>(
        &mut self,
        burst: &mut Burst,
        headers: impl Fn(usize) -> Option<&'h (Link, Headers)>,
    ) {
        let talkers = Arc::clone(&self.talkers);
        let every = talkers.every.load(Ordering::Relaxed).max(1);
        let Some(worker) = talkers.workers.get(self.worker) else { return };
        // What was drawn before may have been for many more.
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

    /// From 1 to twice as many less 1, each as often.
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
    /// Counts a frame that stands for so many like it.
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

    fn json(self) -> Value {
        let Self { protocol, port } = self;
        let name = name(protocol).map_or_else(|| protocol.to_string(), |(name, _)| name.to_owned());
        json!({ "protocol": name, "port": port })
    }
}

/// A protocol's name, and whether it has ports.
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
    /// As a document: `tamis.talkers/1`.
    pub(super) fn json(&self) -> Value {
        let with = |mut who: Value, volume: &Volume| {
            (who["frames"], who["bytes"]) = (json!(volume.frames), json!(volume.bytes));
            who
        };
        let sources = self
            .sources
            .iter()
            .map(|(address, volume)| with(json!({ "address": address }), volume));
        let services = self.services.iter().map(|(service, volume)| with(service.json(), volume));
        json!({
            "schema": "tamis.talkers/1",
            "seconds": self.length.as_secs_f64(),
            "every": self.every,
            "frames": self.frames,
            "sources": sources.collect::<Vec<_>>(),
            "services": services.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests;
