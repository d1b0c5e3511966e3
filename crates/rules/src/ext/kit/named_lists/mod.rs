//! [`NamedLists`]: what rules of one name share, apart from the rules: the lists of `-m recent` and the tables of
//! `-m hashlimit`.

mod list;
mod ring;
mod shared;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) use list::{Action, List, Question, Visitor, Who};
pub use shared::SharedLists;

use super::buckets::{Buckets, TableConfig};
use crate::model::Family;
use crate::one::lock;

/// What is kept under a name.
#[derive(Debug)]
pub(crate) enum Named {
    /// A list, and the part of an address that counts in it.
    Recent(List, [u8; 16]),
    /// A table of buckets.
    Hashlimit(Buckets),
}

impl Named {
    fn new(sort: ListSort) -> Self {
        match sort {
            ListSort::Recent { mask, room } => Self::Recent(List::new(room), mask),
            ListSort::Hashlimit(config) => Self::Hashlimit(Buckets::new(config)),
        }
    }

    /// As much room as a rule asks for, too.
    fn widen(&mut self, sort: ListSort) {
        if let (Self::Recent(list, _), ListSort::Recent { room, .. }) = (self, sort) {
            list.widen(room);
        }
    }

    /// Some packet may have entered anything.
    fn make_indeterminate(&mut self) {
        match self {
            Self::Recent(list, _) => list.make_indeterminate(),
            Self::Hashlimit(buckets) => buckets.make_indeterminate(),
        }
    }
}

/// Who holds the lists of rules as they were read, which have no names.
const READ: u64 = 0;

/// A list as a rule names it.
#[derive(Debug, Clone, Copy)]
pub struct ListUse<'r> {
    /// Its name.
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
}

/// Names of the two sorts have nothing to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sort {
    Recent,
    Hashlimit,
}

impl ListSort {
    pub(crate) fn sort(self) -> Sort {
        match self {
            Self::Recent { .. } => Sort::Recent,
            Self::Hashlimit(_) => Sort::Hashlimit,
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

type Name = (Sort, Box<str>);

fn name(list: ListUse<'_>) -> Name {
    (list.sort.sort(), list.name.into())
}

/// The lists that rules of one family name.
#[derive(Debug)]
pub struct NamedLists {
    family: Family,
    names: HashMap<Name, Place>,
    /// `None` where no rule names the list of this number any more.
    lists: Vec<Option<Arc<Mutex<Named>>>>,
    /// Numbers of those.
    unused: Vec<usize>,
    /// Where lists are.
    shared: Arc<SharedLists>,
}

/// Where the list of a name is.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: usize,
    /// Name of the rule that declared it, or [`READ`].
    by: u64,
}

impl Default for NamedLists {
    /// None, and nobody else has them.
    fn default() -> Self {
        Self::among(Family::Ipv4, Arc::default())
    }
}

impl NamedLists {
    /// None yet; those that rules of this family name will be among these.
    pub(crate) fn among(family: Family, shared: Arc<SharedLists>) -> Self {
        let (names, lists, unused) = (HashMap::new(), Vec::new(), Vec::new());
        Self { family, names, lists, unused, shared }
    }

    /// None yet, for other rules of the family.
    pub(crate) fn anew(&self) -> Self {
        Self::among(self.family, Arc::clone(&self.shared))
    }

    /// The number of a list, which a rule makes as it says if it is the first to name it.
    pub(crate) fn join(&mut self, list: ListUse<'_>) -> usize {
        match self.names.get(&name(list)) {
            Some(place) => {
                self.widen(place.at, list.sort);
                place.at
            }
            None => self.add(list, READ),
        }
    }

    /// Has these lists and no others, each with the name of the rule that declared it first: one that it has by the
    /// same declaration stays, with its number. They are those of the revision whose lists have `changed` so often.
    pub(crate) fn declare<'l>(
        &mut self,
        changed: u64,
        lists: impl Iterator<Item = (ListUse<'l>, u64)>,
    ) {
        let mut before = std::mem::take(&mut self.names);
        for (list, by) in lists {
            let name = name(list);
            let same = before.get(&name).copied().filter(|place| place.by == by);
            match same {
                Some(place) => {
                    before.remove(&name);
                    self.widen(place.at, list.sort);
                    self.names.insert(name, place);
                }
                None => _ = self.add(list, by),
            }
        }
        for Place { at, .. } in before.into_values() {
            self.lists[at] = None;
            self.unused.push(at);
        }
        let names = &self.names;
        let is_held = |name: &Name, by| names.get(name).is_some_and(|place| place.by == by);
        self.shared.settle(self.family, changed, is_held);
    }

    /// Some packet may have entered anything.
    pub(crate) fn make_indeterminate(&self) {
        self.lists.iter().flatten().for_each(|list| lock(list).make_indeterminate());
    }

    fn widen(&self, at: usize, sort: ListSort) {
        if let Some(Some(list)) = self.lists.get(at) {
            lock(list).widen(sort);
        }
    }

    fn add(&mut self, list: ListUse<'_>, by: u64) -> usize {
        let shared = Some(self.shared.list((self.family, by), list));
        let at = match self.unused.pop() {
            Some(at) => {
                self.lists[at] = shared;
                at
            }
            None => {
                self.lists.push(shared);
                self.lists.len() - 1
            }
        };
        self.names.insert(name(list), Place { at, by });
        at
    }

    /// These are in force now, in place of those of the family's rules before: lists that none of them names end.
    pub(crate) fn succeed(&self, before: Self) {
        drop(before);
        self.shared.keep(self.family, |name, _| self.names.contains_key(name));
    }

    /// The family has no rules any more.
    pub(crate) fn end(self) {
        self.anew().succeed(self);
    }

    /// A list by its number, for a moment.
    pub(crate) fn hold(&self, at: usize) -> Option<MutexGuard<'_, Named>> {
        self.lists.get(at)?.as_ref().map(|list| lock(list))
    }
}
