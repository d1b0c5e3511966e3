//! [`Test`]: what a comparison asks of a number.

use super::word::Word;
use rules::Outcome;

/// A test of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    /// The number is within these bounds.
    Within(u128, u128),
    /// The bits of the mask are these.
    Masked {
        /// The bits.
        value: u128,
        /// Which bits count.
        mask: u128,
    },
    /// Some bit of the mask is set.
    Any(u128),
}

impl Test {
    /// The number is this one.
    pub(crate) fn is(value: u128) -> Self {
        Self::Within(value, value)
    }

    /// What it says of a number.
    pub(crate) fn of(self, word: Word) -> Outcome {
        match self {
            Self::Within(low, high) => within(word, low, high),
            Self::Masked { value, mask } => {
                let differs = (word.value ^ value) & mask & !word.unknown != 0;
                if differs || value & !mask != 0 {
                    return Outcome::NO;
                }
                if word.unknown & mask == 0 { Outcome::YES } else { Outcome::MAYBE }
            }
            Self::Any(mask) => match (word.value & mask != 0, word.unknown & mask != 0) {
                (true, _) => Outcome::YES,
                (false, false) => Outcome::NO,
                (false, true) => Outcome::MAYBE,
            },
        }
    }
}

fn within(word: Word, low: u128, high: u128) -> Outcome {
    if low == high {
        return Test::Masked { value: low, mask: u128::MAX }.of(word);
    }
    let (least, most) = (word.least(), word.most());
    if most < low || least > high || high < low {
        return Outcome::NO;
    }
    if least >= low && most <= high { Outcome::YES } else { Outcome::MAYBE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the test says of a number that is known.
    fn plain(test: Test, number: u128) -> bool {
        match test {
            Test::Within(low, high) => (low..=high).contains(&number),
            Test::Masked { value, mask } => number & mask == value,
            Test::Any(mask) => number & mask != 0,
        }
    }

    fn tests() -> impl Strategy<Value = Test> {
        let byte = || 0..256_u128;
        prop_oneof![
            (byte(), byte()).prop_map(|(a, b)| Test::Within(a.min(b), a.max(b))),
            byte().prop_map(Test::is),
            (byte(), byte()).prop_map(|(value, mask)| Test::Masked { value, mask }),
            byte().prop_map(Test::Any),
        ]
    }

    proptest! {
        #[test]
        fn an_answer_holds_whatever_the_unknown_bits_are(
            test in tests(), value in 0..256_u128, unknown in 0..256_u128,
        ) {
            let word = Word { value: value & !unknown, unknown };
            let said = test.of(word);
            for number in (0..256).filter(|number| number & !unknown == word.value) {
                let answer = Outcome::from_bool(plain(test, number));
                prop_assert_eq!(said.or(answer), said);
            }
            if unknown == 0 {
                prop_assert!(said.is_known());
            }
        }
    }
}
