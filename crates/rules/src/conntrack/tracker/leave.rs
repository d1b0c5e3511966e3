//! The end of a packet's way: its flow is confirmed, discarded or closed, and its helper has a look.
//!
//! Source: Linux 6.18 `nf_conntrack_core.c` (`__nf_conntrack_confirm`, clashes), `nf_conntrack_proto.c`
//! (`nf_confirm`).

use super::Tracker;
use crate::conntrack::expect::Expectation;
use crate::conntrack::flow::Doubt;
use crate::conntrack::helper::Helper;
use crate::conntrack::helpers::{Help, Helpers};
use crate::conntrack::key::Direction;
use crate::conntrack::lost::End;
use crate::conntrack::table::{Conflict, Handle};
use crate::conntrack::tcp;
use crate::conntrack::unmodelled::{Seen, anything};
use crate::conntrack::view::{Certainty, CtState, CtView, States};
use packet::Packet;

/// What became of a packet at its confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// It goes on.
    Pass,
    /// The kernel drops it: another flow has one of its tuples, or there is no room for it.
    Clash,
    /// The kernel may drop it so.
    MayClash,
    /// The kernel's helper drops it: a command is cut, or what it foretells is taken.
    Helper,
    /// It goes on, but the kernel's helper may have written other addresses into its payload, and other numbers
    /// into the header of this and later packets.
    Rewritten,
}

impl Tracker {
    /// The packet leaves: its flow becomes findable, and its helper looks into it. `certainty` says
    /// whether it surely leaves.
    pub fn confirm(
        &mut self,
        packet: &Packet<'_>,
        view: &CtView,
        now: u64,
        certainty: Certainty,
    ) -> Confirmation {
        let Some(handle) = view.flow else { return Confirmation::Pass };
        let may_be_helped = self.may_be_helped(packet, view);
        let goes_on = match self.help(packet, view, handle, (now, certainty)) {
            Confirmation::Helper => return Confirmation::Helper,
            _ if may_be_helped || self.crowded == Some(handle) => Confirmation::MayClash,
            helped => helped,
        };
        let Some(flow) = self.table.flow_mut(handle) else { return Confirmation::Pass };
        if flow.is_confirmed() || view.direction == Direction::Reply {
            return goes_on;
        }
        if certainty == Certainty::Maybe || goes_on == Confirmation::MayClash {
            flow.raise_doubt(Doubt::Existence);
            flow.deadline = self.config.timeouts.longest(flow.original.protocol());
        }
        if flow.lost_ends != [false; 2] {
            flow.raise_doubt(Doubt::History);
            flow.deadline = self.config.timeouts.longest(flow.original.protocol());
        }
        let (doubt, original) = (flow.doubt, flow.original);
        let confirmed = self.table.confirm(handle, now);
        self.bury();
        match confirmed {
            Ok(()) => {
                self.loose_end = None;
                goes_on
            }
            Err(Conflict::With(other)) if self.may_be_no_clash(other, doubt) => {
                // Whether it is in the table is not known, nor what its replies look like.
                self.lost.expect(&original, true, true);
                Confirmation::MayClash
            }
            Err(_) => Confirmation::Clash,
        }
    }

    /// Whether a flow with a tuple of another one may get through all the same: one of them may not be there.
    /// Where both surely are, the packet is dropped, of any protocol: what the kernel merges are flows whose
    /// packets came at one time, of which the later one here finds the earlier.
    fn may_be_no_clash(&self, other: Handle, doubt: Doubt) -> bool {
        doubt != Doubt::None || self.table.flow(other).is_some_and(|flow| flow.doubt != Doubt::None)
    }

    /// Runs a flow's helper.
    fn help(
        &mut self,
        packet: &Packet<'_>,
        view: &CtView,
        handle: Handle,
        (now, certainty): (u64, Certainty),
    ) -> Confirmation {
        let Some(flow) = self.table.flow(handle).filter(|flow| flow.helper != Helper::None) else {
            return Confirmation::Pass;
        };
        let related = view.states.may_be(CtState::Related);
        if related && view.direction == Direction::Reply {
            return Confirmation::Pass;
        }
        // Numbers of a connection whose payload was rewritten are out of step with ours.
        let is_written = flow.is_translated() && flow.helper.writes();
        let is_out_of_step = is_written && flow.doubt == Doubt::History;
        if is_out_of_step {
            self.helpers.lose_lines(handle);
        }
        self.live_on(packet, view, handle, now);
        let Some(flow) = self.table.flow(handle) else { return Confirmation::Pass };
        let is_lost = flow.lost_ends != [false; 2];
        let is_open = is_lost || certainty == Certainty::Maybe || flow.doubt != Doubt::None;
        let established = view.states.may_be(CtState::Established);
        let goes_on = if is_out_of_step { Confirmation::Rewritten } else { Confirmation::Pass };
        match self.helpers.help(packet, (handle, flow), view.direction, established) {
            Help::Pass => goes_on,
            Help::Drop if is_open => Confirmation::MayClash,
            Help::Drop => Confirmation::Helper,
            Help::Broadcast(end) => {
                self.lost.foretell(end);
                goes_on
            }
            Help::Unmodelled => {
                anything(flow).into_iter().for_each(|end| self.lost.foretell(end));
                if is_written {
                    self.raise_doubt(handle, Doubt::History, now);
                }
                Confirmation::MayClash
            }
            Help::Uncertain(ends) => {
                self.expect_maybe(handle, ends);
                if is_written { Confirmation::Rewritten } else { Confirmation::MayClash }
            }
            Help::Expect(expectation) if is_open => {
                let ends = expectation.ends(flow);
                self.expect_maybe(handle, ends);
                if is_written { Confirmation::Rewritten } else { Confirmation::MayClash }
            }
            Help::Expect(expectation) => self.expect(expectation, is_written, now),
        }
    }

    /// Some helpers say how long their flow lives. One in doubt lives longer.
    fn live_on(&mut self, packet: &Packet<'_>, view: &CtView, handle: Handle, now: u64) {
        let Some(flow) = self.table.flow_mut(handle) else { return };
        let is_established = view.states.may_be(CtState::Established);
        let seen = Seen { packet, flow, direction: view.direction, is_established };
        if let Some(lifetime) = seen.lifetime()
            && flow.doubt == Doubt::None
        {
            flow.renew(now, lifetime);
        }
    }

    /// A packet of a translated flow has its payload rewritten where that foretells one.
    fn expect(&mut self, expectation: Expectation, is_written: bool, now: u64) -> Confirmation {
        let Some(flow) = self.table.flow_mut(expectation.master) else {
            return Confirmation::Pass;
        };
        let added = Helpers::expect(&mut self.expectations, flow, expectation, now);
        match (added, is_written) {
            (true, false) => Confirmation::Pass,
            (false, false) => Confirmation::Helper,
            (added, true) => {
                flow.raise_doubt(Doubt::History);
                if !added {
                    // The kernel draws another port.
                    self.lost.expect(&flow.original, true, true);
                }
                Confirmation::Rewritten
            }
        }
    }

    /// Whether the kernel's helper saw this is not known, nor whether it took the place of what was foretold before.
    fn expect_maybe(&mut self, master: Handle, ends: [End; 2]) {
        let flow = self.table.flow(master);
        let before = self.expectations.of(master).zip(flow).map(|(found, flow)| found.ends(flow));
        before.into_iter().chain([ends]).flatten().for_each(|end| self.lost.foretell(end));
        self.expectations.forget(master);
    }

    /// Whether the packet may be a reply to a flow that was not found, and its helper may have a look.
    fn may_be_helped(&mut self, packet: &Packet<'_>, view: &CtView) -> bool {
        let flow = view.flow.filter(|_| !self.masters.is_empty());
        let Some(flow) = flow.and_then(|handle| self.table.flow(handle)) else { return false };
        if !flow.is_stand_in() && view.states != States::ANY {
            return false;
        }
        let tuple = *flow.tuple(view.direction);
        self.masters.may_foretell(packet, &tuple, &mut self.lost)
    }

    /// The packet does not leave: a flow that it created is forgotten.
    pub fn discard(&mut self, view: &CtView) {
        if view.flow.is_some() && view.flow == self.loose_end {
            self.tie_up();
        }
    }

    /// A reset was sent in the name of the packet's other side (`REJECT --reject-with tcp-reset`).
    pub fn close(&mut self, view: &CtView, now: u64) {
        let Some(flow) = view.flow.and_then(|handle| self.table.flow_mut(handle)) else { return };
        tcp::close(flow, now, &self.config);
    }
}
