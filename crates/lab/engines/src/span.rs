//! Ranges of numbered addresses, and the words of bits that hold them.

use crate::address::Address;
use crate::config::Config;

/// The range of a change, cut at the end of the space.
#[inline]
#[must_use]
pub(crate) fn within<A: Address>(config: &Config<A>, addresses: usize) -> (usize, usize) {
    let number = |address: A| address.index().map_or(addresses, |index| index.min(addresses));
    (number(config.begin), number(config.end))
}

/// The words that a range of bits touches, each with its bits.
#[inline]
pub(crate) fn masks(begin: usize, end: usize) -> impl Iterator<Item = (usize, u64)> {
    let words = if begin < end { begin / 64..end.div_ceil(64) } else { 0..0 };
    words.map(move |word| {
        let from = begin.saturating_sub(word * 64).min(63);
        let to = (end - word * 64).min(64);
        (word, u64::MAX << from & u64::MAX >> (64 - to))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_exactly_their_range() {
        for begin in 0..200 {
            for end in 0..200 {
                let mut bits = [0u64; 4];
                masks(begin, end).for_each(|(word, mask)| bits[word] |= mask);
                let has = |at: usize| bits[at / 64] >> (at % 64) & 1 == 1;
                assert!((0..256).all(|at| has(at) == (begin <= at && at < end)), "{begin} {end}");
            }
        }
    }
}
