//! [`NamedLists`]: what rules of one name share, apart from the rules: the lists of `-m recent` and the tables of
//! `-m hashlimit`, and states of another language's rules.

mod list;
mod named;
mod ring;
mod shared;
mod state;

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) use list::{Action, Question, Visitor, Who};
pub use named::{ListSort, ListUse};
pub(crate) use named::{Named, Sort};
pub use shared::SharedLists;

use crate::model::Family;
use crate::one::lock;
use named::{Name, name};

/// The holder of lists of rules as they were read, which have no names.
const READ: u64 = 0;

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
    /// Starts without lists; lists that rules of this family name will be in `shared`.
    pub(crate) fn among(family: Family, shared: Arc<SharedLists>) -> Self {
        let (names, lists, unused) = (HashMap::new(), Vec::new(), Vec::new());
        Self { family, names, lists, unused, shared }
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

    /// Makes these the only lists, each with the name of the rule that declared it first: a list with the same
    /// declaration stays, with its number. `changed` counts the list changes up to their revision.
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

    /// The family has no rules any more.
    pub(crate) fn end(self) {
        let (family, shared) = (self.family, Arc::clone(&self.shared));
        drop(self);
        shared.keep(family, |_, _| false);
    }

    /// The number of the state of this name, which rules of another language share.
    pub fn join_state(&mut self, name: &str) -> usize {
        self.join(ListUse { name, sort: ListSort::State })
    }

    /// Asks the state of this number, which is made if nobody asked before. `None` if nothing is known of it.
    pub fn state<T: Any + Send, R>(
        &self,
        at: usize,
        make: impl FnOnce() -> T,
        ask: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        match &mut *self.hold(at)? {
            Named::State(state) => state.ask(make, ask),
            _ => None,
        }
    }

    /// A list by its number, for a moment.
    pub(crate) fn hold(&self, at: usize) -> Option<MutexGuard<'_, Named>> {
        self.lists.get(at)?.as_ref().map(|list| lock(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_one_for_all_that_name_it() {
        let mut lists = NamedLists::default();
        let numbers = ["a", "a", "b"].map(|name| lists.join_state(name));
        let add = |at: usize| {
            lists.state(
                at,
                || 0,
                |count: &mut u32| {
                    *count += 1;
                    *count
                },
            )
        };
        assert_eq!(numbers.map(add), [Some(1), Some(2), Some(1)]);
        lists.make_indeterminate();
        assert_eq!(add(numbers[0]), None);
    }
}
