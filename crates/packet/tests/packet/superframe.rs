//! Superframes: their pieces, each parsed again and verified, put together again are what was cut.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use packet::{
    Checksums, Headers, L3, L4, Link, Superframe, Uncut, checksum, ipv4, ipv6, parse, tcp, udp,
};
use proptest::prelude::*;

const V4: Addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 9, 8, 7] };
const V6: Addresses = Addresses::V6 { source: [0xfd; 16], destination: [0x20; 16] };

/// A piece as its receiver sees it, or why it drops it.
#[derive(Debug)]
struct Received {
    id: u16,
    sequence: u32,
    flags: u8,
    payload: Vec<u8>,
}

fn headers(frame: &[u8], link: Link) -> Headers {
    parse(link, frame, frame.len(), Checksums::Verify)
}

/// Reads a piece the slow way: every length has to be exact and every checksum right.
fn receive(piece: &[u8], link: Link) -> Received {
    let found = headers(piece, link);
    assert_eq!(found.end, piece.len(), "the lengths of the IP header");
    let L4::Upper(upper) = found.l4 else { panic!("no transport header: {found:?}") };
    let (network, transport) = (&piece[found.network..], &piece[upper.offset..]);
    let (id, pseudo) = match found.l3 {
        L3::Ipv4 { .. } => {
            let id = u16::from_be_bytes([network[4], network[5]]);
            let source = network[ipv4::SOURCE].try_into().unwrap();
            let destination = network[ipv4::DESTINATION].try_into().unwrap();
            let len = transport.len() as u16;
            (id, checksum::pseudo_v4(source, destination, upper.protocol, len))
        }
        L3::Ipv6 => {
            let source = network[ipv6::SOURCE].try_into().unwrap();
            let destination = network[ipv6::DESTINATION].try_into().unwrap();
            let len = transport.len() as u32;
            (0, checksum::pseudo_v6(source, destination, upper.protocol, len))
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(checksum::add(checksum::sum(transport), pseudo), 0xffff, "the checksum");
    if upper.protocol == udp::PROTOCOL {
        assert_eq!(usize::from(u16::from_be_bytes([transport[4], transport[5]])), transport.len());
        assert_ne!(&transport[udp::CHECKSUM], &[0, 0], "it would say that there is none");
        return Received { id, sequence: 0, flags: 0, payload: transport[8..].to_vec() };
    }
    let header = tcp::Header::new_checked(transport).unwrap();
    let payload = transport[header.header_len()..].to_vec();
    Received { id, sequence: header.sequence(), flags: header.flags().0, payload }
}

/// All pieces, in the order in which they leave.
fn pieces(superframe: Superframe<'_>) -> Vec<Vec<u8>> {
    let write = |index| {
        let mut room = vec![0xee; 70_000];
        let len = superframe.write(index, &mut room).unwrap();
        assert_eq!(superframe.piece_len(index), Some(len));
        assert!(room[len..].iter().all(|byte| *byte == 0xee), "written beyond its end");
        assert!(superframe.write(index, &mut room[..len - 1]).is_none(), "the room is too short");
        room.truncate(len);
        room
    };
    assert!(superframe.write(superframe.count(), &mut [0; 70_000]).is_none());
    (0..superframe.count()).map(write).collect()
}

/// A frame whose payload is random, with `options` bytes of TCP options.
fn frame(craft: &Craft, payload: &[u8], options: usize, random: u8) -> Vec<u8> {
    let mut frame = craft.frame();
    let link = if craft.ethernet.is_some() { Link::Ethernet } else { Link::Raw };
    let found = headers(&frame, link);
    let L4::Upper(upper) = found.l4 else { panic!("{found:?}") };
    if upper.protocol == tcp::PROTOCOL {
        frame[upper.offset + 12] = (((20 + options) / 4) << 4) as u8;
        frame[upper.offset + 20..][..options].fill(random);
    }
    let at = frame.len() - payload.len();
    frame[at..].copy_from_slice(payload);
    // Whatever is in there: a superframe's checksum is not finished.
    let field = if upper.protocol == tcp::PROTOCOL { tcp::CHECKSUM } else { udp::CHECKSUM };
    frame[upper.offset..][field].fill(random);
    frame
}

fn crafts() -> impl Strategy<Value = Craft> {
    let tcp = (any::<u8>(), any::<u32>()).prop_map(|(flags, sequence)| Message::Tcp {
        source_port: 80,
        destination_port: 40_000,
        flags: Flags(flags),
        sequence,
        acknowledgement: 7,
        window: 512,
    });
    let message = prop_oneof![2 => tcp, 1 => Just(Message::udp(53, 5353))];
    (message, any::<bool>(), any::<bool>(), any::<u16>()).prop_map(
        |(message, is_v4, is_raw, id)| {
            let mut craft = Craft::new(if is_v4 { V4 } else { V6 }, message);
            craft.id = id.into();
            craft.ethernet = craft.ethernet.filter(|_| !is_raw);
            craft
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn pieces_are_right_and_together_they_are_what_was_cut(
        mut craft in crafts(),
        payload in proptest::collection::vec(any::<u8>(), 0..4000),
        size in 1..1500_u16,
        options in 0..=10_usize,
        padding in 0..3_usize,
        random in any::<u8>(),
    ) {
        let is_tcp = matches!(craft.message, Message::Tcp { .. });
        let options = if is_tcp { options * 4 } else { 0 };
        craft.payload_len = options + payload.len();
        let whole = frame(&craft, &payload, options, random);
        let padded = [whole.clone(), vec![0; padding]].concat();
        let link = if craft.ethernet.is_some() { Link::Ethernet } else { Link::Raw };
        let found = headers(&padded, link);
        let superframe = Superframe::new(&padded, &found, size).unwrap();
        let pieces = pieces(superframe);
        let header_len = whole.len() - payload.len();
        prop_assert_eq!(pieces.len(), payload.len().div_ceil(size.into()).max(1));
        let longest = pieces.iter().map(Vec::len).max().unwrap();
        prop_assert_eq!(superframe.longest(), longest - found.network);
        let mut carried = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            let received = receive(piece, link);
            let is_last = index + 1 == pieces.len();
            prop_assert!(is_last || received.payload.len() == usize::from(size));
            if matches!(craft.addresses, Addresses::V4 { .. }) {
                prop_assert_eq!(received.id, (craft.id as u16).wrapping_add(index as u16));
            }
            if let Message::Tcp { flags, sequence, .. } = craft.message {
                prop_assert_eq!(received.sequence, sequence.wrapping_add(carried.len() as u32));
                let kept = |flag: Flags, is_kept: bool| if is_kept { 0 } else { flag.0 };
                let cleared = kept(Flags::FIN, is_last) | kept(Flags::PSH, is_last)
                    | kept(Flags::CWR, index == 0);
                prop_assert_eq!(received.flags, flags.0 & !cleared);
                let options_at = header_len - options;
                prop_assert_eq!(&piece[options_at..header_len], &whole[options_at..header_len]);
            }
            carried.extend(received.payload);
        }
        prop_assert_eq!(carried, payload);
    }

    #[test]
    fn no_bytes_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        size in any::<u16>(),
    ) {
        for first in [0x45, 0x60] {
            let mut bytes = bytes.clone();
            if let Some(version) = bytes.first_mut() {
                *version = first;
            }
            let found = parse(Link::Raw, &bytes, bytes.len(), Checksums::Ignore);
            if let Ok(superframe) = Superframe::new(&bytes, &found, size) {
                let mut room = [0; 200];
                for index in 0..=superframe.count() {
                    let _ = superframe.write(index, &mut room);
                }
            }
        }
    }
}

fn cut(frame: &[u8], size: u16) -> Result<usize, Uncut> {
    let found = parse(Link::Raw, frame, frame.len(), Checksums::Ignore);
    Superframe::new(frame, &found, size).map(|superframe| superframe.count())
}

#[test]
fn what_is_not_cut_says_why() {
    let raw = |addresses, message| {
        let mut craft = Craft::new(addresses, message);
        craft.ethernet = None;
        craft.payload_len = 100;
        craft
    };
    let segment = raw(V4, Message::tcp(1, 2, Flags::ACK));
    assert_eq!((cut(&segment.frame(), 30), cut(&segment.frame(), 0)), (Ok(4), Err(Uncut::Size)));
    let echo = Message::Icmp { kind: 8, code: 0, id: 1, sequence: 1 };
    assert_eq!(cut(&raw(V4, echo).frame(), 30), Err(Uncut::Protocol));
    for (addresses, offset) in [(V4, 0), (V4, 8), (V6, 0), (V6, 8)] {
        let mut fragment = raw(addresses, Message::udp(1, 2));
        fragment.fragment = Some(packet::craft::Fragment { offset, more: true });
        assert_eq!(cut(&fragment.frame(), 30), Err(Uncut::Fragment));
    }
    let mut bad = segment.frame();
    bad[20 + 12] = 0x40;
    assert_eq!(cut(&bad, 30), Err(Uncut::Short));
    let found = parse(Link::Raw, &segment.frame(), 140, Checksums::Ignore);
    assert_eq!(Superframe::new(&segment.frame()[..100], &found, 30).unwrap_err(), Uncut::Short);
    let mut routed =
        raw(V6, Message::Other { protocol: 43, header: vec![17, 0, 0, 0, 0, 0, 0, 0] });
    routed.payload_len = 20;
    assert_eq!(cut(&routed.frame(), 4), Err(Uncut::Routed));
}

/// Of all words that a datagram can carry, one gives a checksum of 0, which would say that there is none.
#[test]
fn no_datagram_is_without_a_checksum() {
    for addresses in [V4, V6] {
        let mut craft = Craft::new(addresses, Message::udp(1, 2));
        (craft.ethernet, craft.payload_len) = (None, 2);
        let mut whole = craft.frame();
        let found = headers(&whole, Link::Raw);
        for word in 0..=u16::MAX {
            let at = whole.len() - 2;
            whole[at..].copy_from_slice(&word.to_be_bytes());
            let mut room = [0; 100];
            let superframe = Superframe::new(&whole, &found, 2).unwrap();
            let len = superframe.write(0, &mut room).unwrap();
            assert_eq!(receive(&room[..len], Link::Raw).payload, word.to_be_bytes());
        }
    }
}
