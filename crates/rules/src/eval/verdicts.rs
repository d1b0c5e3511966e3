//! The set of verdicts that remain possible for a packet, each with what gave it first.

use super::RuleRef;

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It goes on.
    Accept,
    /// It is dropped silently.
    Drop,
    /// It is dropped and its sender told.
    Reject,
}

/// What decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum By {
    /// A rule.
    Rule(RuleRef),
    /// The policy of a built-in chain.
    Policy {
        /// Index of the table.
        table: u32,
        /// Index of the chain in the table.
        chain: u32,
    },
    /// A match of this rule dropped the packet on the spot.
    HotDrop(RuleRef),
}

/// A set of [`Verdict`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verdicts {
    /// For each verdict: whether it is possible, and by what.
    possible: [Option<Option<By>>; 3],
}

impl Verdicts {
    /// Adds a verdict; of several that give the same one, the first is kept.
    pub fn add(&mut self, verdict: Verdict, by: Option<By>) {
        let slot = &mut self.possible[verdict as usize];
        if slot.is_none() {
            *slot = Some(by);
        }
    }

    /// Whether the verdict is possible.
    #[must_use]
    pub fn may_be(&self, verdict: Verdict) -> bool {
        self.possible[verdict as usize].is_some()
    }

    /// The only verdict that is possible, with what gave it.
    #[must_use]
    pub fn only(&self) -> Option<(Verdict, Option<By>)> {
        let mut members = [Verdict::Accept, Verdict::Drop, Verdict::Reject]
            .into_iter()
            .filter_map(|verdict| Some((verdict, self.possible[verdict as usize]?)));
        match (members.next(), members.next()) {
            (Some(one), None) => Some(one),
            _ => None,
        }
    }

    /// What gave this verdict, if it is possible.
    #[must_use]
    pub fn by(&self, verdict: Verdict) -> Option<By> {
        self.possible[verdict as usize].flatten()
    }

    /// Takes accept out: the packet goes on to the next table, whose verdicts will say.
    #[must_use]
    pub fn without_accept(mut self) -> Self {
        self.possible[Verdict::Accept as usize] = None;
        self
    }

    /// Adds every verdict of `other`.
    pub fn extend(&mut self, other: &Self) {
        for verdict in [Verdict::Accept, Verdict::Drop, Verdict::Reject] {
            if let Some(by) = other.possible[verdict as usize] {
                self.add(verdict, by);
            }
        }
    }
}
