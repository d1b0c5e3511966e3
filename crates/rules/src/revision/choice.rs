//! [`Which`] rule a change is about, and why it was [`Refused`].

use std::fmt;

use crate::model::Rule;

/// Which rule of a chain.
#[derive(Debug)]
pub enum Which {
    /// By its number, from 1, as users count.
    Number(usize),
    /// The first one that reads the same.
    Same(Box<Rule>),
}

/// Why a change was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(pub String);

impl Refused {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    pub(super) fn looped(from: &str, to: &str) -> Self {
        Self(format!("no loop of chains, found the jump {from} -> {to}"))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.0)
    }
}

impl std::error::Error for Refused {}

/// The place of this number, counted from 1, of this many.
pub(super) fn place(number: usize, places: usize) -> Result<usize, Refused> {
    match number {
        1.. if number <= places => Ok(number - 1),
        _ => Err(Refused::new(format!("a rule number from 1 to {places}, found {number}"))),
    }
}
