use proptest::prelude::*;

use super::*;
use crate::frame::{FrameMeta, SegmentKind, Segments};
use crate::memory_port::MemoryPort;
use crate::pool::Pool;

const EVERY: u32 = 1_000_000;
const FRAMES: usize = 100;

/// A port that receives `FRAMES` frames of 20 bytes, the first two the frame's number, `at_once` of them at a time.
fn numbered(rates: FaultRates, seed: u64, at_once: usize) -> FaultPort<MemoryPort> {
    let mut frames = Burst::new();
    for number in 0..FRAMES as u16 {
        let bytes = [&number.to_be_bytes()[..], &[0; 18]].concat();
        frames.push(&bytes, FrameMeta::default());
    }
    let mut loopback = MemoryPort::looped(&Pool::new(FRAMES, 32, 0), FRAMES, at_once);
    loopback.tx_burst(&mut frames).unwrap();
    FaultPort::new(loopback, seed, rates)
}

/// All that the port hands over; after each burst its counts have to add up.
fn drained(port: &mut FaultPort<MemoryPort>) -> Vec<Vec<u8>> {
    let mut frames = Burst::new();
    let mut all = Vec::new();
    while port.rx_burst(&mut frames).unwrap() > 0 {
        all.extend(frames.iter().map(|frame| frame.bytes.to_vec()));
        let FaultCounts { received, duplicated, handed_over, dropped, held, .. } = port.counts();
        assert_eq!(received + duplicated, handed_over + dropped + held);
        assert_eq!((held as usize, handed_over as usize), (port.held.len(), all.len()));
        assert_eq!(held > 0, matches!(port.readiness(), Readiness::Always));
    }
    all
}

fn received(rates: FaultRates, seed: u64) -> (Vec<Vec<u8>>, FaultCounts) {
    let mut port = numbered(rates, seed, 7);
    let all = drained(&mut port);
    (all, port.counts())
}

fn numbers(frames: &[Vec<u8>]) -> Vec<u16> {
    frames.iter().map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]])).collect()
}

#[test]
fn each_fault_does_what_it_says() {
    let (all, counts) = received(FaultRates { drop: EVERY, ..Default::default() }, 1);
    assert_eq!((all.len(), counts.dropped), (0, 100));
    let (all, counts) = received(FaultRates { duplicate: EVERY, ..Default::default() }, 1);
    assert_eq!((all.len(), counts.duplicated), (200, 100));
    assert!(numbers(&all).chunks(2).all(|pair| pair[0] == pair[1]));
    let (all, counts) = received(FaultRates { truncate: EVERY, ..Default::default() }, 1);
    assert!(all.iter().all(|bytes| bytes.len() < 20) && counts.truncated == 100);
    let (all, counts) = received(FaultRates { corrupt: EVERY, ..Default::default() }, 1);
    let sent = received(FaultRates::default(), 1).0;
    for (bytes, sent) in all.iter().zip(&sent) {
        let turned = bytes.iter().zip(sent).map(|(a, b)| (a ^ b).count_ones());
        assert_eq!(turned.sum::<u32>(), 1);
    }
    assert_eq!(counts.corrupted, 100);
}

#[test]
fn a_frame_held_back_comes_after_others() {
    let rates = FaultRates { reorder: 200_000, ..Default::default() };
    let (all, counts) = received(rates, 1);
    let places = numbers(&all);
    let late = places.iter().enumerate().filter(|(at, number)| *at > usize::from(**number));
    assert!(late.clone().all(|(at, number)| at - usize::from(*number) == 1), "{places:?}");
    assert!(late.count() > 5 && counts.reordered > 5, "{places:?}");
    let rates = FaultRates { delay: 100_000, ..Default::default() };
    let (all, counts) = received(rates, 1);
    let places = numbers(&all);
    let lateness = |(at, number): (usize, &u16)| at.saturating_sub((*number).into());
    let latest = places.iter().enumerate().map(lateness).max().unwrap();
    assert!((2..=LONGEST_DELAY).contains(&latest) && counts.delayed > 2, "{places:?}");
}

/// Nothing is held back for good: what waits for others comes when there are none.
#[test]
fn without_others_a_frame_held_back_comes_too() {
    for rates in [
        FaultRates { delay: EVERY, ..Default::default() },
        FaultRates { reorder: EVERY, ..Default::default() },
    ] {
        let (all, counts) = received(rates, 3);
        let mut numbers = numbers(&all);
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..100));
        assert_eq!(counts.held, 0);
    }
}

#[test]
fn the_seed_decides() {
    let rates = FaultRates {
        drop: 300_000,
        duplicate: 300_000,
        truncate: 300_000,
        corrupt: 300_000,
        delay: 300_000,
        reorder: 300_000,
    };
    assert_eq!(received(rates, 7), received(rates, 7));
    assert_ne!(received(rates, 7), received(rates, 8));
    let untouched = received(FaultRates::default(), 7).0;
    assert!(numbers(&untouched).into_iter().eq(0..100));
}

/// A repeated superframe is one, too.
#[test]
fn a_repetition_is_known_as_its_frame_is() {
    let pool = Pool::new(1, 32, 0);
    let mut frame = pool.take().unwrap();
    let segments = Some(Segments { size: 9, kind: SegmentKind::TcpV4 });
    frame.live_mut().segments = segments;
    let mut burst = Burst::new();
    burst.push_frame(frame);
    let mut loopback = MemoryPort::looped(&pool, 1, 1);
    loopback.tx_burst(&mut burst).unwrap();
    let mut port =
        FaultPort::new(loopback, 1, FaultRates { duplicate: EVERY, ..Default::default() });
    assert_eq!(port.rx_burst(&mut burst).unwrap(), 2);
    assert_eq!([0, 1].map(|at| burst.live(at).unwrap().segments), [segments; 2]);
}

proptest! {
    /// Where frames come in bursts of other sizes, the same ones come out in the same order, all of them counted.
    #[test]
    fn every_frame_is_counted_and_bursts_do_not_matter(
        seed in any::<u64>(),
        rates in proptest::array::uniform6(prop_oneof![Just(0), 0..EVERY]),
        at_once in 1..FRAMES,
    ) {
        let [drop, duplicate, truncate, corrupt, delay, reorder] = rates;
        let rates = FaultRates { drop, duplicate, truncate, corrupt, delay, reorder };
        let mut port = numbered(rates, seed, at_once);
        let all = drained(&mut port);
        prop_assert_eq!(&all, &received(rates, seed).0);
        let counts = port.counts();
        prop_assert_eq!((counts.received, counts.held), (FRAMES as u64, 0));
        prop_assert_eq!(all.len() as u64, counts.handed_over);
        prop_assert_eq!(port.stats().rx_lost, counts.dropped);
        let shorter = all.iter().filter(|bytes| bytes.len() < 20).count() as u64;
        prop_assert!(counts.truncated <= shorter && shorter <= 2 * counts.truncated);
    }
}
