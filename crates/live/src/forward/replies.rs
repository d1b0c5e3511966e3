//! Limits replies to rejected packets: [`PER_SECOND`], and as many at once.
//!
//! A flood of packets to a closed port must not become a flood of replies. One bucket for each direction of a wire,
//! of which each worker has its part.

use conntrack::SECOND;

/// Replies in a second, and at once.
pub const PER_SECOND: u64 = 1000;

const COST: u64 = SECOND / PER_SECOND;

/// A bucket of time, of which each reply takes its part.
#[derive(Debug)]
pub(crate) struct Rate {
    /// Nanoseconds saved, at most a second.
    saved: u64,
    /// The time of the last reply or refusal, in nanoseconds since the Unix epoch.
    at: u64,
    /// The nanoseconds that a reply takes.
    cost: u64,
}

impl Rate {
    /// One worker's share of the bucket, of `workers` equal shares.
    pub(crate) fn of(workers: usize) -> Self {
        Self { saved: SECOND, at: 0, cost: COST.saturating_mul(workers as u64) }
    }

    /// Whether one more reply may be sent now.
    pub(crate) fn allows(&mut self, now: u64) -> bool {
        self.saved = self.saved.saturating_add(now.saturating_sub(self.at)).min(SECOND);
        self.at = self.at.max(now);
        match self.saved.checked_sub(self.cost) {
            Some(left) => {
                self.saved = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_for_each_part_of_a_second() {
        let mut rate = Rate::of(1);
        let start = 5 * SECOND;
        let at_once = (0..2 * PER_SECOND).filter(|_| rate.allows(start)).count() as u64;
        assert_eq!(at_once, PER_SECOND);
        assert!(!rate.allows(start + COST - 1));
        assert!(rate.allows(start + COST));
        assert!(!rate.allows(start));
        let later = (0..2 * PER_SECOND).filter(|_| rate.allows(start + 9 * SECOND)).count() as u64;
        assert_eq!(later, PER_SECOND);
        let mut part = Rate::of(4);
        assert_eq!((0..PER_SECOND).filter(|_| part.allows(start)).count() as u64, PER_SECOND / 4);
    }
}
