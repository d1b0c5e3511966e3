//! Targets of which it is not known what they do with a packet: each thing that they may do leaves its verdicts.

use packet::Mark;

use super::super::source::Source;
use super::super::{By, Cause, Observer, RuleRef, Verdict};
use super::chains::{Entry, Stack};
use super::walk::Walk;
use crate::ext::Effect;
use crate::transit::Transit;

impl<'r, 'p, S: Source<'r>, O: Observer> Walk<'_, '_, 'p, S, O> {
    /// A target accepts the packet or drops it.
    pub(super) fn either(&mut self, at: RuleRef, sure: bool, stack: &mut Stack<S::Cursor>) {
        self.observer.unknown(at, Cause::Target);
        self.doubt_taken();
        self.end(Verdict::Accept, Some(By::Rule(at)), sure, stack);
        self.end(Verdict::Drop, Some(By::Rule(at)), sure, stack);
    }

    /// A target does one of these, and nothing else. Chains are walked one after the other, as if the packet might go into
    /// each; from where a goto leads it may come back to the caller of this chain.
    pub(super) fn some_of(
        &mut self,
        effects: &[Effect],
        at: RuleRef,
        stack: &mut Stack<S::Cursor>,
        transit: &mut Transit<'p, '_>,
    ) {
        let by = Some(By::Rule(at));
        self.observer.unknown(at, Cause::Target);
        self.steps = self.steps.saturating_add(effects.len().try_into().unwrap_or(u32::MAX));
        for effect in effects {
            match effect {
                Effect::Accept => self.end(Verdict::Accept, by, false, stack),
                Effect::Drop => self.end(Verdict::Drop, by, false, stack),
                Effect::Return | Effect::Goto(_) => self.go_back(false, stack),
                _ => {}
            }
        }
        for effect in effects.iter().rev() {
            if let Effect::Jump(chain) | Effect::Goto(chain) = effect {
                let to = self.source.chain_at(*chain);
                self.enter(to, Entry::Jump { sure: false }, false, None, stack, transit);
            }
        }
    }

    /// A target of which nothing is known.
    pub(super) fn anything(
        &mut self,
        at: RuleRef,
        stack: &mut Stack<S::Cursor>,
        transit: &mut Transit<'p, '_>,
    ) {
        self.either(at, false, stack);
        self.verdicts.claim_anything();
        transit.mark = Mark { value: 0, unknown: u32::MAX };
        transit.forget_net(0..transit.packet.len());
    }
}
