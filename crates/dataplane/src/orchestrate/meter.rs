//! What a run counts: packets, permitted ones, and how long packets took from source to end.
//!
//! Contract: shared by the workers; they add once a burst. Latencies are off unless asked for, since a
//! clock costs as much as a few decisions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::Outcome;

/// Eight steps between powers of two, up to 2^40 ns.
const STEPS: usize = 8;
const SLOTS: usize = 40 * STEPS;

/// See the module.
#[derive(Debug)]
pub struct Meter {
    packets: CachePadded<AtomicU64>,
    permitted: CachePadded<AtomicU64>,
    latencies: Option<Box<[AtomicU64]>>,
}

impl Meter {
    /// Counts, and takes times if wanted.
    #[must_use]
    pub fn new(latencies: bool) -> Self {
        let slots = || (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        Self {
            packets: CachePadded::default(),
            permitted: CachePadded::default(),
            latencies: latencies.then(slots),
        }
    }

    pub(super) fn took(&self, packets: usize) {
        self.packets.fetch_add(packets as u64, Ordering::Relaxed);
    }

    pub(super) fn permitted(&self, packets: u64) {
        self.permitted.fetch_add(packets, Ordering::Relaxed);
    }

    /// When something begins, if times are taken.
    pub(super) fn begins(&self) -> Option<Instant> {
        self.latencies.is_some().then(Instant::now)
    }

    /// So many packets end that began then.
    pub(super) fn ends(&self, packets: usize, began: Option<Instant>) {
        if let (Some(slots), Some(began)) = (&self.latencies, began) {
            let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            slots[slot(nanos)].fetch_add(packets as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn outcome(&self, elapsed: Duration, high_water: usize) -> Outcome {
        let counts =
            |slots: &[AtomicU64]| slots.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Outcome {
            packets: self.packets.load(Ordering::Relaxed),
            permitted: self.permitted.load(Ordering::Relaxed),
            elapsed,
            high_water,
            latencies: self.latencies.as_deref().map(|slots| Latencies { counts: counts(slots) }),
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
