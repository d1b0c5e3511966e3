//! `serial`: one thread's hash table of entries. The baseline of every speed-up.
//!
//! Concurrency: none; it belongs to one thread.

use std::collections::HashMap;

use super::entry::{Entry, permits};
use crate::{Address, Config, Decide, Mix};

/// Entries of one thread.
#[derive(Debug)]
pub struct Serial<A> {
    default: bool,
    entries: HashMap<A, Entry<A>, Mix>,
}

impl<A: Address> Serial<A> {
    /// Every address accepts all sources, or none.
    #[must_use]
    pub fn new(default: bool) -> Self {
        Self { default, entries: HashMap::default() }
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.values().map(|entry| size_of::<A>() + entry.bytes()).sum()
    }
}

impl<A: Address> Decide<A> for Serial<A> {
    fn decide(&mut self, source: A, destination: A) -> bool {
        let entries = &self.entries;
        permits(entries.get(&source), entries.get(&destination), source, self.default)
    }

    fn update(&mut self, config: &Config<A>) {
        let default = self.default;
        self.entries.entry(config.address).or_insert_with(|| Entry::new(default)).change(config);
    }
}
