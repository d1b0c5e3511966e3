//! Statements that remember packets and decide by them: limits, quotas and counts of connections.

pub(super) mod count;
pub(super) mod limit;
pub(super) mod named;
pub(super) mod quota;
