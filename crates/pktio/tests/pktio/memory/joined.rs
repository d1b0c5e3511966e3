//! Two ports joined by a wire, each on its own thread.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pktio::{Bell, Burst, FrameMeta, MemoryPort, Pool, Port, Readiness};

const FRAMES: u64 = 20_000;

fn numbered(pool: &Pool, number: u64) -> Option<pktio::FrameBuf> {
    let mut frame = pool.take()?;
    frame.extend(&number.to_be_bytes());
    Some(frame)
}

#[test]
fn a_full_queue_takes_no_more_and_the_rest_stays() {
    let pool = Pool::new(8, 16, 4);
    let [mut ours, mut theirs] = MemoryPort::pair(&pool, 4, 3);
    let mut sent = Burst::with_capacity(0);
    for byte in 0..5 {
        sent.push(&[byte; 3], FrameMeta::default());
    }
    assert_eq!((ours.tx_burst(&mut sent).unwrap(), sent.len()), (4, 1));
    let mut received = Burst::with_capacity(0);
    let mut bytes = Vec::new();
    while theirs.rx_burst(&mut received).unwrap() > 0 {
        assert!(received.len() <= 3);
        assert_eq!(received.headroom(0), 4);
        bytes.extend(received.iter().map(|frame| (frame.meta.number, frame.bytes[0])));
    }
    assert_eq!(bytes, [(1, 0), (2, 1), (3, 2), (4, 3)]);
    let stats = ours.stats();
    assert_eq!((stats.tx_frames, stats.tx_bytes, stats.tx_full, stats.tx_copied), (4, 12, 1, 4));
    assert_eq!((theirs.stats().rx_frames, theirs.stats().rx_bytes), (4, 12));
}

#[test]
fn frames_with_memory_move_and_what_is_too_long_is_counted() {
    let pool = Pool::new(4, 16, 4);
    let [mut ours, mut theirs] = MemoryPort::pair(&pool, 8, 8);
    let mut burst = Burst::with_capacity(0);
    burst.push_frame(numbered(&pool, 7).unwrap());
    burst.push(&[0; 13], FrameMeta::default());
    burst.push(&[0; 12], FrameMeta::default());
    let address = burst.get(0).unwrap().bytes.as_ptr();
    assert_eq!(ours.tx_burst(&mut burst).unwrap(), 3);
    let stats = ours.stats();
    assert_eq!((stats.tx_frames, stats.tx_copied, stats.tx_too_long), (2, 1, 1));
    assert_eq!(theirs.rx_burst(&mut burst).unwrap(), 2);
    assert_eq!(burst.get(0).unwrap().bytes.as_ptr(), address);
}

/// A wire whose chunks are all out takes frames with memory, up to the first that it would have to copy.
#[test]
fn without_a_chunk_no_frame_is_copied() {
    let pool = Pool::new(2, 16, 0);
    let [mut ours, _theirs] = MemoryPort::pair(&pool, 8, 8);
    let mut burst = Burst::with_capacity(0);
    burst.push_frame(numbered(&pool, 0).unwrap());
    burst.push(&[1], FrameMeta::default());
    burst.push_frame(numbered(&pool, 2).unwrap());
    assert_eq!(ours.tx_burst(&mut burst).unwrap(), 1);
    assert_eq!((burst.len(), ours.stats().tx_full), (2, 2));
}

/// One thread sends numbers, one sends them back, both sleep when there is nothing: all come back, in order.
#[test]
fn a_pool_shared_by_threads_gets_everything_back() {
    let pool = Pool::new(64, 64, 16);
    let [mut ours, theirs] = MemoryPort::pair(&pool, 32, 16);
    let bell = Arc::<Bell>::default();
    let mut theirs = theirs.with_bell(&bell);
    thread::scope(|scope| {
        scope.spawn(|| echo(&mut theirs, &bell));
        let (mut next, mut expected) = (0, 0);
        let (mut out, mut back) = (Burst::with_capacity(0), Burst::with_capacity(0));
        while expected < FRAMES {
            let Readiness::Bell(bell) = ours.readiness() else { panic!("it has a bell") };
            let seen = bell.count();
            while next < FRAMES
                && out.len() < 16
                && let Some(frame) = numbered(&pool, next)
            {
                out.push_frame(frame);
                next += 1;
            }
            ours.tx_burst(&mut out).unwrap();
            if ours.rx_burst(&mut back).unwrap() == 0 {
                let Readiness::Bell(bell) = ours.readiness() else { panic!("it has a bell") };
                assert!(bell.wait(seen, Duration::from_secs(60)), "slept through a frame");
            }
            for frame in back.iter() {
                assert_eq!(frame.bytes, expected.to_be_bytes());
                expected += 1;
            }
            back.clear();
        }
    });
    drop((ours, theirs));
    assert_eq!(pool.free(), pool.chunks());
}

/// Sends back all that comes.
fn echo(port: &mut MemoryPort, bell: &Bell) {
    let mut burst = Burst::with_capacity(0);
    let mut done = 0;
    while done < FRAMES {
        let seen = bell.count();
        if port.rx_burst(&mut burst).unwrap() == 0 {
            assert!(bell.wait(seen, Duration::from_secs(60)), "slept through a frame");
        }
        while !burst.is_empty() {
            done += port.tx_burst(&mut burst).unwrap() as u64;
        }
    }
}
