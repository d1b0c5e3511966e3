//! Words of a SPEC, each with its column, and what was expected in its place ([`SpecError`]).

use std::fmt;

/// What was expected in a SPEC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// Column in bytes, from 1.
    pub column: usize,
    /// What.
    pub what: String,
}

impl SpecError {
    /// What stands under the packet spec to show the column.
    #[must_use]
    pub fn mark(&self, text: &str) -> String {
        let before = text.get(..self.column - 1).unwrap_or(text);
        let mut mark: String = before.chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
        mark.push('^');
        mark
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--packet:{}: expected {}", self.column, self.what)
    }
}

impl std::error::Error for SpecError {}

/// A word and its column.
pub(super) type Word<'a> = (usize, &'a str);

pub(super) fn split(text: &str) -> Vec<Word<'_>> {
    let start = text.as_ptr() as usize;
    text.split_ascii_whitespace().map(|word| (word.as_ptr() as usize - start + 1, word)).collect()
}

pub(super) fn expected(column: usize, what: impl Into<String>) -> SpecError {
    SpecError { column, what: what.into() }
}

/// A number in decimal digits, or after `0x` in hexadecimal ones.
pub(super) fn number<N: TryFrom<u32>>(text: &str) -> Option<N> {
    let (digits, base) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
    // A sign would be read, too.
    let digits = Some(digits).filter(|digits| !digits.starts_with('+'))?;
    N::try_from(u32::from_str_radix(digits, base).ok()?).ok()
}
