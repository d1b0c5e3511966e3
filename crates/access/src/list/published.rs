//! The latest list, for any number of readers while it is replaced.
//!
//! Concurrency: a change, or a batch of them, makes a new list from the latest and publishes it by swapping
//! one pointer; writers take turns. A reader keeps the list that it has and looks once a burst whether there
//! is a newer one; it takes no lock and waits for nobody. A list that nobody has any more is freed by its
//! last holder.
//!
//! Linearization: a batch at the swap; a decision where its burst looked for the latest list.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::{Change, List};

/// See the module.
#[derive(Debug, Default)]
pub struct Published {
    latest: ArcSwap<List>,
    turn: Mutex<()>,
}

impl Published {
    /// Publishes this list first.
    #[must_use]
    pub fn new(list: List) -> Self {
        Self { latest: ArcSwap::from_pointee(list), turn: Mutex::new(()) }
    }

    /// Carries out changes, all at one moment.
    pub fn update_all(&self, changes: &[Change]) {
        let _turn = self.turn.lock();
        let mut list = List::clone(&self.latest.load());
        list.update_all(changes);
        self.latest.store(Arc::new(list));
    }

    /// A reader, one for each thread.
    pub fn reader(&self) -> Reader<'_> {
        Reader { cache: arc_swap::Cache::new(&self.latest) }
    }
}

/// One thread's look at the latest list.
#[derive(Debug)]
pub struct Reader<'p> {
    cache: arc_swap::Cache<&'p ArcSwap<List>, Arc<List>>,
}

impl Reader<'_> {
    /// The latest list, to judge a burst by.
    #[inline]
    pub fn latest(&mut self) -> &List {
        self.cache.load()
    }
}
