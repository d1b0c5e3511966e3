//! The nat tables of a packet's walk: whether their chains see it, and what becomes of its flow.

use rules::Connection;
use rules::conntrack::Side;
use rules::eval::{Alive, Verdict};
use rules::nat::{self, Binding, Translated, Turn, icmp_error, rewrite};

use super::Walk;
use crate::handler::Observer;

impl Walk<'_, '_, '_> {
    /// The nat table, and the translation of the packet as its flow has it.
    pub(super) fn nat(&mut self, table: usize, observer: &mut impl Observer) {
        let side = nat::side_at(self.transit.hook);
        // A flow's end is decided on one way only.
        let turn = if self.lost_way { Turn::Doubt } else { nat::turn(&self.transit, side) };
        let translated = match turn {
            Turn::Pass => Translated::No,
            Turn::Rewrite => rewrite::packet(&mut self.transit, side),
            Turn::Decide => self.decide(table, side, observer),
            Turn::Doubt => self.doubt(table, side, observer),
            Turn::Error => icmp_error::packet(&mut self.transit, side),
        };
        self.transit.ct.binding = Binding::Closed;
        match translated {
            Translated::No => {}
            Translated::Dropped => self.drop_untold(),
            Translated::To(..) | Translated::Unknown => observer.translated(side, translated),
        }
    }

    /// The first packet of a flow: the chains decide for all of it.
    fn decide(&mut self, table: usize, side: Side, observer: &mut impl Observer) -> Translated {
        self.transit.ct.binding = Binding::Open;
        self.chains(table, observer);
        if self.alive == Alive::Gone {
            return Translated::No;
        }
        if self.transit.ct.binding == Binding::Open {
            nat::bind_null(&mut self.transit, side);
        }
        if self.transit.ct.binding == Binding::Lost && !nat::bind_drawn(&mut self.transit, side) {
            if self.transit.ct.drawn.is_some() {
                nat::forget(&mut self.transit, side);
            }
            self.lose_translation(side);
        }
        rewrite::packet(&mut self.transit, side)
    }

    /// Whether the chains see the packet, or saw its flow, is not known: what they may do is forgotten.
    fn doubt(&mut self, table: usize, side: Side, observer: &mut impl Observer) -> Translated {
        observer.enters(table as u32, self.transit.hook);
        let (transit, memories) = (&mut self.transit, &mut *self.memories);
        let found = self.tables.walk(table, transit, Alive::Maybe, memories, observer);
        if found.may_be(Verdict::Drop) && !self.let_go {
            self.verdicts.extend(&found.without_accept());
            self.alive = Alive::Maybe;
        }
        if let Some(seen) = nat::write_drawn(&mut self.transit, side) {
            nat::bind_drawn(&mut self.transit, side);
            return seen;
        }
        // What may answer a flow that was lost is no flow of its own, or one that the rules decide.
        let answers_any = self.tables.translates && nat::answers_any(&mut self.transit);
        let is_lost =
            self.transit.ct.binding == Binding::Lost || nat::is_translated(&self.transit, side);
        if is_lost {
            self.lose_translation(side);
        } else {
            self.settle_assumed(side);
        }
        if is_lost || answers_any {
            nat::forget(&mut self.transit, side);
            return Translated::Unknown;
        }
        Translated::No
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
