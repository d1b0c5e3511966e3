//! Packets in groups: by the rule and the jumps that decided about them, by connection, by source, destination, or
//! destination port.
//!
//! A packet stands in a group as it was captured, before any translation. A group counts its packets by verdict, and
//! is shown if one of them is on the lists that were asked for; paths are those of listed packets alone.
//!
//! Contract: packets come in capture order, so groups are the same for every number of workers. Memory is bounded:
//! [`MOST`] groups of each kind, and `MOST_ON_PAGE` of one that only the page shows. Once there are so many, those without a listed packet make room, once; what finds no
//! room after that is counted and said.

mod key;

use std::cmp::Reverse;
use std::collections::HashMap;

use dataplane::{Disposition, FinalVerdict};
use packet::FlowKey;
use rules::eval::RuleRef;

use crate::decider::Decider;
use crate::list::Lists;
use crate::report::counts::{Count, VerdictCounts};

pub use key::{Ends, GroupKey};
pub(crate) use key::{has_ports, protocol_text};

/// Most groups of one kind.
pub const MOST: usize = 1 << 16;

/// Most groups of a kind that only the page shows, which shows ten.
const MOST_ON_PAGE: usize = 1 << 11;

/// What packets of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupBy {
    /// What decided, and the jumps that led there.
    Path,
    /// The connection: addresses, ports and protocol, in either direction.
    Flow,
    /// The source address.
    Source,
    /// The destination address.
    Destination,
    /// The protocol and the destination port.
    Port,
}

impl GroupBy {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Path, Self::Flow, Self::Source, Self::Destination, Self::Port];

    /// Those that a page shows.
    pub(crate) const ON_PAGE: [Self; 3] = [Self::Source, Self::Destination, Self::Port];

    /// As `--by` spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Flow => "flow",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::Port => "port",
        }
    }
}

/// The jumps by which a packet came to what decided.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallPath {
    /// The rules that jumped, the outermost first.
    pub jumps: Vec<RuleRef>,
    /// Whether they are known; none are given where they are not.
    pub sure: bool,
}

impl CallPath {
    /// No jump: what decided stands in a built-in chain, or in none.
    pub(crate) const NONE: Self = Self { jumps: Vec::new(), sure: true };
}

/// Packets that have something in common.
#[derive(Debug, Clone)]
pub struct Group {
    /// What that is.
    pub key: GroupKey,
    /// Its packets by verdict.
    pub verdicts: VerdictCounts,
    /// Its packets that are on the lists.
    pub listed: Count,
    /// Times of its first and last packet, in nanoseconds since the Unix epoch.
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
    /// Those with a listed packet: most of them first, then the earlier one.
    pub groups: Vec<Group>,
    /// Listed packets, also of groups that found no room.
    pub listed: u64,
    /// Listed packets of groups that found no room.
    pub left_out: u64,
    /// Packets that are not listed were counted in part: there were too many groups.
    pub partial: bool,
}

/// One packet, for those who group it.
pub(crate) struct Grouped<'p> {
    pub(crate) number: u64,
    pub(crate) time: Option<u64>,
    pub(crate) end: &'p Disposition,
    pub(crate) by: Decider,
    /// By which jumps it came there, where that was noted.
    pub(crate) path: Option<&'p CallPath>,
    /// Its addresses and ports, where it has them and they are known.
    pub(crate) flow: Option<FlowKey>,
    /// Whether it is listed.
    pub(crate) listed: bool,
}

/// Groups packets as they come.
#[derive(Debug)]
pub(crate) struct Gathering {
    by: GroupBy,
    asked: bool,
    lists: Lists,
    most: usize,
    groups: HashMap<GroupKey, Group>,
    listed: u64,
    left_out: u64,
    /// Groups without a listed packet have made room.
    partial: bool,
}

impl Gathering {
    /// None yet. `asked` says whether they are to be shown beside the page, too.
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

#[cfg(test)]
mod tests;
