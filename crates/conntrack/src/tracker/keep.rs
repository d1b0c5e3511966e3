//! The flows as they are written before a restart, and go on after it: see [`Listing`].

use super::flows::Tracker;
use crate::flow::{Flow, Proto};
use crate::listing::{Kept, Listed, Listing, State};
use crate::second::SECOND;
use crate::shift::Shifts;
use crate::status::Status;

impl Tracker {
    /// The flows that there are, as of the last packet. Those of which not even the tuples are known are left out. Reads
    /// the whole table.
    pub fn listing(&mut self) -> Listing {
        self.take_up();
        let at = self.latest;
        let flows = self.table.living_by_handle(at).filter(|(_, flow)| flow.has_sure_tuples());
        let mut flows: Vec<_> = flows.collect();
        // Of two with one tuple the later one is found, and they are put back in this order.
        flows.sort_by_key(|(_, flow)| flow.born);
        let listed = |(handle, flow): (_, &Flow)| flow.listed(self.helpers.shifts(handle), at);
        Listing::of_flows(flows.into_iter().map(listed).collect(), at)
    }

    /// Starts the clock of the flows listed at the start, if no packet has done so yet.
    pub(super) fn take_up(&mut self) {
        let start = self.start.as_ref().and_then(|start| start.at);
        if let (None, Some(at)) = (self.began, start) {
            self.begin(at);
            self.latest = at;
        }
    }
}

impl Flow {
    /// Both tuples are known: how its ends are translated, and that it is a flow of its own.
    #[must_use]
    pub fn has_sure_tuples(&self) -> bool {
        self.indeterminate_ends == [false; 2] && !self.stand_in
    }

    fn listed(&self, shifts: Shifts, at: u64) -> Listed {
        let (state, stream, tags) = match &self.proto {
            Proto::Generic => (State::Plain, 0, [0; 2]),
            Proto::Tcp(tcp) => (State::Tcp(tcp.state), 0, [0; 2]),
            Proto::Udp { stream_from } => {
                (State::Plain, stream_from.saturating_sub(at).div_ceil(SECOND), [0; 2])
            }
            Proto::Sctp(sctp) => (State::Sctp(sctp.state), 0, sctp.tags()),
        };
        let kept = Kept {
            status: Some(Status::kept(self.status.bits())),
            counters: self.counters,
            labels: self.labels,
            stream,
            master_helper: self.master_helper,
            doubt: self.doubt,
            tags,
            shifts,
        };
        Listed {
            original: self.original,
            reply: self.reply,
            left: self.expires_in(at).div_ceil(SECOND),
            state,
            replied: self.status.contains(Status::SEEN_REPLY),
            assured: self.status.contains(Status::ASSURED),
            mark: self.mark,
            helper: self.helper,
            kept: Some(kept),
        }
    }

    /// Returns the flow as a request lists it: of what only tamis writes, with the counters and the doubt.
    pub(super) fn shown(&self, at: u64) -> Listed {
        let listed = self.listed(Shifts::default(), at);
        let kept = Kept { counters: self.counters, doubt: self.doubt, ..Kept::default() };
        Listed { kept: Some(kept), ..listed }
    }

    /// Goes on as it was at this time.
    pub(super) fn resume(&mut self, kept: &Kept, at: u64) {
        self.listed = false;
        self.status = kept.status.unwrap_or(self.status);
        self.counters = kept.counters;
        self.labels = kept.labels;
        self.master_helper = kept.master_helper;
        self.doubt = kept.doubt;
        if let Proto::Udp { stream_from } = &mut self.proto {
            *stream_from = at.saturating_add(kept.stream.saturating_mul(SECOND));
        }
    }
}
