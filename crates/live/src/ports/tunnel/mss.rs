//! Lowers the largest segment that a TCP connection through a tunnel announces to what its path takes, as its ends know
//! only their own links (RFC 9293, section 3.7.1).

use packet::options::{HeaderOption, NO_OPERATION};
use packet::{Checksums, L3, L4, Link, checksum, ipv4, ipv6, parse, tcp};

/// The option (RFC 9293, section 3.2).
const MSS: u8 = 2;
/// SYN among the flags of a TCP header, and the length of a header without options.
const SYN: u8 = 2;
const PLAIN: usize = tcp::MIN_HEADER_LEN;

/// Lowers the maximum segment size of a packet that begins a connection to what a path takes whose longest packet has
/// `most` bytes.
pub(super) fn clamp(packet: &mut [u8], most: u16) {
    // Most packets begin no connection: checked before anything is parsed.
    let at = match packet {
        [first, rest @ ..] if *first >> 4 == 4 => {
            let header = usize::from(*first & 0xf) * 4;
            (rest.get(8) == Some(&tcp::PROTOCOL)).then_some(header)
        }
        [first, rest @ ..] if *first >> 4 == 6 => {
            (rest.get(5) == Some(&tcp::PROTOCOL)).then_some(ipv6::HEADER_LEN)
        }
        _ => None,
    };
    let is_syn =
        at.and_then(|at| packet.get(at + tcp::FLAGS.start)).is_some_and(|flags| flags & SYN != 0);
    if is_syn {
        lower(packet, most);
    }
}

fn lower(packet: &mut [u8], most: u16) {
    let headers = parse(Link::Raw, packet, packet.len(), Checksums::Ignore);
    let L4::Upper(upper) = headers.l4 else { return };
    let ip = match headers.l3 {
        L3::Ipv4 { .. } => ipv4::MIN_HEADER_LEN,
        L3::Ipv6 => ipv6::HEADER_LEN,
        _ => return,
    };
    let Some(header) = packet.get_mut(upper.offset..) else { return };
    let most = most.saturating_sub((ip + PLAIN) as u16);
    let Some((at, old)) = find(header).filter(|(_, old)| *old > most) else { return };
    // The option may begin at an odd byte, and then its words lie across two of the sum's words.
    let odd = at % 2 == 1;
    let turn = |word: u16| if odd { word.swap_bytes() } else { word };
    header[at..at + 2].copy_from_slice(&most.to_be_bytes());
    let field = tcp::CHECKSUM;
    let sum = u16::from_be_bytes([header[field.start], header[field.start + 1]]);
    let sum = checksum::update(sum, turn(old), turn(most));
    header[field].copy_from_slice(&sum.to_be_bytes());
}

/// Where the value of the option is in a TCP header, and the value.
fn find(bytes: &[u8]) -> Option<(usize, u16)> {
    let mut at = PLAIN;
    for option in tcp::Header::new_checked(bytes)?.options() {
        let HeaderOption { kind, body } = option.ok()?;
        if kind == NO_OPERATION {
            at += 1;
            continue;
        }
        // After the option's kind and length.
        at += 2;
        if let (MSS, [high, low]) = (kind, body) {
            return Some((at, u16::from_be_bytes([*high, *low])));
        }
        at += body.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A segment with these options, and right sums.
    fn segment(is_v6: bool, flags: u8, options: &[u8]) -> Vec<u8> {
        let mut tcp = vec![0; PLAIN];
        tcp[..4].copy_from_slice(&[0x9c, 0x40, 0, 80]);
        tcp.extend_from_slice(options);
        tcp.resize(tcp.len().next_multiple_of(4), 0);
        (tcp[tcp::DATA_OFFSET.start], tcp[tcp::FLAGS.start]) = ((tcp.len() as u8 / 4) << 4, flags);
        let mut packet = match is_v6 {
            true => {
                let mut header = vec![0; 40];
                (header[0], header[5], header[6], header[7]) = (0x60, tcp.len() as u8, 6, 64);
                (header[8], header[23], header[24], header[39]) = (0xfd, 1, 0xfd, 2);
                header
            }
            false => {
                let len = 20 + tcp.len() as u8;
                vec![0x45, 0, 0, len, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]
            }
        };
        let at = packet.len();
        packet.extend_from_slice(&tcp);
        let sum = !summed(&packet, at);
        packet[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    /// The sum of a segment and its pseudo header.
    fn summed(packet: &[u8], at: usize) -> u16 {
        let (upper, len) = (&packet[at..], (packet.len() - at) as u16);
        let pseudo = match at {
            40 => {
                let address = |at| packet[at..at + 16].try_into().unwrap();
                checksum::pseudo_v6(address(8), address(24), 6, len.into())
            }
            _ => {
                let address = |at| packet[at..at + 4].try_into().unwrap();
                checksum::pseudo_v4(address(12), address(16), 6, len)
            }
        };
        checksum::add(pseudo, checksum::sum(upper))
    }

    proptest! {
        #[test]
        fn what_is_too_large_is_lowered_and_the_checksum_stays_right(
            is_v6: bool, before in 0..4_usize, mss: u16, most in 576..9_000_u16, syn: bool,
        ) {
            let mut options = vec![NO_OPERATION; before];
            options.extend([MSS, 4]);
            options.extend(mss.to_be_bytes());
            let flags = if syn { 0x02 } else { 0x10 };
            let was = segment(is_v6, flags, &options);
            let mut packet = was.clone();
            clamp(&mut packet, most);
            let at = if is_v6 { 40 } else { 20 };
            let room = most - if is_v6 { 60 } else { 40 };
            let (_, found) = find(&packet[at..]).unwrap();
            prop_assert_eq!(found, if syn { mss.min(room) } else { mss });
            prop_assert_eq!(summed(&packet, at), 0xffff);
            if found == mss {
                prop_assert_eq!(packet, was);
            }
        }

        #[test]
        fn noise_is_left_alone_or_read(mut bytes in prop::collection::vec(any::<u8>(), 0..120), most: u16) {
            if let Some(first) = bytes.first_mut() {
                *first = if *first & 1 == 0 { 0x45 } else { 0x60 };
            }
            clamp(&mut bytes, most);
        }
    }
}
