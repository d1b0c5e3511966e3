//! The reference: every change is kept, and the last change that names an address counts. Slow and obvious; engines are
//! compared with it.

use std::collections::HashMap;

use crate::address::{Address, Mix};
use crate::config::Config;
use crate::engine::Decide;

/// Every change so far, by address.
#[derive(Debug, Clone)]
pub struct Model<A> {
    default: bool,
    changes: HashMap<A, Vec<Config<A>>, Mix>,
}

impl<A: Address> Model<A> {
    /// Nobody is persona non grata; every address accepts all sources, or none.
    #[must_use]
    pub fn new(default: bool) -> Self {
        Self { default, changes: HashMap::default() }
    }

    /// Whether `source` may send to `destination`.
    #[must_use]
    pub fn permits(&self, source: A, destination: A) -> bool {
        !self.persona_non_grata(source) && self.accepts(destination, source)
    }

    fn persona_non_grata(&self, source: A) -> bool {
        let last = self.changes.get(&source).and_then(|changes| changes.last());
        last.is_some_and(|change| change.persona_non_grata)
    }

    fn accepts(&self, destination: A, source: A) -> bool {
        let mut latest_first = self.changes.get(&destination).into_iter().flatten().rev();
        latest_first.find(|change| change.covers(source)).map_or(self.default, |last| last.accept)
    }
}

impl<A: Address> Decide<A> for Model<A> {
    fn decide(&mut self, source: A, destination: A) -> bool {
        self.permits(source, destination)
    }

    fn update(&mut self, config: &Config<A>) {
        self.changes.entry(config.address).or_default().push(*config);
    }
}
