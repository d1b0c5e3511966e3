//! [`Capitals`]: a pattern that is found whatever the case of its letters.
//!
//! Contract: a search reads every byte once, whatever the bytes are (Knuth, Morris and Pratt).

use super::pattern::fold;

/// The pattern in capitals.
#[derive(Debug)]
pub(super) struct Capitals {
    pattern: Box<[u8]>,
    /// For each length of the pattern, from 1: how long the longest shorter beginning is that ends it, too.
    back: Box<[u8]>,
}

impl Capitals {
    /// A pattern of at least one byte and at most 255.
    pub(super) fn of(pattern: &[u8]) -> Self {
        let pattern: Box<[u8]> = pattern.iter().map(|byte| fold(*byte)).collect();
        let mut back = vec![0; pattern.len()];
        let mut held = 0;
        for at in 1..pattern.len() {
            held = step(&pattern, &back, held, pattern[at]);
            back[at] = held as u8;
        }
        Self { pattern, back: back.into() }
    }

    /// Whether this capital is in it.
    pub(super) fn has(&self, capital: u8) -> bool {
        self.pattern.contains(&capital)
    }

    /// Where it first begins in `bytes`.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<usize> {
        self.find_in(bytes.iter().copied())
    }

    fn find_in(&self, bytes: impl Iterator<Item = u8>) -> Option<usize> {
        let mut held = 0;
        for (at, byte) in bytes.enumerate() {
            held = step(&self.pattern, &self.back, held, fold(byte));
            if held == self.pattern.len() {
                return Some(at + 1 - held);
            }
        }
        None
    }
}

/// How much of the pattern the bytes so far end with, once `next` comes after `held` of it, which is not all of it.
#[inline]
fn step(pattern: &[u8], back: &[u8], mut held: usize, next: u8) -> usize {
    while held > 0 && pattern[held] != next {
        held = usize::from(back[held - 1]);
    }
    held + usize::from(pattern[held] == next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_byte_is_read_once_however_nearly_the_pattern_fits() {
        let pattern = [b"a".repeat(127), b"b".to_vec()].concat();
        let capitals = Capitals::of(&pattern);
        let mut read = 0;
        let bytes = std::iter::repeat_n(b'A', 60_000).inspect(|_| read += 1);
        assert_eq!(capitals.find_in(bytes), None);
        assert_eq!(read, 60_000);
        // A step goes back only as far as steps before went on.
        let (mut held, mut most) = (0, 0);
        for _ in 0..60_000 {
            let before = held;
            held = step(&capitals.pattern, &capitals.back, held, b'A');
            most = most.max(held);
            assert!(held <= before + 1);
        }
        assert_eq!(most, 127);
    }

    proptest! {
        /// Small alphabets, so that patterns nearly fit often.
        #[test]
        fn finds_what_comparing_everywhere_finds(
            bytes in proptest::collection::vec(prop::sample::select(b"aAbB".to_vec()), 0..60),
            pattern in proptest::collection::vec(prop::sample::select(b"aAbB".to_vec()), 1..8),
        ) {
            let there = bytes.windows(pattern.len()).position(|w| w.eq_ignore_ascii_case(&pattern));
            prop_assert_eq!(Capitals::of(&pattern).find(&bytes), there);
        }
    }
}
