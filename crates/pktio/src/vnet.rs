//! The vnet header: 12 bytes before a frame by which the kernel and a port tell each other what is left to be done to
//! it, its checksum or its cutting.
//!
//! Contract: bytes to [`LiveMeta`] and back, without a look at the frame. Fields are in the byte order of the
//! machine, as a TUN device and a packet socket have them unless told otherwise. What is not known here (a tunnel's
//! segments) is `None`: such a frame cannot be passed on as what it is.
//!
//! | byte | field | |
//! |---|---|---|
//! | 0 | flags | 1: the checksum is unfinished; 2: it was verified |
//! | 1 | kind of segments | 0: not cut; 1: TCP, IPv4; 3: UDP to fragments; 4: TCP, IPv6; 5: UDP; + 0x80: with CWR |
//! | 2 | bytes of headers | a hint: the kernel puts as many in one piece, and reads the true length itself |
//! | 4 | bytes of payload of each segment | |
//! | 6 | where the checksum begins to cover | |
//! | 8 | its field, from there | |
//! | 10 | number of buffers | not used here; a header of 10 bytes ends before it |
//!
//! Source: `linux/virtio_net.h` (`struct virtio_net_hdr_v1`, `virtio_net_hdr_to_skb`, `virtio_net_hdr_from_skb`),
//! virtio 1.2, 5.1.6.

use crate::frame::{ChecksumState, LiveMeta, SegmentKind, Segments};

/// Length of the header in bytes.
pub(crate) const LENGTH: usize = 12;

const UNFINISHED: u8 = 1;
const VERIFIED: u8 = 2;

const NOT_CUT: u8 = 0;
const TCP_V4: u8 = 1;
const UDP_FRAGMENTS: u8 = 3;
const TCP_V6: u8 = 4;
const UDP_DATAGRAMS: u8 = 5;
/// Set together with TCP's: the first segment has CWR. [`SegmentKind`] does not say it, the frame does.
const WITH_CWR: u8 = 0x80;

/// Bytes of a checksum.
const CHECKSUM: u16 = 2;

/// What the header says of its frame: the checksum and the segments of [`LiveMeta`]. `None` for segments of a kind
/// that is not known.
pub(crate) fn decode(header: &[u8; LENGTH]) -> Option<(ChecksumState, Option<Segments>)> {
    let [flags, kind, ..] = *header;
    let field = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let checksum = match flags & (UNFINISHED | VERIFIED) {
        0 => ChecksumState::NotKnown,
        VERIFIED => ChecksumState::Verified,
        _ => ChecksumState::Unfinished { start: field(6), offset: field(8) },
    };
    let kind = match kind & !WITH_CWR {
        NOT_CUT => return Some((checksum, None)),
        TCP_V4 => SegmentKind::TcpV4,
        TCP_V6 => SegmentKind::TcpV6,
        UDP_FRAGMENTS => SegmentKind::UdpFragments,
        UDP_DATAGRAMS => SegmentKind::UdpDatagrams,
        _ => return None,
    };
    Some((checksum, Some(Segments { size: field(4), kind })))
}

/// Returns the header of a frame; all 0 for a finished frame that is not to be cut.
pub(crate) fn encode(live: &LiveMeta) -> [u8; LENGTH] {
    let mut header = [0; LENGTH];
    let mut put = |at: usize, field: u16| header[at..at + 2].copy_from_slice(&field.to_ne_bytes());
    let mut flags = 0;
    if let ChecksumState::Unfinished { start, offset } = live.checksum {
        flags = UNFINISHED;
        put(2, start.saturating_add(offset).saturating_add(CHECKSUM));
        put(6, start);
        put(8, offset);
    }
    let mut kind = NOT_CUT;
    if let Some(segments) = live.segments {
        put(4, segments.size);
        kind = match segments.kind {
            SegmentKind::TcpV4 => TCP_V4,
            SegmentKind::TcpV6 => TCP_V6,
            SegmentKind::UdpFragments => UDP_FRAGMENTS,
            SegmentKind::UdpDatagrams => UDP_DATAGRAMS,
        };
    }
    header[..2].copy_from_slice(&[flags, kind]);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn live() -> impl Strategy<Value = LiveMeta> {
        let checksum = prop_oneof![
            Just(ChecksumState::NotKnown),
            (any::<u16>(), any::<u16>())
                .prop_map(|(start, offset)| ChecksumState::Unfinished { start, offset }),
        ];
        let kind = prop_oneof![
            Just(SegmentKind::TcpV4),
            Just(SegmentKind::TcpV6),
            Just(SegmentKind::UdpFragments),
            Just(SegmentKind::UdpDatagrams),
        ];
        let segments = (any::<u16>(), kind).prop_map(|(size, kind)| Segments { size, kind });
        (checksum, proptest::option::of(segments)).prop_map(|(checksum, segments)| LiveMeta {
            checksum,
            segments,
            ..LiveMeta::default()
        })
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_the_same(live in live()) {
            prop_assert_eq!(decode(&encode(&live)), Some((live.checksum, live.segments)));
        }
    }

    /// As `struct virtio_net_hdr_v1` lies in memory on a little-endian machine.
    #[test]
    #[cfg(target_endian = "little")]
    fn fields_lie_where_the_kernel_has_them() {
        let live = LiveMeta {
            checksum: ChecksumState::Unfinished { start: 40, offset: 16 },
            segments: Some(Segments { size: 1440, kind: SegmentKind::TcpV6 }),
            ..LiveMeta::default()
        };
        assert_eq!(encode(&live), [1, 4, 58, 0, 0xa0, 5, 40, 0, 16, 0, 0, 0]);
        assert_eq!(encode(&LiveMeta::default()), [0; LENGTH]);
    }

    #[test]
    fn flags_that_say_nothing_here_are_passed_over_and_kinds_are_not() {
        let header = |flags, kind| [flags, kind, 0, 0, 9, 9, 0, 0, 0, 0, 0, 0];
        assert_eq!(decode(&header(4, 0)), Some((ChecksumState::NotKnown, None)));
        assert_eq!(decode(&header(2, 0)), Some((ChecksumState::Verified, None)));
        assert!(decode(&header(1, TCP_V4 | WITH_CWR)).is_some());
        assert_eq!([2, 6, 0x7f].map(|kind| decode(&header(1, kind))), [None; 3]);
    }
}
