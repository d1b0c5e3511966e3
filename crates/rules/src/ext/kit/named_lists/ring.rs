//! [`Ring`]: the times at which one address was seen, the latest of them, and which of them are certain.
//!
//! The kernel notes ticks of its clock, how long they are is not known: within [`TICKS`] of a limit an age is open.

use conntrack::SECOND;

/// Two ticks of the slowest clock, in nanoseconds: the first and the last of a span may be cut.
const TICKS: u64 = 20_000_000;

#[derive(Debug, Clone, Copy)]
struct Stamp {
    time: u64,
    sure: bool,
}

/// How old something is against a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    Young,
    Old,
    Unknown,
}

/// The last times of an address, the oldest overwritten first.
#[derive(Debug)]
pub(super) struct Ring {
    stamps: Vec<Stamp>,
    /// Where the next one goes.
    next: usize,
    /// Which ones were overwritten is not known.
    is_vague: bool,
}

impl Ring {
    pub(super) fn new(time: u64, sure: bool) -> Self {
        Self { stamps: vec![Stamp { time, sure }], next: 1, is_vague: false }
    }

    /// Notes a time, in place of the oldest of `room`.
    pub(super) fn push(&mut self, time: u64, sure: bool, room: usize) {
        let stamp = Stamp { time, sure };
        self.next %= room.max(1);
        match self.stamps.get_mut(self.next) {
            Some(place) => {
                *place = stamp;
                self.is_vague |= self.stamps.iter().any(|stamp| !stamp.sure);
            }
            None => self.stamps.push(stamp),
        }
        self.next += 1;
    }

    /// Makes every time uncertain.
    pub(super) fn loosen(&mut self) {
        self.stamps.iter_mut().for_each(|stamp| stamp.sure = false);
    }

    /// How many are no older than that: at least, and at most.
    pub(super) fn within(&self, seconds: Option<u32>, now: u64) -> [usize; 2] {
        if self.is_vague {
            return [0, usize::MAX];
        }
        let age =
            |stamp: &Stamp| seconds.map_or(Age::Young, |seconds| age(seconds, stamp.time, now));
        let least = self.stamps.iter().filter(|stamp| stamp.sure && age(stamp) == Age::Young);
        let most = self.stamps.iter().filter(|stamp| age(stamp) != Age::Old);
        [least.count(), most.count()]
    }

    /// How old the last one is.
    pub(super) fn age(&self, seconds: u32, now: u64) -> Age {
        match self.next.checked_sub(1).and_then(|last| self.stamps.get(last)) {
            Some(last) if last.sure && !self.is_vague => age(seconds, last.time, now),
            _ => Age::Unknown,
        }
    }
}

fn age(seconds: u32, time: u64, now: u64) -> Age {
    let (passed, limit) = (now.saturating_sub(time), u64::from(seconds) * SECOND);
    match () {
        () if passed <= limit => Age::Young,
        () if passed >= limit + TICKS => Age::Old,
        () => Age::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let mut ring = Ring::new(0, true);
        (1..6).for_each(|second| ring.push(second * SECOND, true, 4));
        assert_eq!(ring.within(None, 5 * SECOND), [4, 4]);
        assert_eq!(ring.within(Some(2), 5 * SECOND), [3, 3]);
        assert_eq!(ring.age(1, 5 * SECOND), Age::Young);
        assert_eq!(ring.age(1, 7 * SECOND), Age::Old);
    }

    #[test]
    fn near_its_limit_an_age_is_open() {
        let ring = Ring::new(0, true);
        assert_eq!(ring.within(Some(1), SECOND), [1, 1]);
        assert_eq!(ring.within(Some(1), SECOND + TICKS / 2), [0, 1]);
        assert_eq!(ring.within(Some(1), SECOND + TICKS), [0, 0]);
    }

    #[test]
    fn what_may_not_be_there_counts_or_not_and_is_indeterminate_when_it_may_have_been_overwritten()
    {
        let mut ring = Ring::new(0, true);
        ring.push(0, false, 2);
        assert_eq!(ring.within(None, 0), [1, 2]);
        ring.push(0, true, 2);
        assert_eq!(ring.within(None, 0), [0, usize::MAX]);
    }
}
