//! [`Outcome`]: what a match may say about a packet, when not everything about the packet is known.
//!
//! It is the set of the answers that remain possible. One member: the answer is known. More: it is not,
//! and nobody guesses. Combining sets keeps every possibility, so a walk can only err towards unknown.

use std::fmt;

/// A non-empty set of {no, yes, hot drop, yes and drop}.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Outcome(u8);

impl Outcome {
    /// The packet does not match.
    pub const NO: Self = Self(1);
    /// The packet matches.
    pub const YES: Self = Self(2);
    /// The match drops the packet on the spot (the kernel's `hotdrop`).
    pub const HOT_DROP: Self = Self(4);
    /// The packet matches and is dropped all the same: some kernel matches ask for the drop within a
    /// test that `!` turns to a yes. The rule counts the packet; its verdict or jump has no effect.
    pub const HIT_DROP: Self = Self(8);
    /// The packet matches or does not: its bytes do not decide that.
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
        Self((self.0 & 12) | ((self.0 & 1) << 1) | ((self.0 & 2) >> 1))
    }

    /// The answer of a test that asks for a drop before `!` is applied: then a hot drop is a yes as well.
    #[must_use]
    pub fn invert_drop(self, invert: bool) -> Self {
        let inverted = self.invert(invert);
        if invert && self.0 & 4 != 0 {
            return Self((inverted.0 & !4) | 8);
        }
        inverted
    }

    /// This answer and, where it may be yes, the answer of what is evaluated next.
    #[must_use]
    #[inline]
    pub fn and_then(self, next: impl FnOnce() -> Self) -> Self {
        if !self.goes_on() {
            return self;
        }
        let next = next().0;
        let after_yes = if self.0 & 2 != 0 { next } else { 0 };
        // A drop once asked for stays, whatever the rest of the rule says.
        let after_drop = match self.0 & 8 {
            0 => 0,
            _ => (if next & 5 != 0 { 4 } else { 0 }) | (if next & 10 != 0 { 8 } else { 0 }),
        };
        Self((self.0 & 5) | after_yes | after_drop)
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

    /// A hot drop is possible, whether the rule counts the packet or not.
    #[must_use]
    #[inline]
    pub fn may_hot_drop(self) -> bool {
        self.0 & 12 != 0
    }

    /// A yes with a drop is possible.
    #[must_use]
    #[inline]
    pub fn may_hit_drop(self) -> bool {
        self.0 & 8 != 0
    }

    /// What is evaluated next still counts.
    #[must_use]
    #[inline]
    pub fn goes_on(self) -> bool {
        self.0 & 10 != 0
    }

    /// The packet is certain to be hot-dropped.
    #[must_use]
    #[inline]
    pub fn only_drops(self) -> bool {
        self.0 & 3 == 0
    }

    /// Exactly one answer is possible.
    #[must_use]
    #[inline]
    pub fn is_known(self) -> bool {
        /// A bit for each set of one member.
        const SINGLES: u16 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8;
        SINGLES >> self.0 & 1 != 0
    }
}

impl From<bool> for Outcome {
    fn from(matches: bool) -> Self {
        Self::from_bool(matches)
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(1, "no"), (2, "yes"), (4, "hotdrop"), (8, "yes+hotdrop")];
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
    fn a_drop_that_matches_stays_a_drop_whatever_comes_next() {
        let hit = Outcome::HOT_DROP.invert_drop(true);
        assert_eq!(hit, Outcome::HIT_DROP);
        assert_eq!(Outcome::HOT_DROP.invert_drop(false), Outcome::HOT_DROP);
        assert_eq!(hit.and_then(|| Outcome::YES), Outcome::HIT_DROP);
        assert_eq!(hit.and_then(|| Outcome::NO), Outcome::HOT_DROP);
        assert_eq!(hit.and_then(|| Outcome::MAYBE), Outcome::HIT_DROP.or(Outcome::HOT_DROP));
        let either = Outcome::YES.or(hit).and_then(|| Outcome::NO);
        assert_eq!(either, Outcome::NO.or(Outcome::HOT_DROP));
        assert!(hit.is_known() && hit.may_hot_drop() && !hit.may_match());
    }

    #[test]
    fn inverting_leaves_a_hot_drop() {
        assert_eq!(Outcome::HOT_DROP.invert(true), Outcome::HOT_DROP);
        assert_eq!(Outcome::MAYBE.invert(true), Outcome::MAYBE);
        assert_eq!(Outcome::NO.invert(true), Outcome::YES);
    }
}
