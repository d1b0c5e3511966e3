//! R as the first study has it (its section 4.5): a concurrent skip list of ranges, sorted by begin and then by end.
//! Members are the exceptions to a default.
//!
//! Two forms. [`Form::AsPublished`] adds a range without a look at those that are there; ranges then overlap, and a look
//! at the last one that begins before an address misses a longer one before it: wrong already by one thread.
//! [`Form::Disjoint`] takes out what overlaps first, and is right by one thread.
//!
//! Concurrency: no step waits for another thread; the study calls adding, removing and looking up linearizable. Neither
//! form is: a change that meets several ranges takes as many steps, between which a reader sees some done and some
//! not. The checker catches it. Under a lock, or copied and replaced as a whole, [`Form::Disjoint`] is as any other set.

use std::ops::Bound;

use crossbeam_skiplist::SkipSet;

use super::entry::Accepts;
use super::pause::between_steps;
use crate::{Address, Config, Engine};

/// How a range is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Beside what is there.
    AsPublished,
    /// In place of what is there.
    Disjoint,
}

/// Exceptions to a default, as ranges `begin..end` in a skip list.
#[derive(Debug)]
pub struct SkipRanges<A: Address> {
    default: bool,
    form: Form,
    ranges: SkipSet<(A, A)>,
}

impl<A: Address> SkipRanges<A> {
    /// All addresses, or none.
    #[must_use]
    pub fn of(form: Form, default: bool) -> Self {
        Self { default, form, ranges: SkipSet::new() }
    }

    /// Whether it has this address: by the last range that does not begin after it, or the first one that does not
    /// begin before it.
    #[must_use]
    pub fn has(&self, address: A) -> bool {
        let Some(after) = address.next() else { return self.default };
        let alone = (address, after);
        let before = self.ranges.upper_bound(Bound::Included(&alone));
        if before.is_some_and(|range| address < range.value().1) {
            return !self.default;
        }
        between_steps();
        let from = self.ranges.lower_bound(Bound::Included(&alone));
        self.default ^ from.is_some_and(|range| range.value().0 == address)
    }

    /// Puts addresses in or takes them out; `between` is called between steps.
    pub(crate) fn change(&self, range: (A, A), member: bool, between: &mut dyn FnMut()) {
        if range.1 <= range.0 {
            return;
        }
        let is_added = member != self.default;
        if !is_added || self.form == Form::Disjoint {
            self.cut_out(range, between);
        }
        if is_added {
            self.ranges.insert(range);
        }
    }

    /// Takes ranges out that overlap one, first what lies in the list; what is left of them is put in before.
    fn cut_out(&self, (begin, end): (A, A), between: &mut dyn FnMut()) {
        if self.ranges.remove(&(begin, end)).is_some() && self.form == Form::AsPublished {
            return;
        }
        while let Some((from, to)) = self.overlapping(begin, end) {
            for (from, to) in [(from, begin), (end, to)] {
                if from < to {
                    self.ranges.insert((from, to));
                    between();
                }
            }
            self.ranges.remove(&(from, to));
            between();
        }
    }

    fn overlapping(&self, begin: A, end: A) -> Option<(A, A)> {
        let ranges = self.ranges.iter().map(|range| *range.value());
        ranges.take_while(|range| range.0 < end).find(|range| begin < range.1)
    }
}

impl<A: Address> Accepts<A> for SkipRanges<A> {
    fn new(default: bool) -> Self {
        Self::of(Form::Disjoint, default)
    }

    fn contains(&self, address: A) -> bool {
        self.has(address)
    }

    fn set(&mut self, begin: A, end: A, member: bool) {
        self.change((begin, end), member, &mut || ());
    }

    /// By what a node holds: its range, a word, and two pointers on average.
    fn bytes(&self) -> usize {
        self.ranges.len() * (size_of::<(A, A)>() + 3 * size_of::<usize>())
    }
}

/// R alone, of addresses below a number: no lock, and no PNG. What the study claims of R is judged by its histories.
#[derive(Debug)]
pub struct Alone<A: Address> {
    accepts: Box<[SkipRanges<A>]>,
}

impl<A: Address> Alone<A> {
    /// Every address accepts all sources, or none.
    #[must_use]
    pub fn new(form: Form, default: bool, addresses: usize) -> Self {
        Self { accepts: (0..addresses).map(|_| SkipRanges::of(form, default)).collect() }
    }

    fn of(&self, address: A) -> Option<&SkipRanges<A>> {
        self.accepts.get(address.index()?)
    }
}

impl<A: Address> Engine<A> for Alone<A> {
    fn decide(&self, source: A, destination: A) -> bool {
        self.of(destination).is_some_and(|accepts| accepts.has(source))
    }

    fn update(&self, config: &Config<A>) {
        if let Some(accepts) = self.of(config.address) {
            accepts.change((config.begin, config.end), config.accept, &mut between_steps);
        }
    }

    fn bytes(&self) -> usize {
        self.accepts.iter().map(Accepts::bytes).sum()
    }
}

impl<A: Address> Clone for SkipRanges<A> {
    fn clone(&self) -> Self {
        let ranges = self.ranges.iter().map(|range| *range.value()).collect();
        Self { default: self.default, form: self.form, ranges }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use access::RangeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn disjoint_ones_are_as_the_sorted_set(
            default: bool,
            changes in prop::collection::vec((0u32..40, 0u32..40, any::<bool>()), 0..60),
        ) {
            let ranges = SkipRanges::of(Form::Disjoint, default);
            let mut set = RangeSet::new(default);
            for (begin, end, member) in changes {
                ranges.change((begin, end), member, &mut || ());
                set.set(begin, Some(end), member);
                for address in 0..40 {
                    prop_assert_eq!(ranges.has(address), set.contains(address));
                    prop_assert_eq!(ranges.clone().has(address), set.contains(address));
                }
            }
        }
    }

    /// The shorter range begins later, and is all that is looked at.
    #[test]
    fn the_published_form_is_wrong_by_one_thread() {
        let after = |form| {
            let ranges = SkipRanges::of(form, true);
            ranges.change((1u32, 10), false, &mut || ());
            ranges.change((3, 5), false, &mut || ());
            ranges.has(7)
        };
        assert!(after(Form::AsPublished), "7 was taken out, and is there");
        assert!(!after(Form::Disjoint));
    }

    /// One reader, between two steps of one change: the first of two ranges is gone, the second is not.
    #[test]
    fn removing_two_ranges_is_not_linearizable() {
        use crate::linear::{Act, Operation, State, check::is_linearizable};
        const OF: u32 = 3;
        let change = |begin, end, accept| {
            let png = false;
            crate::Config { address: OF, persona_non_grata: png, accept, begin, end }
        };
        for form in [Form::AsPublished, Form::Disjoint] {
            let ranges = SkipRanges::of(form, false);
            let mut history = Vec::new();
            for (begin, at) in [(0, 0), (2, 2)] {
                ranges.change((begin, begin + 1), true, &mut || ());
                let act = Act::Update(change(begin, begin + 1, true));
                history.push(Operation { thread: 0, act, began: at, ended: at + 1 });
            }
            let mut seen = Vec::new();
            ranges.change((0, 4), false, &mut || seen.push([ranges.has(0), ranges.has(2)]));
            assert_eq!(seen[0], [false, true], "{form:?}");
            for (source, permitted, at) in [(0, false, 5), (2, true, 7)] {
                let act = Act::Decide { source, destination: OF, permitted };
                history.push(Operation { thread: 1, act, began: at, ended: at + 1 });
            }
            let act = Act::Update(change(0, 4, false));
            history.push(Operation { thread: 0, act, began: 4, ended: 9 });
            assert_eq!(is_linearizable(&history, State::new(false)), Some(false), "{form:?}");
        }
    }

    /// A thread that stopped between two steps of a change holds nothing that others need: to put in, take out and look up
    /// end meanwhile, at each of its steps. Of a lock there would be no end.
    #[test]
    fn no_step_of_a_change_holds_others_up() {
        for form in [Form::AsPublished, Form::Disjoint] {
            let ranges = SkipRanges::<u32>::of(form, false);
            (0..4).for_each(|at| ranges.change((10 * at, 10 * at + 5), true, &mut || ()));
            let mut steps = 0;
            ranges.change((3, 33), false, &mut || {
                steps += 1;
                let others = || {
                    ranges.change((4 * steps, 4 * steps + 9), true, &mut || ());
                    ranges.change((4 * steps + 2, 4 * steps + 3), false, &mut || ());
                    (0..50).filter(|&address| ranges.has(address)).count()
                };
                // The others put in what the change takes out: it goes on for as long as they do.
                if steps < 20 {
                    std::thread::scope(|scope| scope.spawn(others).join()).unwrap();
                }
            });
            assert!(steps >= 4, "{form:?}");
        }
    }
}
