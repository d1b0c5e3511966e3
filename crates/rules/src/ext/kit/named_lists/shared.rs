//! [`SharedLists`]: the lists of one network namespace, by name, which all workers have together. Those of `-m recent` are
//! one for IPv4 and IPv6; of the tables of `-m hashlimit` each has its own.
//!
//! A list begins with the first rule that names it and ends when no rule of either family does. One that ends and one
//! that begins later under the same name are two, whichever of them a worker still walks by: rules of revisions hold a
//! list by the name of the rule that declared it.
//!
//! Contract: the lock is held while rules are followed, never while a packet is asked about, and no list's lock is
//! waited for but to widen it. A list stays while the newest rules that a worker has followed name it, or
//! somebody has it: bounded by the lists of rules that are walked.
//!
//! Source: Linux 6.18 `net/netfilter/xt_recent.c` (`recent_table_lookup`, one table of a name for each namespace) and
//! `xt_hashlimit.c` (`htable_find_get`, one of a name and a family).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::named::{ListUse, Name, Named, Sort, name};
use crate::model::Family;
use crate::one::lock;

/// Rules of one family that hold a list: of revisions, the name of the rule that declared it; 0 of rules as they
/// were read.
pub(super) type Holder = (Family, u64);

/// The lists of all families and workers.
#[derive(Debug, Default)]
pub struct SharedLists(Mutex<Declared>);

#[derive(Debug, Default)]
struct Declared {
    /// The lists by name; of one name, the newest comes last.
    lists: HashMap<Name, Vec<Life>>,
    /// How often the lists of the newest revision of each family had changed that was followed.
    changed: [u64; Family::ALL.len()],
}

/// A list from the first rule that names it until none does.
#[derive(Debug)]
struct Life {
    list: Arc<Mutex<Named>>,
    holders: Vec<Holder>,
}

impl Life {
    fn is_of_other(&self, family: Family) -> bool {
        self.holders.iter().any(|(other, _)| *other != family)
    }
}

impl SharedLists {
    /// Returns the list of this name that the holder has already, or that another family holds, or a new list.
    pub(super) fn list(&self, holder: Holder, list: ListUse<'_>) -> Arc<Mutex<Named>> {
        let mut declared = lock(&self.0);
        let lives = declared.lists.entry(name(list)).or_default();
        let own = lives.iter().position(|life| life.holders.contains(&holder));
        let is_common = matches!(list.sort.sort(), Sort::Recent | Sort::State);
        let other = || lives.iter().rposition(|life| is_common && life.is_of_other(holder.0));
        let at = own.or_else(other).unwrap_or_else(|| {
            let list = Arc::new(Mutex::new(Named::new(list.sort)));
            lives.push(Life { list, holders: Vec::new() });
            lives.len() - 1
        });
        let life = &mut lives[at];
        if !life.holders.contains(&holder) {
            life.holders.push(holder);
        }
        lock(&life.list).widen(list.sort);
        Arc::clone(&life.list)
    }

    /// A worker has followed a revision whose lists have `changed` so often: what is not among them, and nobody else
    /// has, ends.
    pub(super) fn settle(
        &self,
        family: Family,
        changed: u64,
        is_held: impl Fn(&Name, u64) -> bool,
    ) {
        let mut declared = lock(&self.0);
        let newest = &mut declared.changed[family as usize];
        if changed > *newest {
            *newest = changed;
            declared.keep(family, is_held);
        }
    }

    /// Rules of a family hold these lists now and no others.
    pub(super) fn keep(&self, family: Family, is_held: impl Fn(&Name, u64) -> bool) {
        lock(&self.0).keep(family, is_held);
    }
}

impl Declared {
    fn keep(&mut self, family: Family, is_held: impl Fn(&Name, u64) -> bool) {
        self.lists.retain(|name, lives| {
            for life in &mut *lives {
                life.holders.retain(|(of, by)| *of != family || is_held(name, *by));
            }
            lives.retain(|life| !life.holders.is_empty() || Arc::strong_count(&life.list) > 1);
            !lives.is_empty()
        });
    }
}
