//! What layers test: checksums as [`Checksums`] has it, and that a header is there.

use crate::bytes::Read;
use crate::headers::{L3, L3Fault};

/// What to do about IPv4 header checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Checksums {
    /// Take them as correct: a capture made on the sending host holds unfinished ones.
    Ignore,
    /// Verify the sums of packets that the capture marks as incoming and holds as a whole; take others as correct.
    #[default]
    Arrivals,
    /// A wrong one is [`L3Fault::Checksum`].
    Verify,
}

/// Bytes without which a header cannot be read: absent ones make it truncated.
#[inline]
pub(super) fn whole<T>(read: Read<T>) -> Result<T, L3> {
    match read {
        Read::Known(bytes) => Ok(bytes),
        Read::Absent => Err(L3::Fault(L3Fault::Truncated)),
        Read::Unknown => Err(L3::Unknown),
    }
}
