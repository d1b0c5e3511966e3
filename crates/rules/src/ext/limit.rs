//! `-m limit`: a token bucket for the rule.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_limit.c`, which computes the bucket in 32
//! bits and refuses what overflows. What only some kernels refuse is taken.

use super::rate::{Rate, rate_text};
use super::{Args, IP, Match, MatchKind, Opt, Printer, Support, number};
use crate::save::What;

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
}

#[cfg(test)]
mod tests {
    use super::*;

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
