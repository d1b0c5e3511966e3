//! [`SharedLists`]: the lists of `-m recent` of all workers.
//!
//! A list is known by its name and by the rule that declared it, so that one that ends and one that begins later under
//! the same name are two, whichever of them a worker still walks by.
//!
//! Contract: the lock is held while workers follow a revision, never while a packet is asked about, and no list's lock
//! is waited for but to widen it. A list stays while the newest revision that a worker has followed names it, or
//! somebody has it: bounded by the lists of rules that are walked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::{List, Masked};
use crate::one::lock;

/// The lists of all workers, of one family.
#[derive(Debug, Default)]
pub(crate) struct SharedLists(Mutex<Declared>);

#[derive(Debug, Default)]
struct Declared {
    /// By the rule that declared it, and its name.
    lists: HashMap<(u64, Box<str>), Arc<Mutex<Masked>>>,
    /// How often the lists of the newest revision had changed that was followed.
    changed: u64,
}

impl SharedLists {
    /// The list of this name that this rule declared.
    pub(super) fn list(
        &self,
        by: u64,
        name: &str,
        mask: [u8; 16],
        room: usize,
    ) -> Arc<Mutex<Masked>> {
        let mut declared = lock(&self.0);
        let fresh = || Arc::new(Mutex::new((List::new(room), mask)));
        let list = declared.lists.entry((by, name.into())).or_insert_with(fresh);
        lock(list).0.widen(room);
        Arc::clone(list)
    }

    /// A worker has followed a revision whose lists have `changed` so often: what is not among them, and nobody else
    /// has, ends.
    pub(super) fn settle(&self, changed: u64, is_declared: impl Fn(&str, u64) -> bool) {
        let mut declared = lock(&self.0);
        if changed > declared.changed {
            declared.changed = changed;
            declared
                .lists
                .retain(|(by, name), list| is_declared(name, *by) || Arc::strong_count(list) > 1);
        }
    }
}
