//! [`Loaded`]: what an expression comes to for one packet, as far as that is known.
//!
//! A register of the kernel holds one value, or the expression that was to fill it has ended the rule (`NFT_BREAK`). Here
//! it is every value that remains possible, bit by bit known or not, and whether the rule may have ended. Numbers have the
//! first byte on the wire as their most significant one, and host-order registers their own value.

use rules::Outcome;
use smallvec::{SmallVec, smallvec};

/// A number of up to 128 bits; unknown bits are 0 in `value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word {
    /// The known bits.
    pub value: u128,
    /// Which bits are not known.
    pub unknown: u128,
}

impl Word {
    /// A number that is known.
    pub(crate) fn known(value: u128) -> Self {
        Self { value, unknown: 0 }
    }

    /// A number of `bits` bits of which nothing is known.
    pub(crate) fn unknown(bits: u32) -> Self {
        Self { value: 0, unknown: ones(bits) }
    }

    /// The number, if all of it is known.
    pub(crate) fn as_known(self) -> Option<u128> {
        (self.unknown == 0).then_some(self.value)
    }

    /// The least number that it may be.
    pub(crate) fn least(self) -> u128 {
        self.value
    }

    /// The greatest number that it may be.
    pub(crate) fn most(self) -> u128 {
        self.value | self.unknown
    }

    /// A number between two others, ends included: their common leading bits are known.
    pub(crate) fn between(low: u128, high: u128) -> Self {
        let differing = low ^ high;
        let unknown = ones(128 - differing.leading_zeros());
        Self { value: low & !unknown, unknown }
    }
}

/// The lowest `bits` bits set.
pub(crate) fn ones(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

/// Every value that an expression may have for a packet, and whether it may end the rule instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// The values that remain possible; none if the rule ends here for certain.
    pub words: SmallVec<[Word; 1]>,
    /// The rule may end here.
    pub breaks: bool,
}

impl Loaded {
    /// A value that is there.
    pub(crate) fn word(word: Word) -> Self {
        Self { words: smallvec![word], breaks: false }
    }

    /// A number that is there and known.
    pub(crate) fn known(value: u128) -> Self {
        Self::word(Word::known(value))
    }

    /// A number of `bits` bits that is there and not known.
    pub(crate) fn unknown(bits: u32) -> Self {
        Self::word(Word::unknown(bits))
    }

    /// The end of the rule.
    pub(crate) fn nothing() -> Self {
        Self { words: SmallVec::new(), breaks: true }
    }

    /// Nothing is known: a number of `bits` bits, or the end of the rule.
    pub(crate) fn anything(bits: u32) -> Self {
        Self { breaks: true, ..Self::unknown(bits) }
    }

    /// The rule may end here as well.
    #[must_use]
    pub(crate) fn or_nothing(self) -> Self {
        Self { breaks: true, ..self }
    }

    /// Either of two.
    #[must_use]
    pub(crate) fn or(mut self, other: Self) -> Self {
        for word in other.words {
            if !self.words.contains(&word) {
                self.words.push(word);
            }
        }
        self.breaks |= other.breaks;
        self
    }

    /// The one value, if there is but one and all of it is known.
    pub(crate) fn only(&self) -> Option<u128> {
        match (&self.words[..], self.breaks) {
            ([word], false) => word.as_known(),
            _ => None,
        }
    }

    /// What a test says of it: no, where the rule ends.
    pub(crate) fn test(&self, holds: impl Fn(Word) -> Outcome) -> Outcome {
        if let ([word], false) = (&self.words[..], self.breaks) {
            return holds(*word);
        }
        let mut words = self.words.iter();
        let Some(first) = words.next() else { return Outcome::NO };
        let start = holds(*first);
        let start = if self.breaks { start.or(Outcome::NO) } else { start };
        words.fold(start, |all, word| all.or(holds(*word)))
    }
}

/// Bytes in network order as a number; of more than 16 the last ones.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_within_what_its_word_may_be() {
        let word = Word::between(0x1234, 0x1239);
        assert_eq!((word.least(), word.most()), (0x1230, 0x123f));
        assert_eq!(Word::between(7, 7), Word::known(7));
        assert_eq!(Word::between(0, u128::MAX), Word::unknown(128));
    }

    #[test]
    fn a_test_of_what_may_be_missing_may_fail() {
        let yes = |_| Outcome::YES;
        assert_eq!(Loaded::known(1).test(yes), Outcome::YES);
        assert_eq!(Loaded::nothing().test(yes), Outcome::NO);
        assert_eq!(Loaded::known(1).or_nothing().test(yes), Outcome::MAYBE);
        let either = Loaded::known(1).or(Loaded::known(2));
        assert_eq!(either.test(|word| Outcome::from_bool(word.value == 1)), Outcome::MAYBE);
        assert_eq!(either.test(|word| Outcome::from_bool(word.value < 3)), Outcome::YES);
    }
}
