//! Operations on numbers: `&`, `|`, `^`, `<<`, `>>`.

use super::Load;
use crate::expr::Operator;
use crate::lower::word::{Loaded, Word, ones};
use rules::Transit;

/// An operation on what two expressions come to.
#[derive(Debug)]
pub(crate) struct Operation {
    pub operator: Operator,
    pub left: Box<dyn Load>,
    pub right: Box<dyn Load>,
    /// Width of the result in bits.
    pub bits: u32,
}

/// What an operation makes of two numbers, bit by bit.
fn apply(operator: Operator, left: Word, right: Word, bits: u32) -> Word {
    let known = |value: u128, unknown: u128| {
        let unknown = unknown & ones(bits);
        Word { value: value & ones(bits) & !unknown, unknown }
    };
    match operator {
        Operator::And => {
            // A bit that is 0 on one side is 0 whatever the other one is.
            let zero = (!left.value & !left.unknown) | (!right.value & !right.unknown);
            known(left.value & right.value, (left.unknown | right.unknown) & !zero)
        }
        Operator::Or => {
            let one = left.value | right.value;
            known(one, (left.unknown | right.unknown) & !one)
        }
        Operator::Xor => known(left.value ^ right.value, left.unknown | right.unknown),
        Operator::Left | Operator::Right => {
            let by = right.as_known().and_then(|by| u32::try_from(by).ok());
            let Some(by) = by else { return Word::unknown(bits) };
            let shift = |number: u128| match operator {
                Operator::Left => number.checked_shl(by).unwrap_or(0),
                _ => number.checked_shr(by).unwrap_or(0),
            };
            known(shift(left.value), shift(left.unknown))
        }
    }
}

impl Load for Operation {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        let (left, right) = (self.left.load(transit), self.right.load(transit));
        let mut all = Loaded { breaks: left.breaks || right.breaks, ..Loaded::nothing() };
        for a in &left.words {
            let of = |b: &Word| apply(self.operator, *a, *b, self.bits);
            all.words.extend(right.words.iter().map(of));
        }
        all
    }

    fn always(&self) -> bool {
        self.left.always() && self.right.always()
    }

    fn tracks(&self) -> bool {
        self.left.tracks() || self.right.tracks()
    }

    fn lacks(&self) -> Option<&str> {
        self.left.lacks().or(self.right.lacks())
    }

    fn asks_for(&self) -> Option<&'static str> {
        self.left.asks_for().or(self.right.asks_for())
    }

    fn repeats(&self) -> bool {
        self.left.repeats() && self.right.repeats()
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        self.left.bytecode(show);
        self.right.bytecode(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(operator: Operator, left: u128, right: u128) -> u128 {
        let result = match operator {
            Operator::And => left & right,
            Operator::Or => left | right,
            Operator::Xor => left ^ right,
            Operator::Left => left << right,
            Operator::Right => left >> right,
        };
        result & 0xff
    }

    proptest! {
        #[test]
        fn a_result_allows_what_either_side_allows(
            at in 0..5_usize, left in 0..64_u128, open in 0..64_u128, right in 0..8_u128, other in 0..8_u128,
        ) {
            let all = [Operator::And, Operator::Or, Operator::Xor, Operator::Left, Operator::Right];
            let operator = all[at];
            let left = Word { value: left & !open, unknown: open };
            let right = Word { value: right & !other, unknown: other };
            let made = apply(operator, left, right, 8);
            for a in (0..64).filter(|a| a & !left.unknown == left.value) {
                for b in (0..8).filter(|b| b & !right.unknown == right.value) {
                    prop_assert_eq!(plain(operator, a, b) & !made.unknown, made.value);
                }
            }
        }
    }
}
