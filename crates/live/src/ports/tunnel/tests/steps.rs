//! The steps of several bursts, by more than one worker, in any order that they may have.

use std::sync::Arc;

use pktio::{Burst, Envelope, Notes};
use proptest::prelude::*;

use super::super::outer::OUTER;
use super::super::worker::Worker;
use super::ends::{Pair, raw};
use super::packets::datagram;

/// Bursts, each with its number of packets, and the orders in which workers seal and decipher them.
fn bursts() -> impl Strategy<Value = (Vec<usize>, [Vec<usize>; 2])> {
    prop::collection::vec(1..8_usize, 1..6).prop_flat_map(|sizes| {
        let orders = || Just((0..sizes.len()).collect::<Vec<_>>()).prop_shuffle();
        (Just(sizes.clone()), [orders(), orders()])
    })
}

/// The counter of a sealed frame's datagram (docs/tunnel.md).
fn counter(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[OUTER + 8..OUTER + 16].try_into().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whichever burst is sealed or deciphered first, and by whom: what one end takes in order the other gives in that
    /// order, and counters follow it.
    #[test]
    fn side_by_side_they_come_to_what_they_come_to_one_by_one((sizes, orders) in bursts()) {
        let mut pair = Pair::established(false);
        let [mut seals, mut opens] =
            [&pair.a, &pair.b].map(|end| Worker::new(Arc::clone(&end.site)));
        let mut len = 40;
        let mut packet = || {
            len += 1;
            datagram(1, 2, false, len).frame()
        };
        let packets: Vec<Vec<Vec<u8>>> =
            sizes.iter().map(|size| (0..*size).map(|_| packet()).collect()).collect();
        let lose = &mut |why, _: pktio::Frame<'_>| panic!("{why:?}");
        let mut all: Vec<(Burst, Notes)> = packets.iter().map(|packets| {
            let (mut burst, mut notes) = (Burst::new(), Notes::default());
            packets.iter().for_each(|packet| burst.push(packet, raw(packet.len())));
            prop_assert_eq!(pair.a.worker.place(&mut burst, &mut notes, lose), 0);
            Ok((burst, notes))
        }).collect::<Result<_, TestCaseError>>()?;
        let [sealed, deciphered] = orders;
        for (turn, at) in sealed.into_iter().enumerate() {
            let worker = if turn % 2 == 0 { &mut seals } else { &mut pair.a.worker };
            let (burst, notes) = &mut all[at];
            worker.seal(burst, notes, lose);
        }
        let counters: Vec<u64> =
            all.iter().flat_map(|(burst, _)| burst.iter()).map(|frame| counter(frame.bytes)).collect();
        prop_assert!(counters.windows(2).all(|two| two[1] == two[0] + 1), "{:?}", counters);
        for (turn, at) in deciphered.into_iter().enumerate() {
            let worker = if turn % 2 == 0 { &mut opens } else { &mut pair.b.worker };
            let (burst, notes) = &mut all[at];
            worker.decipher(burst, notes, lose);
        }
        for ((burst, notes), packets) in all.iter_mut().zip(&packets) {
            pair.b.worker.release(burst, notes, lose);
            let came: Vec<Vec<u8>> = burst.iter().map(|frame| frame.bytes.to_vec()).collect();
            prop_assert_eq!(&came, packets);
        }
    }
}
