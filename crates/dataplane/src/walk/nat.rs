//! The nat tables of a packet's walk: whether their chains see it, and what they do to its flow.

use conntrack::{Direction, Side, Taken};
use rules::Connection;
use rules::eval::{Alive, Claim, RuleRef, Verdict, Verdicts};
use rules::model::{Action, Hook};
use rules::nat::{self, Redirected, Translated, Translation, Turn, icmp_error, rewrite};

use super::doubtful::Doubtful;
use super::packet_walk::Walk;
use super::tables::Attached;
use crate::disposition::Why;
use crate::observer::Observer;

impl Walk<'_, '_, '_> {
    /// The nat table, and the translation of the packet as its flow has it. Where a host has two, the first has the turn of
    /// both: the kernel asks the second about flows that the first translates not.
    pub(super) fn nat(&mut self, attached: &Attached, observer: &mut impl Observer) {
        if self.tables.follows_nat(self.transit.hook, attached) {
            return;
        }
        let side = nat::side_at(self.transit.hook);
        // A flow's end is decided on one way only.
        let turn =
            if self.is_way_indeterminate() { Turn::Doubt } else { nat::turn(self.transit, side) };
        let translated = match turn {
            _ if self.recorded.is_partial && self.may_answer_others(turn) => {
                self.answers_others(attached, turn, observer)
            }
            Turn::Pass => Translated::No,
            Turn::Rewrite => self.rewrite(side),
            Turn::Decide if self.recorded.as_left && self.transit.hook == Hook::Output => {
                self.find_decided(attached, side, observer)
            }
            Turn::Decide => self.decide(attached, side, observer),
            Turn::Doubt if self.answers_hidden() => {
                self.nat_rules(attached, observer);
                self.rewrite(side)
            }
            Turn::Doubt => self.doubt(attached, side, observer),
            Turn::Error => icmp_error::packet(self.transit, side),
        };
        if self.recorded.hidden.is_some() {
            self.reveal(side);
        }
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

    /// The chains of a table that translates and of those after it: which rule translates the flow.
    fn nat_chains(&mut self, attached: &Attached, observer: &mut impl Observer) -> Claim {
        let tables = self.tables;
        let mut claim = self.chains(attached, observer);
        for next in tables.nat_after(self.transit.hook, *attached) {
            if !self.progress.is_alive() {
                return claim;
            }
            claim = match claim {
                Claim::By(_) => return claim,
                Claim::None => self.chains(next, observer),
                Claim::Open { .. } => {
                    observer.enters(next.table, next.chain(), self.transit.hook);
                    let found = self.rules_of(next, Alive::Maybe, observer);
                    self.may_be_dropped(&found);
                    claim.or(found.translated_by())
                }
            };
        }
        claim
    }

    /// What rules of a table that translates, and of those after it, say that may see the packet.
    pub(super) fn nat_rules(
        &mut self,
        attached: &Attached,
        observer: &mut impl Observer,
    ) -> Verdicts {
        let (tables, hook) = (self.tables, self.transit.hook);
        observer.enters(attached.table, attached.chain(), hook);
        let mut found = self.rules_of(attached, Alive::Maybe, observer);
        for next in tables.nat_after(hook, *attached) {
            observer.enters(next.table, next.chain(), hook);
            found.or_later(&self.rules_of(next, Alive::Maybe, observer));
        }
        found
    }

    /// Rules that may have seen the packet drop it, or may.
    fn may_be_dropped(&mut self, found: &Verdicts) {
        if found.may_be(Verdict::Drop) && !self.recorded.let_go {
            self.progress.verdicts.extend(&found.without_accept());
            self.progress.alive = Alive::Maybe;
        }
    }

    /// What was decided for its flow. Replies whose destination may have been another one are for the host all the same.
    fn rewrite(&mut self, side: Side) -> Translated {
        let translated = rewrite::packet(self.transit, side);
        // Of links that were not recorded they may be for others.
        if translated == Translated::Unknown && !self.recorded.is_partial && self.answers_hidden() {
            self.moved.redirected = Redirected::Certainly;
        }
        translated
    }

    /// Whether it came to PREROUTING as an answer to packets whose source is not known.
    fn answers_hidden(&self) -> bool {
        let Connection { tracker: Some(tracker), view, .. } = &self.transit.ct else {
            return false;
        };
        self.transit.hook == Hook::Prerouting
            && view.direction == Direction::Reply
            && view
                .flow
                .and_then(|at| tracker.flow(at))
                .is_some_and(|flow| flow.is_hidden(Side::Source))
    }

    /// The first packet of a flow of the host's own, recorded as the chains here have left it: where it was going
    /// before, and so which rules it met, is not known.
    fn find_decided(
        &mut self,
        attached: &Attached,
        side: Side,
        observer: &mut impl Observer,
    ) -> Translated {
        if self.hides(side) {
            self.nat_rules(attached, &mut Doubtful { observer, times: 1 });
        } else {
            // No rule here leads where it went: none has translated it.
            self.nat_chains(attached, observer);
        }
        nat::bind_null(self.transit, side);
        rewrite::packet(self.transit, side)
    }

    /// The first packet of a flow: the chains decide for all of it.
    fn decide(
        &mut self,
        attached: &Attached,
        side: Side,
        observer: &mut impl Observer,
    ) -> Translated {
        let claim = match self.transit.ct.view.taken {
            Taken::Seen => self.nat_chains(attached, observer),
            // Its first packet may have been an earlier one, which then was translated as this one is.
            Taken::For(_) | Taken::ForNone => {
                self.nat_chains(attached, &mut Doubtful { observer, times: 1 })
            }
        };
        if !self.progress.is_alive() {
            return Translated::No;
        }
        self.note_source(claim, side);
        let may_move = claim == Claim::None && side == Side::Source && self.moved.moves_source;
        if (may_move || !self.bind(claim, side)) && !self.bind_drawn(side) {
            // A destination that others have makes the kernel draw a source port.
            self.moved.moves_source |= side == Side::Destination && nat::is_crowded(self.transit);
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
                self.may_clash(draws, side);
                false
            }
        }
    }

    /// A rule that may translate the packet's flow may give it a mapping that another flow has, unless what was seen tells.
    fn may_clash(&mut self, draws: bool, side: Side) {
        if (draws || !nat::has_part(self.transit, side)) && self.recorded.drawn.is_none() {
            nat::crowd(self.transit);
        }
    }

    /// Another flow may have the one mapping of a flow without ports, unless what was seen tells.
    fn may_be_taken(&mut self, side: Side, made: Option<&Translation>) {
        if self.recorded.drawn.is_none() && nat::may_be_taken(self.transit, side, made) {
            nat::crowd(self.transit);
        }
    }

    /// What was seen of the packet afterwards tells.
    fn bind_drawn(&mut self, side: Side) -> bool {
        self.recorded.drawn.is_some_and(|drawn| nat::bind_drawn(self.transit, &drawn, side))
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
        if self.moved.redirected != Redirected::Certainly {
            self.moved.redirected = redirects;
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
    fn doubt(
        &mut self,
        attached: &Attached,
        side: Side,
        observer: &mut impl Observer,
    ) -> Translated {
        let found = self.nat_rules(attached, observer);
        self.may_be_dropped(&found);
        let claim = found.translated_by();
        self.note_source(claim, side);
        self.redirect(claim, side);
        if let Some(drawn) = self.recorded.drawn
            && let Some(seen) = nat::write_drawn(self.transit, &drawn, side)
        {
            nat::bind_drawn(self.transit, &drawn, side);
            return seen;
        }
        match claim {
            Claim::Open { draws, .. } => self.may_clash(draws, side),
            Claim::By(at) => {
                let made = self.translation(at);
                self.may_be_taken(side, made.as_ref());
            }
            Claim::None if side == Side::Source => self.may_be_taken(side, None),
            Claim::None => {}
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
        let is_vague = |at| self.translation(at).is_some_and(|made| made.is_vague);
        let moves_source = match claim {
            Claim::Open { moves_source, .. } => moves_source,
            Claim::By(at) if is_vague(at) => false,
            Claim::By(_) | Claim::None => return,
        };
        if side == Side::Destination {
            self.moved.moves_source = moves_source || nat::may_move_source(self.transit, None);
        }
    }

    /// Whether the kernel may draw a source port that no rule claims.
    fn moves_source(&mut self) -> bool {
        self.moved.moves_source || nat::may_move_source(self.transit, None)
    }

    pub(super) fn lose_translation(&mut self, side: Side) {
        let Connection { tracker: Some(tracker), view, .. } = &mut self.transit.ct else { return };
        match view.flow {
            Some(flow) => tracker.lose_translation(flow, view.direction, side),
            None => tracker.lose_overlooked(side),
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
