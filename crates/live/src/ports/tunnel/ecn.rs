//! Congestion marks of the outer packet, on their way in and out (RFC 6040): the inner mark is copied out, and
//! congestion met outside is marked inside, where the inner packet can carry the mark.

use packet::{Checksums, Link, Packet};

/// Not ECN-capable, and congestion experienced.
const NOT_ECT: u8 = 0;
const CE: u8 = 3;

/// The TOS byte or traffic class of an IP packet; 0 if it is none.
pub(super) fn tos(packet: &[u8]) -> u8 {
    match packet {
        [first, second, ..] if first >> 4 == 4 => *second,
        [first, second, ..] if first >> 4 == 6 => first << 4 | second >> 4,
        _ => 0,
    }
}

/// The mark of a TOS byte.
pub(super) fn mark(tos: u8) -> u8 {
    tos & 3
}

/// Marks a packet that was opened with the congestion that its outer one met; false if it cannot be marked, and is to
/// be dropped.
#[must_use]
pub(super) fn told(packet: &mut [u8], outer: u8) -> bool {
    if mark(outer) != CE {
        return true;
    }
    match (mark(tos(packet)), packet) {
        (CE, _) => true,
        (NOT_ECT, _) => false,
        (_, packet) => set_ce(packet),
    }
}

fn set_ce(bytes: &mut [u8]) -> bool {
    let (tos, len) = (tos(bytes) | CE, bytes.len());
    Packet::parse(bytes, len, Link::Raw, Checksums::Ignore).set_tos(tos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::checksum;

    fn v4(tos: u8) -> Vec<u8> {
        let mut packet = vec![0x45, tos, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let sum = !checksum::sum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    fn v6(class: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[1]) = (0x60 | class >> 4, class << 4);
        (packet[6], packet[8], packet[24]) = (59, 0xfd, 0xfd);
        packet
    }

    /// RFC 6040, figure 4.
    #[test]
    fn congestion_outside_is_told_inside() {
        let marks = [0_u8, 1, 2, 3];
        for (packet, dscp) in [(v4 as fn(u8) -> Vec<u8>, 0xb8), (v6, 0x28)] {
            for (inner, outer) in marks.iter().flat_map(|one| marks.map(|other| (*one, other))) {
                let mut packet = packet(dscp | inner);
                let expected = match (inner, outer) {
                    (0, 3) => None,
                    (_, 3) => Some(3),
                    (inner, _) => Some(inner),
                };
                let is_told = told(&mut packet, outer);
                assert_eq!(is_told.then(|| tos(&packet)), expected.map(|mark| dscp | mark));
                if packet[0] >> 4 == 4 {
                    assert_eq!(checksum::sum(&packet), 0xffff);
                }
            }
        }
    }

    #[test]
    fn what_is_no_packet_has_no_mark() {
        for mut bytes in [vec![], vec![0x45], vec![0x15, 3]] {
            assert_eq!(tos(&bytes), 0);
            assert!(!told(&mut bytes, 3));
        }
    }
}
