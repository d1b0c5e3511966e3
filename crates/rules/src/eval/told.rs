//! [`Told`]: an observer behind a pointer, for walks that need not be as fast as can be: the reference walk, and those over
//! layouts that are there to be compared with. Each observer has code of its own for one walk, then, instead of six.

use super::observer::{Alive, Cause, Observer, Proof, RuleRef};
use crate::ext::Memory;
use crate::outcome::Outcome;
use crate::transit::Transit;

/// What an [`Observer`] is told, as calls by a pointer.
pub(crate) trait Tell {
    /// As [`Observer::rule`], and so on.
    fn tell_rule(&mut self, at: RuleRef, outcome: Outcome, alive: Alive, transit: &Transit<'_, '_>);
    fn tell_asked(&mut self, at: RuleRef, index: usize, outcome: Outcome);
    fn tell_remembered(&mut self, at: RuleRef, memory: &dyn Memory);
    fn tell_hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>);
    fn tell_counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>);
    fn tell_policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>);
    fn tell_off_end(&mut self, table: u32, chain: u32, certain: bool);
    fn tell_unknown(&mut self, at: RuleRef, cause: Cause);
    fn tell_may_count(&mut self, at: RuleRef, cause: Cause);
    fn tell_proof(&mut self, at: RuleRef) -> Proof;
    fn says_open(&mut self, at: RuleRef) -> bool;
    fn says_stop(&self) -> bool;
}

impl<O: Observer> Tell for O {
    fn tell_rule(
        &mut self,
        at: RuleRef,
        outcome: Outcome,
        alive: Alive,
        transit: &Transit<'_, '_>,
    ) {
        self.rule(at, outcome, alive, transit);
    }

    fn tell_asked(&mut self, at: RuleRef, index: usize, outcome: Outcome) {
        self.asked(at, index, outcome);
    }

    fn tell_remembered(&mut self, at: RuleRef, memory: &dyn Memory) {
        self.remembered(at, memory);
    }

    fn tell_hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        self.hit(at, certain, transit);
    }

    fn tell_counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.counted(slot, certain, transit);
    }

    fn tell_policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.policy(table, chain, certain, transit);
    }

    fn tell_off_end(&mut self, table: u32, chain: u32, certain: bool) {
        self.off_end(table, chain, certain);
    }

    fn tell_unknown(&mut self, at: RuleRef, cause: Cause) {
        self.unknown(at, cause);
    }

    fn tell_may_count(&mut self, at: RuleRef, cause: Cause) {
        self.may_count(at, cause);
    }

    fn tell_proof(&mut self, at: RuleRef) -> Proof {
        self.proof(at)
    }

    fn says_open(&mut self, at: RuleRef) -> bool {
        self.opens(at)
    }

    fn says_stop(&self) -> bool {
        self.stops()
    }
}

/// An observer behind a pointer; `SEES` is its [`Observer::SEES_RULES`].
pub(crate) struct Told<'o, const SEES: bool>(pub(crate) &'o mut dyn Tell);

impl<const SEES: bool> Observer for Told<'_, SEES> {
    const SEES_RULES: bool = SEES;

    fn rule(&mut self, at: RuleRef, outcome: Outcome, alive: Alive, transit: &Transit<'_, '_>) {
        self.0.tell_rule(at, outcome, alive, transit);
    }

    fn asked(&mut self, at: RuleRef, index: usize, outcome: Outcome) {
        self.0.tell_asked(at, index, outcome);
    }

    fn remembered(&mut self, at: RuleRef, memory: &dyn Memory) {
        self.0.tell_remembered(at, memory);
    }

    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        self.0.tell_hit(at, certain, transit);
    }

    fn counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.0.tell_counted(slot, certain, transit);
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.0.tell_policy(table, chain, certain, transit);
    }

    fn off_end(&mut self, table: u32, chain: u32, certain: bool) {
        self.0.tell_off_end(table, chain, certain);
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.0.tell_unknown(at, cause);
    }

    fn may_count(&mut self, at: RuleRef, cause: Cause) {
        self.0.tell_may_count(at, cause);
    }

    fn proof(&mut self, at: RuleRef) -> Proof {
        self.0.tell_proof(at)
    }

    fn opens(&mut self, at: RuleRef) -> bool {
        self.0.says_open(at)
    }

    fn stops(&self) -> bool {
        self.0.says_stop()
    }
}
