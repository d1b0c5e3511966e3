//! Near misses: rules that a packet would have matched but for one test, and what it has there instead.
//!
//! Near misses of rules that would have given another verdict come first: they are what a packet that was dropped
//! lacked. Among them come first, for a packet that begins no connection, tests of its connection; then the nearest to
//! the decision.
//!
//! A match of several options that all must hold (`-m tcp --sport 1024: --dport 22`) counts as one test for
//! each of them. A test that may hold is no near miss: only known answers count.

mod gives;
mod misses;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use misses::{Misses, NearMiss, asks_for_state};
