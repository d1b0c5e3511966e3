//! [`Doubtful`]: the observer of a walk of packets that may not have been, or that may not have met these rules.

use rules::eval::{self, Alive, Cause, Proof, RuleRef};
use rules::ext::Memory;
use rules::model::Hook;
use rules::{Outcome, Transit};

use crate::observer::Observer;

/// Tells an observer of a walk as of one that may have been: what it counts it counts once for each of `times` packets.
pub(super) struct Doubtful<'o, O> {
    pub(super) observer: &'o mut O,
    pub(super) times: usize,
}

impl<O: Observer> eval::Observer for Doubtful<'_, O> {
    const SEES_RULES: bool = O::SEES_RULES;

    fn rule(&mut self, at: RuleRef, outcome: Outcome, alive: Alive, transit: &Transit<'_, '_>) {
        let alive = if alive == Alive::Certain { Alive::Maybe } else { alive };
        self.observer.rule(at, outcome, alive, transit);
    }

    fn asked(&mut self, at: RuleRef, index: usize, outcome: Outcome) {
        self.observer.asked(at, index, outcome);
    }

    fn remembered(&mut self, at: RuleRef, memory: &dyn Memory) {
        self.observer.remembered(at, memory);
    }

    fn hit(&mut self, at: RuleRef, _: bool, transit: &Transit<'_, '_>) {
        (0..self.times).for_each(|_| self.observer.hit(at, false, transit));
    }

    fn counted(&mut self, slot: u32, _: bool, transit: &Transit<'_, '_>) {
        (0..self.times).for_each(|_| self.observer.counted(slot, false, transit));
    }

    fn policy(&mut self, table: u32, chain: u32, _: bool, transit: &Transit<'_, '_>) {
        (0..self.times).for_each(|_| self.observer.policy(table, chain, false, transit));
    }

    fn off_end(&mut self, table: u32, chain: u32, _: bool) {
        self.observer.off_end(table, chain, false);
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.observer.unknown(at, cause);
    }

    fn may_count(&mut self, at: RuleRef, cause: Cause) {
        self.observer.may_count(at, cause);
    }

    fn proof(&mut self, at: RuleRef) -> Proof {
        self.observer.proof(at)
    }

    fn opens(&mut self, at: RuleRef) -> bool {
        self.observer.opens(at)
    }

    fn has_settled(&mut self) -> bool {
        self.observer.has_settled()
    }

    fn stops(&self) -> bool {
        self.observer.stops()
    }
}

impl<O: Observer> Observer for Doubtful<'_, O> {
    fn enters(&mut self, table: u32, chain: Option<u32>, hook: Hook) {
        self.observer.enters(table, chain, hook);
    }
}
