//! What of a ruleset is not evaluated: each rule, or chain, by its place, and why.

use crate::family::{Family, Position};

/// A rule or a chain of which something is not evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The family of its table.
    pub family: Family,
    /// The table.
    pub table: Box<str>,
    /// The chain.
    pub chain: Box<str>,
    /// Number of the rule in the chain, from 1; 0 if it is the chain.
    pub rule: u32,
    /// The rule's handle, if the listing has it.
    pub handle: Option<u64>,
    /// Where its text began.
    pub position: Position,
    /// Text of the rule.
    pub text: Box<str>,
    /// What is not evaluated, by name, each once.
    pub causes: Vec<String>,
}

impl Unknown {
    /// Adds causes, each once.
    pub(super) fn add(&mut self, causes: impl IntoIterator<Item = String>) {
        for cause in causes {
            if !self.causes.contains(&cause) {
                self.causes.push(cause);
            }
        }
    }
}
