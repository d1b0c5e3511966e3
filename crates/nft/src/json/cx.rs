//! Where a statement of JSON stands.

use crate::family::Family;
use crate::types::{INTEGER, Ty};

/// Types of a set's keys, and of what a map gives.
pub type Types = (Vec<Ty>, Option<Vec<Ty>>);

/// Where a statement stands.
#[derive(Clone, Copy)]
pub struct Cx<'a> {
    /// Family of its table.
    pub family: Family,
    /// Sets of its table.
    pub sets: &'a dyn Fn(&str) -> Option<Types>,
}

impl Cx<'_> {
    /// Returns the types of the keys of a set of the table; none if it is not there.
    pub fn set_types(&self, name: &str) -> Vec<Ty> {
        (self.sets)(name).map_or_else(Vec::new, |types| types.0)
    }

    /// Returns the types of what a map of the table gives.
    pub fn map_types(&self, name: &str) -> Vec<Ty> {
        (self.sets)(name).and_then(|types| types.1).unwrap_or_else(|| vec![&INTEGER])
    }
}
