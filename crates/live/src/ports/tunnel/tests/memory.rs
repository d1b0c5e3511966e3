//! Nothing is allocated for a packet once a worker has seen a few.

use allocation_counter::measure;
use pktio::{Burst, Envelope, LiveMeta, Pool};

use super::ends::{Pair, assert_whole};
use super::packets::{Memory, datagram, fill, segment, superframe};

/// Bursts are sealed by one end and opened by the other, time and again: how often that allocates after the first few.
fn allocations(pair: &mut Pair, mut fill: impl FnMut(&mut Burst)) -> u64 {
    let (mut count, mut frames) = (0, Burst::new());
    for turn in 0..12 {
        frames.clear();
        fill(&mut frames);
        let measured = measure(|| {
            pair.a.worker.seal(&mut frames, &mut |why, _| panic!("{why:?}"));
            pair.b.worker.open(&mut frames, &mut |why, _| panic!("{why:?}"));
        });
        assert!(!frames.is_empty());
        count += if turn < 8 { 0 } else { measured.count_total };
    }
    count
}

#[test]
fn packets_cost_no_allocation() {
    let mut pair = Pair::established(false);
    let pools = [Pool::new(64, 2_048, 128), Pool::new(64, 70_000, 0)];
    let [roomy, tight] = &pools;
    let (small, stream) = (datagram(1, 2, false, 200).frame(), segment(1, 2, false, 60_000));
    let (large, live) = superframe(&stream, 1_380);
    for memory in [Memory::Roomy, Memory::Tight, Memory::Lent] {
        let count = allocations(&mut pair, |burst| {
            let frames = (0..32).map(|_| (&small[..], memory, LiveMeta::default()));
            fill(burst, frames, roomy, tight);
        });
        assert_eq!(count, 0, "{memory:?}");
    }
    let count = allocations(&mut pair, |burst| {
        fill(burst, (0..8).map(|_| (&large[..], Memory::Tight, live)), roomy, tight);
    });
    assert_eq!(count, 0, "superframes");
    for pool in &pools {
        assert_whole(pool, 0);
    }
    for end in [&pair.a, &pair.b] {
        assert_whole(&end.worker.pool, 0);
    }
}
