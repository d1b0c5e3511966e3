//! [`Packet`]: one frame's bytes with the headers found in it, and reads that tell "was never on the
//! wire" from "was on the wire, but we do not know it".

use crate::headers::Headers;

/// The outcome of reading bytes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read<T> {
    /// The bytes, all of them known.
    Known(T),
    /// At least one byte was on the wire but is not known: cut off by the capture length, or rewritten
    /// by a target whose outcome is not known.
    Unknown,
    /// The packet ends before the last byte asked for.
    Absent,
}

/// One frame and its headers.
#[derive(Debug)]
pub struct Packet<'a> {
    bytes: &'a mut [u8],
    headers: Headers,
    unknown: [(u32, u32); 4],
}
