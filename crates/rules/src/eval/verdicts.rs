//! The set of verdicts that remain possible for a packet, each with what gave it first.

use super::RuleRef;
use crate::nat::Translation;

/// What the rules decide for a packet.
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

/// What may have given a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Givers {
    /// The first that may; `None` where no rule or policy does.
    pub first: Option<By>,
    /// The last one that is another than the first.
    last: Option<Option<By>>,
    /// There is one between them.
    others: bool,
}

impl Givers {
    /// Whether only the first may have given it.
    #[inline]
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.last.is_none()
    }
}

/// Which rule translates a packet's flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Claim {
    /// None that it may have reached.
    #[default]
    None,
    /// Certainly this one.
    By(RuleRef),
    /// One may, but which one is not known.
    Open {
        /// One that may has ports to choose from, which may all be taken.
        draws: bool,
        /// One that may sends packets to this host.
        redirects: bool,
        /// Under one that may, the kernel may draw another source port, too.
        moves_source: bool,
    },
}

impl Claim {
    /// Which rule translates the flow where this is what one table claims, and `later` what the next one does with packets
    /// that the first may let go.
    #[must_use]
    pub fn or(self, later: Self) -> Self {
        let open = |claim| match claim {
            Self::Open { draws, redirects, moves_source } => [draws, redirects, moves_source],
            Self::None | Self::By(_) => [true; 3],
        };
        match (self, later) {
            (Self::None, only) | (only, Self::None) => only,
            (Self::By(_), _) => self,
            (Self::Open { draws, redirects, moves_source }, later) => {
                let other = open(later);
                Self::Open {
                    draws: draws || other[0],
                    redirects: redirects || other[1],
                    moves_source: moves_source || other[2],
                }
            }
        }
    }
}

/// A set of [`Verdict`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdicts {
    /// For each verdict: whether it is possible, and by what.
    possible: [Option<Givers>; 3],
    claim: Claim,
    /// The walk was given up: any verdict is possible, of any rule.
    given_up: bool,
    /// The verdict in the state that the packet is taken for, if that alone is known.
    as_taken: Option<(Verdict, By)>,
}

impl Default for Verdicts {
    /// None is possible yet.
    #[inline]
    fn default() -> Self {
        // Derived, it is made elsewhere and copied: a processor waits for that, several times a packet.
        Self { possible: [None; 3], claim: Claim::None, given_up: false, as_taken: None }
    }
}

impl Verdicts {
    /// This verdict alone, and what gave it.
    #[inline]
    pub(super) fn one(verdict: Verdict, by: Option<By>) -> Self {
        let mut one = Self::default();
        one.possible[verdict as usize] = Some(Givers { first: by, last: None, others: false });
        one
    }

    /// Whether no verdict is possible yet, and nothing else is known of any.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(
            self,
            Self { possible: [None, None, None], claim: Claim::None, given_up: false, .. }
        )
    }

    /// Adds a verdict; of several that may give the same one, the first counts as what gave it, and the last is kept.
    #[inline]
    pub fn add(&mut self, verdict: Verdict, by: Option<By>) {
        match &mut self.possible[verdict as usize] {
            None => {
                let givers = Givers { first: by, last: None, others: false };
                self.possible[verdict as usize] = Some(givers);
            }
            Some(Givers { first, last, others }) => {
                if by != *first && Some(by) != *last {
                    *others |= last.is_some();
                    *last = Some(by);
                }
            }
        }
    }

    /// Whether the verdict is possible.
    #[inline]
    #[must_use]
    pub fn may_be(&self, verdict: Verdict) -> bool {
        self.possible[verdict as usize].is_some()
    }

    /// A rule translates the flow.
    pub(super) fn claim(&mut self, at: RuleRef, translation: &Translation) {
        match self.claim {
            Claim::None => self.claim = Claim::By(at),
            // The rules before it let such a packet go by only if it may not have matched.
            Claim::By(_) | Claim::Open { .. } => self.may_claim(translation, false),
        }
    }

    /// A rule may translate the flow; `moves_source` says whether the kernel may then draw another source port.
    pub(super) fn may_claim(&mut self, translation: &Translation, moves_source: bool) {
        let before = match self.claim {
            Claim::Open { draws, redirects, moves_source } => [draws, redirects, moves_source],
            Claim::None | Claim::By(_) => [false; 3],
        };
        self.claim = Claim::Open {
            draws: before[0] || translation.draws(),
            redirects: before[1] || translation.redirects,
            moves_source: before[2] || moves_source,
        };
    }

    /// A rule may translate the flow into whatever it likes.
    pub(super) fn claim_anything(&mut self) {
        self.claim = Claim::Open { draws: true, redirects: true, moves_source: true };
    }

    /// Which rule translates the packet's flow.
    #[must_use]
    pub fn translated_by(&self) -> Claim {
        self.claim
    }

    /// In the state that it is taken for, the packet meets this verdict.
    #[inline]
    pub(super) fn meet_as_taken(&mut self, verdict: Verdict, by: By) {
        self.as_taken = Some((verdict, by));
    }

    /// The verdict of one walk on the packet in the state that it is taken for, and what gave it. `None` where nobody
    /// asked ([`Connection::walks_as`](crate::Connection::walks_as)), or more than states is open.
    #[must_use]
    pub fn as_taken(&self) -> Option<(Verdict, By)> {
        self.as_taken
    }

    /// Nothing is known of what is left of the walk.
    pub(super) fn give_up(&mut self, at: RuleRef) {
        for verdict in [Verdict::Accept, Verdict::Drop] {
            self.add(verdict, Some(By::Rule(at)));
        }
        self.claim_anything();
        self.given_up = true;
    }

    /// Whether a walk was given up.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// The only verdict that is possible, with what gave it.
    #[inline]
    #[must_use]
    pub fn only(&self) -> Option<(Verdict, Option<By>)> {
        let (verdict, givers) = match self.possible {
            _ if self.given_up => return None,
            [Some(givers), None, None] => (Verdict::Accept, givers),
            [None, Some(givers), None] => (Verdict::Drop, givers),
            [None, None, Some(givers)] => (Verdict::Reject, givers),
            _ => return None,
        };
        Some((verdict, givers.first))
    }

    /// The only verdict that is possible, where only one rule or policy may have given it.
    #[inline]
    #[must_use]
    pub fn sure(&self) -> Option<(Verdict, Option<By>)> {
        let (verdict, by) = self.only()?;
        self.possible[verdict as usize].filter(Givers::is_sure).map(|_| (verdict, by))
    }

    /// What gave this verdict, if it is possible.
    #[inline]
    #[must_use]
    pub fn by(&self, verdict: Verdict) -> Option<By> {
        self.possible[verdict as usize]?.first
    }

    /// What else may have given this verdict: the last one, and whether there are more between it and the first.
    #[must_use]
    pub fn or_by(&self, verdict: Verdict) -> Option<(Option<By>, bool)> {
        let Givers { last, others, .. } = self.possible[verdict as usize]?;
        Some((last?, others))
    }

    /// All that may have given this verdict, if it is possible.
    #[inline]
    #[must_use]
    pub fn givers(&self, verdict: Verdict) -> Option<Givers> {
        self.possible[verdict as usize]
    }

    /// Adds a verdict with all that may give it.
    pub fn add_givers(&mut self, verdict: Verdict, givers: &Givers) {
        self.add(verdict, givers.first);
        if let Some(last) = givers.last {
            self.add(verdict, last);
        }
        if let Some(known) = &mut self.possible[verdict as usize] {
            known.others |= givers.others;
        }
    }

    /// Takes accept out: the packet goes on to the next table, whose verdicts will say.
    #[inline]
    #[must_use]
    pub fn without_accept(mut self) -> Self {
        self.possible[Verdict::Accept as usize] = None;
        self
    }

    /// Adds every verdict of `other`.
    #[inline]
    pub fn extend(&mut self, other: &Self) {
        // So for most packets: only one table says more than that they go on.
        if matches!(self.possible, [None, None, None]) {
            self.possible = other.possible;
        } else {
            self.join(other);
        }
        self.given_up |= other.given_up;
    }

    /// Adds what a later table that translates says, too.
    pub fn or_later(&mut self, later: &Self) {
        self.extend(later);
        self.claim = self.claim.or(later.claim);
        self.as_taken = None;
    }

    /// Adds what gives the verdicts of `other`.
    fn join(&mut self, other: &Self) {
        for verdict in [Verdict::Accept, Verdict::Drop, Verdict::Reject] {
            if let Some(givers) = &other.possible[verdict as usize] {
                self.add_givers(verdict, givers);
            }
        }
    }
}
