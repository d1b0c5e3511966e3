//! `coarse`: one reader-writer lock around two tables, PNG and R. The first study's baseline.
//!
//! Concurrency: readers share the lock, a writer has it alone. With one lock there is no order to keep and
//! nothing to deadlock on.
//!
//! Linearization: `update` anywhere while it holds the lock for writing, `decide` anywhere while it holds it
//! for reading: both tables stand still.

use std::collections::HashMap;

use super::entry::Accepts;
use super::sync::RwLock;
use crate::{Address, Config, Engine, Mix};
use access::RangeSet;

/// Two tables under one lock. `R` is the form of R; the sorted set unless another one is named.
#[derive(Debug)]
pub struct Coarse<A, R = RangeSet<A>> {
    default: bool,
    tables: RwLock<Tables<A, R>>,
}

#[derive(Debug)]
struct Tables<A, R> {
    png: HashMap<A, bool, Mix>,
    accepts: HashMap<A, R, Mix>,
}

impl<A: Address, R: Accepts<A>> Coarse<A, R> {
    /// Every address accepts all sources, or none.
    #[must_use]
    pub fn new(default: bool) -> Self {
        let tables = Tables { png: HashMap::default(), accepts: HashMap::default() };
        Self { default, tables: RwLock::new(tables) }
    }
}

impl<A: Address, R: Accepts<A>> Engine<A> for Coarse<A, R> {
    fn decide(&self, source: A, destination: A) -> bool {
        let tables = self.tables.read();
        !tables.png.get(&source).is_some_and(|&png| png)
            && tables.accepts.get(&destination).map_or(self.default, |set| set.contains(source))
    }

    fn update(&self, config: &Config<A>) {
        let mut tables = self.tables.write();
        tables.png.insert(config.address, config.persona_non_grata);
        let set = tables.accepts.entry(config.address);
        set.or_insert_with(|| R::new(self.default)).set(config.begin, config.end, config.accept);
    }

    fn bytes(&self) -> usize {
        let tables = self.tables.read();
        let sets = tables.accepts.values();
        tables.png.len() * size_of::<(A, bool)>()
            + sets.map(|set| size_of::<(A, R)>() + set.bytes()).sum::<usize>()
    }
}
