//! The nat tables of a packet's walk: whether their chains see it, and what they do to its flow.

use conntrack::{Side, Taken};
use rules::Connection;
use rules::Outcome;
use rules::Transit;
use rules::eval::{self, Alive, Cause, Claim, RuleRef, Verdict};
use rules::ext::Memory;
use rules::model::{Action, Hook};
use rules::nat::{self, Redirected, Translated, Translation, Turn, icmp_error, rewrite};

use super::Walk;
use crate::disposition::Why;
use crate::observer::Observer;

/// Sees chains that the packet may not have met.
struct Doubtful<'o, O>(&'o mut O);

impl<O: Observer> eval::Observer for Doubtful<'_, O> {
    const SEES_RULES: bool = O::SEES_RULES;

    fn rule(&mut self, at: RuleRef, outcome: Outcome, alive: Alive, transit: &Transit<'_, '_>) {
        let alive = if alive == Alive::Certain { Alive::Maybe } else { alive };
        self.0.rule(at, outcome, alive, transit);
    }

    fn asked(&mut self, at: RuleRef, index: usize, outcome: Outcome) {
        self.0.asked(at, index, outcome);
    }

    fn remembered(&mut self, at: RuleRef, memory: &dyn Memory) {
        self.0.remembered(at, memory);
    }

    fn hit(&mut self, at: RuleRef, _: bool, transit: &Transit<'_, '_>) {
        self.0.hit(at, false, transit);
    }

    fn counted(&mut self, slot: u32, _: bool, transit: &Transit<'_, '_>) {
        self.0.counted(slot, false, transit);
    }

    fn policy(&mut self, table: u32, chain: u32, _: bool, transit: &Transit<'_, '_>) {
        self.0.policy(table, chain, false, transit);
    }

    fn off_end(&mut self, table: u32, chain: u32, _: bool) {
        self.0.off_end(table, chain, false);
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.0.unknown(at, cause);
    }

    fn stops(&self) -> bool {
        self.0.stops()
    }
}

impl<O: Observer> Observer for Doubtful<'_, O> {
    fn enters(&mut self, table: u32, hook: Hook) {
        self.0.enters(table, hook);
    }
}

impl Walk<'_, '_, '_> {
    /// The nat table, and the translation of the packet as its flow has it.
    pub(super) fn nat(&mut self, table: usize, observer: &mut impl Observer) {
        let side = nat::side_at(self.transit.hook);
        // A flow's end is decided on one way only.
        let turn =
            if self.is_way_indeterminate() { Turn::Doubt } else { nat::turn(self.transit, side) };
        let translated = match turn {
            Turn::Pass => Translated::No,
            Turn::Rewrite => rewrite::packet(self.transit, side),
            Turn::Decide if self.as_left && self.transit.hook == Hook::Output => {
                self.find_decided(table, side, observer)
            }
            Turn::Decide => self.decide(table, side, observer),
            Turn::Doubt => self.doubt(table, side, observer),
            Turn::Error => icmp_error::packet(self.transit, side),
        };
        match translated {
            Translated::No => {}
            Translated::Dropped => self.drop_untold(),
            Translated::To(..) | Translated::Unknown => observer.translated(side, translated),
            Translated::UnknownOrDropped => {
                observer.translated(side, Translated::Unknown);
                self.may_drop(Why::Translation, observer);
            }
        }
    }

    /// The first packet of a flow of the host's own, recorded as the chains here have left it: where it was going
    /// before, and so which rules it met, is not known.
    fn find_decided(
        &mut self,
        table: usize,
        side: Side,
        observer: &mut impl Observer,
    ) -> Translated {
        observer.enters(table as u32, self.transit.hook);
        let known = self.transit.packet.known();
        nat::forget(self.transit, side);
        self.rules_of(table, Alive::Maybe, &mut Doubtful(observer));
        self.transit.packet.knows(known);
        nat::bind_null(self.transit, side);
        rewrite::packet(self.transit, side)
    }

    /// The first packet of a flow: the chains decide for all of it.
    fn decide(&mut self, table: usize, side: Side, observer: &mut impl Observer) -> Translated {
        let claim = match self.transit.ct.view.taken {
            Taken::Seen => self.chains(table, observer),
            // Its first packet may have been an earlier one, which then was translated as this one is.
            Taken::For(_) | Taken::ForNone => self.chains(table, &mut Doubtful(observer)),
        };
        if self.alive == Alive::Gone {
            return Translated::No;
        }
        self.note_source(claim, side);
        if !self.bind(claim, side) && !self.bind_drawn(side) {
            nat::forget(self.transit, side);
            self.lose_translation(side);
        }
        rewrite::packet(self.transit, side)
    }

    /// Gives the packet's flow what the chains have made of it; false where that is not known.
    fn bind(&mut self, claim: Claim, side: Side) -> bool {
        self.redirect(claim, side);
        match claim {
            Claim::By(at) => match self.translation(at) {
                Some(translation) => nat::bind(self.transit, &translation),
                None => nat::bind_null(self.transit, side),
            },
            Claim::None => nat::bind_null(self.transit, side),
            Claim::Open { draws, .. } => {
                if draws && self.drawn.is_none() {
                    nat::crowd(self.transit);
                }
                false
            }
        }
    }

    /// What was seen of the packet afterwards tells.
    fn bind_drawn(&mut self, side: Side) -> bool {
        self.drawn.is_some_and(|drawn| nat::bind_drawn(self.transit, &drawn, side))
    }

    /// A rule sends it to this host, or may.
    fn redirect(&mut self, claim: Claim, side: Side) {
        let redirects = match claim {
            Claim::By(at) if self.translation(at).is_some_and(|made| made.redirects) => {
                Redirected::Certainly
            }
            Claim::Open { redirects: true, .. } if side == Side::Destination => Redirected::Maybe,
            Claim::None | Claim::By(_) | Claim::Open { .. } => return,
        };
        if self.redirected != Redirected::Certainly {
            self.redirected = redirects;
        }
    }

    /// What a rule's target makes of the packet's flow.
    fn translation(&self, at: RuleRef) -> Option<Translation> {
        match &self.tables.rule(at)?.action {
            Action::Target(target) => target.body.translation(self.transit),
            _ => None,
        }
    }

    /// Whether the chains see the packet, or saw its flow, is not known: what they may do is forgotten.
    fn doubt(&mut self, table: usize, side: Side, observer: &mut impl Observer) -> Translated {
        observer.enters(table as u32, self.transit.hook);
        let found = self.rules_of(table, Alive::Maybe, observer);
        if found.may_be(Verdict::Drop) && !self.let_go {
            self.verdicts.extend(&found.without_accept());
            self.alive = Alive::Maybe;
        }
        let claim = found.translated_by();
        self.note_source(claim, side);
        self.redirect(claim, side);
        if let Some(drawn) = self.drawn
            && let Some(seen) = nat::write_drawn(self.transit, &drawn, side)
        {
            nat::bind_drawn(self.transit, &drawn, side);
            return seen;
        }
        if matches!(claim, Claim::Open { draws: true, .. }) && self.drawn.is_none() {
            nat::crowd(self.transit);
        }
        // What may answer a flow that is indeterminate is no flow of its own, or one that the rules decide.
        let answers_any = self.tables.translates && nat::answers_any(self.transit);
        let is_lost = claim != Claim::None
            || nat::is_translated(self.transit, side)
            || side == Side::Source && self.moves_source();
        if is_lost {
            self.lose_translation(side);
        } else {
            self.settle_assumed(side);
        }
        if is_lost || answers_any {
            return nat::forget(self.transit, side);
        }
        Translated::No
    }

    /// What the destination may be, where that is open, tells whether the source's port may change, too: once the
    /// destination is lost nobody could say.
    fn note_source(&mut self, claim: Claim, side: Side) {
        if let (Claim::Open { moves_source, .. }, Side::Destination) = (claim, side) {
            self.moves_source = moves_source || nat::may_move_source(self.transit, None);
        }
    }

    /// Whether the kernel may draw a source port that no rule claims.
    fn moves_source(&mut self) -> bool {
        self.moves_source || nat::may_move_source(self.transit, None)
    }

    fn lose_translation(&mut self, side: Side) {
        let Connection { tracker: Some(tracker), view, .. } = &mut self.transit.ct else { return };
        if let Some(flow) = view.flow {
            tracker.lose_translation(flow, view.direction, side);
        }
    }

    /// A flow that was taken for established, and that no rule may translate, is not translated.
    fn settle_assumed(&mut self, side: Side) {
        let Connection { tracker: Some(tracker), view, .. } = &mut self.transit.ct else { return };
        if let Some(flow) = view.flow.filter(|_| view.assumed).and_then(|at| tracker.flow_mut(at)) {
            flow.decide(side);
        }
    }
}
