//! Inclusive ranges of numbers, as `--length`, `--espspi` and their kind take them: `n`, `a:b`, `a:`,
//! `:b` or `:`.
//!
//! Source: iptables `xtopt_parse_mint` in libxtables/xtoptions.c.

use crate::error::What;
use crate::ext::{Args, Given, Printer};
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::value;

/// An inclusive range of numbers up to `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    low: u32,
    high: u32,
    max: u32,
    invert: bool,
}

impl Span {
    /// Every number up to `max`.
    pub(crate) const fn all(max: u32) -> Self {
        Self { low: 0, high: max, max, invert: false }
    }

    /// The numbers from `low` to `high`, or with `invert` all others.
    pub(crate) const fn new(low: u32, high: u32, max: u32, invert: bool) -> Self {
        Self { low, high, max, invert }
    }

    /// One number.
    pub(crate) const fn one(number: u32, max: u32) -> Self {
        Self { low: number, high: number, max, invert: false }
    }

    /// The range of an option, or every number when it is not given.
    pub(crate) fn parse(args: &Args<'_>, name: &str, max: u32) -> Result<Self, What> {
        args.get(name).map_or(Ok(Self::all(max)), |given| Self::from_given(given, max))
    }

    /// The range that an option gives.
    pub(crate) fn from_given(given: &Given<'_>, max: u32) -> Result<Self, What> {
        let (low, high) = value::range(given.text(), ':', max.into())
            .ok_or_else(|| given.expected(format!("a number 0-{max} or a range low:high")))?;
        Ok(Self::new(low as u32, high as u32, max, given.invert))
    }

    fn is_all(self) -> bool {
        self.low == 0 && self.high == self.max
    }

    /// Prints the option unless every number passes.
    pub(crate) fn print(self, name: &str, to: &mut Printer) {
        if !self.is_all() || self.invert {
            self.print_always(name, to);
        }
    }

    /// Prints the option.
    pub(crate) fn print_always(self, name: &str, to: &mut Printer) {
        let Self { low, high, invert, .. } = self;
        if low == high {
            to.option(invert, name, low);
        } else {
            to.option(invert, name, format_args!("{low}:{high}"));
        }
    }

    /// Whether a number passes.
    #[inline]
    pub(crate) fn accepts(self, number: u32) -> bool {
        (self.low <= number && number <= self.high) != self.invert
    }

    /// The numbers of a field that pass.
    pub(crate) fn predicate(self, field: Field) -> Predicate {
        let Self { low, high, invert, .. } = self;
        Predicate::Range { field, low: low.into(), high: high.into() }.inverted(invert)
    }

    /// The answer for a number, or for the outcome that its lack decides: where the number is merely
    /// unknown, a range of all numbers still tells.
    #[inline]
    pub(crate) fn evaluate(self, number: Result<u32, Outcome>) -> Outcome {
        match number {
            Ok(number) => Outcome::from_bool(self.accepts(number)),
            Err(Outcome::MAYBE) if self.is_all() => Outcome::from_bool(!self.invert),
            Err(outcome) => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_everything_needs_no_number() {
        let all = Span::all(255);
        let none = Span { invert: true, ..all };
        assert_eq!(all.evaluate(Err(Outcome::MAYBE)), Outcome::YES);
        assert_eq!(none.evaluate(Err(Outcome::MAYBE)), Outcome::NO);
        assert_eq!(none.evaluate(Err(Outcome::HOT_DROP)), Outcome::HOT_DROP);
        assert_eq!(Span::one(3, 255).evaluate(Err(Outcome::MAYBE)), Outcome::MAYBE);
        assert_eq!(Span::one(3, 255).evaluate(Ok(3)), Outcome::YES);
    }

    #[test]
    fn both_ends_belong_to_the_range() {
        let span = Span { low: 3, high: 5, max: 255, invert: true };
        let passed: Vec<u32> = (0..8).filter(|number| span.accepts(*number)).collect();
        assert_eq!(passed, [0, 1, 2, 6, 7]);
    }
}
