//! `-m limit`: a token bucket for the rule.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_limit.c`, which computes the bucket in 32
//! bits and refuses what overflows.

use super::rate::{Rate, rate_text};
use super::{Args, IP, Match, MatchKind, Opt, Printer, Support, number};
use crate::save::What;

const SCALE: u64 = 10_000;
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
    if period.wrapping_mul(burst) < period {
        return Err(args.expected("a smaller burst, or a faster rate,"));
    }
    Ok(Box::new(Limit { period, burst }))
}

impl Match for Limit {
    fn print(&self, to: &mut Printer) {
        to.option(false, "limit", rate_text(self.period.into(), SCALE).0);
        if self.burst != DEFAULT_BURST {
            to.option(false, "limit-burst", self.burst);
        }
    }
}
