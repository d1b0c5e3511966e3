//! [`RecentLists`]: the lists of `-m recent`, which rules of one name share, apart from the rules.

mod list;
mod ring;
mod shared;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use list::{Action, List, Question, Visitor};
pub(crate) use shared::SharedLists;

use crate::one::{Held, One};

/// A list, and the part of an address that counts in it.
pub(crate) type Masked = (List, [u8; 16]);

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

/// The lists of a ruleset.
#[derive(Debug, Default)]
pub struct RecentLists {
    names: HashMap<Box<str>, Named>,
    lists: Vec<One<Masked>>,
    /// Numbers of lists that no rule names any more.
    unused: Vec<usize>,
    /// Where declared lists are, if they are those of all workers.
    shared: Option<Arc<SharedLists>>,
}

/// Where the list of a name is.
#[derive(Debug, Clone, Copy)]
struct Named {
    at: usize,
    /// Name of the rule that declared it, if it was declared.
    by: Option<u64>,
}

impl RecentLists {
    /// None yet; those that are declared will be these.
    pub(crate) fn sharing(shared: Arc<SharedLists>) -> Self {
        Self { shared: Some(shared), ..Self::default() }
    }

    /// The number of a list, which a rule with this mask makes if it is the first to name it.
    pub(crate) fn join(&mut self, name: &str, mask: [u8; 16], room: usize) -> usize {
        let at = match self.names.get(name) {
            Some(named) => named.at,
            None => self.add(name, mask, room, None),
        };
        self.lists[at].hold().0.widen(room);
        at
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
            let same = before.get(list.name).copied().filter(|named| named.by == Some(by));
            match same {
                Some(named) => {
                    before.remove(list.name);
                    self.lists[named.at].hold().0.widen(list.room);
                    self.names.insert(list.name.into(), named);
                }
                None => _ = self.add(list.name, list.mask, list.room, Some(by)),
            }
        }
        for Named { at, .. } in before.into_values() {
            self.lists[at] = One::Own((List::new(0), [0; 16]));
            self.unused.push(at);
        }
        if let Some(shared) = &self.shared {
            let names = &self.names;
            shared.settle(changed, |name, by| names.get(name).is_some_and(|it| it.by == Some(by)));
        }
    }

    /// Some packet may have entered anything.
    pub(crate) fn make_indeterminate(&mut self) {
        self.lists.iter_mut().for_each(|list| list.hold().0.make_indeterminate());
    }

    fn add(&mut self, name: &str, mask: [u8; 16], room: usize, by: Option<u64>) -> usize {
        let list = match (&self.shared, by) {
            (Some(shared), Some(by)) => One::Shared(shared.list(by, name, mask, room)),
            _ => One::Own((List::new(room), mask)),
        };
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

    /// Takes over what other lists of the same names hold, with their masks; those without one here end.
    pub(crate) fn inherit(&mut self, mut from: Self) {
        for (name, named) in &self.names {
            let old = from.names.get(name).and_then(|old| from.lists.get_mut(old.at));
            if let (Some(old), Some(new)) = (old, self.lists.get_mut(named.at)) {
                old.hold().0.widen(new.hold().0.room());
                std::mem::swap(new, old);
            }
        }
    }

    /// A list by its number, with the mask of its addresses, for a moment.
    pub(crate) fn hold(&mut self, at: usize) -> Option<Held<'_, Masked>> {
        self.lists.get_mut(at).map(One::hold)
    }
}
