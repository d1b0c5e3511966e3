//! Fragments against a plain model: bytes by their offsets. `lab`'s tests compare them with a kernel's.

use super::*;
use crate::craft::{Addresses, Craft, Ethernet, Message};
use crate::{Checksums, Link, Packet, checksum, ipv4, ipv6};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;

const LINK: usize = 14;

/// A frame with `len` bytes of payload, options before it if it is IPv4, headers of these kinds if IPv6.
fn frame(is_v6: bool, len: usize, options: &[u8], headers: &[u8]) -> Vec<u8> {
    let ends = if is_v6 { ["fd00::1", "2001:db8::7"] } else { ["10.0.0.1", "192.0.2.7"] };
    let [from, to] = ends.map(|text| text.parse().expect("an address"));
    let message = Message::Other { protocol: 99, header: Vec::new() };
    let addresses = Addresses::new(from, to).expect("one family");
    let ethernet = Some(Ethernet::default());
    let craft = Craft { ethernet, payload_len: len, id: 77, ..Craft::new(addresses, message) };
    let mut bytes = craft.frame();
    if is_v6 {
        let mut extension = Vec::new();
        for (index, _) in headers.iter().enumerate() {
            let next = headers.get(index + 1).copied().unwrap_or(99);
            extension.extend([next, 0, 1, 4, 0, 0, 0, 0]);
        }
        bytes[LINK + 6] = headers.first().copied().unwrap_or(99);
        bytes.splice(LINK + 40..LINK + 40, extension);
        let payload = (bytes.len() - LINK - 40) as u16;
        bytes[LINK + 4..LINK + 6].copy_from_slice(&payload.to_be_bytes());
        return bytes;
    }
    bytes[LINK] += (options.len() / 4) as u8;
    bytes.splice(LINK + 20..LINK + 20, options.iter().copied());
    let total = (bytes.len() - LINK) as u16;
    bytes[LINK + 2..LINK + 4].copy_from_slice(&total.to_be_bytes());
    bytes
}

fn cut_up(frame: &[u8], how: &Cut<'_>) -> Option<Vec<Vec<u8>>> {
    let (mut bytes, len) = (frame.to_vec(), frame.len());
    let packet = Packet::parse(&mut bytes, len, Link::Ethernet, Checksums::Ignore);
    let mut to = Frames::default();
    let is_cut = cut(&packet, how, &mut to);
    assert_eq!(is_cut, !to.is_empty());
    is_cut.then(|| to.iter().map(<[u8]>::to_vec).collect())
}

fn plain(most: usize, pieces: &[u32]) -> Cut<'_> {
    Cut { most, pieces, dont_fragment: false, id: 9 }
}

/// Offset, whether more follow, and the payload of a fragment; its lengths and checksum are right.
fn read(bytes: &[u8]) -> (usize, bool, &[u8]) {
    let packet = &bytes[LINK..];
    let word = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    if packet[0] >> 4 == 4 {
        let header_len = usize::from(packet[0] & 15) * 4;
        assert_eq!(checksum::sum(&packet[..header_len]), 0xffff, "header checksum");
        assert_eq!((usize::from(word(2)), word(4)), (packet.len(), 77));
        let field = word(6);
        let offset = usize::from(field & ipv4::OFFSET_MASK) * 8;
        return (offset, field & ipv4::MORE_FRAGMENTS != 0, &packet[header_len..]);
    }
    assert_eq!(usize::from(word(4)) + ipv6::HEADER_LEN, packet.len());
    let (mut kind, mut at) = (packet[6], 40);
    while kind != 44 {
        (kind, at) = (packet[at], at + 8);
    }
    assert_eq!(packet[at + 4..at + 8], 9u32.to_be_bytes());
    (usize::from(word(at + 2) & !7), packet[at + 3] & 1 != 0, &packet[at + 8..])
}

proptest! {
    #[test]
    fn fragments_are_the_packet_again(
        is_v6 in any::<bool>(),
        len in 1usize..4000,
        words in 0usize..10,
        headers in vec(select(vec![0u8, 43, 60]), 0..3),
        most in 68usize..2000,
        pieces in vec(1u32..200, 0..12),
    ) {
        // Possible pieces of the packet: units of 8 bytes, and the rest.
        let mut pieces: Vec<u32> = pieces.iter().map(|units| units * 8).collect();
        let sum = pieces.iter().sum::<u32>() as usize;
        if sum < len {
            pieces.push((len - sum) as u32);
        }
        let frame = frame(is_v6, len, &vec![1; words * 4], &headers);
        let head = LINK + if is_v6 { 40 } else { 20 + words * 4 };
        let Some(fragments) = cut_up(&frame, &plain(most, &pieces)) else {
            prop_assert!(most < 40 + 8 * 3 + 8 + 8, "there is room");
            return Ok(());
        };
        let mut whole = Vec::new();
        for (index, fragment) in fragments.iter().enumerate() {
            let (offset, more, payload) = read(fragment);
            prop_assert!(fragment.len() - LINK <= most);
            prop_assert_eq!(&fragment[..LINK], &frame[..LINK], "the link header");
            prop_assert_eq!((offset, more), (whole.len(), index + 1 < fragments.len()));
            prop_assert!(!more || payload.len() % 8 == 0);
            whole.extend_from_slice(payload);
        }
        // Of IPv6 some headers may count as payload.
        prop_assert!(whole.len() >= len && whole.len() <= frame.len() - head);
        prop_assert_eq!(&whole[..], &frame[frame.len() - whole.len()..]);
    }
}

#[test]
fn pieces_stay_what_they_were_as_long_as_they_fit() {
    let lengths = |fragments: Vec<Vec<u8>>| -> Vec<usize> {
        fragments.iter().map(|fragment| read(fragment).2.len()).collect()
    };
    for is_v6 in [false, true] {
        let frame = frame(is_v6, 50, &[], &[]);
        let most = if is_v6 { 40 + 8 + 24 } else { 20 + 24 };
        let kept = cut_up(&frame, &plain(most, &[16, 24, 10])).expect("fragments");
        assert_eq!(lengths(kept), [16, 24, 10]);
        for pieces in [&[16, 32, 2][..], &[20, 20, 10], &[16, 20, 14], &[]] {
            let anew = cut_up(&frame, &plain(most, pieces)).expect("fragments");
            assert_eq!(lengths(anew), [24, 24, 2], "{pieces:?}");
        }
    }
}

#[test]
fn a_first_piece_of_headers_alone_leaves_an_empty_fragment() {
    let bytes = frame(true, 24, &[], &[60]);
    let fragments = cut_up(&bytes, &plain(1280, &[8, 8, 16])).expect("fragments");
    let read: Vec<_> = fragments.iter().map(|fragment| read(fragment)).collect();
    let lengths: Vec<_> = read.iter().map(|(at, more, part)| (*at, *more, part.len())).collect();
    assert_eq!(lengths, [(0, true, 0), (0, true, 8), (8, false, 16)]);
}

#[test]
fn only_what_is_cut_anew_must_not_be_cut_further() {
    let frame = frame(false, 48, &[], &[]);
    for (pieces, flag) in [(&[24, 24][..], 0), (&[], 0x40)] {
        let cut = Cut { dont_fragment: true, ..plain(44, pieces) };
        for fragment in cut_up(&frame, &cut).expect("fragments") {
            assert_eq!(fragment[LINK + 6] & 0x40, flag);
        }
    }
}

#[test]
fn options_that_are_not_copied_stand_in_the_first_fragment_alone() {
    let options = [7, 3, 9, 1, 0x83, 3, 9, 0x44, 4, 9, 9, 0];
    let fragments = cut_up(&frame(false, 24, &options, &[]), &plain(48, &[])).expect("fragments");
    assert_eq!(fragments[0][LINK + 20..LINK + 32], options);
    assert_eq!(fragments[1][LINK + 20..LINK + 32], [1, 1, 1, 1, 0x83, 3, 9, 1, 1, 1, 1, 0]);
}

#[test]
fn a_fragment_is_cut_from_where_it_begins() {
    for (flags, more) in [(0x20, true), (0, false)] {
        let mut bytes = frame(false, 32, &[0x1e, 4, 5, 5], &[]);
        bytes[LINK + 6..LINK + 8].copy_from_slice(&[flags, 10]);
        let fragments = cut_up(&bytes, &plain(40, &[])).expect("fragments");
        let read: Vec<_> = fragments.iter().map(|fragment| read(fragment)).collect();
        assert_eq!((read[0].0, read[0].1, read[1].0, read[1].1), (80, true, 96, more));
        assert_eq!(fragments[1][LINK + 20..LINK + 24], [0x1e, 4, 5, 5], "as it came");
    }
}

#[test]
fn every_fragment_has_the_headers_that_routers_read() {
    // Destination options after a routing header are for the last destination.
    let bytes = frame(true, 40, &[], &[0, 60, 43, 60]);
    let fragments = cut_up(&bytes, &plain(40 + 24 + 8 + 24, &[])).expect("fragments");
    for fragment in &fragments {
        let kinds: Vec<u8> = [6, 40, 48, 56, 64].map(|at| fragment[LINK + at]).to_vec();
        assert_eq!(kinds, [0, 60, 43, 44, 60]);
    }
    assert_eq!(fragments.iter().map(|fragment| read(fragment).2.len()).sum::<usize>(), 48);
}

#[test]
fn what_cannot_be_cut_leaves_nothing() {
    assert_eq!(cut_up(&frame(false, 40, &[], &[]), &plain(27, &[])), None, "no room");
    assert_eq!(cut_up(&frame(true, 40, &[], &[]), &plain(55, &[])), None, "no room");
    assert_eq!(cut_up(&frame(true, 0, &[], &[0])[..LINK + 44], &plain(1280, &[])), None, "cut off");
    let mut bytes = frame(false, 40, &[], &[]);
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Ethernet, Checksums::Ignore);
    packet.forget(40..41);
    assert!(!cut(&packet, &plain(44, &[]), &mut Frames::default()), "not all known");
}
