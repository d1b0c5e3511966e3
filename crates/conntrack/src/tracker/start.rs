//! The flows that there are when the first packet comes.

use super::flows::Tracker;
use crate::config::Mode;
use crate::flow::{Doubt, Flow, Proto};
use crate::helper::Helper;
use crate::key::Tuple;
use crate::listing::{Listed, Listing, State};
use crate::sctp::Sctp;
use crate::second::SECOND;
use crate::shift::Shifts;
use crate::status::Status;
use crate::tcp::Tcp;

impl Tracker {
    /// The capture began at this time, in nanoseconds, with the flows that were listed. Once is enough: the first packet
    /// does it that is tracked or looked up.
    #[inline]
    pub fn begin(&mut self, now: u64) {
        if self.began.is_none() && self.config.mode != Mode::Off {
            self.begin_first(now);
        }
    }

    #[cold]
    fn begin_first(&mut self, now: u64) {
        self.began = Some(now);
        // What was listed later says nothing of the flows that there were.
        self.start.take_if(|listing| listing.is_later(now));
        let Some(listing) = self.start.clone() else { return };
        match listing.at {
            None => listing.flows.iter().for_each(|listed| self.put(listed, now)),
            Some(at) => self.resume(&listing, at, now),
        }
    }

    /// Goes on with those flows of a listing of this time that are its own, and still alive.
    fn resume(&mut self, listing: &Listing, at: u64, now: u64) {
        let shard = self.config.shard.clone();
        for listed in &listing.flows {
            let is_own = shard.as_ref().is_none_or(|shard| shard.has(&listed.original));
            let until = at.saturating_add(listed.left.saturating_mul(SECOND));
            if is_own && until > now {
                self.put(listed, at);
            }
        }
    }

    /// Has a flow go on that was listed at this time.
    fn put(&mut self, listed: &Listed, now: u64) {
        let (Some(handle), _) = self.table.allocate(&flow(listed, now), now) else { return };
        if self.table.confirm(handle, now).is_err() {
            // Of two flows with one tuple the later one was listed.
            self.table.release(handle);
            return;
        }
        if listed.is_translated() {
            self.note_source(handle);
            self.note_tuples(handle);
        }
        if let Some(kept) = &listed.kept
            && kept.shifts != Shifts::default()
        {
            self.helpers.resume(handle, kept.shifts);
        }
        self.crosses |= listed.helper != Helper::None;
    }
}

impl Listed {
    fn is_translated(&self) -> bool {
        plain(&self.original).is_some_and(|expected| expected != plain_zone(&self.reply))
    }
}

/// What replies look like without translation, whatever their zone.
fn plain(original: &Tuple) -> Option<Tuple> {
    original.in_zone(0).inverse()
}

fn plain_zone(tuple: &Tuple) -> Tuple {
    tuple.in_zone(0)
}

/// An answered flow of UDP is a stream from this age on, and how old a listed one is is not known: 2 seconds at most are
/// missing.
const STREAM_AGE: u64 = 2 * SECOND;

fn flow(listed: &Listed, now: u64) -> Flow {
    let Listed { original, reply, .. } = listed;
    let mut flow = Flow::new(*original, *reply, 0);
    flow.listed = true;
    flow.deadline = listed.left.saturating_mul(SECOND);
    flow.mark = listed.mark;
    flow.helper = listed.helper;
    let status = [
        (listed.replied, Status::SEEN_REPLY),
        (listed.assured, Status::ASSURED),
        (has_other_source(original, reply), Status::SRC_NAT),
        (has_other_destination(original, reply), Status::DST_NAT),
        (true, Status::SRC_NAT_DONE),
        (true, Status::DST_NAT_DONE),
    ];
    for (_, bit) in status.into_iter().filter(|(is_set, _)| *is_set) {
        flow.status.set(bit);
    }
    let tags = listed.kept.as_ref().map(|kept| kept.tags);
    flow.proto = match (listed.state, original.protocol()) {
        (State::Tcp(state), _) => Proto::Tcp(Tcp::listed(state)),
        // One that hardware carries. One of tamis's own has none if no segment of it was read whole.
        (State::Plain, packet::tcp::PROTOCOL) if listed.kept.is_none() => {
            Proto::Tcp(Tcp::listed(crate::tcp::State::Established))
        }
        (State::Sctp(state), _) => {
            // The kernel lists no verification tags.
            flow.doubt = Doubt::History;
            Proto::Sctp(Sctp::listed(state, tags.unwrap_or_default()))
        }
        (State::Plain, packet::udp::PROTOCOL | packet::udp::PROTOCOL_LITE) => {
            Proto::Udp { stream_from: now.saturating_add(STREAM_AGE) }
        }
        (State::Plain, _) => Proto::Generic,
    };
    if let Some(kept) = &listed.kept {
        flow.resume(kept, now);
    }
    flow
}

/// Replies go to another end than the original came from.
fn has_other_source(original: &Tuple, reply: &Tuple) -> bool {
    let Some(expected) = plain(original) else { return false };
    let is_icmp = crate::protocol::is_icmp(original.protocol());
    let part = |tuple: &Tuple| if is_icmp { tuple.source_part() } else { tuple.destination_part() };
    (reply.destination(), part(reply)) != (expected.destination(), part(&expected))
}

/// Replies come from another end than the original went to.
fn has_other_destination(original: &Tuple, reply: &Tuple) -> bool {
    let Some(expected) = plain(original) else { return false };
    let is_icmp = crate::protocol::is_icmp(original.protocol());
    let part = |tuple: &Tuple| if is_icmp { 0 } else { tuple.source_part() };
    (reply.source(), part(reply)) != (expected.source(), part(&expected))
}
