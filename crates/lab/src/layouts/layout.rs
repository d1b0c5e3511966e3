//! [`Layout`]: what every layout of a table can do, the one that tamis walks among them.

use std::fmt;
use std::sync::Arc;

use rules::layout::{Corrupt, Footprint, PackedChains};
use rules::model::Rule;

/// What one table is laid out as.
pub trait Layout: fmt::Debug + Send + Sync {
    /// Takes `delete` rules out of a chain from number `at` on, counted from 0, and puts others there: one
    /// reservation however many they are. Numbers past the end of the chain mean its end.
    fn splice(&mut self, chain: u32, at: usize, delete: usize, insert: &[Arc<Rule>]);

    /// Adds an empty chain; its index.
    fn add_chain(&mut self) -> u32;

    /// Checks that every rule is whole and every jump leads to a chain.
    ///
    /// # Errors
    /// The first place where that is not so.
    fn verify(&self) -> Result<(), Corrupt>;

    /// What it takes to hold the rules in this form, the rules as they were read aside.
    fn footprint(&self) -> Footprint;
}

impl Layout for PackedChains {
    fn splice(&mut self, chain: u32, at: usize, delete: usize, insert: &[Arc<Rule>]) {
        self.splice(chain, at, delete, insert);
    }

    fn add_chain(&mut self) -> u32 {
        self.add_chain()
    }

    fn verify(&self) -> Result<(), Corrupt> {
        self.verify()
    }

    fn footprint(&self) -> Footprint {
        self.footprint()
    }
}

/// Puts rules into a list in place of others, within its bounds; what was asked for, within them.
pub(super) fn splice_rules(
    rules: &mut Vec<Arc<Rule>>,
    at: usize,
    delete: usize,
    insert: &[Arc<Rule>],
) -> (usize, usize) {
    let at = at.min(rules.len());
    let delete = delete.min(rules.len() - at);
    rules.splice(at..at + delete, insert.iter().cloned());
    (at, delete)
}
