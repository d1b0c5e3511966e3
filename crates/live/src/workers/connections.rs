//! The connections of all workers, queried while packets pass: each worker answers for its own, a part of its table at
//! a time, between two bursts.
//!
//! Contract: a worker is kept from its packets for [`SLOTS`] slots of its table at a time. One call asks at most
//! [`ASKED`] times and says where the next one goes on, so that its time and its answer are bounded whatever there is.
//! The parts are not of one moment.

use std::collections::BTreeMap;

use conntrack::{Listed, Part, Tracker, Wanted};

use crate::answers::Place;
use crate::forward::clock::now;
use crate::forward::requests::NoReply;
use crate::workers::owner::Workers;

/// Slots that a worker looks at for one question.
const SLOTS: usize = 256;

/// Slots whose connections are only counted, for one question.
const COUNTED: usize = 1024;

/// Requests to workers in one call, at most.
const ASKED: usize = 256;

/// The connections that one call found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) flows: Vec<Listed>,
    /// Where the next call goes on; `None` at the end.
    pub(crate) next: Option<Place>,
}

/// The numbers of connections, by protocol and state.
pub(crate) type ByState = BTreeMap<(&'static str, &'static str), u64>;

/// An operation on a part of a table, such as [`Tracker::part`].
type Take = fn(&mut Tracker, usize, usize, &Wanted, u64) -> Part;

impl Workers {
    /// The number of connections, including ended ones that no packet has met yet.
    ///
    /// # Errors
    /// A worker does not answer.
    pub(crate) fn count_connections(&self) -> Result<usize, NoReply> {
        let count =
            |worker: &mut dataplane::publish::Worker| worker.trackers().map(|t| t.flows()).sum();
        self.having_connections().map(|worker| self.shared().ask::<usize>(worker, count)).sum()
    }

    /// The connections that are wanted, from a place on, until there are `most` or more.
    ///
    /// # Errors
    /// A worker does not answer.
    pub(crate) fn connections(
        &self,
        from: Place,
        wanted: Wanted,
        most: usize,
    ) -> Result<Found, NoReply> {
        self.parts(Tracker::part, from, wanted, most)
    }

    /// The number of connections in each state.
    ///
    /// # Errors
    /// A worker does not answer.
    pub(crate) fn connections_by_state(&self) -> Result<ByState, NoReply> {
        let (mut counts, mut from) = (ByState::new(), Some(Place::default()));
        while let Some(place) = from {
            let now = now();
            let part = self.shared().ask(place.worker, move |worker| {
                let table = worker.trackers().nth(place.table);
                table.map(|table| table.states_of_part(place.slot, COUNTED, now))
            })?;
            from = self.after(place, part.as_ref().map(|part| part.next));
            for (of, count) in part.into_iter().flat_map(|part| part.counts) {
                *counts.entry(of).or_insert(0) += count;
            }
        }
        Ok(counts)
    }

    /// All connections.
    ///
    /// # Errors
    /// A worker does not answer.
    pub(crate) fn all_connections(&self) -> Result<Vec<Listed>, NoReply> {
        let (mut flows, mut from) = (Vec::new(), Some(Place::default()));
        while let Some(place) = from {
            let found = self.connections(place, Wanted::default(), usize::MAX)?;
            flows.extend(found.flows);
            from = found.next;
        }
        Ok(flows)
    }

    /// Ends the connections that are wanted, from a place on.
    ///
    /// # Errors
    /// A worker does not answer: earlier connections have ended all the same.
    pub(crate) fn end_connections(&self, from: Place, wanted: Wanted) -> Result<Found, NoReply> {
        self.parts(Tracker::end_part, from, wanted, usize::MAX)
    }

    fn parts(
        &self,
        take: Take,
        from: Place,
        wanted: Wanted,
        most: usize,
    ) -> Result<Found, NoReply> {
        let mut found = Found { next: Some(from), ..Found::default() };
        for _ in 0..ASKED {
            let Some(place) = found.next.filter(|_| found.flows.len() < most) else { break };
            let now = now();
            let part = self.shared().ask(place.worker, move |worker| {
                let table = worker.trackers().nth(place.table);
                table.map(|table| take(table, place.slot, SLOTS, &wanted, now))
            })?;
            found.next = self.after(place, part.as_ref().map(|part| part.next));
            found.flows.extend(part.into_iter().flat_map(|part| part.flows.into_flows()));
        }
        Ok(found)
    }

    /// The place after a part, which says where its table goes on; the worker has no such table where there is none.
    fn after(&self, place: Place, part: Option<Option<usize>>) -> Option<Place> {
        match part {
            Some(Some(slot)) => Some(Place { slot, ..place }),
            Some(None) => Some(Place { table: place.table + 1, slot: 0, ..place }),
            None => {
                let worker = place.worker + 1;
                self.having_connections().contains(&worker).then_some(Place {
                    worker,
                    table: 0,
                    slot: 0,
                })
            }
        }
    }
}
