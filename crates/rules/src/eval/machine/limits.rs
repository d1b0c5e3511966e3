//! Where a walk ends before its end: it takes too many steps, or nobody waits for it.

use super::walk::Walk;
use crate::eval::budget::MAX_STEPS;
use crate::eval::{Cause, Observer, RuleRef, Source};
use crate::transit::Transit;

/// Steps between two times that the observer is asked whether anybody waits.
pub(super) const ASK_EVERY: u32 = 1 << 12;

impl<'r, S: Source<'r>, O: Observer> Walk<'_, '_, '_, S, O> {
    /// Asks now and then whether the walk is to go on.
    #[inline]
    pub(super) fn look_up(&mut self) {
        if self.steps < self.ask_at || self.over.is_some() {
            return;
        }
        self.ask_at = self.steps.saturating_add(ASK_EVERY).min(MAX_STEPS + 1);
        self.over = match self.steps > MAX_STEPS {
            true => Some(Cause::Steps),
            false => self.observer.stops().then_some(Cause::Stopped),
        };
    }

    /// Nothing is known of what is left of the walk, nor of what its rules may have changed.
    pub(super) fn give_up(
        &mut self,
        chain: u32,
        rule: u32,
        cause: Cause,
        transit: &mut Transit<'_, '_>,
    ) {
        let at = RuleRef { table: self.number, chain, rule };
        self.observer.unknown(at, cause);
        self.verdicts.give_up(at);
        self.memories.make_indeterminate();
        transit.make_indeterminate();
    }
}
