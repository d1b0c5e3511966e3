//! Bytes that mean harm: nothing panics, nothing of them is delivered, and the session goes on.

use proptest::prelude::*;
use tunnel::limits::SECOND;

use crate::ends::*;

/// A message that is genuine but for what is done to it.
#[derive(Clone, Debug)]
enum Hostile {
    Noise(Vec<u8>),
    /// The head of a message of ours, and noise.
    Typed(u8, Vec<u8>),
    Cut(usize, prop::sample::Index),
    Turned(usize, prop::sample::Index, u8),
    Longer(usize, Vec<u8>),
    Replayed(usize),
}

fn noise(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..most)
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let which = 0..5_usize;
    let place = any::<prop::sample::Index>();
    prop_oneof![
        noise(2_000).prop_map(Hostile::Noise),
        (0x80..0x86_u8, noise(400)).prop_map(|(kind, noise)| Hostile::Typed(kind, noise)),
        (which.clone(), place).prop_map(|(of, at)| Hostile::Cut(of, at)),
        (which.clone(), any::<prop::sample::Index>(), 1..=255_u8)
            .prop_map(|(of, at, bits)| Hostile::Turned(of, at, bits)),
        (which.clone(), noise(100)).prop_map(|(of, more)| Hostile::Longer(of, more)),
        which.prop_map(Hostile::Replayed),
    ]
}

impl Hostile {
    fn bytes(&self, genuine: &[Vec<u8>; 5]) -> Vec<u8> {
        match self {
            Self::Noise(noise) => noise.clone(),
            Self::Typed(kind, noise) => [&[*kind, 1, 0, 0], &noise[..]].concat(),
            Self::Cut(of, at) => genuine[*of][..at.index(genuine[*of].len())].to_vec(),
            Self::Turned(of, at, bits) => {
                let mut bytes = genuine[*of].clone();
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
                bytes
            }
            Self::Longer(of, more) => [&genuine[*of][..], more].concat(),
            Self::Replayed(of) => genuine[*of].clone(),
        }
    }
}

/// One of each message that was on the wire, and the pair that it was between.
fn recorded() -> (Pair, [Vec<u8>; 5]) {
    let mut pair = Pair::new();
    let initiation = pair.initiation();
    let response = pair.answer(&initiation);
    pair.confirm(&response);
    let (_, there) = send(&mut pair.a, &Pair::packet(1, 1), pair.now).unwrap();
    let (_, back) = send(&mut pair.b, &Pair::packet(2, 1), pair.now).unwrap();
    take(&mut pair.b, &there, place(1), pair.now);
    take(&mut pair.a, &back, place(2), pair.now);
    let cookie = [&[0x83, 1, 0, 0], &response.bytes()[8..12], &[7; 56]].concat();
    let genuine = [initiation.bytes().to_vec(), response.bytes().to_vec(), cookie, there, back];
    (pair, genuine)
}

proptest! {
    #[test]
    fn hostile_datagrams_come_to_nothing(
        hostile in proptest::collection::vec((hostile(), any::<bool>(), any::<[u8; 4]>()), 1..60),
    ) {
        let (mut pair, genuine) = recorded();
        for (datagram, to_a, from) in &hostile {
            pair.now += SECOND / 100;
            let end = if *to_a { &mut pair.a } else { &mut pair.b };
            let came = take(end, &datagram.bytes(&genuine), (*from, 1).into(), pair.now);
            // A cookie, or that a replayed initiation came too late.
            let is_harmless = matches!(came, Came::Dropped(_) | Came::Reply(_));
            prop_assert!(is_harmless, "{:?}: {:?}", datagram, came);
        }
        pair.passes(2);
        pair.passes_back(2);
    }
}
