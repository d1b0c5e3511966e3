//! The host's own packets that were recorded as they left: what of their ends rules may have translated is not known until
//! they pass the hook where they do so.
//!
//! Contract: only what a rule may have made of another address is hidden, and of the source only where it is not the
//! address of the interface that the first route leads out by, which a program has that asks for none.

use std::net::IpAddr;

use conntrack::{Before, CtView, Side};
use packet::{KnownBytes, Packet};
use rules::eval::{self, Alive, RuleRef};
use rules::model::{Action, Hook};
use rules::nat::{self, Drawn, undo};
use rules::{Connection, Iface, Transit};

use super::packet_walk::{Hidden, Walk};
use super::tables::Tables;
use crate::routing::way::addresses;

/// Finds out whether rules translate to what was seen.
struct Finder<'t> {
    tables: &'t Tables,
    side: Side,
    seen: (IpAddr, u16),
    found: bool,
}

impl eval::Observer for Finder<'_> {
    const SEES_RULES: bool = false;

    fn hit(&mut self, at: RuleRef, _: bool, transit: &Transit<'_, '_>) {
        let Some(Action::Target(target)) = self.tables.rule(at).map(|rule| &rule.action) else {
            return;
        };
        let made = target.body.translation(transit).filter(|made| made.side == self.side);
        self.found |= made.is_some_and(|made| made.may_give(self.seen.0, self.seen.1));
    }
}

impl<'p> Walk<'p, '_, '_> {
    /// Gives a packet that was recorded as it left by `output` the ends that it was made with, or hides them; `natural` is
    /// the source that its first route gives it.
    pub(crate) fn made_by_host(
        &mut self,
        output: Iface<'p>,
        natural: impl FnOnce(&Packet<'_>) -> Option<IpAddr>,
    ) {
        let now = self.transit.time.unwrap_or(0);
        if let Some(tracker) = &mut self.transit.ct.tracker {
            tracker.begin(self.tracking.visit.began.unwrap_or(now));
        }
        let before = undo(self.transit, self.recorded.is_partial);
        self.recorded.may_pass = self.recorded.is_partial && self.may_be_of_others(&before, output);
        if !self.tables.translates {
            return;
        }
        match before {
            Before::AsItIs | Before::Lost | Before::Made(_) => {}
            Before::Hidden(ends) => self.hide(ends),
            Before::New => {
                let Some(Drawn { source, .. }) = self.recorded.drawn else { return };
                let to = self.may_come_of(Hook::Output, Side::Destination, output);
                let from = self.may_come_of(Hook::Postrouting, Side::Source, output);
                let may_be_natural = !to && !self.recorded.may_pass;
                let is_natural = may_be_natural && natural(self.transit.packet) == Some(source);
                self.hide([from && !is_natural, to]);
            }
        }
    }

    /// Whether a rule at a hook may have given the packet the end that was seen.
    pub(super) fn may_come_of(&mut self, hook: Hook, side: Side, output: Iface<'_>) -> bool {
        let Some(drawn) = self.recorded.drawn else { return false };
        let [source_port, destination_port] = drawn.ports.unwrap_or_default();
        let seen = match side {
            Side::Source => (drawn.source, source_port),
            Side::Destination => (drawn.destination, destination_port),
        };
        self.may_give((hook, side), output, seen)
    }

    /// Whether a rule at a hook may give some packet this end. Leaves no trace.
    pub(super) fn may_give(
        &mut self,
        (hook, side): (Hook, Side),
        output: Iface<'_>,
        seen: (IpAddr, u16),
    ) -> bool {
        let tables = self.tables;
        let mut all = tables.at(hook).1.iter().filter(|turn| turn.translates()).peekable();
        if all.peek().is_none() {
            return false;
        }
        let mut snapshot = self.transit.packet.snapshot();
        let mut packet = snapshot.packet();
        let mut transit = Transit {
            mark: packet::Mark { value: 0, unknown: u32::MAX },
            time: self.transit.time,
            ct: Connection { view: CtView::UNKNOWN, again: true, ..Connection::default() },
            input: Iface::Absent,
            output: if hook == Hook::Output { Iface::Unknown } else { output },
            ..Transit::new(&mut packet, self.transit.family, hook, self.transit.host)
        };
        nat::forget(&mut transit, side);
        let mut finder = Finder { tables, side, seen, found: false };
        for turn in all {
            let memories = &mut *self.memories;
            tables.walk(turn, &mut transit, Alive::Maybe, memories, &mut finder);
        }
        finder.found
    }

    fn hide(&mut self, ends: [bool; 2]) {
        if ends == [false; 2] {
            return;
        }
        let recorded = self.transit.packet.known();
        if ends[0] {
            nat::forget_address(self.transit, Side::Source);
        }
        let source = self.transit.packet.known();
        if ends[1] {
            nat::forget(self.transit, Side::Destination);
        }
        let all = self.transit.packet.known();
        self.recorded.hidden = Some(Hidden { ends, recorded, source, all });
    }

    /// It has passed what may have translated this end: from here on it is what was recorded, unless more was forgotten.
    pub(super) fn reveal(&mut self, side: Side) {
        let Some(Hidden { recorded, source, all, .. }) = self.recorded.hidden else { return };
        let now = self.transit.packet.known();
        match side {
            Side::Destination if now == all => self.transit.packet.knows(source),
            Side::Source if now == source || now == all => self.transit.packet.knows(recorded),
            _ => {}
        }
    }

    /// Whether this end is hidden.
    pub(super) fn hides(&self, side: Side) -> bool {
        self.recorded.hidden.is_some_and(|hidden| hidden.ends[side as usize])
    }

    /// Shows the packet to tracking as it was recorded: its connection has those ends on every other packet, too.
    pub(super) fn as_recorded(&mut self) -> Option<KnownBytes> {
        let hidden = self.recorded.hidden?;
        let now = self.transit.packet.known();
        self.transit.packet.knows(hidden.recorded);
        Some(now)
    }

    /// Its connection's ends are hidden from then on.
    pub(super) fn hide_flow(&mut self) {
        let Some(Hidden { ends, .. }) = self.recorded.hidden else { return };
        let Connection { tracker: Some(tracker), view, .. } = &mut self.transit.ct else { return };
        if let Some(flow) = view.flow.and_then(|at| tracker.flow_mut(at)) {
            flow.hide(ends);
        }
    }

    /// Its addresses; a source that is hidden is taken for the recorded one, which routes seldom ask for.
    pub(crate) fn routed_addresses(&self) -> Option<(IpAddr, IpAddr)> {
        match (self.recorded.hidden, self.recorded.drawn) {
            (Some(Hidden { ends: [true, false], .. }), Some(drawn)) => {
                Some((drawn.source, drawn.destination))
            }
            _ => addresses(self.transit.packet),
        }
    }
}
