//! Two observers as one, and one that is lent. Who does not want to be told of single rules is not, if the other
//! does.

use super::{Alive, Cause, Observer, Proof, RuleRef};
use crate::ext::Memory;
use crate::outcome::Outcome;
use crate::transit::Transit;

impl<A: Observer, B: Observer> Observer for (A, B) {
    const SEES_RULES: bool = A::SEES_RULES || B::SEES_RULES;

    #[inline]
    fn rule(&mut self, at: RuleRef, outcome: Outcome, alive: Alive, transit: &Transit<'_, '_>) {
        if A::SEES_RULES {
            self.0.rule(at, outcome, alive, transit);
        }
        if B::SEES_RULES {
            self.1.rule(at, outcome, alive, transit);
        }
    }

    #[inline]
    fn asked(&mut self, at: RuleRef, index: usize, outcome: Outcome) {
        if A::SEES_RULES {
            self.0.asked(at, index, outcome);
        }
        if B::SEES_RULES {
            self.1.asked(at, index, outcome);
        }
    }

    #[inline]
    fn remembered(&mut self, at: RuleRef, memory: &dyn Memory) {
        if A::SEES_RULES {
            self.0.remembered(at, memory);
        }
        if B::SEES_RULES {
            self.1.remembered(at, memory);
        }
    }

    #[inline]
    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        if A::SEES_RULES {
            self.0.hit(at, certain, transit);
        }
        if B::SEES_RULES {
            self.1.hit(at, certain, transit);
        }
    }

    #[inline]
    fn counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.0.counted(slot, certain, transit);
        self.1.counted(slot, certain, transit);
    }

    #[inline]
    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.0.policy(table, chain, certain, transit);
        self.1.policy(table, chain, certain, transit);
    }

    #[inline]
    fn off_end(&mut self, table: u32, chain: u32, certain: bool) {
        self.0.off_end(table, chain, certain);
        self.1.off_end(table, chain, certain);
    }

    #[inline]
    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.0.unknown(at, cause);
        self.1.unknown(at, cause);
    }

    #[inline]
    fn may_count(&mut self, at: RuleRef, cause: Cause) {
        self.0.may_count(at, cause);
        self.1.may_count(at, cause);
    }

    #[inline]
    fn proof(&mut self, at: RuleRef) -> Proof {
        match self.0.proof(at) {
            Proof::Nothing => self.1.proof(at),
            proof => proof,
        }
    }

    #[inline]
    fn opens(&mut self, at: RuleRef) -> bool {
        self.0.opens(at) | self.1.opens(at)
    }

    #[inline]
    fn has_settled(&mut self) -> bool {
        self.0.has_settled() | self.1.has_settled()
    }

    /// Nobody wants the walk to go on if one of them does not.
    #[inline]
    fn stops(&self) -> bool {
        self.0.stops() || self.1.stops()
    }
}

/// One that is lent.
impl<O: Observer> Observer for &mut O {
    const SEES_RULES: bool = O::SEES_RULES;

    #[inline]
    fn rule(&mut self, at: RuleRef, outcome: Outcome, alive: Alive, transit: &Transit<'_, '_>) {
        O::rule(self, at, outcome, alive, transit);
    }

    #[inline]
    fn asked(&mut self, at: RuleRef, index: usize, outcome: Outcome) {
        O::asked(self, at, index, outcome);
    }

    #[inline]
    fn remembered(&mut self, at: RuleRef, memory: &dyn Memory) {
        O::remembered(self, at, memory);
    }

    #[inline]
    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        O::hit(self, at, certain, transit);
    }

    #[inline]
    fn counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        O::counted(self, slot, certain, transit);
    }

    #[inline]
    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        O::policy(self, table, chain, certain, transit);
    }

    #[inline]
    fn off_end(&mut self, table: u32, chain: u32, certain: bool) {
        O::off_end(self, table, chain, certain);
    }

    #[inline]
    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        O::unknown(self, at, cause);
    }

    #[inline]
    fn may_count(&mut self, at: RuleRef, cause: Cause) {
        O::may_count(self, at, cause);
    }

    #[inline]
    fn proof(&mut self, at: RuleRef) -> Proof {
        O::proof(self, at)
    }

    #[inline]
    fn opens(&mut self, at: RuleRef) -> bool {
        O::opens(self, at)
    }

    #[inline]
    fn has_settled(&mut self) -> bool {
        O::has_settled(self)
    }

    #[inline]
    fn stops(&self) -> bool {
        O::stops(self)
    }
}
