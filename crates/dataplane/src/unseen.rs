//! Packets of the host's own that only an ICMP error shows: they waited for a neighbour that never answered, or a rule
//! of OUTPUT rejected them, and the host sent the error to itself on `lo`.
//!
//! Contract: the error quotes the packet as it was made: its quotation was translated back on the way.
//!
//! Source: Linux 6.18 `arp.c` (`arp_error_report`), `icmp.c` (`__icmp_send`), measured.

use host::Host;
use host::sighting::quoted::{self, Quoted as Found};
use packet::{Checksums, Link, Packet};

use crate::routing::path::Path;
use crate::routing::way::addresses;

/// A packet that an error quotes.
pub(crate) struct Quoted {
    /// The packet's bytes as far as they are quoted and were captured.
    pub(crate) bytes: Vec<u8>,
    /// The packet's length.
    pub(crate) len: usize,
    pub(crate) path: Path,
}

/// The packet of the host's own that an error quotes.
pub(crate) fn quoted(error: &Packet<'_>, host: &Host) -> Option<Quoted> {
    let Found { bytes, len } = quoted::quoted(error.frame(), error.headers())?;
    let mut bytes = bytes.to_vec();
    let packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let (source, destination) = addresses(&packet)?;
    let path = if host.is_local(destination) == Some(true) { Path::Loopback } else { Path::Output };
    (host.is_local(source) == Some(true)).then_some(Quoted { bytes, len, path })
}
