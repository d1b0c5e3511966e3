//! What the studies built and tamis does not need: it is measured against it.

pub mod access;
pub mod counters;
pub mod orchestrate;
