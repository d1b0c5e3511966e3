//! [`RecentLists`]: the lists of `-m recent`, which rules of one name share, apart from the rules.

mod list;
mod ring;
mod shared;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) use list::{Action, List, Question, Visitor, Who};
pub use shared::SharedLists;

use crate::model::Family;
use crate::one::lock;

/// A list, and the part of an address that counts in it.
pub(crate) type Masked = (List, [u8; 16]);

/// Who holds the lists of rules as they were read, which have no names.
const READ: u64 = 0;

/// A list as a rule names it.
#[derive(Debug, Clone, Copy)]
pub struct ListUse<'r> {
    /// Its name.
    pub name: &'r str,
    /// The part of an address that counts in it, if this rule is the first to name it.
    pub mask: [u8; 16],
    /// Times of each address that it has to hold.
    pub room: usize,
}

/// The lists that rules of one family name.
#[derive(Debug)]
pub struct RecentLists {
    family: Family,
    names: HashMap<Box<str>, Named>,
    /// `None` where no rule names the list of this number any more.
    lists: Vec<Option<Arc<Mutex<Masked>>>>,
    /// Numbers of those.
    unused: Vec<usize>,
    /// Where lists are.
    shared: Arc<SharedLists>,
}

/// Where the list of a name is.
#[derive(Debug, Clone, Copy)]
struct Named {
    at: usize,
    /// Name of the rule that declared it, or [`READ`].
    by: u64,
}

impl Default for RecentLists {
    /// None, and nobody else has them.
    fn default() -> Self {
        Self::among(Family::Ipv4, Arc::default())
    }
}

impl RecentLists {
    /// None yet; those that rules of this family name will be among these.
    pub(crate) fn among(family: Family, shared: Arc<SharedLists>) -> Self {
        let (names, lists, unused) = (HashMap::new(), Vec::new(), Vec::new());
        Self { family, names, lists, unused, shared }
    }

    /// None yet, for other rules of the family.
    pub(crate) fn anew(&self) -> Self {
        Self::among(self.family, Arc::clone(&self.shared))
    }

    /// The number of a list, which a rule with this mask makes if it is the first to name it.
    pub(crate) fn join(&mut self, name: &str, mask: [u8; 16], room: usize) -> usize {
        match self.names.get(name) {
            Some(named) => {
                self.widen(named.at, room);
                named.at
            }
            None => self.add(name, mask, room, READ),
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
            let same = before.get(list.name).copied().filter(|named| named.by == by);
            match same {
                Some(named) => {
                    before.remove(list.name);
                    self.widen(named.at, list.room);
                    self.names.insert(list.name.into(), named);
                }
                None => _ = self.add(list.name, list.mask, list.room, by),
            }
        }
        for Named { at, .. } in before.into_values() {
            self.lists[at] = None;
            self.unused.push(at);
        }
        let names = &self.names;
        let is_held = |name: &str, by| names.get(name).is_some_and(|named| named.by == by);
        self.shared.settle(self.family, changed, is_held);
    }

    /// Some packet may have entered anything.
    pub(crate) fn make_indeterminate(&self) {
        self.lists.iter().flatten().for_each(|list| lock(list).0.make_indeterminate());
    }

    fn widen(&self, at: usize, room: usize) {
        if let Some(Some(list)) = self.lists.get(at) {
            lock(list).0.widen(room);
        }
    }

    fn add(&mut self, name: &str, mask: [u8; 16], room: usize, by: u64) -> usize {
        let list = Some(self.shared.list((self.family, by), name, mask, room));
        let at = match self.unused.pop() {
            Some(at) => {
                self.lists[at] = list;
                at
            }
            None => {
                self.lists.push(list);
                self.lists.len() - 1
            }
        };
        self.names.insert(name.into(), Named { at, by });
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

    /// A list by its number, with the mask of its addresses, for a moment.
    pub(crate) fn hold(&self, at: usize) -> Option<MutexGuard<'_, Masked>> {
        self.lists.get(at)?.as_ref().map(|list| lock(list))
    }
}
