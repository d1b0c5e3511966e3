//! Copies of packets that rules have the host send ([`Copied`]), told from the packets as they left.
//!
//! Contract: a copy leaves before its packet, with the source that this came with: rules copy before nat translates it. Where
//! routes do not say which of two a frame is, it is a copy if another frame shows the same packet leaving; if none does,
//! either may be.

use super::arrival::Shows;
use super::frame::{Copied, JITTER, Sighting};
use super::print::Print;
use super::remembered::{Entry, NONE, Sightings};
use super::table::MOST;

impl Sightings {
    /// A frame went out by a device that copies go to.
    pub(super) fn went_with_copies(&mut self, index: u64, print: &Print, copied: Copied) {
        match (self.arrival_of(index, print), copied) {
            (Shows::Arrival(arrival, teaches), _) if self.is_translated(arrival, print) => {
                self.join(arrival, index, teaches);
            }
            (_, Copied::Yes) => self.settle(index, Sighting::Own),
            (Shows::Arrival(arrival, _), _) => {
                if let Some(entry) = self.entry_mut(index) {
                    entry.of = arrival;
                }
            }
            (Shows::More, _) => self.doubt(index),
            (Shows::None, _) => {}
        }
    }

    /// Whether a packet left with another source than it came with.
    fn is_translated(&self, arrival: u64, left: &Print) -> bool {
        let port = |print: &Print| print.ends.ports.map(|[source, _]| source);
        let came = self.entry(arrival).and_then(|entry| entry.print.as_ref());
        came.is_some_and(|came| came.ends.source != left.ends.source || port(came) != port(left))
    }

    /// Whether the host's own frame is a copy, and whether it may be a packet that came.
    pub(super) fn copy_or_not(&self, entry: &Entry) -> (bool, bool) {
        let has_twin = |print: &Print| {
            self.alike(print, true).take(MOST).any(|(_, other)| {
                other.device != entry.device
                    && entry.time.abs_diff(other.time) <= JITTER
                    && other.print.is_some_and(|other| other.ends == print.ends)
            })
        };
        match (entry.copied, entry.of) {
            (Copied::No, _) => (false, entry.may_have_come),
            (Copied::Yes, _) => (true, false),
            (Copied::Maybe, NONE) => {
                let is_copy = entry.print.as_ref().is_some_and(has_twin);
                (is_copy, !is_copy && entry.may_have_come)
            }
            (Copied::Maybe, of) => {
                let has_left = self.entry(of).is_some_and(|arrival| arrival.paired);
                (has_left, !has_left)
            }
        }
    }
}
