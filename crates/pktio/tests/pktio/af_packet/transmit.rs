//! Frames that cannot be sent: now, by this link, or at all. Those around them are, in order.

use std::fs::File;

use pktio::{AfPacketConfig, Burst, FrameMeta, Pool, Port};

use super::wire::{Wire, frame, no_pool, number, read, receive, write};

#[test]
fn what_is_too_long_or_no_frame_is_counted_and_the_rest_is_sent() {
    let Some(wire) = Wire::new() else { return };
    let (mut port, peer) = (wire.port(&AfPacketConfig::new("e0"), &no_pool()), wire.peer());
    refuses_what_does_not_fit(&mut port, &peer);
}

/// Of frames of many lengths, those that fit are sent, and the others counted.
pub(crate) fn refuses_what_does_not_fit(port: &mut impl Port, peer: &File) {
    let mut burst = Burst::new();
    let lengths = [60, 1600, 100, 5, 1514, 3000, 0, 61];
    for (count, length) in (0..).zip(lengths) {
        burst.push(&frame(count, length), FrameMeta::default());
    }
    assert_eq!(port.tx_burst(&mut burst).unwrap(), lengths.len());
    assert!(burst.is_empty());
    let stats = port.stats();
    assert_eq!((stats.tx_frames, stats.tx_too_long, stats.tx_refused), (4, 2, 2), "{stats:?}");
    assert_eq!((stats.tx_bytes, stats.tx_full), (60 + 100 + 1514 + 61, 0));
    for count in [0, 2, 4, 7] {
        assert_eq!(number(&read(peer)), count);
    }
}

/// A queue that hardly drains holds what was sent until the socket's room is used up.
#[test]
fn what_there_is_no_room_for_stays_in_the_burst() {
    let Some(wire) = Wire::new() else { return };
    wire.ours.command("tc qdisc replace dev e0 root tbf rate 8kbit burst 2000 limit 100000000");
    let (mut port, peer) = (wire.port(&AfPacketConfig::new("e0"), &no_pool()), wire.peer());
    let pool = Pool::new(64, 2048, 64);
    let mut burst = Burst::with_capacity(0);
    let (mut offered, mut taken) = (0, 0);
    while offered == taken {
        assert!(taken < 100_000, "it takes everything");
        while let Some(mut one) = pool.take() {
            assert!(one.extend(&frame(offered, 1000)));
            burst.push_frame(one);
            offered += 1;
        }
        taken += port.tx_burst(&mut burst).unwrap() as u32;
    }
    let left: Vec<u32> = burst.iter().map(|frame| number(frame.bytes)).collect();
    assert!(left.iter().copied().eq(taken..offered), "{left:?} of {taken}");
    assert_eq!(pool.free(), 64 - left.len(), "what was taken went back");
    let full = port.stats().tx_full;
    assert_eq!((port.stats().tx_frames, full), (taken.into(), left.len() as u64));
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 0);
    assert_eq!(port.stats().tx_full, 2 * full);
    // What waited goes as the queue does.
    wire.ours.command("tc qdisc del dev e0 root");
    assert_eq!(port.tx_burst(&mut burst).unwrap(), left.len());
    let mut came = number(&read(&peer));
    while came < left[0] {
        came = number(&read(&peer));
    }
    assert_eq!(came, left[0]);
}

/// Frames of a burst's own buffer, of a pool and of a ring in one burst.
#[test]
fn frames_of_any_memory_are_sent_in_order() {
    let Some(wire) = Wire::new() else { return };
    let (mut port, peer) = (wire.port(&AfPacketConfig::new("e0"), &no_pool()), wire.peer());
    let pool = Pool::new(2, 2048, 0);
    let mut burst = Burst::new();
    write(&peer, &frame(0, 64));
    super::wire::rest(&port);
    while port.rx_burst(&mut burst).unwrap() == 0 {}
    burst.push(&frame(1, 64), FrameMeta::default());
    let mut pooled = pool.take().unwrap();
    assert!(pooled.extend(&frame(2, 64)));
    burst.push_frame(pooled);
    for count in 3..100 {
        burst.push(&frame(count, 64), FrameMeta::default());
    }
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 100);
    for count in 0..100 {
        assert_eq!(number(&read(&peer)), count);
    }
    assert_eq!((port.stats().tx_frames, port.stats().tx_copied, pool.free()), (100, 100, 2));
    write(&peer, &frame(7, 64));
    assert_eq!(receive(&mut port, 1).len(), 1);
}
