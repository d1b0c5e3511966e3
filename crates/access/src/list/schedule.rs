//! A list that changes at times of a stream: the timed changes of a bans file.
//!
//! Contract: changes are carried out in the order of their times, and changes of one time in the order in which they
//! were given, before the first packet of that time or later is decided. A change after seconds counts from the first
//! packet.

use std::sync::Arc;

use super::{Change, List};

/// When a change takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before the first packet.
    Before,
    /// At nanoseconds since the Unix epoch.
    At(u64),
    /// N nanoseconds after the first packet.
    After(u64),
}

/// The list with the changes that are still to come.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    /// Where it was read from.
    name: String,
    /// Clones are one until they change.
    list: Arc<List>,
    changes: Vec<(When, Change)>,
    /// Set at the first packet with a time: the changes to come, latest first, each with its moment.
    coming: Option<Vec<(u64, Change)>>,
}

impl Schedule {
    /// From these changes, read from a file of this name.
    #[must_use]
    pub fn new(name: &str, mut changes: Vec<(When, Change)>) -> Self {
        let before = changes.extract_if(.., |(when, _)| *when == When::Before);
        let first: Vec<_> = before.map(|one| one.1).collect();
        // A change takes sixteen times the room of the ban that it makes.
        changes.shrink_to_fit();
        let mut list = List::default();
        list.update_all(&first);
        Self { name: name.to_owned(), list: Arc::new(list), changes, coming: None }
    }

    /// The file it was read from.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it changes while packets come.
    #[must_use]
    pub fn changes_in_time(&self) -> bool {
        !self.changes.is_empty() || self.coming.as_ref().is_some_and(|coming| !coming.is_empty())
    }

    /// Returns the schedule with these changes made at once.
    #[must_use]
    pub fn with(mut self, changes: &[Change]) -> Self {
        Arc::make_mut(&mut self.list).update_all(changes);
        self
    }

    /// The list as it is now.
    #[must_use]
    pub fn list(&self) -> &Arc<List> {
        &self.list
    }

    /// The list as it is for a packet of this time, in nanoseconds since the Unix epoch; a packet without
    /// one is decided by the list of the packet before it. Times never run backwards.
    pub fn at(&mut self, time: Option<u64>) -> &List {
        if let Some(now) = time {
            let due = self.due(now);
            if !due.is_empty() {
                Arc::make_mut(&mut self.list).update_all(&due);
            }
        }
        &self.list
    }

    /// Takes out the changes that are to be carried out by now.
    pub(super) fn due(&mut self, now: u64) -> Vec<Change> {
        let changes = &mut self.changes;
        let coming = self.coming.get_or_insert_with(|| order(std::mem::take(changes), now));
        let later = coming.partition_point(|(at, _)| *at > now);
        coming.drain(later..).rev().map(|(_, change)| change).collect()
    }

    /// When the next change is due, once a packet has come.
    pub(super) fn next(&self) -> Option<u64> {
        self.coming.as_ref()?.last().map(|(at, _)| *at)
    }
}

/// Latest first; of one time, the one given last first.
fn order(changes: Vec<(When, Change)>, start: u64) -> Vec<(u64, Change)> {
    let moment = |when| match when {
        When::Before => 0,
        When::At(time) => time,
        When::After(span) => start.saturating_add(span),
    };
    let mut coming: Vec<_> =
        changes.into_iter().map(|(when, change)| (moment(when), change)).collect();
    coming.sort_by_key(|(at, _)| *at);
    coming.reverse();
    coming
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Block};
    use super::*;

    #[test]
    fn what_is_said_before_the_first_packet_is_kept_as_a_list_alone() {
        let ban = Change { action: Action::Ban, source: Block::V4((7, 7)), destination: None };
        let lift = Change { action: Action::Unban, ..ban };
        let mut changes = vec![(When::Before, ban); 1000];
        changes.insert(500, (When::At(9), lift));
        let schedule = Schedule::new("bans.txt", changes);
        assert!(schedule.changes.capacity() < 10);
        assert!(Arc::ptr_eq(schedule.list(), schedule.clone().list()));
    }
}
