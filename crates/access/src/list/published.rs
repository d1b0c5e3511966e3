//! The latest list, for any number of readers while it is replaced.
//!
//! Concurrency: a change, or a batch of them, makes a new list from the latest and publishes it by swapping
//! one pointer; writers take turns. A reader keeps the list that it has and looks once a burst whether there
//! is a newer one; it takes no lock and waits for nobody. Lists that no reader has any more are freed by the
//! next writer, so that a reader never pays for it; there is at most one such list for each reader.
//!
//! Linearization: a batch at the swap; a decision where its burst looked for the latest list.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Cache};

use super::{Change, List};

/// The list in force, for readers that never wait and one writer at a time.
#[derive(Debug, Default)]
pub struct Published {
    latest: Arc<ArcSwap<List>>,
    /// The writer's turn, and the lists that were replaced while readers may have had them.
    replaced: Mutex<Vec<Arc<List>>>,
}

impl Published {
    /// Publishes this list first.
    #[must_use]
    pub fn new(list: Arc<List>) -> Self {
        Self { latest: Arc::new(ArcSwap::new(list)), replaced: Mutex::default() }
    }

    /// Applies changes, all at one moment: how many ranges of sources are banned after them.
    pub fn update_all(&self, changes: &[Change]) -> usize {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list = List::clone(&self.latest.load());
        list.update_all(changes);
        let banned = list.banned();
        replaced.push(self.latest.swap(Arc::new(list)));
        replaced.retain(|list| Arc::strong_count(list) > 1);
        banned
    }

    /// A reader, one for each thread.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader { cache: Cache::new(Arc::clone(&self.latest)) }
    }
}

/// One thread's look at the latest list.
#[derive(Debug)]
pub struct Reader {
    cache: Cache<Arc<ArcSwap<List>>, Arc<List>>,
}

impl Reader {
    /// The latest list, to evaluate a burst by.
    #[inline]
    pub fn latest(&mut self) -> &List {
        self.cache.load()
    }
}
