//! `-m limit`: a token bucket for the rule, full at the start.
//!
//! The kernel's clock ticks, how often is not known: where the bucket's level is that near to what a packet costs,
//! the answer is open.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_limit.c`, which computes the bucket in 32
//! bits and refuses what overflows. What only some kernels refuse is taken.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::kit::rate::{Rate, rate_text};
use crate::ext::{Args, Families, Match, MatchKind, Memory, NamedLists, Opt, Printer, Support};
use crate::family::Family;
use crate::outcome::Outcome;
use crate::transit::Transit;

const SCALE: u64 = 10_000;
/// Credits a second of kernels with 100, 250 or 1000, and 300 clock ticks a second.
const CREDITS: [u32; 3] = [25_600, 32_000, 38_400];
/// 3/hour.
const DEFAULT_PERIOD: u32 = 1200 * SCALE as u32;
const DEFAULT_BURST: u32 = 5;
const MAX_BURST: u64 = 10_000;

const IP_AND_BRIDGE: Families = &[Family::Ipv4, Family::Ipv6, Family::Bridge];

pub(crate) static KIND: MatchKind = MatchKind {
    name: "limit",
    aliases: &[],
    families: IP_AND_BRIDGE,
    protocol: None,
    options: &[Opt::value("limit"), Opt::value("limit-burst")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Limit {
    /// Time between two packets in 1/10,000 seconds.
    period: u32,
    burst: u32,
    /// The burst prints whatever it is.
    prints_burst: bool,
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
    Ok(Box::new(Limit { period, burst, prints_burst: !args.family.is_ip() }))
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
        if self.prints_burst || self.burst != DEFAULT_BURST {
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
    /// What it holds at least, and at most but for the margin; while [`Self::open`], if nothing was taken since.
    level: [i64; 2],
    /// What ticks may still hold back from the least.
    slack: i64,
    cost: i64,
    most: i64,
    last: Option<u64>,
    /// Since then one packet's worth may have been taken.
    open: Option<u64>,
}

impl Bucket {
    fn new(limit: &Limit) -> Self {
        let cost = i64::from(limit.period) * (1_000_000_000 / SCALE as i64);
        let most = cost.saturating_mul(i64::from(limit.burst));
        Self { level: [most; 2], slack: MARGIN, cost, most, last: None, open: None }
    }

    fn fill(&mut self, now: u64) {
        let passed = now.saturating_sub(self.last.unwrap_or(now));
        self.last = Some(now.max(self.last.unwrap_or(0)));
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        let held = self.slack.min(passed);
        let [least, most] = self.level;
        self.slack -= held;
        self.level = [least.saturating_add(passed - held), most.saturating_add(passed)]
            .map(|level| level.min(self.most));
        if self.level == [self.most; 2] && self.open.is_none() {
            self.slack = MARGIN;
        }
    }

    /// Whether a packet that surely, or maybe, comes is within the limit.
    fn take(&mut self, certain: bool, now: u64) -> Outcome {
        let [least, most] = self.level;
        let (surely, maybe) = (least >= self.cost, most.saturating_add(MARGIN) >= self.cost);
        match (self.open, surely, maybe, certain) {
            (_, _, false, _) => Outcome::NO,
            (None, true, _, true) => {
                self.level = [least - self.cost, most - self.cost];
                Outcome::YES
            }
            (Some(since), true, _, true) => {
                // By now it is taken, by this packet or one since then.
                let span = i64::try_from(now.saturating_sub(since)).unwrap_or(i64::MAX);
                self.level = [0, span.saturating_add(MARGIN).max(most - self.cost).min(self.most)];
                self.open = None;
                Outcome::MAYBE
            }
            (open, false, true, true) => {
                self.open = open.or(Some(now));
                Outcome::MAYBE
            }
            (_, _, true, false) => {
                self.level = [(least - self.cost).max(0), most];
                self.open = None;
                Outcome::MAYBE
            }
        }
    }
}

impl Memory for Bucket {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, _lists: &mut NamedLists) -> Outcome {
        let Some(now) = transit.time else { return Outcome::MAYBE };
        self.fill(now);
        self.take(transit.certain, now)
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
        // One a second, two at once.
        let mut bucket = Bucket::new(&Limit { period: 10_000, burst: 2, prints_burst: true });
        let mut at = |ms: u64, certain| {
            let now = (1000 + ms) * 1_000_000;
            bucket.fill(now);
            bucket.take(certain, now)
        };
        for (ms, expected) in [
            (0, Outcome::YES),
            (1, Outcome::YES),
            (2, Outcome::NO),
            (500, Outcome::NO),
            (990, Outcome::MAYBE),
            (1030, Outcome::MAYBE),
            (1100, Outcome::NO),
            (5000, Outcome::YES),
            (5001, Outcome::YES),
            (5002, Outcome::NO),
        ] {
            assert_eq!(at(ms, true), expected, "{ms} ms");
        }
        assert_eq!(at(9000, false), Outcome::MAYBE);
        assert_eq!(at(9000, true), Outcome::YES);
        assert_eq!(at(9000, true), Outcome::MAYBE, "the first may not have come");
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
