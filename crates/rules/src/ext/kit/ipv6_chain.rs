//! Finds an IPv6 extension header for the matches that ask for one: `frag`, `hbh`, `dst`, `rt`, `ah`,
//! `srh`.
//!
//! Source: kernel `ipv6_find_hdr` (`net/ipv6/exthdrs_core.c`) as `net/ipv6/netfilter/ip6t_*.c` call it.

use packet::ipv6_ext::{self, Find};

use crate::outcome::Outcome;
use crate::transit::Transit;

/// Offset in the frame of the first header of this type, or the outcome of its lack: no match where the
/// chain has none, a hot drop where the packet ends inside the chain.
pub(crate) fn find(transit: &Transit<'_, '_>, kind: u8) -> Result<usize, Outcome> {
    let network = transit.packet.network_offset();
    match ipv6_ext::find(&*transit.packet, network, Some(kind)) {
        Find::Found { offset, .. } => Ok(offset),
        Find::Missing => Err(match transit.breaks_off() {
            Some(false) => Outcome::NO,
            Some(true) => Outcome::HOT_DROP,
            None => Outcome::NO.or(Outcome::HOT_DROP),
        }),
        Find::Truncated => Err(Outcome::HOT_DROP),
        Find::Unknown => Err(Outcome::MAYBE.or(Outcome::HOT_DROP)),
    }
}

/// Length in bytes that the length field of an extension header (not AH, not fragment) stands for.
pub(crate) fn len_of(field: u8) -> usize {
    (usize::from(field) + 1) * 8
}
