//! [`Lists`]: which packets are shown one by one or in groups, in the report or as they come; and whether the rules
//! that none of them hit are.

use dataplane::{Disposition, FinalVerdict};

/// Which packets to list, or which rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Accepted packets.
    Accept,
    /// Dropped ones.
    Drop,
    /// Rejected ones.
    Reject,
    /// Packets whose verdict is unknown.
    Unknown,
    /// Packets whose verdict is another under [`versus`](crate::run::Wanted::versus).
    Change,
    /// All packets, also packets that are not evaluated.
    All,
    /// Rules that no packet is known to have hit.
    Never,
}

impl List {
    /// The name of the list for `--list`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Drop => "drop",
            Self::Reject => "reject",
            Self::Unknown => "unknown",
            Self::Change => "change",
            Self::All => "all",
            Self::Never => "never",
        }
    }

    /// Whether a packet is one of them; `changed` says whether its verdict is another one.
    fn lists(self, end: &Disposition, changed: bool) -> bool {
        match self {
            Self::Accept => matches!(end.verdict, FinalVerdict::Accept(_)),
            Self::Drop => matches!(end.verdict, FinalVerdict::Drop(_)),
            Self::Reject => matches!(end.verdict, FinalVerdict::Reject(_)),
            Self::Unknown => end.verdict == FinalVerdict::Unknown,
            Self::Change => changed,
            Self::All => true,
            Self::Never => false,
        }
    }
}

/// Several lists, together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lists(Vec<List>);

impl Lists {
    /// Lists packets that did not go through, and may be missed.
    #[must_use]
    pub fn refused() -> Self {
        Self(vec![List::Drop, List::Reject])
    }

    /// Whether a packet is on one of them; `changed` says whether its verdict is another one.
    pub(crate) fn lists(&self, end: &Disposition, changed: bool) -> bool {
        self.0.iter().any(|list| list.lists(end, changed))
    }

    /// Whether this is one of them.
    #[must_use]
    pub fn has(&self, list: List) -> bool {
        self.0.contains(&list)
    }

    /// Whether there is anything on them.
    #[must_use]
    pub fn has_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Leaves out all lists of packets.
    #[must_use]
    pub fn without_packets(mut self) -> Self {
        self.0.retain(|list| *list == List::Never);
        self
    }

    /// Whether there are packets on it, and not rules alone.
    #[must_use]
    pub fn has_packets(&self) -> bool {
        self.packets().next().is_some()
    }

    /// The names of what it lists of packets.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().filter(|list| **list != List::Never).map(|list| list.name())
    }
}

impl From<List> for Lists {
    fn from(list: List) -> Self {
        Self(vec![list])
    }
}

impl FromIterator<List> for Lists {
    fn from_iter<I: IntoIterator<Item = List>>(lists: I) -> Self {
        let mut all: Vec<List> = Vec::new();
        for list in lists {
            if !all.contains(&list) {
                all.push(list);
            }
        }
        Self(all)
    }
}
