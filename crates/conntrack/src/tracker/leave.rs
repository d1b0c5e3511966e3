//! The end of a packet's way: its flow is confirmed, discarded or closed, and its helper inspects it.
//!
//! Source: Linux 6.18 `nf_conntrack_core.c` (`__nf_conntrack_confirm`, clashes), `nf_conntrack_proto.c`
//! (`nf_confirm`).

use super::flows::Tracker;
use crate::edit::Edit;
use crate::flow::{Doubt, Flow, Unseen};
use crate::helper::Helper;
use crate::index::Handle;
use crate::key::Direction;
use crate::table::Conflict;
use crate::tcp;
use crate::view::{Certainty, CtView};
use packet::Packet;

/// Result of confirming a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// The packet goes on.
    Pass,
    /// The kernel drops it: another flow has one of its tuples, or there is no room for it.
    Clash,
    /// The kernel may drop it so.
    MayClash,
    /// The kernel's helper drops it: a command is cut, or what it expects is taken.
    Helper,
    /// The packet goes on, with this written into it.
    Edited(Edit),
    /// The packet goes on, but the kernel's helper may have written other addresses into its payload, and other numbers
    /// into its header.
    Rewritten,
}

impl Tracker {
    /// The packet leaves: its flow becomes findable, and its helper looks into it. `certainty` says
    /// whether it surely leaves.
    #[inline]
    pub fn confirm(
        &mut self,
        packet: &Packet<'_>,
        view: &CtView,
        now: u64,
        certainty: Certainty,
    ) -> Confirmation {
        let Some(handle) = view.flow else { return Confirmation::Pass };
        let is_settled = |flow: &Flow| flow.is_confirmed() && flow.helper == Helper::None;
        if self.table.flow(handle).is_some_and(is_settled)
            && self.masters.is_empty()
            && self.crowded.is_none()
        {
            return Confirmation::Pass;
        }
        self.confirm_first(packet, view, handle, now, certainty)
    }

    /// [`Self::confirm`] for a flow's first packet, and for packets that a helper may look into.
    fn confirm_first(
        &mut self,
        packet: &Packet<'_>,
        view: &CtView,
        handle: Handle,
        now: u64,
        certainty: Certainty,
    ) -> Confirmation {
        // Where it may have been there before, it is there.
        let is_early = self.table.flow(handle).is_some_and(|flow| flow.unseen == Unseen::Beginning);
        let certainty = if is_early { Certainty::Certain } else { certainty };
        let may_be_helped = self.may_be_helped(packet, view);
        let goes_on = match self.help(packet, view, handle, now, certainty) {
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
        if flow.indeterminate_ends != [false; 2] {
            flow.raise_doubt(Doubt::History);
            flow.deadline = self.config.timeouts.longest(flow.original.protocol());
        }
        let (doubt, original, reply) = (flow.doubt, flow.original, flow.reply);
        let is_sure = doubt == Doubt::None && flow.is_translated();
        let confirmed = self.table.confirm(handle, now);
        self.bury();
        match confirmed {
            Ok(()) => {
                self.loose_end = None;
                // A port, or an address, that leaves no choice is taken without asking whose it is.
                if !is_sure || !self.untraceable.may_include(&reply) {
                    return goes_on;
                }
                self.raise_doubt(handle, Doubt::Existence, now);
                Confirmation::MayClash
            }
            Err(Conflict::With(other)) if self.may_be_no_clash(other, doubt) => {
                // Whether it is in the table is not known, nor what its replies look like.
                self.untraceable.expect(&original, true, true);
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
