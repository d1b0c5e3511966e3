//! [`Observer`]: what a walk reports, and to whom.

use crate::ext::Memory;
use crate::outcome::Outcome;
use crate::transit::Transit;

/// A rule by its place in [`crate::model::Ruleset::tables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleRef {
    /// Index of the table.
    pub table: u32,
    /// Index of the chain in the table.
    pub chain: u32,
    /// Index of the rule in the chain.
    pub rule: u32,
}

/// Why the answer of a rule is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The input interface is not known.
    Input,
    /// The output interface is not known.
    Output,
    /// Header bytes are not known: not captured, or rewritten by a target that is not evaluated.
    Bytes,
    /// The match of this index.
    Match(u16),
    /// A target whose effect is not known.
    Target,
    /// What came before the packet, of which the observer has that nobody knows it ([`Observer::opens`]).
    Past,
    /// The walk was given up after [`crate::eval::MAX_STEPS`].
    Steps,
    /// The walk was given up at once: [`crate::eval::PATIENCE`] walks of the chain took more than [`crate::eval::MAX_STEPS`].
    Patience,
    /// The walk was given up because nobody wants its end any more: [`Observer::stops`].
    Stopped,
}

/// How surely a packet is at a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alive {
    /// It is.
    Certain,
    /// It may be.
    Maybe,
    /// It is not.
    Gone,
}

/// What somebody knows of a packet at a rule, besides what the packet tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// No more than the packet tells.
    Nothing,
    /// It matches the rule, if it comes there.
    Matches,
    /// It came there and matched, because the rule logged it: nothing before then ended its walk.
    Came,
}

/// Sees a walk. Every method does nothing by default, so that a live walk pays for none.
pub trait Observer {
    /// It wants to be told of single rules by [`Observer::rule`], [`Observer::asked`] and [`Observer::hit`].
    /// One that does not is told of hits by [`Observer::counted`] alone, and the walk is the faster for it.
    const SEES_RULES: bool = true;

    /// A rule was evaluated, with the packet as its matches saw it.
    #[inline]
    fn rule(&mut self, _at: RuleRef, _outcome: Outcome, _alive: Alive, _transit: &Transit<'_, '_>) {
    }

    /// The match of this index in the rule was asked; those after a plain no are not.
    #[inline]
    fn asked(&mut self, _at: RuleRef, _index: usize, _outcome: Outcome) {}

    /// A match that remembers packets was asked, by which it now has another state.
    #[inline]
    fn remembered(&mut self, _at: RuleRef, _memory: &dyn Memory) {}

    /// A rule matched: for certain, or maybe. `packets` counters move by the certain ones.
    #[inline]
    fn hit(&mut self, _at: RuleRef, _certain: bool, _transit: &Transit<'_, '_>) {}

    /// As `hit`, with the place of the rule's counters.
    #[inline]
    fn counted(&mut self, _slot: u32, _certain: bool, _transit: &Transit<'_, '_>) {}

    /// The packet fell off a built-in chain, for certain or maybe.
    #[inline]
    fn policy(&mut self, _table: u32, _chain: u32, _certain: bool, _transit: &Transit<'_, '_>) {}

    /// No rule of a chain, built in or not, kept the packet: it is at the end, for certain or maybe. A packet that goes
    /// back before that, or meets its verdict, is not.
    #[inline]
    fn off_end(&mut self, _table: u32, _chain: u32, _certain: bool) {}

    /// Whether a rule that can change the packet's verdict matched is unknown.
    #[inline]
    fn unknown(&mut self, _at: RuleRef, _cause: Cause) {}

    /// Whether a rule that changes no verdict matched is unknown.
    #[inline]
    fn may_count(&mut self, _at: RuleRef, _cause: Cause) {}

    /// What is proved of this rule, which the packet may have come to and may match. Asked of an observer that sees rules.
    #[inline]
    fn proof(&mut self, _at: RuleRef) -> Proof {
        Proof::Nothing
    }

    /// Whether this rule, which was evaluated last and has matches, may say otherwise: it hangs on what came before the
    /// packet, which nobody knows. Asked of an observer that sees rules.
    #[inline]
    fn opens(&mut self, _at: RuleRef) -> bool {
        false
    }

    /// Whether [`Observer::proof`] was answered with [`Proof::Came`] since this was asked last.
    #[inline]
    fn has_settled(&mut self) -> bool {
        false
    }

    /// Nobody wants the walk to go on. Asked now and then.
    #[inline]
    fn stops(&self) -> bool {
        false
    }
}

/// An observer of nothing, for walks that have no other.
#[derive(Debug, Default)]
pub struct Nobody;

impl Observer for Nobody {
    const SEES_RULES: bool = false;
}
