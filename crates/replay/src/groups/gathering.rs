//! [`Gathering`]: groups packets as they come, within its bounds.

use std::cmp::Reverse;
use std::collections::HashMap;

use dataplane::{Disposition, FinalVerdict};

use super::key::{GroupBy, GroupKey, Grouped};
use crate::decider::Decider;
use crate::list::Lists;
use crate::report::counts::{Count, VerdictCounts};

/// Most groups of one kind.
pub const MOST: usize = 1 << 16;

/// Most groups of a kind that only the page shows, which shows ten.
const MOST_ON_PAGE: usize = 1 << 11;

/// Packets that have something in common.
#[derive(Debug, Clone)]
pub struct Group {
    /// What the packets have in common.
    pub key: GroupKey,
    /// Packets of the group by verdict.
    pub verdicts: VerdictCounts,
    /// Packets of the group that are on the lists.
    pub listed: Count,
    /// Times of the first and last packet, in nanoseconds since the Unix epoch.
    pub first: Option<u64>,
    /// See `first`.
    pub last: Option<u64>,
    /// The number of its first listed packet, and what decided about that.
    pub example: Option<(u64, Decider)>,
}

/// All groups of one kind.
#[derive(Debug, Clone)]
pub struct Grouping {
    /// What they are made by.
    pub by: GroupBy,
    /// Whether they were asked for, and not only for the page.
    pub asked: bool,
    /// Packets of which lists they are.
    pub lists: Lists,
    /// Groups with a listed packet: most listed packets first, then the earlier one.
    pub groups: Vec<Group>,
    /// Listed packets, also of groups that found no room.
    pub listed: u64,
    /// Listed packets of groups that found no room.
    pub left_out: u64,
    /// Packets that are not listed were counted in part: there were too many groups.
    pub partial: bool,
}

/// Groups packets as they come.
#[derive(Debug)]
pub(crate) struct Gathering {
    by: GroupBy,
    asked: bool,
    lists: Lists,
    pub(super) most: usize,
    pub(super) groups: HashMap<GroupKey, Group>,
    listed: u64,
    left_out: u64,
    /// Groups without a listed packet have made room.
    partial: bool,
}

impl Gathering {
    /// Starts without groups. `asked` says whether they are to be shown outside the page, too.
    pub(crate) fn new(by: GroupBy, asked: bool, lists: &Lists) -> Self {
        let (lists, groups) = (lists.clone(), HashMap::new());
        let most = if asked { MOST } else { MOST_ON_PAGE };
        Self { by, asked, lists, most, groups, listed: 0, left_out: 0, partial: false }
    }

    /// What they are made by.
    pub(crate) fn by(&self) -> GroupBy {
        self.by
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked
    }

    /// Whether a packet is on the lists.
    pub(crate) fn lists(&self, end: &Disposition, changed: bool) -> bool {
        self.lists.lists(end, changed)
    }

    /// Counts a packet.
    pub(crate) fn add(&mut self, packet: &Grouped<'_>) {
        if matches!(packet.end.verdict, FinalVerdict::Skip(_)) && !packet.listed {
            return;
        }
        self.listed += u64::from(packet.listed);
        // The page shows listed packets alone, and is to need no more room than they do.
        let listed_alone = self.by == GroupBy::Path || !self.asked;
        if listed_alone && !packet.listed {
            return;
        }
        let key = GroupKey::of(self.by, packet);
        if !self.groups.contains_key(&key) && !self.has_room(packet.listed) {
            self.left_out += u64::from(packet.listed);
            return;
        }
        self.groups.entry(key.clone()).or_insert_with(|| Group::new(key)).add(packet);
    }

    /// Whether one more group finds room, or does once those without a listed packet have made some.
    fn has_room(&mut self, listed: bool) -> bool {
        if self.groups.len() >= self.most && !self.partial {
            self.partial = true;
            self.groups.retain(|_, group| group.listed.packets > 0);
        }
        self.groups.len() < self.most && (listed || !self.partial)
    }

    /// The groups with a listed packet, in order.
    pub(crate) fn finish(self) -> Grouping {
        let Self { by, asked, lists, groups, listed, left_out, partial, most: _ } = self;
        let groups = groups.into_values().filter(|group| group.listed.packets > 0);
        let mut groups: Vec<Group> = groups.collect();
        groups.sort_by_key(|group| {
            (Reverse(group.listed.packets), group.example.map_or(0, |(frame, _)| frame))
        });
        Grouping { by, asked, lists, groups, listed, left_out, partial }
    }
}

impl Group {
    fn new(key: GroupKey) -> Self {
        let (verdicts, listed) = (VerdictCounts::default(), Count::default());
        Self { key, verdicts, listed, first: None, last: None, example: None }
    }

    fn add(&mut self, packet: &Grouped<'_>) {
        let Grouped { number, time, end, by, .. } = *packet;
        self.verdicts.of(end.verdict).add(end.bytes);
        if packet.listed {
            self.listed.add(end.bytes);
            self.example.get_or_insert((number, by));
        }
        self.first = self.first.or(time);
        self.last = time.or(self.last);
    }
}
