//! IPv6 extension headers: the chain one by one, and the search that `-p` and the header matches use.
//!
//! Source: RFC 8200 section 4; [`find`] gives the answers of Linux `ipv6_find_hdr`
//! (`net/ipv6/exthdrs_core.c`), its failures included. Offsets are bytes from the first byte of the
//! frame. A chain is as long as the packet allows: every header is at least 8 bytes, so both walks end.

use crate::bytes::{Read, ReadAt};
use crate::ipv6;
use std::ops::Range;

/// Hop-by-hop options.
pub const HOP_BY_HOP: u8 = 0;
/// Routing header.
pub const ROUTING: u8 = 43;
/// Fragment header.
pub const FRAGMENT: u8 = 44;
/// Encapsulating security payload: not walked over, for what follows is encrypted.
pub const ESP: u8 = 50;
/// Authentication header.
pub const AUTH: u8 = 51;
/// No next header.
pub const NO_NEXT: u8 = 59;
/// Destination options.
pub const DESTINATION_OPTIONS: u8 = 60;
/// Mobility header: an upper-layer protocol to the walk, as in the kernel.
pub const MOBILITY: u8 = 135;

/// Type of the header that follows an extension header.
pub const NEXT_HEADER: Range<usize> = 0..1;
/// Length of an extension header: 8-byte units after the first 8 bytes; for [`AUTH`], 4-byte units less 2.
pub const LEN: Range<usize> = 1..2;
/// Fragment header: offset in bytes (upper 13 bits), 2 reserved bits, more fragments (1 bit), big endian.
pub const FRAGMENT_OFFSET: Range<usize> = 2..4;
/// Bits of [`FRAGMENT_OFFSET`] that hold the offset in bytes.
pub const OFFSET_MASK: u16 = 0xfff8;
/// Bit of [`FRAGMENT_OFFSET`]: more fragments follow.
pub const MORE_FRAGMENTS: u16 = 0x0001;

/// Whether the walk passes over headers of this type (or ends there, at [`NO_NEXT`]).
#[inline]
#[must_use]
pub fn is_extension(kind: u8) -> bool {
    matches!(kind, HOP_BY_HOP | ROUTING | FRAGMENT | AUTH | NO_NEXT | DESTINATION_OPTIONS)
}

/// One extension header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtHeader {
    /// The header's type.
    pub kind: u8,
    /// Where it starts.
    pub offset: usize,
    /// The length in bytes that the header states; it may run past the end of the packet.
    pub len: usize,
    /// Type of the header after it.
    pub next: u8,
}

/// Why a chain cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainFault {
    /// The packet ends inside a header.
    Truncated,
    /// The bytes of a header were on the wire but are not known.
    Unknown,
}

/// The extension headers of the IPv6 packet at `network`, up to the upper-layer header. Headers after
/// a fragment header are given whatever its fragment offset says. After a fault the walk is over.
#[must_use]
pub fn headers<R: ReadAt>(packet: &R, network: usize) -> ExtHeaders<'_, R> {
    let offset = network.saturating_add(ipv6::HEADER_LEN);
    match packet.read_at::<1>(network.saturating_add(ipv6::NEXT_HEADER.start)) {
        Read::Known([kind]) => ExtHeaders { packet, at: Ok((kind, offset)) },
        Read::Unknown => ExtHeaders { packet, at: Err(Some(ChainFault::Unknown)) },
        Read::Absent => ExtHeaders { packet, at: Err(Some(ChainFault::Truncated)) },
    }
}

/// Iterator of [`headers`].
#[derive(Debug)]
pub struct ExtHeaders<'p, R> {
    packet: &'p R,
    /// Type and offset of the next header, or the fault still to be told.
    at: Result<(u8, usize), Option<ChainFault>>,
}

impl<R> ExtHeaders<'_, R> {
    /// Returns type and offset of the header at which the walk stands: after the last item, type and offset of the
    /// upper-layer header. None after a fault.
    #[must_use]
    pub fn position(&self) -> Option<(u8, usize)> {
        self.at.ok()
    }
}

impl<R: ReadAt> Iterator for ExtHeaders<'_, R> {
    type Item = Result<ExtHeader, ChainFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, offset) = match &mut self.at {
            Ok(at) => *at,
            Err(fault) => return fault.take().map(Err),
        };
        if !is_extension(kind) || kind == NO_NEXT {
            return None;
        }
        let header = match self.packet.read_at::<2>(offset) {
            Read::Known([next, len]) => ExtHeader { kind, offset, len: len_of(kind, len), next },
            Read::Unknown => return self.stop(ChainFault::Unknown),
            Read::Absent => return self.stop(ChainFault::Truncated),
        };
        self.at = Ok((header.next, offset.saturating_add(header.len)));
        Some(Ok(header))
    }
}

impl<R> ExtHeaders<'_, R> {
    fn stop(&mut self, fault: ChainFault) -> Option<Result<ExtHeader, ChainFault>> {
        self.at = Err(None);
        Some(Err(fault))
    }
}

/// Length in bytes of an extension header whose length field is `len`.
fn len_of(kind: u8, len: u8) -> usize {
    match kind {
        FRAGMENT => 8,
        AUTH => (usize::from(len) + 2) * 4,
        _ => (usize::from(len) + 1) * 8,
    }
}

/// Where [`skip`] ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// Type of the header there: that of the upper layer, or [`FRAGMENT`] at a later fragment.
    pub kind: u8,
    /// Where it starts.
    pub offset: usize,
    /// Bytes of the packet that come before this fragment's.
    pub fragment_offset: u16,
}

/// Passes over the extension headers as Linux `ipv6_skip_exthdr` does, which stops at the header of a later
/// fragment; [`Read::Absent`] where it fails: the packet ends in the chain, or nothing follows it.
#[must_use]
pub fn skip<R: ReadAt>(packet: &R, network: usize) -> Read<Skipped> {
    let mut walk = headers(packet, network);
    for header in walk.by_ref() {
        let header = match header {
            Ok(header) => header,
            Err(ChainFault::Truncated) => return Read::Absent,
            Err(ChainFault::Unknown) => return Read::Unknown,
        };
        if header.kind != FRAGMENT {
            continue;
        }
        match packet.read_at::<2>(header.offset.saturating_add(FRAGMENT_OFFSET.start)) {
            Read::Known(field) => {
                let fragment_offset = u16::from_be_bytes(field) & OFFSET_MASK;
                if fragment_offset != 0 {
                    let ExtHeader { kind, offset, .. } = header;
                    return Read::Known(Skipped { kind, offset, fragment_offset });
                }
            }
            Read::Unknown => return Read::Unknown,
            Read::Absent => return Read::Absent,
        }
    }
    match walk.position() {
        Some((NO_NEXT, _)) | None => Read::Absent,
        Some((kind, offset)) => Read::Known(Skipped { kind, offset, fragment_offset: 0 }),
    }
}

/// What [`find`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Find {
    /// The header asked for, or the upper-layer header.
    Found {
        /// The upper layer's protocol number.
        protocol: u8,
        /// Where it starts; possibly beyond the end of the packet.
        offset: usize,
        /// Fragment offset in bytes where the packet is a fragment that does not start at 0 (then there
        /// is nothing of an upper-layer header at `offset`), else 0.
        fragment_offset: u16,
    },
    /// The kernel's -ENOENT: the chain holds no such header, or it does but lies in another fragment.
    Missing,
    /// The kernel's -EBADMSG: the packet ends inside a header of the chain.
    Truncated,
    /// Bytes of the chain were on the wire but are not known.
    Unknown,
}

/// Finds the first header of type `target`, or with None the upper-layer header, in the IPv6 packet at
/// `network`.
#[must_use]
pub fn find<R: ReadAt>(packet: &R, network: usize, target: Option<u8>) -> Find {
    let mut chain = headers(packet, network);
    loop {
        match chain.next() {
            None => return end_of_chain(&chain, target),
            Some(Err(ChainFault::Truncated)) => return Find::Truncated,
            Some(Err(ChainFault::Unknown)) => return Find::Unknown,
            Some(Ok(header)) => {
                if let Some(found) = step(packet, &header, target) {
                    return found;
                }
            }
        }
    }
}

/// The walk stands at a header it cannot pass over: the upper layer, or "no next header".
fn end_of_chain<R>(chain: &ExtHeaders<'_, R>, target: Option<u8>) -> Find {
    match chain.position() {
        Some((protocol, offset)) if target.is_none_or(|target| target == protocol) => {
            Find::Found { protocol, offset, fragment_offset: 0 }
        }
        _ => Find::Missing,
    }
}

/// What one extension header decides, if it ends the search.
fn step<R: ReadAt>(packet: &R, header: &ExtHeader, target: Option<u8>) -> Option<Find> {
    let is_target = target == Some(header.kind);
    let found = |fragment_offset| Find::Found {
        protocol: header.kind,
        offset: header.offset,
        fragment_offset,
    };
    let fragment_offset = match header.kind {
        // The kernel reads the fixed part of a routing header, and fails where it is cut.
        ROUTING => packet.read_at::<4>(header.offset).map(|_| 0),
        FRAGMENT => packet
            .read_at::<2>(header.offset.saturating_add(FRAGMENT_OFFSET.start))
            .map(|field| u16::from_be_bytes(field) & OFFSET_MASK),
        _ => Read::Known(0),
    };
    match fragment_offset {
        Read::Absent => Some(Find::Truncated),
        Read::Unknown => Some(Find::Unknown),
        Read::Known(0) => is_target.then(|| found(0)),
        Read::Known(offset) if is_target => Some(found(offset)),
        Read::Known(offset) => Some(later_fragment(header, target, offset)),
    }
}

/// A fragment that does not start at 0 names its upper layer only where no extension header follows.
fn later_fragment(header: &ExtHeader, target: Option<u8>, fragment_offset: u16) -> Find {
    let plain = !is_extension(header.next) || header.next == NO_NEXT;
    if target.is_some() || !plain {
        return Find::Missing;
    }
    let offset = header.offset.saturating_add(header.len);
    Find::Found { protocol: header.next, offset, fragment_offset }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Snap;

    /// An IPv6 header with next header `first`, then `chain`.
    fn packet(first: u8, chain: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 40];
        bytes[0] = 0x60;
        bytes[6] = first;
        bytes.extend_from_slice(chain);
        bytes
    }

    fn find_in(bytes: &[u8], target: Option<u8>) -> Find {
        find(&Snap::new(bytes, bytes.len()), 0, target)
    }

    fn found(protocol: u8, offset: usize, fragment_offset: u16) -> Find {
        Find::Found { protocol, offset, fragment_offset }
    }

    #[test]
    fn every_extension_header_is_passed_over() {
        let chain = [
            [60, 0, 1, 4, 0, 0, 0, 0].as_slice(),
            &[43, 0, 1, 4, 0, 0, 0, 0],
            &[44, 0, 0, 0, 0, 0, 0, 0],
            &[51, 0, 0, 1, 0, 0, 0, 7],
            &[17, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        let bytes = packet(HOP_BY_HOP, &chain);
        assert_eq!(find_in(&bytes, None), found(17, 80, 0));
        assert_eq!(find_in(&bytes, Some(ROUTING)), found(ROUTING, 56, 0));
        assert_eq!(find_in(&bytes, Some(AUTH)), found(AUTH, 72, 0));
        assert_eq!(find_in(&bytes, Some(17)), found(17, 80, 0));
        assert_eq!(find_in(&bytes, Some(6)), Find::Missing);
        let snap = Snap::new(&bytes, bytes.len());
        let kinds: Vec<_> = headers(&snap, 0).map(|header| header.unwrap().kind).collect();
        assert_eq!(kinds, [HOP_BY_HOP, DESTINATION_OPTIONS, ROUTING, FRAGMENT, AUTH]);
    }

    #[test]
    fn no_next_header_is_an_upper_layer() {
        let bytes = packet(NO_NEXT, &[]);
        assert_eq!(find_in(&bytes, None), found(NO_NEXT, 40, 0));
        assert_eq!(find_in(&bytes, Some(NO_NEXT)), found(NO_NEXT, 40, 0));
        assert_eq!(find_in(&bytes, Some(AUTH)), Find::Missing);
    }

    #[test]
    fn a_later_fragment_names_its_upper_layer_unless_it_is_an_extension() {
        let udp = packet(FRAGMENT, &[17, 0, 0x05, 0xa9, 0, 0, 0, 1]);
        assert_eq!(find_in(&udp, None), found(17, 48, 0x05a8));
        assert_eq!(find_in(&udp, Some(FRAGMENT)), found(FRAGMENT, 40, 0x05a8));
        assert_eq!(find_in(&udp, Some(17)), Find::Missing);
        let options = packet(FRAGMENT, &[60, 0, 0x05, 0xa9, 0, 0, 0, 1]);
        assert_eq!(find_in(&options, None), Find::Missing);
        let none = packet(FRAGMENT, &[NO_NEXT, 0, 0, 8, 0, 0, 0, 1]);
        assert_eq!(find_in(&none, None), found(NO_NEXT, 48, 8));
    }

    #[test]
    fn a_cut_chain_is_truncated_on_the_wire_and_unknown_in_a_short_capture() {
        let bytes = packet(ROUTING, &[17, 0, 0, 0, 0, 0, 0, 0]);
        for len in 40..44 {
            assert_eq!(find_in(&bytes[..len], None), Find::Truncated, "{len}");
            assert_eq!(find(&Snap::new(&bytes[..len], 48), 0, None), Find::Unknown, "{len}");
        }
        assert_eq!(find_in(&bytes[..44], None), found(17, 48, 0));
        let snap = Snap::new(&bytes[..41], 41);
        let mut chain = headers(&snap, 0);
        assert_eq!(chain.next(), Some(Err(ChainFault::Truncated)));
        assert_eq!((chain.next(), chain.position()), (None, None));
    }

    #[test]
    fn a_target_header_needs_its_own_bytes() {
        let bytes = packet(HOP_BY_HOP, &[AUTH, 0, 0, 0, 0, 0, 0, 0, 6]);
        assert_eq!(find_in(&bytes, Some(AUTH)), Find::Truncated);
    }
}
