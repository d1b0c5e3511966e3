//! [`Failure`]: a difference between the kernel and tamis, as it is told and kept.

use crate::case::Case;

/// One difference, made small.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Number of the ruleset.
    pub number: u64,
    /// Rules, packets and what differed.
    pub story: String,
    /// The case to keep.
    pub case: Option<Case>,
}
