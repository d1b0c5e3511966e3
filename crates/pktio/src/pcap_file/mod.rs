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
mod piece;
mod reader;
mod writer;
mod writer_port;

pub use decompress::decompressed;
pub use end::{Damage, EndOfFile, MAX_CAPTURED};
pub use paced::{Pace, PacedReader, Speed};
pub use piece::Interface;
pub use reader::CaptureReader;
pub use writer::{ClassicWriter, NgWriter, Precision};
pub use writer_port::CaptureWriter;
