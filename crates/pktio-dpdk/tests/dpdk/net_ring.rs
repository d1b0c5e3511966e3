//! `net_ring`: what is sent is received. Held to a queue of plain bytes.

use std::collections::VecDeque;
use std::time::Duration;

use pktio::{
    Burst, ChecksumState, FrameBuf, FrameMeta, LinkType, Pool, Port, SegmentKind, Segments, VlanTag,
};
use pktio_dpdk::{DpdkPort, Eal};

use crate::child::{Draw, open, with_devices};

const ROUNDS: usize = 20_000;

fn at_once(eal: &Eal) -> DpdkPort {
    open(eal, "net_ring0", |config| config.drain = Duration::ZERO)
}

#[test]
fn frames_come_as_they_were_sent_in_order_from_any_memory() {
    let test = "net_ring::frames_come_as_they_were_sent_in_order_from_any_memory";
    with_devices(test, &["net_ring0"], |eal| {
        let mut port = open(eal, "net_ring0", |config| config.drain = Duration::MAX);
        let mbufs = port.mbufs();
        let pool = Pool::new(64, 2048, 64);
        let (mut draw, mut model) = (Draw(7), VecDeque::new());
        let mut held = Burst::new();
        let mut copied = 0;
        for _ in 0..ROUNDS {
            if draw.below(2) == 0 {
                port.rx_burst(&mut held).unwrap();
                for frame in held.iter() {
                    assert_eq!(Some(frame.bytes), model.pop_front().as_deref());
                }
                for frame in held.iter_mut() {
                    frame.bytes[draw.below(14)] ^= 0x55;
                }
                held.retain(|_| draw.below(3) > 0);
                (0..held.len()).for_each(|at| move_start(&mut held, at, &mut draw));
            }
            for _ in 0..draw.below(8) {
                let length = 14 + draw.below(1500);
                copied += 1;
                push(&mut held, &draw.bytes(length), draw.below(2) == 0, &pool);
            }
            let offered: Vec<Vec<u8>> = held.iter().map(|frame| frame.bytes.to_vec()).collect();
            let taken = port.tx_burst(&mut held).unwrap();
            assert_eq!(held.len(), offered.len() - taken);
            copied -= held.iter().filter(|frame| frame.meta.number == NEW).count() as u64;
            model.extend(offered.into_iter().take(taken));
            held.clear();
        }
        let stats = port.stats();
        assert_eq!((stats.tx_refused, stats.tx_too_long, stats.rx_lost), (0, 0, 0));
        assert_eq!(stats.tx_copied, copied);
        assert!(stats.rx_frames > ROUNDS as u64, "{stats:?}");
        assert_eq!(pool.free(), pool.chunks());
        while port.rx_burst(&mut held).unwrap() > 0 {
            for frame in held.iter() {
                assert_eq!(Some(frame.bytes), model.pop_front().as_deref());
            }
        }
        // What is still collected is sent as the port closes, and stays in the ring.
        drop((port, held));
        assert_eq!(mbufs.free(), mbufs.all() - model.len());
    });
}

/// Frames may begin elsewhere in their memory than they came.
fn move_start(burst: &mut Burst, at: usize, draw: &mut Draw) {
    match burst.get(at).map_or(0, |frame| frame.bytes.len()) {
        100.. => burst.trim_front(at, draw.below(20)),
        _ => {
            if let Some(frame) = burst.grow_front(at, draw.below(20)) {
                frame.bytes[0] = draw.below(256) as u8;
            }
        }
    }
}

/// In `number`, of frames that were not received.
const NEW: u64 = 0;

fn push(burst: &mut Burst, bytes: &[u8], has_memory: bool, pool: &Pool) {
    let meta = FrameMeta {
        number: NEW,
        link_type: LinkType::ETHERNET,
        wire_length: bytes.len() as u32,
        ..FrameMeta::default()
    };
    match pool.take().filter(|_| has_memory) {
        Some(mut frame) => {
            assert!(frame.extend(bytes));
            frame.meta = meta;
            burst.push_frame(frame);
        }
        None => burst.push(bytes, meta),
    }
}

#[test]
fn frames_are_collected_until_they_are_enough_or_old() {
    let test = "net_ring::frames_are_collected_until_they_are_enough_or_old";
    with_devices(test, &["net_ring0"], |eal| {
        let mut port = open(eal, "net_ring0", |config| {
            config.tx_burst = 8;
            config.drain = Duration::MAX;
        });
        let send = |port: &mut DpdkPort, count| {
            let mut burst = Burst::new();
            (0..count).for_each(|_| burst.push(&[1; 60], FrameMeta::default()));
            assert_eq!(port.tx_burst(&mut burst).unwrap(), count);
            (port.stats().tx_frames, port.rx_burst(&mut Burst::new()).unwrap())
        };
        assert_eq!(send(&mut port, 7), (0, 0));
        assert_eq!(send(&mut port, 2), (8, 8));
        assert_eq!(send(&mut port, 30), (24 + 8, 24));
        drop(port);
        assert!(eal.devices().is_empty());
    });
}

#[test]
fn the_first_call_after_the_drain_time_sends_what_there_is() {
    let test = "net_ring::the_first_call_after_the_drain_time_sends_what_there_is";
    with_devices(test, &["net_ring0"], |eal| {
        let mut port = at_once(eal);
        let mut burst = Burst::new();
        burst.push(&[1; 60], FrameMeta::default());
        port.tx_burst(&mut burst).unwrap();
        assert_eq!(port.rx_burst(&mut burst).unwrap(), 1);
    });
}

#[test]
fn a_ring_that_is_full_takes_no_more_and_loses_none() {
    let test = "net_ring::a_ring_that_is_full_takes_no_more_and_loses_none";
    with_devices(test, &["net_ring0"], |eal| {
        let mut port = at_once(eal);
        let mbufs = port.mbufs();
        let mut burst = Burst::new();
        (0..5000_u32).for_each(|at| {
            burst.push(&[at.to_be_bytes(); 16].concat(), FrameMeta::default());
        });
        let taken = port.tx_burst(&mut burst).unwrap();
        assert!((1000..5000).contains(&taken), "{taken}");
        assert_eq!((burst.len(), port.stats().tx_full), (5000 - taken, 5000 - taken as u64));
        assert_eq!(burst.get(0).unwrap().bytes[..4], (taken as u32).to_be_bytes());
        let (mut came, mut received) = (0_u32, Burst::new());
        while port.rx_burst(&mut received).unwrap() > 0 {
            for frame in received.iter() {
                assert_eq!(frame.bytes[..4], came.to_be_bytes());
                came += 1;
            }
        }
        assert_eq!(came as usize, taken);
        drop((port, received));
        assert_eq!(mbufs.free(), mbufs.all());
    });
}

#[test]
fn tags_are_put_back_and_what_no_driver_finishes_is_refused() {
    let test = "net_ring::tags_are_put_back_and_what_no_driver_finishes_is_refused";
    with_devices(test, &["net_ring0"], |eal| {
        let mut port = at_once(eal);
        let pool = Pool::new(8, 4096, 64);
        let frame = |bytes: &[u8], tell: fn(&mut FrameBuf)| {
            let mut frame = pool.take().unwrap();
            assert!(frame.extend(bytes));
            tell(&mut frame);
            frame
        };
        let mut burst = Burst::new();
        burst.push_frame(frame(&[7; 60], |frame| {
            frame.live_mut().vlan = Some(VlanTag { tci: 0x2005, tpid: 0x88a8 });
        }));
        burst.push_frame(frame(&[7; 60], |frame| {
            frame.live_mut().checksum = ChecksumState::Unfinished { start: 34, offset: 16 };
        }));
        burst.push_frame(frame(&[7; 3000], |frame| {
            let segments = Segments { size: 1448, kind: SegmentKind::TcpV4 };
            frame.live_mut().segments = Some(segments);
        }));
        burst.push_frame(frame(&[7; 1600], |_| {}));
        burst.push_frame(frame(&[7; 12], |_| {}));
        assert_eq!(port.tx_burst(&mut burst).unwrap(), 5);
        assert_eq!(port.rx_burst(&mut burst).unwrap(), 1);
        let expected = [&[7; 12][..], &[0x88, 0xa8, 0x20, 0x05], &[7; 48]].concat();
        assert_eq!(burst.get(0).unwrap().bytes, expected);
        let stats = port.stats();
        assert_eq!((stats.tx_frames, stats.tx_too_long, stats.tx_refused), (1, 2, 2));
        assert_eq!(pool.free(), pool.chunks());
    });
}
