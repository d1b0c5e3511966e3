//! Whatever comes: messages of datagrams that are sealed, cut, repeated, damaged or none of ours, as the kernel puts them
//! together, of any segment size.

use std::collections::HashSet;

use ::tunnel::message::{COOKIE, INITIATION, RESPONSE};
use pktio::{Burst, FrameMeta, LinkType, Port};
use proptest::prelude::*;

use super::super::outer::{OUTER, Outer};
use super::ends::{Came, End, Pair, assert_whole, raw};
use super::packets::{Numbers, ping, spec};

/// What a datagram is made of.
#[derive(Clone, Debug)]
enum Piece {
    /// This one of those that were sealed.
    Sealed(prop::sample::Index),
    /// The same, as far as this.
    Cut(prop::sample::Index, prop::sample::Index),
    /// The same, with a bit turned.
    Turned(prop::sample::Index, prop::sample::Index, u8),
    /// A handshake message of this kind, of noise.
    Handshake(u8, bool),
    Noise(Vec<u8>),
}

fn piece() -> impl Strategy<Value = Piece> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => index().prop_map(Piece::Sealed),
        1 => (index(), index()).prop_map(|(which, at)| Piece::Cut(which, at)),
        1 => (index(), index(), 0..8_u8).prop_map(|(which, at, bit)| Piece::Turned(which, at, bit)),
        1 => (0x81..0x84_u8, any::<bool>()).prop_map(|(kind, is_whole)| Piece::Handshake(kind, is_whole)),
        1 => prop::collection::vec(any::<u8>(), 0..100).prop_map(Piece::Noise),
    ]
}

impl Piece {
    fn bytes(&self, sealed: &[Vec<u8>]) -> Vec<u8> {
        match self {
            Self::Sealed(which) => which.get(sealed).clone(),
            Self::Cut(which, at) => {
                let whole = which.get(sealed);
                whole[..at.index(whole.len())].to_vec()
            }
            Self::Turned(which, at, bit) => {
                let mut turned = which.get(sealed).clone();
                let at = at.index(turned.len());
                turned[at] ^= 1 << bit;
                turned
            }
            Self::Handshake(kind, is_whole) => {
                let len = match kind {
                    0x81 => INITIATION,
                    0x82 => RESPONSE,
                    _ => COOKIE,
                };
                let mut bytes = vec![*kind; len - usize::from(!is_whole)];
                bytes[..4].copy_from_slice(&[*kind, 1, 0, 0]);
                bytes
            }
            Self::Noise(bytes) => bytes.clone(),
        }
    }
}

/// Datagrams of an end, sealed one by one.
fn seal(end: &mut End, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut burst = Burst::new();
    packets.iter().for_each(|packet| burst.push(packet, raw(packet.len())));
    assert_eq!(end.seal(&mut burst).lost, []);
    burst.iter().map(|frame| frame.bytes[OUTER..].to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Only what was sent comes, each packet once; memory is whole again; and the pair still speaks.
    #[test]
    fn messages_of_anything_are_opened_as_far_as_they_are_genuine(
        specs in prop::collection::vec(spec(), 1..12),
        messages in prop::collection::vec((prop::collection::vec(piece(), 0..14), 0..1_500_u16, any::<bool>()), 1..6),
        beyond in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut pair = Pair::established(false);
        let mut numbers = Numbers::default();
        let packets: Vec<_> = specs.iter().map(|spec| numbers.packet((1, 2), *spec)).collect();
        let sealed = seal(&mut pair.a, &packets);
        let mut burst = Burst::new();
        let outer = Outer { peer: pair.a.place(false), own: None, tos: 0, segment: 0 };
        for (pieces, segment, is_even) in &messages {
            let datagrams: Vec<_> = pieces.iter().map(|piece| piece.bytes(&sealed)).collect();
            // Of one length, as the kernel has them, or of any.
            let segment = match datagrams.first() {
                Some(first) if *is_even => first.len() as u16,
                _ => *segment,
            };
            let mut frame = vec![0; OUTER];
            let is_written = Outer { segment, ..outer }.write(&mut frame);
            prop_assert!(is_written);
            frame.extend(datagrams.concat());
            let meta = FrameMeta { link_type: LinkType::SEALED, ..raw(frame.len()) };
            burst.push(&frame, meta);
        }
        burst.push(&beyond, FrameMeta { link_type: LinkType::SEALED, ..raw(beyond.len()) });
        let mut came = Came::default();
        pair.b.open(&mut burst, &mut came);
        burst.clear();
        let mut left: Vec<_> = packets.clone();
        for packet in came.packets() {
            let at = left.iter().position(|other| *other == packet);
            prop_assert!(at.is_some(), "a packet that was not sent, or came before");
            left.remove(at.unwrap_or_default());
        }
        assert_whole(&pair.b.worker.pool, 0);
        pair.a.send_packets(&[ping(1, 2, 77)]);
        prop_assert_eq!(pair.b.receive_packets(1).packets(), vec![ping(1, 2, 77)]);
    }

    /// The same of datagrams that come by the socket.
    #[test]
    fn datagrams_of_anything_are_received(
        specs in prop::collection::vec(spec(), 1..6), pieces in prop::collection::vec(piece(), 1..30),
    ) {
        let mut pair = Pair::established(false);
        let mut numbers = Numbers::default();
        let packets: Vec<_> = specs.iter().map(|spec| numbers.packet((1, 2), *spec)).collect();
        let sealed = seal(&mut pair.a, &packets);
        let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for piece in &pieces {
            stranger.send_to(&piece.bytes(&sealed), pair.b.place(false)).unwrap();
        }
        let last = ping(1, 2, 78);
        pair.a.send_packets(std::slice::from_ref(&last));
        let mut came = Came::default();
        while !came.packets().contains(&last) {
            pair.b.wait();
            pair.b.receive(&mut came);
        }
        let all: HashSet<_> = packets.iter().chain([&last]).cloned().collect();
        prop_assert!(came.packets().iter().all(|packet| all.contains(packet)));
        prop_assert!(came.packets().len() <= packets.len() + 1);
        let mut burst = Burst::new();
        prop_assert_eq!(pair.b.port.rx_burst(&mut burst).unwrap(), 0);
    }
}
