//! [`RecentLists`]: the lists of `-m recent`, which rules of one name share, apart from the rules.

mod list;
mod ring;

use std::collections::HashMap;

pub(crate) use list::{Action, List, Question, Visitor};

/// The lists of a ruleset.
#[derive(Debug, Default)]
pub struct RecentLists {
    names: HashMap<Box<str>, usize>,
    lists: Vec<(List, [u8; 16])>,
}

impl RecentLists {
    /// The number of a list, which a rule with this mask makes if it is the first to name it.
    pub(crate) fn join(&mut self, name: &str, mask: [u8; 16], room: usize) -> usize {
        let at = *self.names.entry(name.into()).or_insert_with(|| {
            self.lists.push((List::new(room), mask));
            self.lists.len() - 1
        });
        self.lists[at].0.widen(room);
        at
    }

    /// Takes over what other lists of the same names hold, with their masks; those without one here end.
    pub(crate) fn inherit(&mut self, mut from: Self) {
        for (name, at) in &self.names {
            let old = from.names.get(name).and_then(|old| from.lists.get_mut(*old));
            if let (Some(old), Some(new)) = (old, self.lists.get_mut(*at)) {
                old.0.widen(new.0.room());
                std::mem::swap(new, old);
            }
        }
    }

    /// A list by its number, with the mask of its addresses.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut (List, [u8; 16])> {
        self.lists.get_mut(at)
    }
}
