//! What address translation asks of the [`Tracker`] and leaves in its flows.
//!
//! Source: Linux 6.18 `nf_conntrack_core.c` (`nf_conntrack_tuple_taken`, `nf_conntrack_alter_reply`),
//! `nf_nat_core.c` (`find_appropriate_src`).

use super::flows::Tracker;
use crate::expect::Followed;
use crate::flow::{Doubt, Flow};
use crate::index::Handle;
use crate::key::{Direction, Tuple};
use crate::status::{Side, Status};

/// What a packet of the host's own was before its flow translated it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// The packet belongs to no known flow.
    New,
    /// No translation, as far as is known.
    AsItIs,
    /// How its flow translates is not known: no translation is undone.
    Lost,
    /// This.
    Made(Tuple),
    /// The source, or the destination, may have been another one.
    Hidden([bool; 2]),
}

impl Tracker {
    /// Sets what replies look like, and so how the flow is translated, before it is confirmed. `status`
    /// is added to its bits. False where the flow is confirmed already.
    pub fn translate(&mut self, handle: Handle, reply: Tuple, status: Status) -> bool {
        let Some(flow) = self.table.flow_mut(handle) else { return false };
        if flow.is_confirmed() {
            return false;
        }
        flow.reply = reply.in_zone(flow.reply.zone());
        flow.status.set(status);
        self.note_tuples(handle);
        if status.contains(Status::SRC_NAT) {
            self.note_source(handle);
        }
        self.expect_untraceable(handle);
        true
    }

    /// What a packet that now looks like `seen` looked like before its flow translated it.
    pub fn before(&mut self, seen: &Tuple, now: u64) -> Before {
        let found = seen.inverse().map(|answer| self.table.find_in(&answer, [0; 2], now));
        let Some(found) = found else { return Before::AsItIs };
        let flow = found.and_then(|(at, direction)| Some((self.table.flow(at)?, direction)));
        let Some((flow, direction)) = flow else { return Before::New };
        if flow.hidden_ends != [false; 2] && direction == Direction::Reply {
            return Before::Hidden(flow.hidden_ends);
        }
        // A packet of the flow that left tells that it is there, whatever its first packet's verdict.
        let is_known = flow.is_translated() && flow.indeterminate_ends == [false; 2];
        match (is_known, flow.is_translated()) {
            (true, _) => Before::Made(*flow.tuple(direction.opposite())),
            (false, true) => Before::Lost,
            (false, false) => Before::AsItIs,
        }
    }

    /// How this end of a packet that goes this way of a flow is translated, or whether it is, is not known.
    pub fn lose_translation(&mut self, handle: Handle, direction: Direction, side: Side) {
        let Some(flow) = self.table.flow_mut(handle) else { return };
        if direction == Direction::Reply {
            // Where the flow is not there after all, the packet begins one of its own.
            let is_source = side == Side::Source;
            self.untraceable.expect(&flow.reply, is_source, !is_source);
        }
        let side = side.seen_from(direction);
        flow.indeterminate_ends[side as usize] = true;
        flow.status.set(side.translated());
        flow.status.set(side.decided());
        if flow.is_confirmed() {
            flow.raise_doubt(Doubt::History);
        }
        if side == Side::Source {
            self.moves_ports = true;
            self.note_source(handle);
        }
        self.expect_untraceable(handle);
    }

    /// Whose flows its replies may concern, and whether its source has another port.
    pub(crate) fn note_tuples(&mut self, handle: Handle) {
        let Some(flow) = self.table.flow(handle) else { return };
        let Some(sent) = flow.reply.inverse() else { return };
        self.moves_ports |= sent.source_part() != flow.original.source_part();
        let shard = self.config.shard.as_ref();
        self.crosses |= shard.is_some_and(|shard| !shard.key.is_one(&flow.original, &flow.reply));
    }

    /// Translates a flow that was expected as its master is, before any rule is asked. Where what it would be is
    /// taken the kernel draws another port.
    pub(crate) fn follow(&mut self, handle: Handle, followed: Followed, now: u64) {
        let Followed { source, destination, port } = followed;
        let Some(flow) = self.table.flow(handle) else { return };
        let sent = flow.original;
        let moved = sent.with_source(source, sent.source_part());
        let both = moved.with_destination(destination, port);
        let replies = [moved.inverse(), both.inverse()].map(|reply| reply.unwrap_or(flow.reply));
        let free = replies.map(|reply| self.is_taken(&reply, handle, now));
        if free != [Some(false); 2] {
            self.lose_translation(handle, Direction::Original, Side::Source);
            self.lose_translation(handle, Direction::Original, Side::Destination);
            return;
        }
        for side in [Side::Source, Side::Destination] {
            let [first, second] = match side {
                Side::Source => [&sent, &moved],
                Side::Destination => [&moved, &both],
            };
            let mut status = side.decided();
            if first != second {
                status.set(side.translated());
            }
            let reply = if side == Side::Source { replies[0] } else { replies[1] };
            self.translate(handle, reply, status);
        }
    }

    pub(crate) fn note_source(&mut self, handle: Handle) {
        let table = &self.table;
        let Some(flow) = table.flow(handle) else { return };
        self.sources.add(&flow.original, handle, |other| table.flow(other).is_some());
    }

    /// Replies to a flow may look like anything that fits the end that is known.
    fn expect_untraceable(&mut self, handle: Handle) {
        let Some(flow) = self.table.flow(handle) else { return };
        let [source, destination] = flow.indeterminate_ends;
        if let Some(sent) = flow.reply.inverse() {
            self.untraceable.expect(&sent, source, destination);
        }
        if source || destination {
            self.masters.add(handle, flow);
        }
    }

    /// Whether replies of another flow would look like this: the tuple is no choice for a translation
    /// of `own`. `None` where that depends on something unknown.
    pub fn is_taken(&mut self, reply: &Tuple, own: Handle, now: u64) -> Option<bool> {
        let Some(flow) = self.table.flow(own) else { return Some(false) };
        let (original, zone) = (flow.original, flow.reply.zone());
        let zones = [original.zone(), zone];
        let shard = self.config.shard.as_ref();
        self.crosses |= shard.is_some_and(|shard| !shard.key.is_one(&original, reply));
        let Some((other, _)) = self.table.find_in(&reply.in_zone(zone), zones, now) else {
            let may_be = self.untraceable.may_include(reply)
                || self.table.may_have(&reply.in_zone(zone), now);
            return if may_be { None } else { Some(false) };
        };
        match self.table.flow(other) {
            // Two flows with one original tuple are one flow.
            Some(flow) if other == own || flow.original == original => Some(false),
            Some(flow) if flow.doubt != Doubt::None => None,
            Some(_) => Some(true),
            None => Some(false),
        }
    }

    /// Whether another flow in the table, which may not be there, has this reply.
    pub fn meets(&mut self, reply: &Tuple, own: Handle, now: u64) -> bool {
        let Some(flow) = self.table.flow(own) else { return false };
        let (original, zone) = (flow.original, flow.reply.zone());
        let met = self.table.find_in(&reply.in_zone(zone), [original.zone(), zone], now);
        let met = met.and_then(|(other, _)| Some((other, self.table.flow(other)?)));
        met.is_some_and(|(other, flow)| other != own && flow.original != original)
    }

    /// Whether the flow that has this reply is `own` seen from its other side, untranslated: then datagrams keep
    /// their tuple, and the clash is left to their confirmation (`nf_nat_used_tuple_new`).
    pub fn is_reverse(&mut self, reply: &Tuple, own: Handle, now: u64) -> bool {
        let Some(flow) = self.table.flow(own) else { return false };
        let zones = [flow.original.zone(), flow.reply.zone()];
        let pair = [flow.original, flow.reply].map(|tuple| tuple.in_zone(0));
        let unordered = [packet::udp::PROTOCOL, packet::udp::PROTOCOL_LITE];
        if flow.is_translated() || !unordered.contains(&flow.original.protocol()) {
            return false;
        }
        let other = self.table.find_in(&reply.in_zone(zones[1]), zones, now);
        let other = other.and_then(|(other, _)| self.table.flow(other));
        other.is_some_and(|other| {
            let turned = [other.reply, other.original].map(|tuple| tuple.in_zone(0));
            !other.is_translated() && other.doubt == Doubt::None && turned == pair
        })
    }

    /// Notes that there may be no tuple left for the flow of the packet under way.
    pub fn crowd(&mut self, handle: Handle) {
        self.crowded = Some(handle);
    }

    /// Whether that was noted of it.
    #[must_use]
    pub fn is_crowded(&self, handle: Handle) -> bool {
        self.crowded == Some(handle)
    }

    /// How many flows may wait for this reply whose translation is not known.
    pub fn waiting_for(&self, reply: &Tuple) -> u32 {
        self.untraceable.waiting(reply)
    }

    /// Flows whose source is that of `handle`, and is translated, the latest first. Other shards may have some.
    pub fn of_same_source(&mut self, handle: Handle, now: u64) -> impl Iterator<Item = &Flow> {
        self.crosses = true;
        let Self { table, sources, .. } = self;
        let table = &*table;
        let original = table.flow(handle).map(|flow| flow.original);
        let others =
            original.map(|original| sources.of(&original, |flow| table.flow(flow).is_some()));
        others.into_iter().flatten().filter_map(move |other| {
            let (original, flow) = (original?, table.flow(other).filter(|_| other != handle)?);
            let is_alike = same_source(&flow.original, &original)
                && (!flow.is_confirmed() || !flow.is_expired(now));
            is_alike.then_some(flow)
        })
    }
}

fn same_source(a: &Tuple, b: &Tuple) -> bool {
    let source =
        |tuple: &Tuple| (tuple.source(), tuple.source_part(), tuple.protocol(), tuple.zone());
    source(a) == source(b)
}
