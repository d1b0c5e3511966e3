//! [`Bytes`]: a bucket that bytes are taken from, 16 at a time, and that is filled at once a number of times, its burst.
//!
//! What 16 bytes cost is rounded by the rate of the kernel's clock, which is not known: each rate is followed on its own.
//!
//! Contract: levels are in the kernel's credits; a full bucket holds the credits of a second.

use super::table::{TICK, Visit};
use crate::outcome::Outcome;
use conntrack::SECOND;

/// Credits a second of kernels whose clock ticks 100, 250 or 1000, and 300 times a second.
const CREDITS: [i64; 3] = [3_355_443_200, 4_194_304_000, 2_516_582_400];

/// Whether 16 bytes cost nothing, whatever the clock.
pub(super) fn is_refused(cost: u32) -> bool {
    CREDITS.into_iter().all(|credits| costs(cost, credits) == 0)
}

fn costs(cost: u32, credits: i64) -> i64 {
    ((i128::from(cost) * i128::from(credits)) >> 32) as i64
}

#[derive(Debug)]
pub(super) struct Bytes {
    clocks: [Clock; 3],
    burst: u32,
    last: u64,
}

/// The bucket under one clock.
#[derive(Debug, Clone, Copy)]
struct Clock {
    full: i64,
    /// Credits of a tick.
    tick: i64,
    /// Credits that 16 bytes cost.
    cost: i64,
    level: Credit,
}

/// What a bucket holds.
#[derive(Debug, Clone, Copy)]
struct Credit {
    /// The bucket holds at least this.
    sure: i64,
    /// What it holds and the time since the last tick add up to, at least and at most.
    low: i64,
    high: i64,
    /// How often it can still be filled, at least and at most.
    refills: [u32; 2],
}

impl Credit {
    fn or(self, other: Self) -> Self {
        Self {
            sure: self.sure.min(other.sure),
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            refills: [self.refills[0].min(other.refills[0]), self.refills[1].max(other.refills[1])],
        }
    }
}

impl Bytes {
    /// A full one.
    pub(super) fn new(cost: u32, burst: u32, now: u64) -> Self {
        let clocks = CREDITS.map(|full| {
            let tick = (i128::from(full) * i128::from(TICK) / i128::from(SECOND)) as i64;
            let level = Credit { sure: full, low: full, high: full + tick, refills: [burst; 2] };
            Clock { full, tick, cost: costs(cost, full), level }
        });
        Self { clocks, burst, last: now }
    }

    pub(super) fn pass(&mut self, now: u64) {
        // A second fills it.
        let passed = now.saturating_sub(self.last).min(4 * SECOND);
        self.last = self.last.max(now);
        for clock in &mut self.clocks {
            let Clock { full, tick, level, .. } = clock;
            let passed = (i128::from(*full) * i128::from(passed) / i128::from(SECOND)) as i64;
            let low = level.low + passed;
            level.sure = level.sure.max((low - *tick).min(*full));
            level.high = (level.high + passed + 1).min(*full + *tick);
            level.low = low.min(*full);
        }
    }

    /// Anything from empty to full at that time, with any part of the burst left.
    pub(super) fn blur(&mut self, at: u64) {
        self.last = self.last.max(at);
        for clock in &mut self.clocks {
            let refills = [0, clock.level.refills[1]];
            clock.level = Credit { sure: 0, low: 0, high: clock.full + clock.tick, refills };
        }
    }

    /// What it is, or full, with all of the burst that it ever had.
    pub(super) fn or_full(&mut self) {
        for clock in &mut self.clocks {
            clock.level = clock.level.or(clock.filled([self.burst; 2]));
        }
    }

    /// Whether a packet that surely, or maybe, comes is within the limit.
    pub(super) fn take(&mut self, visit: &Visit) -> Outcome {
        let answers = self.clocks.iter_mut().map(|clock| clock.take(visit));
        answers.reduce(Outcome::or).unwrap_or(Outcome::MAYBE)
    }
}

impl Clock {
    fn filled(&self, refills: [u32; 2]) -> Credit {
        Credit { sure: self.full, low: self.full, high: self.full + self.tick, refills }
    }

    fn take(&mut self, visit: &Visit) -> Outcome {
        let chunks = i64::try_from(visit.len / 16 + 1).unwrap_or(i64::MAX);
        let cost = chunks.saturating_mul(self.cost).min(self.full);
        let branches = self.branches(cost);
        let taken = branches.iter().flatten().map(|(outcome, level)| (*outcome, *level));
        let both = taken.reduce(|(said, level), (also, other)| (said.or(also), level.or(other)));
        let Some((outcome, level)) = both else { return Outcome::MAYBE };
        self.level = if visit.certain { level } else { level.or(self.level) };
        outcome
    }

    /// What may happen: it holds enough; it is filled, and then does; it does not.
    fn branches(&self, cost: i64) -> [Option<(Outcome, Credit)>; 3] {
        let Credit { sure, low, high, refills } = self.level;
        let less = |level: Credit| Credit {
            sure: level.sure - cost,
            low: level.low - cost,
            high: level.high - cost,
            ..level
        };
        let holds = Credit { sure: sure.max(cost), low: low.max(cost), high, refills };
        let lacks = Credit { high: high.min(cost + self.tick), ..self.level };
        let is_short = sure < cost;
        let fills = is_short && refills[1] > 0;
        let ends = is_short && refills[0] == 0;
        let filled = self.filled(refills.map(|refills| refills.saturating_sub(1)));
        [
            (high >= cost).then(|| (Outcome::YES, less(holds))),
            fills.then(|| (Outcome::YES, less(filled))),
            ends.then_some((Outcome::NO, Credit { refills: [0, 0], ..lacks })),
        ]
    }
}
