//! Operators on numbers.

/// An operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `&`
    And,
    /// `<<`
    Left,
    /// `>>`
    Right,
}

const OPERATORS: &[(&str, &str, Operator)] = &[
    ("|", "or", Operator::Or),
    ("^", "xor", Operator::Xor),
    ("&", "and", Operator::And),
    ("<<", "lshift", Operator::Left),
    (">>", "rshift", Operator::Right),
];

impl Operator {
    /// Reads an operator's sign or word.
    pub fn find(word: &str) -> Option<Self> {
        OPERATORS.iter().find(|(sign, name, _)| *sign == word || *name == word).map(|found| found.2)
    }

    /// Returns its sign.
    pub fn name(self) -> &'static str {
        OPERATORS[self as usize].0
    }

    /// Returns how tightly it binds.
    pub fn binding(self) -> u8 {
        (self as u8).min(Self::Left as u8) + 1
    }

    pub(super) fn apply(self, left: u128, right: u128) -> Option<u128> {
        let shift = || u32::try_from(right).ok();
        Some(match self {
            Self::Or => left | right,
            Self::Xor => left ^ right,
            Self::And => left & right,
            Self::Left => left.checked_shl(shift()?)?,
            Self::Right => left.checked_shr(shift()?).unwrap_or(0),
        })
    }
}
