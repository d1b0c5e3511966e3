//! Replaces bytes of a packet by more or fewer: the packet moves into room that it was lent, and its length fields are
//! updated.
//!
//! Contract: nothing is allocated for packets that keep their length, nor, once the room has grown, for the others. A
//! packet without room cannot be spliced. Upper-layer checksums are left alone.

use crate::bytes::Packet;
use crate::headers::L3;
use crate::{checksum, ipv4, ipv6};
use std::ops::Range;

/// The most that a length field of 16 bits says.
const MOST: usize = u16::MAX as usize;

impl<'a> Packet<'a> {
    /// Lends the packet room, whatever is in there. It takes it at most once.
    pub fn lend(&mut self, room: &'a mut Vec<u8>) {
        self.room = Some(room);
    }

    /// Replaces the bytes at this range of the frame, which lies after the network header, by others. Padding after the
    /// packet is dropped. Length and checksum of an IPv4 header are set afresh, whatever they were, as is the payload
    /// length of IPv6.
    ///
    /// False, and nothing changes, where there is no room, bytes from the range on are not known, or the packet would
    /// be too long.
    pub fn splice(&mut self, range: Range<usize>, bytes: &[u8]) -> bool {
        let (network, end) = (self.headers.network, self.headers.end);
        let (fixed, counted_from) = match self.headers.l3 {
            L3::Ipv4 { header_len } => (header_len, network),
            L3::Ipv6 => (ipv6::HEADER_LEN, network + ipv6::HEADER_LEN),
            _ => return false,
        };
        let is_inside =
            network + fixed <= range.start && range.start <= range.end && range.end <= end;
        if !is_inside || self.is_open() || self.is_forgotten(range.start..end) {
            return false;
        }
        let new_end = end - range.len() + bytes.len();
        let (Some(before), Some(after)) =
            (self.bytes.get(..range.start), self.bytes.get(range.end..end))
        else {
            return false;
        };
        if new_end - counted_from > MOST {
            return false;
        }
        let Some(room) = self.room.take() else { return false };
        room.clear();
        [before, bytes, after].into_iter().for_each(|part| room.extend_from_slice(part));
        self.bytes = room;
        self.headers.end = new_end;
        let unknown = self.forgotten.iter().filter(|old| old.0 < old.1).map(|old| old.0 as usize);
        self.clear = unknown.fold(new_end, usize::min);
        self.set_length((new_end - counted_from) as u16);
        true
    }

    fn set_length(&mut self, len: u16) {
        let network = self.headers.network;
        let mut put = |field: Range<usize>, word: u16| {
            let place = self.bytes.get_mut(network + field.start..network + field.end);
            if let Some(place) = place {
                place.copy_from_slice(&word.to_be_bytes());
            }
        };
        let L3::Ipv4 { header_len } = self.headers.l3 else {
            return put(ipv6::PAYLOAD_LEN, len);
        };
        put(ipv4::TOTAL_LEN, len);
        put(ipv4::CHECKSUM, 0);
        let sum = self.bytes.get(network..network + header_len).map_or(0, checksum::sum);
        let stored =
            self.bytes.get_mut(network + ipv4::CHECKSUM.start..network + ipv4::CHECKSUM.end);
        if let Some(stored) = stored {
            stored.copy_from_slice(&(!sum).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Checksums, L3, Link, Packet, Read, parse};

    /// 20 bytes of IPv4 before `payload`, in a frame with three bytes of padding; checksum not set.
    fn ipv4(payload: &[u8]) -> Vec<u8> {
        let len = 20 + payload.len() as u8;
        let mut bytes = vec![0x45, 0, 0, len, 1, 2, 0, 0, 64, 253, 9, 9, 10, 0, 0, 1, 10, 0, 0, 2];
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(&[0xee; 3]);
        bytes
    }

    fn spliced(mut frame: Vec<u8>, at: std::ops::Range<usize>, text: &[u8]) -> Option<Vec<u8>> {
        let (mut room, len) = (vec![7; 3], frame.len());
        let mut packet = Packet::parse(&mut frame, len, Link::Raw, Checksums::Ignore);
        packet.lend(&mut room);
        packet.splice(at, text).then(|| packet.frame().to_vec())
    }

    #[test]
    fn a_packet_grows_and_shrinks_with_its_length_and_checksum() {
        for text in [&b""[..], b"x", b"yy", b"longer"] {
            let bytes = spliced(ipv4(b"abcdef"), 22..24, text).unwrap();
            let expected = [&b"ab"[..], text, b"ef"].concat();
            assert_eq!(bytes[20..], expected);
            let headers = parse(Link::Raw, &bytes, bytes.len(), Checksums::Verify);
            assert_eq!((headers.l3, headers.end), (L3::Ipv4 { header_len: 20 }, bytes.len()));
        }
    }

    #[test]
    fn the_payload_length_of_ipv6_follows() {
        let mut frame = vec![0; 40];
        frame[0] = 0x60;
        frame[5] = 4;
        frame[6] = 59;
        frame.extend_from_slice(b"abcd");
        let bytes = spliced(frame, 41..42, b"1234").unwrap();
        assert_eq!((&bytes[40..], &bytes[4..6]), (&b"a1234cd"[..], &[0, 7][..]));
    }

    #[test]
    fn what_lies_before_stays_forgotten_and_what_lies_after_is_known() {
        let (mut frame, mut room) = (ipv4(b"abcdef"), Vec::new());
        let len = frame.len();
        let mut packet = Packet::parse(&mut frame, len, Link::Raw, Checksums::Ignore);
        packet.lend(&mut room);
        packet.forget(8..9);
        assert!(packet.splice(22..24, b"1234"));
        assert_eq!(packet.read::<1>(8), Read::Unknown);
        assert_eq!(packet.read_slice(20, 8), Read::Known(&b"ab1234ef"[..]));
        assert_eq!((packet.len(), packet.read::<1>(28)), (28, Read::Absent));
    }

    #[test]
    fn what_cannot_be_done_changes_nothing() {
        assert_eq!(spliced(ipv4(b"abcdef"), 24..27, b"x"), None, "into the padding");
        assert_eq!(spliced(ipv4(b"abcdef"), 19..22, b"x"), None, "into the header");
        assert_eq!(spliced(ipv4(b"abcdef"), 22..23, &[0; 65_535]), None, "too long");
        let mut frame = ipv4(b"abcdef");
        let len = frame.len();
        let mut packet = Packet::parse(&mut frame, len, Link::Raw, Checksums::Ignore);
        assert!(!packet.splice(22..23, b"xy"), "no room");
        let mut room = Vec::new();
        packet.lend(&mut room);
        packet.forget(24..25);
        assert!(!packet.splice(22..23, b"xy"), "not all known");
        assert_eq!(packet.len(), 26);
    }
}
