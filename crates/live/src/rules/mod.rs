//! Rules of a run: read from files or from the journal, checked against what the run can do, changed while workers use
//! them.

pub(crate) mod counters;
pub mod journal;
pub(crate) mod load;
mod overrides;
pub(crate) mod own;
pub(crate) mod owner;
pub(crate) mod revisions;
mod warnings;
