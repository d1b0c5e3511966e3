//! Packets that were recorded as they left, where links by which packets may have come were not recorded: what may have been
//! forwarded is not known to be the host's own.
//!
//! Contract: where it came from is in doubt, that it left is not: it is tracked and sees POSTROUTING for certain, unless a
//! bridge may have passed it on by itself, and each rule before that may have hit it. Its verdict is not known.

use conntrack::{AnswerKind, Before, CtState, Side, Taken, answered};
use packet::Mark;
use rules::eval::{Alive, Verdict};
use rules::model::Hook;
use rules::nat::{self, Drawn, Translated, Turn, rewrite};
use rules::{Connection, Iface, Request, Role};

use super::packet_walk::Walk;
use super::tables::Attached;
use crate::disposition::Why;
use crate::observer::Observer;

impl<'p> Walk<'p, '_, '_> {
    /// What is given of few packets: the state of the connection, and whether links on which it may have arrived were not
    /// recorded.
    #[cold]
    pub(crate) fn is_told(&mut self, state: Option<CtState>, is_partial: bool) {
        self.recorded.is_partial = is_partial;
        // What is known to have no connection must not touch that of another packet with its addresses.
        if state == Some(CtState::Untracked) {
            self.transit.ct.request(Request::Untracked, true);
        }
    }

    /// Whether it may be another host's.
    pub(crate) fn may_pass(&self) -> bool {
        self.recorded.may_pass
    }

    /// Whether a packet that left by `output` may be another host's, with what its flow made of it.
    pub(super) fn may_be_of_others(&mut self, before: &Before, output: Iface<'p>) -> bool {
        let Some(drawn) = self.recorded.drawn else { return false };
        let host = self.transit.host;
        let is_foreign = |addr| host.is_local(addr) == Some(false);
        if is_foreign(drawn.source) {
            return true;
        }
        let is_error = || matches!(answered(self.transit.packet), Some((AnswerKind::Error, _)));
        match *before {
            Before::Made(made) => is_foreign(made.source()),
            Before::Hidden([source, _]) => source,
            Before::AsItIs if !is_error() => false,
            Before::AsItIs | Before::New | Before::Lost => {
                self.tables.translates && self.may_come_of(Hook::Postrouting, Side::Source, output)
            }
        }
    }

    /// The hooks before POSTROUTING: it came to PREROUTING and FORWARD, or to OUTPUT; or, where it may be past all rules, it
    /// met none.
    pub(crate) fn comes_either_way(
        &mut self,
        output: Iface<'p>,
        may_be_past: bool,
        observer: &mut impl Observer,
    ) {
        if may_be_past {
            self.progress.alive = Alive::Maybe;
        }
        observer.depends_on(Why::Unrecorded);
        let (tables, input, none) = (self.tables, Iface::Unknown, Iface::Absent);
        self.forget_mark();
        let (before_tracking, came) = tables.at(Hook::Prerouting);
        let (raw, made) = tables.at(Hook::Output);
        self.perhaps(before_tracking, (Hook::Prerouting, input, none), observer);
        self.perhaps(raw, (Hook::Output, none, output), observer);
        if matches!(answered(self.transit.packet), Some((AnswerKind::Error, _))) {
            self.transit.ct.request(Request::Unknown, false);
        }
        self.meet(observer);
        self.perhaps(came, (Hook::Prerouting, input, none), observer);
        let is_first = matches!(nat::turn(self.transit, Side::Destination), Turn::Decide);
        if is_first {
            nat::bind_null(self.transit, Side::Destination);
        } else {
            rewrite::packet(self.transit, Side::Destination);
        }
        let (_, forwarded) = tables.at(Hook::Forward);
        self.perhaps(forwarded, (Hook::Forward, input, output), observer);
        if !is_first && self.recorded.hidden.is_none() && self.has_moved_source() {
            nat::forget_address(self.transit, Side::Source);
        }
        self.perhaps(made, (Hook::Output, none, output), observer);
        self.forget_mark();
        self.progress.verdicts.add(Verdict::Drop, None);
    }

    /// Whether a packet that came in may answer one of others, of which nothing was recorded but how it left: then what
    /// PREROUTING makes of its destination is not known. Of an older flow the beginning would have been seen.
    pub(super) fn may_answer_others(&mut self, turn: Turn) -> bool {
        if self.transit.hook != Hook::Prerouting || self.recorded.as_left || !self.tables.translates
        {
            return false;
        }
        let Connection { tracker, view, .. } = &self.transit.ct;
        let flow = tracker.as_ref().zip(view.flow).and_then(|(tracker, at)| tracker.flow(at));
        match turn {
            Turn::Error => flow.is_some_and(|flow| flow.is_hidden(Side::Source)),
            Turn::Decide | Turn::Doubt if view.assumed || view.taken != Taken::Seen => {
                let Drawn { destination, ports, .. } = Drawn::of(self.transit.packet);
                let seen = (destination, ports.map_or(0, |[_, port]| port));
                let came_by = self.transit.input;
                self.may_give((Hook::Postrouting, Side::Source), came_by, seen)
            }
            Turn::Decide | Turn::Doubt | Turn::Rewrite | Turn::Pass => false,
        }
    }

    /// The destination of a packet that may answer one of others is not known from here on, nor how its flow is translated.
    pub(super) fn answers_others(
        &mut self,
        attached: &Attached,
        turn: Turn,
        observer: &mut impl Observer,
    ) -> Translated {
        if turn != Turn::Error {
            self.nat_rules(attached, observer);
            self.lose_translation(Side::Destination);
        }
        nat::forget(self.transit, Side::Destination)
    }

    /// Rules that may see it; what they may do to it is not known then.
    fn perhaps(
        &mut self,
        turns: &[Attached],
        (hook, input, output): (Hook, Iface<'p>, Iface<'p>),
        observer: &mut impl Observer,
    ) {
        self.stands_at(hook, input, output);
        for attached in turns {
            let sees = match attached.role {
                Some(Role::Translate) => {
                    let turn = nat::turn(self.transit, nat::side_at(hook));
                    self.tables.tracks && matches!(turn, Turn::Decide | Turn::Doubt)
                }
                Some(_) => true,
                None => false,
            };
            if sees {
                observer.enters(attached.table, attached.chain(), hook);
                self.rules_of(attached, Alive::Maybe, observer);
            }
        }
    }

    fn forget_mark(&mut self) {
        self.transit.mark = Mark { value: 0, unknown: u32::MAX };
    }

    /// Whether its source is another one than that with which it left.
    fn has_moved_source(&self) -> bool {
        let now = crate::routing::way::addresses(self.transit.packet).map(|(source, _)| source);
        self.recorded.drawn.is_some_and(|drawn| now != Some(drawn.source))
    }
}
