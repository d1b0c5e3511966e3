//! `limit`: a bucket of tokens, nanoseconds of its own, full at the start.
//!
//! A packet takes what it costs, or nothing where there is less. The kernel reads its clock when the rule is reached, a
//! little later than the capture does: where the bucket's level is that near to what a packet costs, the answer is open.
//! Source: kernel `net/netfilter/nft_limit.c`.

use crate::stmt;
use rules::ext::{Match, Memory, NamedLists, Printer};
use rules::{Outcome, Transit};

/// How much later than the capture the kernel may read its clock, in nanoseconds.
const MARGIN: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
/// Packets at once, where the rule does not say.
const BURST: u64 = 5;

/// A limit as a rule holds it.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    rate: u64,
    /// Nanoseconds in which the rate may pass.
    span: u64,
    burst: u64,
    bytes: bool,
    over: bool,
    text: Box<str>,
}

impl Limit {
    /// Makes it of the statement.
    pub(crate) fn new(limit: &stmt::Limit, text: &str) -> Option<Self> {
        let seconds = match limit.per {
            "second" => 1,
            "minute" => 60,
            "hour" => 3600,
            "day" => 86_400,
            "week" => 604_800,
            _ => return None,
        };
        let stmt::Limit { rate, burst, bytes, over, .. } = *limit;
        let burst = if burst == 0 && !bytes { BURST } else { burst };
        let text = text.into();
        (rate > 0).then_some(Self { rate, span: seconds * SECOND, burst, bytes, over, text })
    }

    /// Makes a bucket that is full.
    pub(crate) fn bucket(&self) -> Bucket {
        Bucket::new(self.clone())
    }

    /// What the bucket holds when it is full.
    fn most(&self) -> u64 {
        let (rate, span) = (u128::from(self.rate), u128::from(self.span));
        let most = match self.bytes {
            true => span * (rate + u128::from(self.burst)) / rate,
            false => (span / rate) * u128::from(self.burst),
        };
        u64::try_from(most).unwrap_or(u64::MAX)
    }

    /// What a packet of a length costs.
    fn cost(&self, len: usize) -> u64 {
        let units = if self.bytes { len as u128 } else { 1 };
        u64::try_from(u128::from(self.span) * units / u128::from(self.rate)).unwrap_or(u64::MAX)
    }
}

impl Match for Limit {
    fn print(&self, to: &mut Printer) {
        to.word(&self.text);
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        Some(Box::new(self.bucket()))
    }
}

/// A bucket: what it holds at least and at most.
#[derive(Debug)]
pub(crate) struct Bucket {
    limit: Limit,
    least: u64,
    most: u64,
    /// What a late clock may still hold back from the least.
    slack: u64,
    last: Option<u64>,
}

impl Bucket {
    fn new(limit: Limit) -> Self {
        let full = limit.most();
        Self { limit, least: full, most: full, slack: MARGIN, last: None }
    }

    fn fill(&mut self, now: u64) {
        let passed = now.saturating_sub(self.last.unwrap_or(now));
        self.last = Some(now.max(self.last.unwrap_or(0)));
        let full = self.limit.most();
        let held = self.slack.min(passed);
        self.slack -= held;
        self.least = self.least.saturating_add(passed - held).min(full);
        self.most = self.most.saturating_add(passed).min(full);
        if self.least == full {
            self.slack = MARGIN;
        }
    }

    /// There may be nothing left, from a reading of the clock on that may be as late as any.
    fn empty(&mut self) {
        (self.least, self.slack) = (0, MARGIN);
    }

    /// Whether there is enough for a packet that surely, or maybe, comes.
    fn take(&mut self, cost: u64, certain: bool) -> Outcome {
        let most = self.most.saturating_add(MARGIN).min(self.limit.most());
        let (surely, maybe) = (self.least >= cost, most >= cost);
        match (surely, maybe) {
            (_, false) => return Outcome::NO,
            (true, _) if certain => {
                self.least -= cost;
                self.most = self.most.saturating_sub(cost);
                return Outcome::YES;
            }
            (true, _) => self.least -= cost,
            (false, true) => {
                self.empty();
                if certain {
                    self.most = self.most.saturating_sub(cost).max(cost.saturating_sub(1));
                }
            }
        }
        if surely { Outcome::YES } else { Outcome::MAYBE }
    }
}

impl Bucket {
    /// Whether a packet is within the limit, where nobody else asks, or others do of which it is not known.
    pub(crate) fn ask(&mut self, transit: &Transit<'_, '_>, others_ask: bool) -> Outcome {
        let Some(now) = transit.time else { return Outcome::MAYBE };
        self.fill(now);
        if others_ask {
            self.empty();
        }
        if self.limit.bytes && transit.packet.is_open() {
            self.empty();
            return Outcome::MAYBE;
        }
        let cost = self.limit.cost(transit.packet.len());
        self.take(cost, transit.certain).invert(self.limit.over)
    }
}

impl Memory for Bucket {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, _lists: &mut NamedLists) -> Outcome {
        self.ask(transit, false)
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn limit(rate: u64, burst: u64, bytes: bool) -> Limit {
        let of = stmt::Limit { over: false, rate, per: "second", burst, bytes };
        Limit::new(&of, "").unwrap()
    }

    #[test]
    fn a_bucket_empties_and_fills_and_is_open_near_its_edge() {
        let limit = limit(10, 2, false);
        let mut bucket = Bucket::new(limit.clone());
        let mut at = |ms: u64| {
            bucket.fill((1000 + ms) * 1_000_000);
            bucket.take(limit.cost(100), true)
        };
        for (ms, expected) in [
            (0, Outcome::YES),
            (0, Outcome::YES),
            (1, Outcome::NO),
            (50, Outcome::NO),
            (100, Outcome::MAYBE),
            (300, Outcome::YES),
            (1000, Outcome::YES),
            (1000, Outcome::YES),
            (1010, Outcome::NO),
        ] {
            assert_eq!(at(ms), expected, "{ms} ms");
        }
    }

    #[test]
    fn bytes_cost_what_they_are_and_the_burst_comes_on_top() {
        let limit = limit(1000, 500, true);
        let mut bucket = Bucket::new(limit.clone());
        bucket.fill(SECOND);
        assert_eq!(bucket.take(limit.cost(1500), true), Outcome::YES);
        assert_eq!(bucket.take(limit.cost(10), true), Outcome::NO);
    }

    /// The kernel's bucket: what a packet finds at a time, and what is left.
    fn kernel(
        limit: &Limit,
        (tokens, last): (u64, u64),
        now: u64,
        len: usize,
    ) -> (bool, (u64, u64)) {
        let tokens = (tokens + now - last).min(limit.most());
        match tokens.checked_sub(limit.cost(len)) {
            Some(left) => (true, (left, now)),
            None => (false, (tokens, now)),
        }
    }

    proptest! {
        #[test]
        fn every_history_is_within_the_bucket(
            rate in 1..50_u64, burst in 1..4_u64, bytes in any::<bool>(),
            packets in vec((0..400_u64, any::<bool>(), 0..MARGIN, 20..200_usize), 1..10),
        ) {
            let rate = if bytes { rate * 40 } else { rate };
            let limit = limit(rate, burst, bytes);
            let mut bucket = Bucket::new(limit.clone());
            let mut now = SECOND;
            let mut histories = vec![(limit.most(), now)];
            for (gap, certain, late, len) in packets {
                now += gap * 1_000_000;
                bucket.fill(now);
                let said = bucket.take(limit.cost(len), certain);
                let asked: Vec<_> = histories
                    .iter()
                    .map(|level| kernel(&limit, *level, (now + late).max(level.1), len))
                    .collect();
                for (answer, _) in &asked {
                    prop_assert_eq!(said.or(Outcome::from_bool(*answer)), said);
                }
                let after = asked.into_iter().map(|(_, level)| level);
                histories = if certain { after.collect() } else { after.chain(histories).collect() };
                histories.truncate(64);
            }
        }
    }
}
