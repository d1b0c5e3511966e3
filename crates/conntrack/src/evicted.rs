//! [`Evicted`]: flows that are not in the table although the kernel may have them: it evicts others from a full one.
//!
//! Contract: bounded. It only ever says "may be": past [`MOST`] hashes, any tuple may be such a flow's, until the last
//! of them would have died.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Hashes that are remembered one by one.
const MOST: usize = 1 << 16;

/// When flows die that may be there, by the hashes of their tuples.
#[derive(Debug, Default)]
pub(crate) struct Evicted {
    until: HashMap<u64, u64>,
    /// Ends by time, earliest on top. An end that was put off is in here twice.
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    /// Until then any may be.
    any_until: u64,
}

impl Evicted {
    /// A flow of which these are the hashes may be there, until then at the latest.
    pub(crate) fn add(&mut self, hashes: [u64; 2], until: u64, now: u64) {
        self.expire(now);
        if self.ends.len() + hashes.len() > MOST {
            let latest = self.until.drain().map(|(_, until)| until).max();
            self.any_until = self.any_until.max(latest.unwrap_or(0));
            self.ends.clear();
        }
        for hash in hashes {
            let known = self.until.entry(hash).or_default();
            if until > *known {
                *known = until;
                self.ends.push(Reverse((until, hash)));
            }
        }
    }

    /// Whether there is nothing in it: then nothing is asked of it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.until.is_empty() && self.any_until == 0
    }

    /// Whether a flow with a tuple of this hash may be there.
    pub(crate) fn may_be(&self, hash: u64, now: u64) -> bool {
        self.any_until > now || self.until.get(&hash).is_some_and(|until| *until > now)
    }

    /// How many flows may be there at the most: each has one hash at least.
    pub(crate) fn most(&mut self, now: u64) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.expire(now);
        if self.any_until > now { usize::MAX } else { self.until.len() }
    }

    /// Forgets what has died.
    fn expire(&mut self, now: u64) {
        while let Some(Reverse((until, hash))) = self.ends.peek().copied()
            && until <= now
        {
            self.ends.pop();
            if self.until.get(&hash) == Some(&until) {
                self.until.remove(&hash);
            }
        }
        if self.any_until <= now {
            self.any_until = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_may_be_there_until_it_would_have_died() {
        let mut evicted = Evicted::default();
        assert!(evicted.is_empty());
        evicted.add([1, 2], 10, 0);
        assert!(evicted.may_be(1, 9) && evicted.may_be(2, 9) && !evicted.may_be(3, 9));
        assert!(!evicted.may_be(1, 10));
        evicted.add([1, 1], 5, 0);
        assert!(evicted.may_be(1, 9), "the later end counts");
        evicted.add([1, 1], 15, 0);
        assert_eq!((evicted.most(9), evicted.most(10), evicted.most(15)), (2, 1, 0));
        assert!(evicted.is_empty() && evicted.ends.is_empty());
    }

    #[test]
    fn past_the_bound_any_may_be_and_the_dead_make_room_first() {
        let mut evicted = Evicted::default();
        let many = |evicted: &mut Evicted, from: u64, until, now| {
            for hash in from..from + MOST as u64 / 2 {
                evicted.add([2 * hash, 2 * hash + 1], until, now);
            }
        };
        many(&mut evicted, 0, 10, 0);
        many(&mut evicted, 1 << 20, 20, 10);
        assert!(!evicted.may_be(7, 11), "those of the first are dead");
        evicted.add([5, 6], 30, 11);
        assert!(evicted.may_be(7, 11) && evicted.may_be(7, 19) && !evicted.may_be(7, 20));
        assert!(evicted.may_be(5, 29) && evicted.ends.len() <= MOST);
        assert_eq!((evicted.most(19), evicted.most(20)), (usize::MAX, 2));
    }
}
