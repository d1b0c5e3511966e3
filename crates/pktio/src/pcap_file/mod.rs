//! Capture files: classic pcap and pcapng, plain or compressed with gzip or zstd, from a path or stdin.
//!
//! Contract: memory stays constant however long the file is. A file that ends or breaks in the middle
//! yields every packet before that place; [`CaptureReader::end`] then says what happened at which byte.
//! Nothing a file holds makes the reader panic.
//!
//! Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, `pcap-savefile(5)`.

mod classic;
mod clock;
mod decompress;
mod end;
mod fields;
mod ng;
mod paced;
mod reader;
mod writer;
mod writer_port;

use crate::frame::FrameMeta;
use crate::link::LinkType;

pub use decompress::decompressed;
pub use end::{Damage, EndOfFile};
pub use paced::{Pace, PacedReader, Speed};
pub use reader::CaptureReader;
pub use writer::{ClassicWriter, NgWriter, Precision};
pub use writer_port::CaptureWriter;

/// Captured bytes that one packet may have; a length beyond that is damage, not a packet.
pub const MAX_CAPTURED: usize = 16 * 1024 * 1024;

/// An interface that a capture was taken on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interface {
    /// Its name on the capturing host, where the file has one (pcapng `if_name`), cut at 256 bytes.
    pub name: Option<String>,
    /// Link type of its frames.
    pub link_type: LinkType,
    /// Most bytes kept of a frame; 0 for no limit.
    pub snaplen: u32,
}

/// What stands at the start of the bytes not yet parsed. Lengths and offsets are in bytes from there.
enum Piece {
    /// A packet, `total` bytes long with its header, whose captured bytes are `start..start + length`.
    Packet { total: usize, start: usize, length: usize, meta: FrameMeta },
    /// A block that is no packet.
    Other { total: usize },
    /// The beginning of `what`, which has at least `needed` bytes.
    Part { needed: usize, what: &'static str },
    /// Something that cannot be there.
    Damaged(Damage),
}
