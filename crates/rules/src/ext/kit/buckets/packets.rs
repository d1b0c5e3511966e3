//! [`Packets`]: a bucket that packets are taken from, one by one.
//!
//! The kernel fills it by ticks. Between two of them what it holds and the time since the last tick add up to what an even
//! flow would have made of it: its *potential*, which is free of doubt but for one tick. Two histories are followed, the
//! one with the least potential and the latest ticks and the one with the most: any other has taken as many packets as the
//! first at least, and as the second at most. So the doubt does not add up while packets come thick and fast, but for a
//! burst of one: there what a full bucket spills depends on when it was emptied.
//!
//! Contract: levels are worth time, in picoseconds.

use super::table::{TICK, Visit};
use crate::outcome::Outcome;

/// Picoseconds in a nanosecond and in a microsecond.
const NANO: i64 = 1_000;
const MICRO: u64 = 1_000_000;
const ONE_TICK: i64 = TICK as i64 * NANO;
/// Credits a microsecond of kernels whose clock ticks 100, 250 or 1000, and 300 times a second.
const CREDITS: [u64; 3] = [109_951_162, 137_438_953, 164_926_744];
/// Credits of 64 bits overflow from this time on, on the fastest of them.
const OVERFLOWS: i64 = 111_000_000_000_000_000;

/// Whether what a full bucket holds is less than a packet costs, computed in 64 bits, whatever the clock.
pub(super) fn is_refused(period: u64, burst: u64) -> bool {
    CREDITS.into_iter().all(|credits| {
        period.wrapping_mul(burst).wrapping_mul(credits) < period.wrapping_mul(credits)
    })
}

#[derive(Debug)]
pub(super) struct Packets {
    cost: i64,
    /// What a full one holds.
    full: i64,
    /// What the history with the least holds, and its potential.
    sure: i64,
    low: i64,
    /// The potential of the history with the most.
    high: i64,
    /// By what the second has taken more than the first.
    apart: i64,
    last: u64,
    /// Since when a bucket of burst one may have been emptied.
    since: Option<u64>,
    /// What it holds overflows in some kernels.
    is_unclear: bool,
}

impl Packets {
    /// A full one.
    pub(super) fn new(period: u64, burst: u64, now: u64) -> Self {
        let time =
            |micros: u64| i64::try_from(micros.saturating_mul(MICRO)).unwrap_or(i64::MAX / 4);
        let (cost, full) = (time(period), time(period.saturating_mul(burst)));
        let mut bucket = Self {
            cost,
            full,
            sure: 0,
            low: 0,
            high: 0,
            apart: 0,
            last: now,
            since: None,
            is_unclear: full >= OVERFLOWS,
        };
        bucket.fill();
        bucket
    }

    fn fill(&mut self) {
        (self.sure, self.low, self.high) = (self.full, self.full, self.full + ONE_TICK);
        (self.apart, self.since) = (0, None);
    }

    /// Anything from empty to full at that time.
    pub(super) fn blur(&mut self, at: u64) {
        (self.sure, self.low, self.high) = (0, 0, self.full + ONE_TICK);
        (self.apart, self.since) = (0, Some(self.since.unwrap_or(0)));
        self.last = at.max(self.last);
    }

    /// What it is, or full.
    pub(super) fn or_full(&mut self) {
        (self.sure, self.low) = ((self.sure - self.apart).max(0), (self.low - self.apart).max(0));
        (self.high, self.apart) = (self.full + ONE_TICK, 0);
        self.since = self.since.or(Some(0));
    }

    fn is_of_one(&self) -> bool {
        self.full == self.cost
    }

    pub(super) fn pass(&mut self, now: u64) {
        let passed = i64::try_from(now.saturating_sub(self.last)).unwrap_or(i64::MAX);
        let passed = passed.saturating_mul(NANO);
        self.last = self.last.max(now);
        if passed.saturating_add(self.full) >= OVERFLOWS {
            return self.blur(now);
        }
        let surely = if self.is_of_one() { 0 } else { self.low - self.apart };
        if surely + passed >= self.full + ONE_TICK {
            return self.fill();
        }
        let low = self.low + passed;
        self.sure = self.sure.max((low - ONE_TICK).min(self.full));
        self.high = (self.high + passed).min(self.full + ONE_TICK);
        // That of a burst of one is emptied by the next packet, before it spills.
        self.low =
            if self.is_of_one() { low.min(2 * self.full + ONE_TICK) } else { low.min(self.full) };
    }

    /// Whether a packet that surely, or maybe, comes is within the limit.
    pub(super) fn take(&mut self, visit: &Visit) -> Outcome {
        if self.is_unclear {
            return Outcome::MAYBE;
        }
        let most = (self.high + self.apart).min(self.full + ONE_TICK);
        let outcome = match (self.sure - self.apart >= self.cost, most >= self.cost) {
            (true, _) => Outcome::YES,
            (false, true) => Outcome::MAYBE,
            (false, false) => Outcome::NO,
        };
        let may_take = self.high >= self.cost;
        if may_take || self.apart > 0 {
            self.since = self.since.or(Some(visit.now));
        }
        if visit.certain && self.sure >= self.cost {
            if self.is_of_one() {
                return self.emptied(visit.now, outcome);
            }
            (self.sure, self.low) = (self.sure - self.cost, self.low - self.cost);
            self.apart -= self.cost;
        }
        if may_take {
            self.high -= self.cost;
            self.apart += self.cost;
        }
        if self.apart < 0 || self.apart > self.full + 4 * ONE_TICK {
            self.blur(visit.now);
        }
        outcome
    }

    /// By now a burst of one was taken, and nothing before the time since which it may have been.
    fn emptied(&mut self, now: u64, outcome: Outcome) -> Outcome {
        let span = now.saturating_sub(self.since.unwrap_or(0));
        let span = i64::try_from(span).unwrap_or(i64::MAX).saturating_mul(NANO);
        (self.sure, self.low, self.apart, self.since) = (0, 0, 0, None);
        self.high = span.saturating_add(ONE_TICK).min(self.full + ONE_TICK);
        outcome
    }

    /// Packets that it holds, at least and at most.
    pub(super) fn holds(&self) -> [i64; 2] {
        let most = (self.high + self.apart).min(self.full);
        [(self.sure - self.apart).max(0) / self.cost.max(1), most / self.cost.max(1)]
    }
}
