//! Fills in the checksums of what is drawn, which tracking of connections asks for.

use conntrack::verify::{SCTP_CHECKSUM, sctp_sum};
use packet::{Checksums, L3, L4, Link, Packet, Read, checksum};

/// Writes the checksum of the upper layer of a bare packet, if it has all of its bytes and one that is known here.
pub fn fill(bytes: &mut [u8]) {
    let len = bytes.len();
    let packet = Packet::parse(bytes, len, Link::Raw, Checksums::Ignore);
    let L4::Upper(upper) = packet.headers().l4 else { return };
    let (start, end) = (upper.offset, packet.headers().end.min(len));
    let at = match upper.protocol {
        6 => 16,
        17 | 33 | 136 => 6,
        1 | 58 => 2,
        132 => return fill_sctp(bytes, start, end),
        _ => return,
    };
    let covered = end.saturating_sub(start);
    let before = match (packet.headers().l3, packet.net::<8>(12), packet.net::<32>(8)) {
        _ if upper.protocol == 1 => 0,
        (L3::Ipv4 { .. }, Read::Known(ends), _) => {
            let words = [u16::from(upper.protocol), covered as u16];
            words.into_iter().fold(checksum::sum(&ends), checksum::add)
        }
        (L3::Ipv6, _, Read::Known(ends)) => {
            let words = [u16::from(upper.protocol), covered as u16];
            words.into_iter().fold(checksum::sum(&ends), checksum::add)
        }
        _ => return,
    };
    let Some(upper) = bytes.get_mut(start..end).filter(|upper| upper.len() >= at + 2) else {
        return;
    };
    upper[at..at + 2].fill(0);
    let sum = !checksum::add(before, checksum::sum(upper));
    upper[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn fill_sctp(bytes: &mut [u8], start: usize, end: usize) {
    let Some(upper) = bytes.get_mut(start..end).filter(|upper| upper.len() >= SCTP_CHECKSUM.end)
    else {
        return;
    };
    let sum = sctp_sum(upper).to_le_bytes();
    upper[SCTP_CHECKSUM].copy_from_slice(&sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_over_what_was_filled_in_is_all_ones() {
        let mut frame = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        frame.extend([8, 0, 0, 0, 1, 2, 3, 4]);
        fill(&mut frame);
        assert_eq!(checksum::sum(&frame[20..]), 0xffff);
        assert_ne!(&frame[22..24], &[0, 0]);
    }
}
