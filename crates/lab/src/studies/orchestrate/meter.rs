//! What a run counts: packets, permitted ones, and how long packets took from source to end.
//!
//! Contract: each worker counts for itself and adds up when it is done, so that counting shares nothing
//! between threads. Latencies are off unless asked for, since a clock costs as much as a few decisions.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Eight steps between powers of two, up to 2^40 ns.
const STEPS: usize = 8;
const SLOTS: usize = 40 * STEPS;

/// What a run did.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Packets that were taken from the source and ended.
    pub packets: u64,
    /// Data packets permitted.
    pub permitted: u64,
    /// From the first packet's taking to the last one's end.
    pub elapsed: Duration,
    /// The most packets in flight at a time.
    pub high_water: usize,
    /// From the source to the end, for each packet, if it was asked for.
    pub latencies: Option<Latencies>,
}

/// What all workers of a run counted.
#[derive(Debug)]
pub struct Meter {
    /// Of the workers that are done.
    total: Mutex<Counts>,
    latencies: bool,
}

#[derive(Debug, Clone)]
struct Counts {
    packets: u64,
    permitted: u64,
    /// How often each slot's latency was seen; empty unless times are taken.
    latencies: Vec<u64>,
}

impl Counts {
    fn new(latencies: bool) -> Self {
        Self { packets: 0, permitted: 0, latencies: vec![0; if latencies { SLOTS } else { 0 }] }
    }
}

impl Meter {
    /// Counts, and takes times if wanted.
    #[must_use]
    pub fn new(latencies: bool) -> Self {
        Self { total: Mutex::new(Counts::new(latencies)), latencies }
    }

    /// One worker's way in.
    pub(super) fn worker(&self) -> WorkerCounts<'_> {
        WorkerCounts { meter: self, counts: Counts::new(self.latencies) }
    }

    /// What all workers counted that are done.
    pub(super) fn outcome(&self, elapsed: Duration, high_water: usize) -> Outcome {
        let Counts { packets, permitted, latencies } = self.total.lock().clone();
        let latencies = self.latencies.then_some(Latencies { counts: latencies });
        Outcome { packets, permitted, elapsed, high_water, latencies }
    }
}

/// One worker's counts, added to the meter's when it is dropped.
#[derive(Debug)]
pub(super) struct WorkerCounts<'m> {
    meter: &'m Meter,
    counts: Counts,
}

impl WorkerCounts<'_> {
    /// When something begins, if times are taken.
    pub(super) fn begins(&self) -> Option<Instant> {
        self.meter.latencies.then(Instant::now)
    }

    /// Packets that began then end, some of them permitted.
    pub(super) fn ends(&mut self, packets: usize, permitted: usize, began: Option<Instant>) {
        self.counts.packets += packets as u64;
        self.counts.permitted += permitted as u64;
        if let Some(began) = began {
            let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.counts.latencies[slot(nanos)] += packets as u64;
        }
    }
}

impl Drop for WorkerCounts<'_> {
    fn drop(&mut self) {
        let mut total = self.meter.total.lock();
        total.packets += self.counts.packets;
        total.permitted += self.counts.permitted;
        for (to, from) in total.latencies.iter_mut().zip(&self.counts.latencies) {
            *to += from;
        }
    }
}

fn slot(nanos: u64) -> usize {
    let nanos = nanos.max(STEPS as u64);
    let power = nanos.ilog2() as usize;
    let step = (nanos >> (power - 3)) as usize - STEPS;
    (power * STEPS + step).min(SLOTS - 1)
}

/// How often each latency was seen, to an eighth of a power of two.
#[derive(Debug, Clone)]
pub struct Latencies {
    counts: Vec<u64>,
}

impl Latencies {
    /// The latency in nanoseconds that this share of all packets does not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let all: u64 = self.counts.iter().sum();
        let mut left = (all as f64 * share).ceil() as u64;
        for (slot, &count) in self.counts.iter().enumerate() {
            if count >= left {
                let (power, step) = (slot / STEPS, slot % STEPS);
                return ((STEPS + step + 1) as u64) << power.saturating_sub(3);
            }
            left -= count;
        }
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_an_eighth() {
        let mut counts = vec![0; SLOTS];
        (1..=1000).for_each(|micros| counts[slot(micros * 1000)] += 1);
        let latencies = Latencies { counts };
        for (share, exact) in [(0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let found = latencies.quantile(share) as f64;
            assert!((1.0..=1.13).contains(&(found / exact)), "{share}: {found}");
        }
    }
}
