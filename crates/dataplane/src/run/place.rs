//! [`Place`]: where a look at the connections of all workers is, for who goes on with it later.

use serde::{Deserialize, Serialize};

/// Where a look at all connections is: before this slot of this table of this worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Number of the worker.
    pub worker: usize,
    /// Of its tables.
    pub table: usize,
    /// Of the table's slots.
    pub slot: usize,
}
