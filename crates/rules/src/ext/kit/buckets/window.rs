//! [`Windows`]: `--hashlimit-rate-match`, which counts what comes in an interval, and lets nothing pass in the next one if
//! that was more than the rate.
//!
//! An interval begins with the first packet after the last one is over. Whether it is over at a packet may depend on the
//! clock's tick: then both are followed, up to a bound.

use super::table::{Speed, TICK, Visit};
use crate::outcome::Outcome;
use conntrack::SECOND;

/// Histories that are followed at most.
const MOST: usize = 8;
/// In microseconds, of a second.
const SCALE: u64 = 1_000_000;
/// Longer intervals overflow, counted in ticks.
const LONGEST: u32 = 4_000_000;

#[derive(Debug)]
pub(super) struct Windows {
    /// What may come in an interval, and what may come before it counts as too much.
    rate: u64,
    burst: u64,
    counts_bytes: bool,
    /// Nanoseconds.
    interval: u64,
    /// Every history that is possible; none if they are too many.
    histories: Vec<Window>,
    last: u64,
    is_unclear: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    since: u64,
    count: u64,
    /// The interval before was over the rate.
    is_shut: bool,
}

impl Windows {
    pub(super) fn new(speed: Speed, interval: u32, now: u64) -> Self {
        let (rate, burst, counts_bytes) = match speed {
            Speed::Packets { period, burst } => {
                let rate = SCALE / period.max(1);
                (rate, rate.saturating_add(burst), false)
            }
            Speed::Bytes { cost, burst } => {
                let units = u32::MAX.checked_div(cost).unwrap_or(u32::MAX);
                let rate = u64::from(units.saturating_sub(1)) << 4;
                (rate, rate.saturating_mul(u64::from(burst.max(1))), true)
            }
        };
        Self {
            rate,
            burst,
            counts_bytes,
            interval: u64::from(interval) * SECOND,
            histories: vec![Window::new(now)],
            last: now,
            is_unclear: interval > LONGEST,
        }
    }

    /// Nothing is known of it at that time.
    pub(super) fn blur(&mut self, at: u64) {
        self.histories.clear();
        self.last = self.last.max(at);
    }

    /// Adds the possibility of a window that begins now.
    pub(super) fn or_new(&mut self, now: u64) {
        if !self.histories.is_empty() {
            self.histories.push(Window::new(now));
        }
    }

    /// Whether a packet that surely, or maybe, comes is within the limit.
    pub(super) fn take(&mut self, visit: &Visit) -> Outcome {
        let (now, before) = (visit.now, self.last);
        self.last = self.last.max(now);
        let is_over = now.saturating_sub(before) >= self.interval + TICK;
        if self.histories.is_empty() && is_over && visit.certain {
            let new = |is_shut| Window { is_shut, ..Window::new(now) };
            self.histories = [false, true].map(new).into();
        }
        if self.is_unclear || self.histories.is_empty() {
            return Outcome::MAYBE;
        }
        let mut after: Vec<Window> = Vec::new();
        let mut outcome: Option<Outcome> = None;
        for window in self.histories.iter().flat_map(|window| self.passed(window, now)).flatten() {
            let count = window.count.saturating_add(if self.counts_bytes { visit.len } else { 1 });
            let answer = Outcome::from_bool(!window.is_shut && count <= self.burst);
            outcome = Some(outcome.map_or(answer, |said| said.or(answer)));
            after.push(Window { count, ..window });
        }
        if !visit.certain {
            after.append(&mut self.histories);
        }
        after.sort_unstable_by_key(|window| (window.since, window.count, window.is_shut));
        after.dedup();
        if after.len() > MOST {
            after.clear();
        }
        self.histories = after;
        outcome.unwrap_or(Outcome::MAYBE)
    }

    /// Returns what a history may be when a packet comes: unchanged, or a new interval after one over or within the
    /// rate.
    fn passed(&self, window: &Window, now: u64) -> [Option<Window>; 3] {
        let passed = now.saturating_sub(window.since);
        let [least, most] = [passed.saturating_sub(TICK), passed + TICK];
        let came = u128::from(window.count) * u128::from(self.interval);
        let allowed = |passed: u64| u128::from(passed) * u128::from(self.rate);
        let begins = most >= self.interval;
        let new = |is_shut| Window { is_shut, ..Window::new(now) };
        [
            (least < self.interval).then_some(*window),
            (begins && came > allowed(least)).then(|| new(true)),
            (begins && came <= allowed(most)).then(|| new(false)),
        ]
    }
}

impl Window {
    fn new(since: u64) -> Self {
        Self { since, count: 0, is_shut: false }
    }
}
