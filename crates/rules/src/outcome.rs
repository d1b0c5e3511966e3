//! [`Outcome`]: what a match may say about a packet, when not everything about the packet is known.
//!
//! It is the set of the answers that remain possible. One member: the answer is known. More: it is not,
//! and nobody guesses. Combining sets keeps every possibility, so a walk can only err towards unknown.

use std::fmt;

/// A non-empty set of {no, yes, hot drop}.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Outcome(u8);

impl Outcome {
    /// The packet does not match.
    pub const NO: Self = Self(1);
    /// The packet matches.
    pub const YES: Self = Self(2);
    /// The match drops the packet on the spot (the kernel's `hotdrop`).
    pub const HOT_DROP: Self = Self(4);
    /// It matches or it does not: the packet does not tell.
    pub const MAYBE: Self = Self(1 | 2);

    /// Yes or no.
    #[must_use]
    #[inline]
    pub fn from_bool(matches: bool) -> Self {
        if matches { Self::YES } else { Self::NO }
    }

    /// The answer with `!` applied when `invert`: yes and no change places, a hot drop stays.
    #[must_use]
    #[inline]
    pub fn invert(self, invert: bool) -> Self {
        if !invert {
            return self;
        }
        Self((self.0 & 4) | ((self.0 & 1) << 1) | ((self.0 & 2) >> 1))
    }

    /// This answer and, where it may be yes, the answer of what is evaluated next.
    #[must_use]
    #[inline]
    pub fn and_then(self, next: impl FnOnce() -> Self) -> Self {
        if self.0 & 2 == 0 {
            return self;
        }
        Self((self.0 & !2) | next().0)
    }

    /// Either answer is possible.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Yes is possible.
    #[must_use]
    #[inline]
    pub fn may_match(self) -> bool {
        self.0 & 2 != 0
    }

    /// A hot drop is possible.
    #[must_use]
    #[inline]
    pub fn may_hot_drop(self) -> bool {
        self.0 & 4 != 0
    }

    /// Exactly one answer is possible.
    #[must_use]
    #[inline]
    pub fn is_known(self) -> bool {
        self.0.is_power_of_two()
    }
}

impl From<bool> for Outcome {
    fn from(matches: bool) -> Self {
        Self::from_bool(matches)
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(1, "no"), (2, "yes"), (4, "hotdrop")];
        let members: Vec<&str> =
            names.iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, name)| *name).collect();
        f.write_str(&members.join("|"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_decides_and_keeps_what_was_possible_before() {
        assert_eq!(Outcome::NO.and_then(|| unreachable!()), Outcome::NO);
        assert_eq!(Outcome::MAYBE.and_then(|| Outcome::NO), Outcome::NO);
        assert_eq!(Outcome::MAYBE.and_then(|| Outcome::YES), Outcome::MAYBE);
        let hot = Outcome::MAYBE.and_then(|| Outcome::HOT_DROP);
        assert_eq!(hot, Outcome::NO.or(Outcome::HOT_DROP));
        assert!(!hot.is_known());
    }

    #[test]
    fn inverting_leaves_a_hot_drop() {
        assert_eq!(Outcome::HOT_DROP.invert(true), Outcome::HOT_DROP);
        assert_eq!(Outcome::MAYBE.invert(true), Outcome::MAYBE);
        assert_eq!(Outcome::NO.invert(true), Outcome::YES);
    }
}
