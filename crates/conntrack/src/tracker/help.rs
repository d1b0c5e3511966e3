//! A flow's helper inspects a packet that leaves: which flow it announces, and what is written into it where
//! the flow is translated.
//!
//! A payload is rewritten once it is known that it is, and to what; from then on the numbers of both directions move.
//! What depends on a doubt, or on a port that the kernel draws, leaves the flow in doubt: its payloads and numbers are
//! not known any more.
//!
//! Source: Linux 6.18 `nf_conntrack_proto.c` (`nf_confirm`), `nf_conntrack_ftp.c`, `nf_nat_ftp.c`, `nf_nat_helper.c`
//! (`nf_nat_exp_find_port`, `nf_nat_mangle_tcp_packet`).

use super::flows::Tracker;
use super::leave::Confirmation;
use crate::chance::Chance;
use crate::edit::{Edit, Renumbering, Replacement};
use crate::expect::{Added, Expectation, Followed};
use crate::flow::{Doubt, Flow};
use crate::ftp::text::Text;
use crate::helper::Helper;
use crate::helpers::{Help, Mention};
use crate::index::Handle;
use crate::key::{Direction, Tuple};
use crate::status::Status;
use crate::unmodelled::Payload;
use crate::untraceable::{Pattern, anything};
use crate::view::{Certainty, CtState, CtView, States};
use packet::Packet;

/// How often a port is drawn before there is none.
const DRAWS: u16 = 128;

/// Ports that the kernel draws from where the one named is taken, at the least for one of them to be free.
const ENOUGH: u16 = 128;
/// Packets above this length may grow too long.
const LONG: usize = 0xff00;

/// A packet before its flow's helper.
struct Looked {
    handle: Handle,
    direction: Direction,
    now: u64,
    /// The result if the helper does nothing.
    goes_on: Confirmation,
    /// The kernel's helper rewrites payloads of the flow.
    writes: bool,
}

/// Whether the kernel's helper rewrites payloads of a flow.
fn writes(flow: &Flow) -> bool {
    flow.is_translated() && flow.helper.writes()
}

impl Tracker {
    /// Runs a flow's helper.
    pub(super) fn help(
        &mut self,
        packet: &Packet<'_>,
        view: &CtView,
        handle: Handle,
        now: u64,
        certainty: Certainty,
    ) -> Confirmation {
        let direction = view.direction;
        let flow = self.table.flow(handle).filter(|flow| flow.helper != Helper::None);
        let Some(flow) = flow else { return Confirmation::Pass };
        if view.states.may_be(CtState::Related) && direction == Direction::Reply {
            return Confirmation::Pass;
        }
        let writes = writes(flow);
        let is_out_of_step = writes && flow.doubt == Doubt::History;
        if is_out_of_step {
            self.helpers.lose_lines(handle);
        }
        self.live_on(packet, view, handle, now);
        let Some(flow) = self.table.flow(handle) else { return Confirmation::Pass };
        // The kernel moves numbers after the helper, but by what was so before it.
        let goes_on = match flow.status.contains(Status::SEQ_ADJUST) {
            _ if is_out_of_step => Confirmation::Rewritten,
            true => Confirmation::Edited(Edit {
                text: None,
                numbers: Some(self.renumbering(handle, direction)),
            }),
            false => Confirmation::Pass,
        };
        let is_open = flow.indeterminate_ends != [false; 2]
            || certainty == Certainty::Maybe
            || flow.doubt != Doubt::None
            || flow.is_stand_in();
        let established = view.states.may_be(CtState::Established);
        match self.helpers.help(packet, handle, flow, direction, established) {
            Help::Pass => goes_on,
            Help::Drop if is_open => Confirmation::MayClash,
            Help::Drop => Confirmation::Helper,
            Help::Broadcast(end) => {
                self.untraceable.may_expect(end);
                goes_on
            }
            Help::Unmodelled => {
                anything(flow).into_iter().for_each(|pattern| self.untraceable.may_expect(pattern));
                self.may_be_written(handle, writes, now)
            }
            Help::Uncertain(ends) => {
                self.expect_maybe(handle, ends);
                self.may_be_written(handle, writes, now)
            }
            Help::Expect(expectation, mention) => {
                let is_long = writes && packet.len() > LONG;
                let is_open = is_open || is_long || self.may_be_taken(&expectation);
                let looked = Looked { handle, direction, now, goes_on, writes };
                match is_open {
                    true => self.may_expect(&looked, &expectation),
                    false => self.expect(&looked, expectation, mention),
                }
            }
        }
    }

    /// The packet is dropped, or may be rewritten where that is done at all.
    fn may_be_written(&mut self, handle: Handle, writes: bool, now: u64) -> Confirmation {
        if writes {
            self.raise_doubt(handle, Doubt::History, now);
        }
        Confirmation::MayClash
    }

    /// Some helpers say how long their flow lives. One in doubt lives longer.
    fn live_on(&mut self, packet: &Packet<'_>, view: &CtView, handle: Handle, now: u64) {
        let Some(flow) = self.table.flow_mut(handle) else { return };
        let is_established = view.states.may_be(CtState::Established);
        let seen = Payload { packet, flow, direction: view.direction, is_established };
        if let Some(lifetime) = seen.lifetime()
            && flow.doubt == Doubt::None
        {
            flow.renew(now, lifetime);
        }
    }

    fn renumbering(&self, handle: Handle, direction: Direction) -> Renumbering {
        let shifts = self.helpers.shifts(handle);
        Renumbering { own: shifts.of(direction), other: shifts.of(direction.opposite()) }
    }

    /// Whether the expectation of a packet may clash with an expectation that another packet may have made.
    fn may_be_taken(&self, expectation: &Expectation) -> bool {
        let Expectation { source, destination, destination_port, protocol, .. } = *expectation;
        let first = Tuple::new(source, destination, protocol, [0, destination_port]);
        self.untraceable.may_be_expected(&first)
    }

    /// The packet announces this, or the kernel's helper did not see it so.
    fn may_expect(&mut self, looked: &Looked, expectation: &Expectation) -> Confirmation {
        let ends = self.table.flow(looked.handle).map(|flow| expectation.ends(flow));
        ends.into_iter().for_each(|ends| self.expect_maybe(looked.handle, ends));
        if !looked.writes {
            return Confirmation::MayClash;
        }
        self.raise_doubt(looked.handle, Doubt::History, looked.now);
        // Where the port is taken the kernel draws another one, if there are enough.
        let port = expectation.destination_port;
        let may_end = port == 0 || u16::MAX - port < ENOUGH;
        if may_end { Confirmation::MayClash } else { Confirmation::Rewritten }
    }

    /// The packet announces this, if nothing else has.
    fn expect(
        &mut self,
        looked: &Looked,
        expectation: Expectation,
        mention: Option<Mention>,
    ) -> Confirmation {
        let added = self.expectations.add(expectation, looked.now);
        let mention = mention.filter(|_| looked.writes);
        let port = expectation.destination_port;
        match (added, mention) {
            (Added::Full, _) | (Added::Clash, None) => return Confirmation::Helper,
            (Added::Clash, Some(mention)) => {
                return match self.chance.is_some() {
                    true => self.draw_port(looked, &expectation, &mention),
                    false => self.lose_port(looked, &expectation),
                };
            }
            (Added::Yes, _) => {}
        }
        if let Some(master) = self.table.flow_mut(looked.handle) {
            master.expecting = 1;
        }
        match mention {
            None => looked.goes_on,
            // The kernel takes the named port 0 for none.
            Some(_) if port == 0 => Confirmation::Helper,
            Some(mention) => self.rewrite(looked, &mention, port),
        }
    }

    /// The port is taken: another one of those above is drawn, 65535 left out (`nf_nat_exp_find_port`).
    fn draw_port(
        &mut self,
        looked: &Looked,
        expectation: &Expectation,
        mention: &Mention,
    ) -> Confirmation {
        let named = expectation.destination_port;
        let above = u16::MAX - named;
        for _ in 0..above.min(DRAWS) {
            let Some(drawn) = self.chance.as_ref().map(Chance::draw) else { break };
            let port = named + (drawn % u64::from(above)) as u16;
            let expectation = Expectation { destination_port: port, ..*expectation };
            match self.expectations.add(expectation, looked.now) {
                Added::Clash => {}
                Added::Full => break,
                Added::Yes => {
                    if let Some(master) = self.table.flow_mut(looked.handle) {
                        master.expecting = 1;
                    }
                    return self.rewrite(looked, mention, port);
                }
            }
        }
        Confirmation::Helper
    }

    /// The port is taken: the kernel draws another one of those above, 65535 left out, and nobody knows which.
    fn lose_port(&mut self, looked: &Looked, expectation: &Expectation) -> Confirmation {
        let above = u16::MAX - expectation.destination_port;
        if above <= 1 {
            // The port that is taken is the only one.
            return Confirmation::Helper;
        }
        self.expectations.forget(looked.handle);
        let ends = self.table.flow(looked.handle).map(|flow| expectation.ends(flow));
        ends.into_iter().for_each(|[first, _]| self.untraceable.may_expect(first));
        // Replies come from the port that was named, whatever port they go to.
        if let Some(Followed { destination, port, .. }) = expectation.follows {
            self.untraceable.expect_from(expectation.protocol, destination, port);
        }
        self.raise_doubt(looked.handle, Doubt::History, looked.now);
        if above < ENOUGH { Confirmation::MayClash } else { Confirmation::Rewritten }
    }

    /// What replies are sent to takes the place of the speaker's address.
    fn rewrite(&mut self, looked: &Looked, mention: &Mention, port: u16) -> Confirmation {
        let Looked { handle, direction, .. } = *looked;
        let Some(flow) = self.table.flow_mut(handle) else { return Confirmation::Pass };
        let address = flow.tuple(direction.opposite()).destination();
        let text = Text::of(mention.form, address, port);
        let replacement = Replacement { start: mention.start, len: mention.len, text };
        let growth = replacement.growth();
        if growth != 0 {
            flow.status.set(Status::SEQ_ADJUST);
            self.helpers.grow(handle, direction, mention.sequence, growth);
        }
        let numbers = match looked.goes_on {
            Confirmation::Edited(before) => before.numbers,
            _ => None,
        };
        Confirmation::Edited(Edit { text: Some(replacement), numbers })
    }

    /// Whether the kernel's helper saw this is not known, nor whether it took the place of what was expected before.
    fn expect_maybe(&mut self, master: Handle, ends: [Pattern; 2]) {
        let flow = self.table.flow(master);
        let before = self.expectations.of(master).zip(flow).map(|(found, flow)| found.ends(flow));
        before
            .into_iter()
            .chain([ends])
            .flatten()
            .for_each(|pattern| self.untraceable.may_expect(pattern));
        self.expectations.forget(master);
    }

    /// Whether the packet may be a reply to a flow that was not found, and its helper may have a look.
    pub(super) fn may_be_helped(&mut self, packet: &Packet<'_>, view: &CtView) -> bool {
        let flow = view.flow.filter(|_| !self.masters.is_empty());
        let Some(flow) = flow.and_then(|handle| self.table.flow(handle)) else { return false };
        if !flow.is_stand_in() && view.states != States::ANY {
            return false;
        }
        let tuple = *flow.tuple(view.direction);
        self.masters.may_expect(packet, &tuple, &mut self.untraceable)
    }

    /// Takes a packet that comes back to this host through `lo`, where the helper sees it once more, and its numbers as
    /// they moved. This is not followed: a flow whose payloads are rewritten is unknown from here on.
    pub fn loops_back(&mut self, view: &CtView, now: u64) {
        let Some(handle) = view.flow else { return };
        if self.table.flow(handle).is_some_and(writes) {
            self.raise_doubt(handle, Doubt::History, now);
        }
    }
}
