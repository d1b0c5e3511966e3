//! A set of addresses as the second study has it: an unsorted list of disjoint ranges, searched from its
//! beginning. Members are the exceptions to a default.

use crate::Address;

/// Exceptions to a default, as ranges in no order.
#[derive(Debug, Clone)]
pub(crate) struct RangeList<A> {
    default: bool,
    ranges: Vec<(A, A)>,
}

impl<A: Address> RangeList<A> {
    pub(crate) fn new(default: bool) -> Self {
        Self { default, ranges: Vec::new() }
    }

    pub(crate) fn contains(&self, address: A) -> bool {
        self.default ^ self.ranges.iter().any(|&(begin, end)| begin <= address && address < end)
    }

    /// Exceptions take in all that they overlap or touch; members as by default are cut out of others.
    pub(crate) fn set(&mut self, begin: A, end: A, member: bool) {
        if end <= begin {
            return;
        }
        let (mut whole, joins) = ((begin, end), member != self.default);
        let mut at = 0;
        while at < self.ranges.len() {
            let (from, to) = self.ranges[at];
            let touches = if joins { from <= end && begin <= to } else { from < end && begin < to };
            if !touches {
                at += 1;
                continue;
            }
            self.ranges.swap_remove(at);
            if joins {
                whole = (whole.0.min(from), whole.1.max(to));
            } else {
                let left = [(from, begin), (end, to)];
                self.ranges.extend(left.iter().filter(|(from, to)| from < to));
            }
        }
        if joins {
            self.ranges.push(whole);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<(A, A)>()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use access::RangeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_the_sorted_set(
            default: bool,
            changes in prop::collection::vec((0u32..40, 0u32..40, any::<bool>()), 0..60),
        ) {
            let mut list = RangeList::new(default);
            let mut set = RangeSet::new(default);
            for (begin, end, member) in changes {
                list.set(begin, end, member);
                set.set(begin, Some(end), member);
                for address in 0..40 {
                    prop_assert_eq!(list.contains(address), set.contains(address));
                }
                prop_assert!(list.ranges.len() <= set.flips() / 2 + 1, "no more ranges than runs");
            }
        }
    }
}
