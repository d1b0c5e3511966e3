//! `key map data`: what the element holds that a key finds.
//!
//! A key without an element ends the rule.

use std::sync::Arc;

use super::Load;
use crate::lower::set::{Key, Possible, Search};
use crate::lower::word::{Loaded, Word};
use rules::Transit;
use smallvec::SmallVec;

/// Elements that give something for their keys.
#[derive(Debug)]
pub(crate) struct Map<D> {
    pub search: Search,
    /// What each element gives.
    pub data: Box<[D]>,
}

/// A key that is looked up.
#[derive(Debug)]
pub(crate) struct Lookup<D> {
    pub key: Box<[Box<dyn Load>]>,
    pub map: Arc<Map<D>>,
}

/// What each part of a key comes to.
pub(crate) fn parts(key: &[Box<dyn Load>], transit: &Transit<'_, '_>) -> SmallVec<[Loaded; 4]> {
    key.iter().map(|part| part.load(transit)).collect()
}

impl<D> Lookup<D> {
    /// What may be found, and whether the rule may end before.
    pub(crate) fn find(&self, transit: &Transit<'_, '_>) -> (Possible, bool) {
        let parts = parts(&self.key, transit);
        let breaks = parts.iter().any(|part| part.breaks);
        (self.map.search.find(&parts), breaks)
    }

    /// What the elements give that may be found; `None` where that may be any.
    pub(crate) fn given<'d>(&'d self, possible: &Possible) -> Option<Vec<&'d D>> {
        let of = |at: &u32| self.map.data.get(*at as usize);
        (!possible.anything).then(|| possible.hits.iter().filter_map(of).collect())
    }
}

impl Load for Lookup<Key> {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        let (possible, breaks) = self.find(transit);
        let breaks = breaks || possible.misses;
        let Some(given) = self.given(&possible) else { return Loaded::anything(128) };
        let word = |data: &&Key| data.first().map(|span| Word::between(span.low, span.high));
        Loaded { words: given.iter().filter_map(word).collect(), breaks }
    }

    fn tracks(&self) -> bool {
        self.key.iter().any(|part| part.tracks())
    }

    fn lacks(&self) -> Option<&str> {
        self.key.iter().find_map(|part| part.lacks())
    }

    fn asks_for(&self) -> Option<&'static str> {
        self.key.iter().find_map(|part| part.asks_for())
    }

    fn repeats(&self) -> bool {
        self.key.iter().all(|part| part.repeats())
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        self.key.iter().for_each(|part| part.bytecode(show));
    }
}
