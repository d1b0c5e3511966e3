//! [`Piece`]: what a capture file is made of, packet by packet; and [`Interface`], where a packet was captured.

use super::end::Damage;
use crate::frame::FrameMeta;
use crate::link::LinkType;

/// An interface that a capture was taken on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interface {
    /// The interface's name on the capturing host, where the file has it (pcapng `if_name`), cut at 256 bytes.
    pub name: Option<String>,
    /// Link type of its frames.
    pub link_type: LinkType,
    /// Most bytes kept of a frame; 0 for no limit.
    pub snaplen: u32,
}

/// What stands at the start of the bytes not yet parsed. Lengths and offsets are in bytes from there.
pub(super) enum Piece {
    /// A packet, `total` bytes long with its header, whose captured bytes are `start..start + length`.
    Packet { total: usize, start: usize, length: usize, meta: FrameMeta },
    /// A block that is no packet.
    Other { total: usize },
    /// The beginning of `what`, which has at least `needed` bytes.
    Part { needed: usize, what: &'static str },
    /// Something that cannot be there.
    Damaged(Damage),
}
