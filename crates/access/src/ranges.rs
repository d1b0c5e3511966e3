//! A set of addresses as the sorted places where membership changes.
//!
//! Source of the rules: the exercise's handout, whose examples are tests here. A later range overrides what
//! was there before.

use crate::address::Address;

/// A set of addresses. Two sets with the same members and default are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeSet<A> {
    /// Whether it has the addresses below the first flip.
    default: bool,
    flips: Vec<A>,
}

impl<A: Address> RangeSet<A> {
    /// All addresses, or none.
    #[must_use]
    pub fn new(default: bool) -> Self {
        Self { default, flips: Vec::new() }
    }

    /// Whether it has this address.
    #[must_use]
    #[inline]
    pub fn contains(&self, address: A) -> bool {
        self.default ^ odd(self.flips.partition_point(|&flip| flip <= address))
    }

    /// Puts the addresses from `begin` to before `end` in, or takes them out; `None` is after the highest.
    pub fn set(&mut self, begin: A, end: Option<A>, member: bool) {
        if end.is_some_and(|end| end <= begin) {
            return;
        }
        let first = self.flips.partition_point(|&flip| flip < begin);
        let last =
            end.map_or(self.flips.len(), |end| self.flips.partition_point(|&flip| flip <= end));
        let before = self.default ^ odd(first);
        let after = self.default ^ odd(last);
        let begins = (before != member).then_some(begin);
        let ends = end.filter(|_| after != member);
        self.flips.splice(first..last, begins.into_iter().chain(ends));
    }

    /// Returns the set as [`Self::set`] would leave it, in memory of its size.
    #[must_use]
    pub fn after(&self, begin: A, end: Option<A>, member: bool) -> Self {
        let mut flips = Vec::with_capacity(self.flips.len() + 2);
        flips.extend_from_slice(&self.flips);
        let mut set = Self { default: self.default, flips };
        set.set(begin, end, member);
        set
    }

    /// Makes all changes as [`Self::set`] would one by one, in the time that sorting them takes and a copy of the set.
    pub fn set_all(&mut self, changes: &[(A, Option<A>, bool)]) {
        let mut starts: Vec<usize> = (0..changes.len()).collect();
        starts.sort_by_key(|&at| changes[at].0);
        let ends = changes.iter().filter_map(|change| change.1);
        let mut places: Vec<A> = changes.iter().map(|change| change.0).chain(ends).collect();
        places.sort_unstable();
        places.dedup();
        let mut starts = starts.into_iter().peekable();
        // Of the changes that hold at a place, the last one counts; ended changes leave from the top.
        let mut holding = std::collections::BinaryHeap::new();
        let mut new = Vec::with_capacity(self.flips.len() + places.len());
        let mut old = &self.flips[..];
        for place in places {
            // Flips before the place stay where no change holds.
            let (before, rest) = old.split_at(old.partition_point(|&flip| flip < place));
            if holding.is_empty() {
                new.extend_from_slice(before);
            }
            old = &rest[usize::from(rest.first() == Some(&place))..];
            while let Some(at) = starts.next_if(|&at| changes[at].0 <= place) {
                holding.push(at);
            }
            let ended = |at: usize| changes[at].1.is_some_and(|end| end <= place);
            while holding.peek().is_some_and(|&at| ended(at)) {
                holding.pop();
            }
            let unchanged = || self.default ^ odd(self.flips.len() - old.len());
            let member = holding.peek().map_or_else(unchanged, |&at| changes[at].2);
            if member != self.default ^ odd(new.len()) {
                new.push(place);
            }
        }
        if holding.is_empty() {
            new.extend_from_slice(old);
        }
        self.flips = new;
    }

    /// Whether it has all addresses from `begin` to before `end`, or none of them.
    #[must_use]
    pub fn is_all(&self, begin: A, end: A, member: bool) -> bool {
        let first = self.flips.partition_point(|&flip| flip <= begin);
        let changes = self.flips.get(first).is_some_and(|&flip| flip < end);
        end <= begin || (self.default ^ odd(first)) == member && !changes
    }

    /// The last place where membership changes.
    #[must_use]
    pub fn last_flip(&self) -> Option<A> {
        self.flips.last().copied()
    }

    /// How many places membership changes at.
    #[must_use]
    pub fn flips(&self) -> usize {
        self.flips.len()
    }

    /// The addresses that it does not have.
    #[must_use]
    pub fn inverse(&self) -> Self {
        Self { default: !self.default, flips: self.flips.clone() }
    }

    /// Returns the first and last address of each run of members, in order; `None`: up to the highest.
    pub fn runs(&self) -> impl Iterator<Item = (A, Option<A>)> + '_ {
        let starts = self.default.then_some(A::LOWEST).into_iter();
        let mut flips = starts.chain(self.flips.iter().copied());
        std::iter::from_fn(move || Some((flips.next()?, flips.next())))
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.flips.capacity() * size_of::<A>()
    }
}

#[inline]
fn odd(count: usize) -> bool {
    count & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn members(set: &RangeSet<u32>) -> Vec<u32> {
        (0..20).filter(|&address| set.contains(address)).collect()
    }

    #[test]
    fn examples_of_the_handout() {
        let mut set = RangeSet::<u32>::new(false);
        set.set(2, Some(4), true);
        set.set(5, Some(7), true);
        set.set(4, Some(6), false);
        assert_eq!(members(&set), [2, 3, 6]);
        let mut set = RangeSet::<u32>::new(false);
        for (begin, end) in [(1, 2), (4, 5), (7, 9), (2, 5)] {
            set.set(begin, Some(end), true);
        }
        assert_eq!(members(&set), [1, 2, 3, 4, 7, 8]);
        assert_eq!(set.runs().collect::<Vec<_>>(), [(1, Some(5)), (7, Some(9))]);
    }

    #[test]
    fn the_highest_address_can_be_a_member() {
        let mut set = RangeSet::<u32>::new(false);
        set.set(u32::MAX, None, true);
        assert!(set.contains(u32::MAX) && !set.contains(u32::MAX - 1));
        set.set(0, None, true);
        assert_eq!(set, RangeSet { default: false, flips: vec![0] });
        set.set(5, Some(5), false);
        assert!(set.contains(5));
    }

    proptest! {
        #[test]
        fn as_a_set_of_single_addresses(
            default: bool,
            changes in prop::collection::vec((0u32..40, 0u32..40, any::<bool>()), 0..60),
        ) {
            let mut set = RangeSet::new(default);
            let mut plain = [default; 40];
            for (begin, end, member) in changes {
                let after = set.after(begin, Some(end), member);
                set.set(begin, Some(end), member);
                prop_assert_eq!(&after, &set);
                for address in begin..end {
                    plain[address as usize] = member;
                }
            }
            for (address, &member) in plain.iter().enumerate() {
                prop_assert_eq!(set.contains(address as u32), member);
            }
            prop_assert!(set.flips.is_sorted_by(|a, b| a < b));
            for (begin, end) in (0..40).flat_map(|begin| (0..40).map(move |end| (begin, end))) {
                let part = plain.iter().take(end as usize).skip(begin as usize);
                let is_all = [true, false].map(|member| part.clone().all(|&is| is == member));
                prop_assert_eq!([true, false].map(|member| set.is_all(begin, end, member)), is_all);
            }
            let above = (set.last_flip().unwrap_or(0)..40).all(|at| plain[at as usize] == plain[39]);
            prop_assert!(above, "no flip after the last");
        }

        #[test]
        fn all_at_once_as_one_after_the_other(
            default: bool,
            before in prop::collection::vec((0u32..40, 0u32..40, any::<bool>()), 0..20),
            changes in prop::collection::vec((0u32..40, prop::option::of(0u32..40), any::<bool>()), 0..60),
        ) {
            let mut one = RangeSet::new(default);
            before.iter().for_each(|&(begin, end, member)| one.set(begin, Some(end), member));
            let mut all = one.clone();
            changes.iter().for_each(|&(begin, end, member)| one.set(begin, end, member));
            all.set_all(&changes);
            prop_assert_eq!(one, all);
        }
    }
}
