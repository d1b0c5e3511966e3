//! Surfaces: sockets through which other programs reach a run.

pub(crate) mod control;
pub(crate) mod metrics;
mod serving;
