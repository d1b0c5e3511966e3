//! A port that loses, repeats, shortens and damages what another port receives.
//!
//! Contract: the same seed and the same frames give the same faults. Transmission passes through untouched. A frame
//! that has its memory with it is disturbed in place, its repetition is a copy; one that has none is copied: this is
//! for tests.

use crate::burst::Burst;
use crate::memory::Taken;
use crate::port::{Port, PortError, Stats};
use crate::readiness::Readiness;

/// How often each fault strikes, in frames per million. Faults are drawn independently, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// The frame is lost.
    pub drop: u32,
    /// The frame comes twice.
    pub duplicate: u32,
    /// The frame ends early; its length on the wire stays.
    pub truncate: u32,
    /// One bit of the frame is turned.
    pub corrupt: u32,
}

/// Wraps a port and disturbs what it receives.
#[derive(Debug)]
pub struct FaultPort<P> {
    inner: P,
    rates: FaultRates,
    /// State of SplitMix64.
    state: u64,
    /// The frames as received.
    received: Burst,
    lost: u64,
}

impl<P: Port> FaultPort<P> {
    /// Disturbs what `inner` receives; `seed` chooses the faults.
    pub fn new(inner: P, seed: u64, rates: FaultRates) -> Self {
        Self { inner, rates, state: seed, received: Burst::new(), lost: 0 }
    }

    /// The port that it wraps.
    pub fn inner(&self) -> &P {
        &self.inner
    }
}

impl<P: Port> Port for FaultPort<P> {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        // A burst of which every frame is lost is not the end: look at the next.
        while burst.is_empty() {
            if self.inner.rx_burst(&mut self.received)? == 0 {
                break;
            }
            for frame in self.received.drain(usize::MAX) {
                disturb(&mut self.state, self.rates, frame, burst, &mut self.lost);
            }
        }
        Ok(burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.inner.tx_burst(burst)
    }

    /// That of the port that it wraps.
    fn readiness(&self) -> Readiness<'_> {
        self.inner.readiness()
    }

    /// The counters of the port that it wraps; frames lost here are counted as lost.
    fn stats(&self) -> Stats {
        let stats = self.inner.stats();
        Stats { rx_lost: stats.rx_lost + self.lost, ..stats }
    }
}

fn disturb(
    state: &mut u64,
    rates: FaultRates,
    frame: Taken<'_>,
    burst: &mut Burst,
    lost: &mut u64,
) {
    if strikes(state, rates.drop) {
        *lost += 1;
        return;
    }
    let is_twice = strikes(state, rates.duplicate);
    let at = burst.len();
    burst.append(frame);
    let mut length = burst.get(at).map_or(0, |frame| frame.bytes.len());
    if strikes(state, rates.truncate) {
        length = below(state, length);
        burst.cut(at, length);
    }
    if strikes(state, rates.corrupt)
        && length > 0
        && let Some(frame) = burst.get_mut(at)
    {
        frame.bytes[below(state, length)] ^= 1 << below(state, 8);
    }
    if is_twice {
        burst.repeat(at);
    }
}

fn strikes(state: &mut u64, per_million: u32) -> bool {
    next(state) % 1_000_000 < u64::from(per_million)
}

/// A number below `limit`; 0 when that is 0.
fn below(state: &mut u64, limit: usize) -> usize {
    (next(state) % (limit as u64).max(1)) as usize
}

/// SplitMix64, after Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameMeta;
    use crate::memory_port::MemoryPort;
    use crate::pool::Pool;

    const EVERY: u32 = 1_000_000;

    fn received(rates: FaultRates, seed: u64) -> (Vec<Vec<u8>>, Stats) {
        let mut frames = Burst::new();
        (0..100).for_each(|_| frames.push(&[0; 20], FrameMeta::default()));
        let mut loopback = MemoryPort::looped(&Pool::new(100, 32, 0), 100, 7);
        loopback.tx_burst(&mut frames).unwrap();
        let mut port = FaultPort::new(loopback, seed, rates);
        let mut all = Vec::new();
        while port.rx_burst(&mut frames).unwrap() > 0 {
            all.extend(frames.iter().map(|frame| frame.bytes.to_vec()));
        }
        (all, port.stats())
    }

    #[test]
    fn each_fault_does_what_it_says() {
        let (all, stats) = received(FaultRates { drop: EVERY, ..Default::default() }, 1);
        assert_eq!((all.len(), stats.rx_lost), (0, 100));
        let (all, _) = received(FaultRates { duplicate: EVERY, ..Default::default() }, 1);
        assert_eq!(all.len(), 200);
        let (all, _) = received(FaultRates { truncate: EVERY, ..Default::default() }, 1);
        assert!(all.iter().all(|bytes| bytes.len() < 20));
        let (all, _) = received(FaultRates { corrupt: EVERY, ..Default::default() }, 1);
        let ones = |bytes: &Vec<u8>| bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
        assert!(all.iter().all(|bytes| ones(bytes) == 1));
    }

    #[test]
    fn the_seed_decides() {
        let rates =
            FaultRates { drop: 300_000, duplicate: 300_000, truncate: 300_000, corrupt: 300_000 };
        assert_eq!(received(rates, 7), received(rates, 7));
        assert_ne!(received(rates, 7), received(rates, 8));
        assert_eq!(received(FaultRates::default(), 7).0, vec![vec![0; 20]; 100]);
    }
}
