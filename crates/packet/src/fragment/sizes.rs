//! [`Sizes`]: where a payload is cut.

use std::ops::Range;

/// Length of the least fragment but the last, and the unit in which offsets count.
const UNIT: usize = 8;

/// Where each fragment's payload begins and ends.
pub(super) struct Sizes<'a> {
    at: usize,
    len: usize,
    /// Bytes that a fragment has room for.
    space: usize,
    /// Where it is cut as it was before: the first piece, until it is taken, and those after it.
    pub(super) kept: Option<(Option<usize>, &'a [u32])>,
}

impl<'a> Sizes<'a> {
    /// For `len` bytes of payload; `None` without room for any.
    pub(super) fn new(len: usize, space: usize, pieces: &'a [u32]) -> Option<Self> {
        let later = pieces.get(1..).filter(|later| !later.is_empty());
        let kept = later.and_then(|later| Some((Some(kept_first(len, space, later)?), later)));
        (space >= UNIT || kept.is_some()).then_some(Self { at: 0, len, space, kept })
    }
}

/// Bytes of the first piece, if a payload can be cut where it was before. It is what the later ones leave: nothing,
/// where it held no more than headers that stand in every fragment.
fn kept_first(len: usize, space: usize, later: &[u32]) -> Option<usize> {
    let first = len.checked_sub(later.iter().map(|piece| *piece as usize).sum::<usize>())?;
    let before_last = later.split_last().map_or(&[][..], |(_, before)| before);
    let is_whole = |piece: &u32| (*piece as usize).is_multiple_of(UNIT);
    let fits = first <= space
        && first.is_multiple_of(UNIT)
        && later.iter().all(|piece| *piece as usize <= space)
        && before_last.iter().all(is_whole);
    fits.then_some(first)
}

impl Iterator for Sizes<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let left = self.len - self.at;
        let len = match &mut self.kept {
            _ if left == 0 => return None,
            Some((first, later)) => match first.take() {
                Some(first) => first,
                None => *later.split_off_first()? as usize,
            },
            None if left <= self.space => left,
            None => self.space / UNIT * UNIT,
        };
        let start = self.at;
        self.at += len;
        Some(start..self.at)
    }
}
