//! Whatever comes: messages of datagrams that are sealed, cut, repeated, damaged or none of ours, as the kernel puts them
//! together, of any segment size.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use pktio::{Burst, Port};
use proptest::prelude::*;

use super::super::hostile::{Arena, Given, Message, Piece, envelope};
use super::super::outer::OUTER;
use super::ends::{Came, End, MTU, Pair, raw};
use super::packets::{Memory, Numbers, Spec, ping, spec};

/// Texts of a peer: packets of its own, and what is none.
fn text() -> impl Strategy<Value = Text> {
    prop_oneof![
        8 => spec().prop_map(Text::Packet),
        1 => prop::collection::vec(any::<u8>(), 0..100).prop_map(Text::Noise),
        1 => (spec(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(spec, at, byte)| Text::Odd(spec, at, byte)),
    ]
}

#[derive(Clone, Debug)]
enum Text {
    Packet(Spec),
    /// A packet with one changed byte.
    Odd(Spec, prop::sample::Index, u8),
    Noise(Vec<u8>),
}

impl Text {
    fn bytes(&self, numbers: &mut Numbers) -> Vec<u8> {
        match self {
            Self::Packet(spec) => numbers.packet((1, 2), *spec),
            Self::Odd(spec, at, byte) => {
                let mut packet = numbers.packet((1, 2), *spec);
                let at = at.index(packet.len());
                packet[at] = *byte;
                packet
            }
            Self::Noise(bytes) => bytes.clone(),
        }
    }
}

/// The making of a datagram.
#[derive(Clone, Debug)]
enum Made {
    Of(Text),
    As(Piece),
}

/// Datagrams that are none of a text.
fn noise() -> impl Strategy<Value = Piece> {
    prop_oneof![
        3 => any::<u8>().prop_map(Piece::Again),
        1 => (any::<u8>(), 0..1_500_u16).prop_map(|(which, len)| Piece::Cut(which, len)),
        1 => (any::<u8>(), any::<u16>(), any::<u8>())
            .prop_map(|(which, at, bits)| Piece::Turned(which, at, bits)),
        1 => (any::<u8>(), any::<bool>())
            .prop_map(|(kind, is_whole)| Piece::Handshake(kind, is_whole)),
        1 => prop::collection::vec(any::<u8>(), 0..100).prop_map(Piece::Noise),
    ]
}

fn piece() -> impl Strategy<Value = Made> {
    prop_oneof![2 => text().prop_map(Made::Of), 1 => noise().prop_map(Made::As)]
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let segment = prop_oneof![2 => Just(None), 1 => (0..1_500_u16).prop_map(Some)];
    let message = (prop::collection::vec(piece(), 0..14), segment, any::<u8>());
    prop::collection::vec(message, 1..6).prop_map(|messages| {
        let mut numbers = Numbers::default();
        let mut made = |made: Made| match made {
            Made::Of(text) => Piece::Sealed(text.bytes(&mut numbers)),
            Made::As(piece) => piece,
        };
        let message = |(pieces, segment, tos): (Vec<_>, _, _)| Message {
            pieces: pieces.into_iter().map(&mut made).collect(),
            segment,
            tos,
        };
        messages.into_iter().map(message).collect()
    })
}

/// Datagrams of an end, sealed one by one.
fn seal(end: &mut End, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut burst = Burst::new();
    packets.iter().for_each(|packet| burst.push(packet, raw(packet.len())));
    assert_eq!(end.seal(&mut burst).lost, []);
    burst.iter().map(|frame| frame.bytes[OUTER..].to_vec()).collect()
}

#[test]
fn inputs_of_the_fuzzer_do_no_harm() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/envelope");
    let mut inputs = 0;
    for entry in fs::read_dir(corpus).expect("there is a corpus") {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        envelope(&fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "the corpus is empty");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Only what was sent comes, each packet once and in its order, and the rest is lost, told and counted.
    #[test]
    fn messages_of_anything_are_opened_as_far_as_they_are_genuine(
        bursts in prop::collection::vec(messages(), 1..3), most in 0..MTU,
    ) {
        let mut arena = Arena::new();
        for messages in bursts {
            arena.receives(&messages);
            arena.narrow(most);
        }
        arena.narrow(MTU);
        arena.receives(&[Message { pieces: vec![Piece::Sealed(ping(1, 2, 77))], ..Message::default() }]);
    }

    /// Whatever a frame says of itself, what fits the path arrives, and the rest is lost and told.
    #[test]
    fn frames_of_anything_are_sealed_as_far_as_they_are_packets(
        texts in prop::collection::vec((text(), any::<Option<u16>>()), 1..12), most in 0..2 * MTU,
    ) {
        let mut arena = Arena::new();
        let mut numbers = Numbers::default();
        arena.narrow(most);
        for (text, segment) in texts {
            let (bytes, is_roomy) = match &text {
                Text::Packet(spec) => (numbers.packet((2, 1), *spec), spec.memory == Memory::Roomy),
                Text::Odd(spec, ..) => (text.bytes(&mut numbers), spec.memory == Memory::Roomy),
                Text::Noise(bytes) => (bytes.clone(), false),
            };
            arena.sends(&Given { bytes, segment, is_roomy });
        }
    }

    #[test]
    fn bytes_of_anything_are_steps(data in prop::collection::vec(any::<u8>(), 0..400)) {
        envelope(&data);
    }

    /// Datagrams of any bytes, received on the socket.
    #[test]
    fn datagrams_of_anything_are_received(
        specs in prop::collection::vec(spec(), 1..6), pieces in prop::collection::vec(noise(), 1..30),
    ) {
        let mut pair = Pair::established(false);
        let mut numbers = Numbers::default();
        let packets: Vec<_> = specs.iter().map(|spec| numbers.packet((1, 2), *spec)).collect();
        let sealed = seal(&mut pair.a, &packets);
        let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for piece in &pieces {
            stranger.send_to(&piece.made_of(&sealed), pair.b.place(false)).unwrap();
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
