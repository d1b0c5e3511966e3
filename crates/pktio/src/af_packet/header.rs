//! What stands before a frame in the ring, and what it says: where the frame lies, when it came, what the kernel took
//! out of it or left unfinished.
//!
//! Contract: bytes to values, all lengths checked. A frame that is not all there, or is to be cut to segments that
//! are not known here, is `None`: it cannot be passed on as what it was.
//!
//! | byte | field (`struct tpacket3_hdr`) |
//! |---|---|
//! | 0 | distance to the next frame |
//! | 4, 8 | seconds and nanoseconds of its arrival |
//! | 12, 16 | its bytes that are here, and all of them |
//! | 20 | status: checksum, VLAN tag |
//! | 24 | where it begins; its vnet header ends there |
//! | 32, 36 | VLAN tag that was taken out: control information (4 bytes), EtherType (2) |
//!
//! Source: `linux/if_packet.h`; Linux `net/packet/af_packet.c` (`tpacket_rcv`).

use crate::frame::{ChecksumState, Direction, FrameMeta, LiveMeta, VlanTag};
use crate::link::LinkType;
use crate::timestamp::NANOS_PER_SECOND;
use crate::timestamp::Timestamp;
use crate::vnet;

/// Length in bytes of the vnet header that packet sockets have had since Linux 2.6.27, without the number of buffers.
pub(super) const VNET_LENGTH: usize = 10;

/// EtherType of a VLAN tag (IEEE 802.1Q) where the kernel does not name another.
const VLAN: u16 = 0x8100;

/// A frame in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Where it begins, counted from the header's first byte, and how many bytes it has.
    pub(super) start: usize,
    pub(super) length: usize,
    /// Without its number.
    pub(super) meta: FrameMeta,
    /// Without interface and queue.
    pub(super) live: LiveMeta,
}

impl Header {
    /// Reads the header of the frame that these bytes begin with.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let half = |at: usize| Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let [seconds, nanos, here, all, status] =
            [word(4)?, word(8)?, word(12)?, word(16)?, word(20)?];
        let (start, length) = (usize::from(half(24)?), here as usize);
        bytes.get(start..)?.get(..length).filter(|_| here == all)?;
        let (checksum, segments) = vnet::decode(&vnet_before(bytes, start)?)?;
        let is_set = |flag| status & flag != 0;
        let vlan = is_set(libc::TP_STATUS_VLAN_VALID).then_some(VlanTag {
            tci: word(32)? as u16,
            tpid: if is_set(libc::TP_STATUS_VLAN_TPID_VALID) { half(36)? } else { VLAN },
        });
        let nanos = i64::from(seconds) * NANOS_PER_SECOND + i64::from(nanos);
        let meta = FrameMeta {
            timestamp: Some(Timestamp::from_nanos(nanos)),
            wire_length: all,
            link_type: LinkType::ETHERNET,
            direction: Direction::Inbound,
            ..FrameMeta::default()
        };
        let checksum = match checksum {
            ChecksumState::NotKnown if is_set(libc::TP_STATUS_CSUM_VALID) => {
                ChecksumState::Verified
            }
            known => known,
        };
        let live = LiveMeta { checksum, segments, vlan, ..LiveMeta::default() };
        Some(Self { start, length, meta, live })
    }
}

/// The vnet header that ends before byte `start`.
fn vnet_before(bytes: &[u8], start: usize) -> Option<[u8; vnet::LENGTH]> {
    let before = bytes.get(start.checked_sub(VNET_LENGTH)?..start)?;
    let mut header = [0; vnet::LENGTH];
    header[..VNET_LENGTH].copy_from_slice(before);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{SegmentKind, Segments};
    use proptest::prelude::*;

    const START: usize = 82;

    /// A header of a TCP superframe with a tag, and its 64 bytes, as the kernel lays them out.
    fn slot() -> Vec<u8> {
        let mut bytes = vec![0; START + 64];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(4, &7_u32.to_ne_bytes());
        put(8, &9_u32.to_ne_bytes());
        put(12, &64_u32.to_ne_bytes());
        put(16, &64_u32.to_ne_bytes());
        put(20, &(libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID).to_ne_bytes());
        put(24, &(START as u16).to_ne_bytes());
        put(32, &0x2005_u32.to_ne_bytes());
        put(36, &0x88a8_u16.to_ne_bytes());
        put(START - VNET_LENGTH, &[1, 1]);
        put(START - 6, &1448_u16.to_ne_bytes());
        put(START - 4, &34_u16.to_ne_bytes());
        put(START - 2, &16_u16.to_ne_bytes());
        bytes
    }

    #[test]
    fn every_field_is_read() {
        let Header { start, length, meta, live } = Header::read(&slot()).unwrap();
        assert_eq!((start, length, meta.wire_length), (START, 64, 64));
        assert_eq!(meta.timestamp, Some(Timestamp::from_nanos(7_000_000_009)));
        let expected = LiveMeta {
            checksum: ChecksumState::Unfinished { start: 34, offset: 16 },
            segments: Some(Segments { size: 1448, kind: SegmentKind::TcpV4 }),
            vlan: Some(VlanTag { tci: 0x2005, tpid: 0x88a8 }),
            ..LiveMeta::default()
        };
        assert_eq!(live, expected);
    }

    #[test]
    fn a_tag_without_its_ethertype_is_802_1q_and_a_found_sum_is_verified() {
        let mut bytes = slot();
        let status = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_CSUM_VALID;
        bytes[20..24].copy_from_slice(&status.to_ne_bytes());
        bytes[START - VNET_LENGTH] = 0;
        let live = Header::read(&bytes).unwrap().live;
        assert_eq!(live.vlan, Some(VlanTag { tci: 0x2005, tpid: 0x8100 }));
        assert_eq!(live.checksum, ChecksumState::Verified);
    }

    #[test]
    fn what_is_not_all_there_is_none() {
        let whole = slot();
        assert_eq!(Header::read(&whole[..whole.len() - 1]), None);
        let mut clamped = whole.clone();
        clamped[12..16].copy_from_slice(&63_u32.to_ne_bytes());
        assert_eq!(Header::read(&clamped), None);
        let mut unknown = whole;
        unknown[START - VNET_LENGTH + 1] = 6;
        assert_eq!(Header::read(&unknown), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(header) = Header::read(&bytes) {
                prop_assert!(header.start + header.length <= bytes.len());
            }
        }
    }
}
