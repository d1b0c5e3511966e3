//! The unit of times.

/// One second, as times of packets and connections are counted: in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;
