//! The ring's blocks: each goes back once and in time, and what finds none is lost and counted.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use pktio::{AfPacketConfig, AfPacketPort, Burst, FrameBuf, Pool, Port, Taken};

use super::wire::{
    PATIENCE, Wire, drain, frame, no_pool, number, open, receive, rest, small, write,
};

/// Sends frames of these numbers, of many lengths.
fn send(peer: &File, numbers: std::ops::Range<u32>) {
    for count in numbers {
        write(peer, &frame(count, 60 + (count as usize * 37) % 140));
    }
}

/// The frames of a burst, each with its memory.
fn moved(burst: &mut Burst) -> impl Iterator<Item = FrameBuf> {
    burst.drain(usize::MAX).map(|taken| match taken {
        Taken::Moved(frame) => frame.into_buf(),
        Taken::Lent { .. } => panic!("it has memory"),
    })
}

/// 100,000 frames through 8 blocks of a page, every seventh dropped later, by another thread.
#[test]
fn every_block_goes_back() {
    const FRAMES: u32 = 100_000;
    /// On their way at most: they fit the blocks that are not out.
    const WINDOW: u32 = 50;
    let Some(wire) = Wire::new() else { return };
    let (mut port, peer) = (wire.port(&small(8), &no_pool()), wire.peer());
    let (frames, received) = mpsc::sync_channel::<FrameBuf>(2);
    let drops = thread::spawn(move || {
        received.into_iter().inspect(|frame| assert!(number(frame.bytes()) > 0)).count()
    });
    let mut burst = Burst::with_capacity(0);
    let (mut next, began) = (0, Instant::now());
    for first in (0..FRAMES).step_by(WINDOW as usize) {
        send(&peer, first..first + WINDOW);
        while next < first + WINDOW {
            assert!(began.elapsed() < 3 * PATIENCE, "stuck at {next}: {:?}", port.stats());
            if port.rx_burst(&mut burst).unwrap() == 0 {
                rest(&port);
            }
            for frame in moved(&mut burst) {
                assert_eq!(number(frame.bytes()), next);
                next += 1;
                if next % 7 == 0 {
                    frames.send(frame).unwrap();
                }
            }
        }
    }
    drop(frames);
    assert_eq!(drops.join().unwrap(), FRAMES as usize / 7);
    let stats = port.stats();
    assert_eq!((stats.rx_frames, stats.rx_lost), (FRAMES.into(), 0));
}

#[test]
fn frames_that_nobody_reads_are_lost_and_counted() {
    const FRAMES: u32 = 20_000;
    let Some(wire) = Wire::new() else { return };
    let (mut port, peer) = (wire.port(&small(8), &no_pool()), wire.peer());
    send(&peer, 0..FRAMES);
    let came = drain(&mut port);
    let numbers: Vec<u32> = came.iter().map(|bytes| number(bytes)).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u32), "the first ones: {numbers:?}");
    let stats = port.stats();
    assert!((20..1000).contains(&stats.rx_frames), "{stats:?}");
    assert_eq!(stats.rx_frames + stats.rx_lost, FRAMES.into(), "{stats:?}");
    assert_eq!(port.stats(), stats, "a loss is counted once");
    write(&peer, &frame(7, 60));
    assert_eq!(number(&receive(&mut port, 1)[0].0), 7, "it goes on");
}

/// Receives one frame after the other, each in a block of its own, and keeps the last `held` of them. How many chunks
/// of the pool were free at least.
fn hold(port: &mut AfPacketPort, peer: &File, held: usize, pool: &Pool) -> usize {
    let mut free = pool.free();
    let mut burst = Burst::with_capacity(0);
    let mut flight: VecDeque<FrameBuf> = VecDeque::new();
    for count in 0..100 {
        write(peer, &frame(count, 200));
        let began = Instant::now();
        while port.rx_burst(&mut burst).unwrap() == 0 {
            assert!(began.elapsed() < PATIENCE, "stuck at {count}: {:?}", port.stats());
            rest(port);
        }
        flight.extend(moved(&mut burst));
        while flight.len() > held {
            flight.pop_front();
        }
        // Nobody writes to what is in flight.
        let oldest = count + 1 - flight.len() as u32;
        assert!(flight.iter().map(|frame| number(frame.bytes())).eq(oldest..=count));
        free = free.min(pool.free());
    }
    free
}

#[test]
fn frames_in_flight_keep_their_bytes_and_half_of_the_blocks_at_most() {
    let Some(wire) = Wire::new() else { return };
    let (pool, peer) = (Pool::new(200, 2048, 64), wire.peer());
    let config = AfPacketConfig { burst_frames: 1, ..small(8) };
    let mut port = wire.port(&config, &pool);
    assert_eq!(hold(&mut port, &peer, 3, &pool), 200, "up to half of the blocks nothing is copied");
    assert_eq!(port.stats().rx_lost, 0);
    drop(port);
    let mut port = wire.port(&config, &pool);
    let free = hold(&mut port, &peer, 7, &pool);
    assert!((192..=196).contains(&free), "of eight four are copied, or more: {free}");
    assert_eq!(port.stats().rx_lost, 0);
    drop(port);
    assert_eq!(pool.free(), 200);
}

/// The kernel comes around to the block of a frame in flight, and stops there.
#[test]
fn what_is_in_flight_is_not_written_over() {
    const FRAMES: u32 = 2000;
    let Some(wire) = Wire::new() else { return };
    let (mut port, peer) = (wire.port(&small(8), &no_pool()), wire.peer());
    let mut held = Burst::with_capacity(0);
    write(&peer, &frame(0, 100));
    while port.rx_burst(&mut held).unwrap() == 0 {
        rest(&port);
    }
    let mut came = 1;
    for first in (1..FRAMES).step_by(20) {
        send(&peer, first..FRAMES.min(first + 20));
        came += drain(&mut port).len() as u32;
        assert_eq!(number(held.get(0).unwrap().bytes), 0);
    }
    assert!((20..1000).contains(&came), "{came}");
    assert_eq!(port.stats().rx_lost, (FRAMES - came).into());
    held.clear();
    write(&peer, &frame(FRAMES, 100));
    assert_eq!(number(&receive(&mut port, 1)[0].0), FRAMES, "it goes on");
}

/// Chunks come to an end: frames wait in the ring, and come when there are chunks, or blocks, again.
#[test]
fn without_a_chunk_frames_wait_and_none_is_lost() {
    let Some(wire) = Wire::new() else { return };
    let (pool, peer) = (Pool::new(1, 2048, 0), wire.peer());
    let config = AfPacketConfig { burst_frames: 1, ..small(8) };
    let mut port = wire.port(&config, &pool);
    let mut burst = Burst::with_capacity(0);
    let mut flight = Vec::new();
    for count in 0..7 {
        write(&peer, &frame(count, 100));
        thread::sleep(3 * port.block_timeout());
        while port.rx_burst(&mut burst).unwrap() > 0 {
            flight.extend(moved(&mut burst));
        }
    }
    // Of four blocks, and one chunk.
    assert!(flight.iter().map(|frame| number(frame.bytes())).eq(0..5));
    assert_eq!(pool.free(), 0);
    flight.clear();
    let rest: Vec<u32> = drain(&mut port).iter().map(|bytes| number(bytes)).collect();
    assert_eq!(rest, [5, 6]);
    assert_eq!((port.stats().rx_frames, port.stats().rx_lost), (7, 0));
}

/// A frame too long for every block, and a frame too long for every chunk.
#[test]
fn a_frame_longer_than_its_memory_is_lost_and_counted() {
    let Some(wire) = Wire::new() else { return };
    wire.ours.command("ip link set e0 mtu 9000");
    wire.theirs.command("ip link set p0 mtu 9000");
    let (pool, peer) = (Pool::new(8, 100, 0), wire.peer());
    let mut port = wire.port(&small(8), &pool);
    write(&peer, &frame(0, 5000));
    write(&peer, &frame(1, 60));
    assert_eq!(number(&receive(&mut port, 1)[0].0), 1);
    assert_eq!(port.stats().rx_lost, 1);
    drop(port);
    let config = AfPacketConfig { burst_frames: 1, ..small(2) };
    let mut port = wire.port(&config, &pool);
    let mut held = Burst::with_capacity(0);
    write(&peer, &frame(2, 60));
    while port.rx_burst(&mut held).unwrap() == 0 {
        rest(&port);
    }
    write(&peer, &frame(3, 101));
    assert!(drain(&mut port).is_empty());
    assert_eq!(port.stats().rx_lost, 1);
    drop(held);
    write(&peer, &frame(4, 101));
    assert_eq!(number(&receive(&mut port, 1)[0].0), 4);
}

#[test]
fn memory_outlives_its_port_and_another_can_be_opened() {
    let Some(wire) = Wire::new() else { return };
    let (mut port, peer) = (wire.port(&small(8), &no_pool()), wire.peer());
    send(&peer, 0..5);
    let mut burst = Burst::with_capacity(0);
    while port.rx_burst(&mut burst).unwrap() == 0 {
        rest(&port);
    }
    drop(port);
    let mut port = open(&wire.ours, &small(8), &no_pool()).unwrap();
    send(&peer, 5..8);
    assert_eq!(receive(&mut port, 3).len(), 3);
    let numbers: Vec<u32> = burst.iter().map(|frame| number(frame.bytes)).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u32) && !numbers.is_empty());
}
