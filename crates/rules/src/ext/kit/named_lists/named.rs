//! [`ListUse`]: a list or table as a rule names it, and [`Named`]: what is kept under the name.

use super::list::List;
use super::state::State;
use crate::ext::kit::buckets::{Buckets, TableConfig};

/// What is kept under a name.
#[derive(Debug)]
pub(crate) enum Named {
    /// A list, and the part of an address that counts in it.
    Recent(List, [u8; 16]),
    /// A table of buckets.
    Hashlimit(Buckets),
    /// What rules of another language share.
    State(State),
}

impl Named {
    pub(super) fn new(sort: ListSort) -> Self {
        match sort {
            ListSort::Recent { mask, room } => Self::Recent(List::new(room), mask),
            ListSort::Hashlimit(config) => Self::Hashlimit(Buckets::new(config)),
            ListSort::State => Self::State(State::default()),
        }
    }

    /// As much room as a rule asks for, too.
    pub(super) fn widen(&mut self, sort: ListSort) {
        if let (Self::Recent(list, _), ListSort::Recent { room, .. }) = (self, sort) {
            list.widen(room);
        }
    }

    /// Some packet may have entered anything.
    pub(super) fn make_indeterminate(&mut self) {
        match self {
            Self::Recent(list, _) => list.make_indeterminate(),
            Self::Hashlimit(buckets) => buckets.make_indeterminate(),
            Self::State(state) => state.lost = true,
        }
    }
}

/// A list as a rule names it.
#[derive(Debug, Clone, Copy)]
pub struct ListUse<'r> {
    /// The list's name.
    pub name: &'r str,
    /// What is kept under it, if this rule is the first to name it.
    pub sort: ListSort,
}

/// What is kept under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListSort {
    /// A list of `-m recent`.
    Recent {
        /// The part of an address that counts in it.
        mask: [u8; 16],
        /// Times of each address that it has to hold.
        room: usize,
    },
    /// A table of `-m hashlimit`.
    Hashlimit(TableConfig),
    /// A state of another language's rules, such as a limit by name of nft's. Rules of both families share it.
    State,
}

/// Names of two sorts have nothing to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sort {
    Recent,
    Hashlimit,
    State,
}

impl ListSort {
    pub(crate) fn sort(self) -> Sort {
        match self {
            Self::Recent { .. } => Sort::Recent,
            Self::Hashlimit(_) => Sort::Hashlimit,
            Self::State => Sort::State,
        }
    }

    /// This one, with as much room as the other asks for.
    pub(crate) fn widened(self, other: Self) -> Self {
        match (self, other) {
            (Self::Recent { mask, room }, Self::Recent { room: least, .. }) => {
                Self::Recent { mask, room: room.max(least) }
            }
            (sort, _) => sort,
        }
    }
}

pub(super) type Name = (Sort, Box<str>);

pub(super) fn name(list: ListUse<'_>) -> Name {
    (list.sort.sort(), list.name.into())
}
