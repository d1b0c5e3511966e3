//! Statements that remember packets and decide by them: limits and quotas.

pub(super) mod limit;
pub(super) mod named;
pub(super) mod quota;
