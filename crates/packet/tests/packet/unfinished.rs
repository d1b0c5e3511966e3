//! Checksums left to a device: unfinished ones are completed, and nothing else changes.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use packet::{Checksums, Headers, L4, Link, checksum, parse, tcp, udp, unfinished};
use proptest::prelude::*;

const V4: Addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 9, 8, 7] };
const V6: Addresses = Addresses::V6 { source: [0xfd; 16], destination: [0x20; 16] };

fn headers(frame: &[u8]) -> Headers {
    parse(Link::Wire, frame, frame.len(), Checksums::Ignore)
}

/// A frame with a right checksum, and the same one as its sender leaves it to a device; where the field is.
fn both(is_v4: bool, is_tcp: bool, payload: &[u8]) -> (Vec<u8>, Vec<u8>, usize) {
    let addresses = if is_v4 { V4 } else { V6 };
    let message =
        if is_tcp { Message::tcp(80, 40_000, Flags::ACK) } else { Message::udp(53, 5353) };
    let mut craft = Craft::new(addresses, message);
    craft.payload_len = payload.len();
    let mut finished = craft.frame();
    let at = finished.len() - payload.len();
    finished[at..].copy_from_slice(payload);
    let L4::Upper(upper) = headers(&finished).l4 else { panic!("a transport header") };
    let field = upper.offset + if is_tcp { tcp::CHECKSUM.start } else { udp::CHECKSUM.start };
    let len = finished.len() - upper.offset;
    let pseudo = match addresses {
        Addresses::V4 { source, destination } => {
            checksum::pseudo_v4(source, destination, upper.protocol, len as u16)
        }
        Addresses::V6 { source, destination } => {
            checksum::pseudo_v6(source, destination, upper.protocol, len as u32)
        }
    };
    let mut left = finished.clone();
    left[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
    // The slow way: the sum of everything, with the field 0.
    finished[field..field + 2].fill(0);
    let sum = checksum::add(pseudo, checksum::sum(&finished[upper.offset..]));
    let right = if sum == u16::MAX { u16::MAX } else { !sum };
    finished[field..field + 2].copy_from_slice(&right.to_be_bytes());
    (finished, left, field)
}

proptest! {
    #[test]
    fn an_unfinished_checksum_is_completed_and_a_right_one_stays(
        is_v4 in any::<bool>(),
        is_tcp in any::<bool>(),
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        padding in 0..4_usize,
    ) {
        let (finished, left, _) = both(is_v4, is_tcp, &payload);
        let padded = |frame: Vec<u8>| [frame, vec![0xee; padding]].concat();
        let (finished, mut frame) = (padded(finished), padded(left));
        let found = headers(&frame);
        prop_assert!(unfinished::complete(&mut frame, &found));
        prop_assert_eq!(&frame, &finished);
        unfinished::complete(&mut frame, &found);
        prop_assert_eq!(&frame, &finished);
    }

    #[test]
    fn a_wrong_checksum_stays_wrong(
        is_v4 in any::<bool>(),
        is_tcp in any::<bool>(),
        wrong in any::<[u8; 2]>(),
    ) {
        let (_, left, field) = both(is_v4, is_tcp, b"payload");
        let mut frame = left.clone();
        frame[field..field + 2].copy_from_slice(&wrong);
        prop_assume!(frame != left);
        let (before, found) = (frame.clone(), headers(&frame));
        prop_assert!(!unfinished::complete(&mut frame, &found));
        prop_assert_eq!(frame, before);
    }

    #[test]
    fn nothing_panics_and_what_is_no_whole_packet_stays(
        mut frame in proptest::collection::vec(any::<u8>(), 0..120),
        cut in 0..90_usize,
        of in 0..120_usize,
    ) {
        let found = headers(&frame);
        unfinished::complete(&mut frame, &found);
        let (_, mut frame, _) = both(cut % 2 == 0, cut % 3 == 0, b"payload");
        let found = headers(&frame);
        frame.truncate(of.min(frame.len() - 1));
        let before = frame.clone();
        prop_assert!(!unfinished::complete(&mut frame, &found));
        prop_assert_eq!(frame, before);
    }
}

/// Senders finish the checksums of packets that they cut.
#[test]
fn a_fragment_is_left_alone() {
    let (_, mut frame, _) = both(true, false, b"payload");
    let network = headers(&frame).network;
    frame[network + 6] |= 0x20;
    let (before, found) = (frame.clone(), headers(&frame));
    assert!(!unfinished::complete(&mut frame, &found));
    assert_eq!(frame, before);
}
