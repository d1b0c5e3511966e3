//! What it costs to ask a match that looks at more than headers, in steps of the walk.

/// Bytes that are looked at in about the time that a rule takes.
const BYTES_A_STEP: usize = 64;

/// Bytes that a match is charged for at most: the longest frame that captures hold.
pub(crate) const LONGEST: usize = 1 << 18;

/// Steps that it takes to look at this number of bytes of a packet.
#[must_use]
pub(crate) fn steps_of(bytes: usize) -> u32 {
    bytes.min(LONGEST).div_ceil(BYTES_A_STEP) as u32
}
