//! `-m limit`: a token bucket for the rule, full at the start.
//!
//! The kernel's clock ticks, how often is not known: where the bucket's level is that near to what a packet costs,
//! the answer is open.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_limit.c`, which computes the bucket in 32
//! bits and refuses what overflows. What only some kernels refuse is taken.

use super::rate::{Rate, rate_text};
use super::{Args, IP, Match, MatchKind, Memory, Opt, Printer, Support, number};
use crate::outcome::Outcome;
use crate::save::What;
use crate::transit::Transit;

const SCALE: u64 = 10_000;
/// Credits a second of kernels with 100, 250 or 1000, and 300 clock ticks a second.
const CREDITS: [u32; 3] = [25_600, 32_000, 38_400];
/// 3/hour.
const DEFAULT_PERIOD: u32 = 1200 * SCALE as u32;
const DEFAULT_BURST: u32 = 5;
const MAX_BURST: u64 = 10_000;

/// The kind.
pub(super) static KIND: MatchKind = MatchKind {
    name: "limit",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("limit"), Opt::value("limit-burst")],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Limit {
    /// Time between two packets in 1/10,000 seconds.
    period: u32,
    burst: u32,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let period = match args.get("limit") {
        Some(given) => Rate::parse(given.text(), SCALE)
            .map(|rate| rate.period as u32)
            .ok_or_else(|| given.expected("a rate of 1/day to 10000/sec"))?,
        None => DEFAULT_PERIOD,
    };
    let burst = match args.get("limit-burst") {
        Some(given) => number::between(given, 1, MAX_BURST)? as u32,
        None => DEFAULT_BURST,
    };
    if CREDITS.into_iter().all(|credits| overflows(period, burst, credits)) {
        return Err(args.expected("a smaller burst, or a faster rate,"));
    }
    Ok(Box::new(Limit { period, burst }))
}

/// Whether a full bucket is worth less than one packet, computed in 32 bits.
fn overflows(period: u32, burst: u32, credits: u32) -> bool {
    let worth = |time: u32| match time > u32::MAX / credits {
        true => (time / SCALE as u32).wrapping_mul(credits),
        false => time * credits / SCALE as u32,
    };
    worth(period.wrapping_mul(burst)) < worth(period)
}

impl Match for Limit {
    fn print(&self, to: &mut Printer) {
        to.option(false, "limit", rate_text(self.period.into(), SCALE).0);
        if self.burst != DEFAULT_BURST {
            to.option(false, "limit-burst", self.burst);
        }
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        Some(Box::new(Bucket::new(self)))
    }
}

/// Two ticks of the slowest clock, in nanoseconds: the first and the last of a span may be cut.
const MARGIN: i64 = 20_000_000;

/// A bucket, in nanoseconds: as many as pass flow in.
#[derive(Debug)]
struct Bucket {
    /// What it holds at least, and at most.
    level: [i64; 2],
    cost: i64,
    most: i64,
    last: Option<u64>,
}

impl Bucket {
    fn new(limit: &Limit) -> Self {
        let cost = i64::from(limit.period) * (1_000_000_000 / SCALE as i64);
        let most = cost.saturating_mul(i64::from(limit.burst));
        Self { level: [most; 2], cost, most, last: None }
    }

    fn fill(&mut self, now: u64) {
        let passed = now.saturating_sub(self.last.unwrap_or(now));
        self.last = Some(now.max(self.last.unwrap_or(0)));
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        self.level = self.level.map(|level| level.saturating_add(passed).min(self.most));
    }

    /// Whether a packet that surely, or maybe, comes is within the limit.
    fn take(&mut self, certain: bool) -> Outcome {
        let [least, most] = self.level;
        // A full bucket is full by any clock.
        let is_full = least == self.most;
        let outcome = if is_full || least - MARGIN >= self.cost {
            Outcome::YES
        } else if most + MARGIN < self.cost {
            Outcome::NO
        } else {
            Outcome::MAYBE
        };
        self.level = match (outcome, certain) {
            (Outcome::NO, _) => self.level,
            (Outcome::YES, true) => [least - self.cost, most - self.cost],
            _ => [(least - self.cost).max(0), most],
        };
        outcome
    }
}

impl Memory for Bucket {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>) -> Outcome {
        let Some(now) = transit.time else { return Outcome::MAYBE };
        self.fill(now);
        self.take(transit.certain)
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_and_is_open_near_its_edge() {
        const SECOND: u64 = 1_000_000_000;
        // Ten a second, two at once.
        let mut bucket = Bucket::new(&Limit { period: 1000, burst: 2 });
        let mut at = |time: u64, certain| {
            bucket.fill(time);
            bucket.take(certain)
        };
        assert_eq!(at(SECOND, true), Outcome::YES);
        assert_eq!(at(SECOND, true), Outcome::MAYBE, "just enough");
        assert_eq!(at(SECOND + 1, true), Outcome::MAYBE);
        assert_eq!(at(SECOND * 2, true), Outcome::YES, "full again");
        assert_eq!(at(SECOND * 3, false), Outcome::YES);
        assert_eq!(at(SECOND * 3, true), Outcome::MAYBE, "the last one may not have come");
        let mut slow = Bucket::new(&Limit { period: 10_000, burst: 3 });
        let mut at = |time: u64| {
            slow.fill(time);
            slow.take(true)
        };
        let said: Vec<Outcome> = [0, 1, 2].map(|ms| at(SECOND + ms * 1_000_000)).into();
        assert_eq!(said, [Outcome::YES, Outcome::YES, Outcome::MAYBE]);
    }

    #[test]
    fn a_bucket_that_overflows_is_worth_less_than_a_packet() {
        let day = 86_400 * SCALE as u32;
        for burst in [2, 4, 5] {
            assert!(CREDITS.into_iter().all(|credits| overflows(day, burst, credits)), "{burst}");
        }
        assert!(!overflows(day, 1, 32_000));
        assert!(!overflows(DEFAULT_PERIOD, DEFAULT_BURST, 32_000));
        assert!(!overflows(1, 10_000, 32_000));
    }
}
