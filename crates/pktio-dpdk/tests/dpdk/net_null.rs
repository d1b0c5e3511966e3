//! `net_null`: receives 64-byte frames without end, and discards frames that are sent.

use std::thread;

use pktio::{Burst, LinkType, Port};
use pktio_dpdk::{DpdkPort, Eal, EalError};

use crate::child::{open, with_devices};

#[test]
fn what_comes_leaves_and_no_mbuf_is_lost_over_ten_million_frames() {
    let test = "net_null::what_comes_leaves_and_no_mbuf_is_lost_over_ten_million_frames";
    with_devices(test, &["net_null0,copy=1", "net_null1"], |eal| {
        let mut from = open(eal, "net_null0", |_| {});
        let mut to = open(eal, "net_null1", |_| {});
        let mbufs = from.mbufs();
        assert_eq!(mbufs.free(), mbufs.all());
        let mut burst = Burst::with_capacity(0);
        let mut passed = 0;
        while passed < 10_000_000 {
            passed += from.rx_burst(&mut burst).unwrap() as u64;
            assert!(burst.iter().all(|frame| frame.bytes.len() == 64));
            // Every other burst is dropped.
            if passed / 64 % 2 == 0 {
                burst.clear();
            }
            to.tx_burst(&mut burst).unwrap();
            assert!(burst.is_empty());
        }
        let (came, left) = (from.stats(), to.stats());
        assert_eq!((came.rx_frames, came.rx_bytes, came.rx_lost), (passed, 64 * passed, 0));
        assert_eq!(left.tx_bytes, 64 * left.tx_frames);
        assert_eq!((left.tx_copied, left.tx_full, left.tx_refused), (0, 0, 0));
        assert!(left.tx_frames > passed / 3);
        drop((from, to, burst));
        assert_eq!(mbufs.free(), mbufs.all());
    });
}

#[test]
fn frames_outlive_their_port_and_are_dropped_on_any_thread() {
    let test = "net_null::frames_outlive_their_port_and_are_dropped_on_any_thread";
    with_devices(test, &["net_null0"], |eal| {
        let mut port = open(eal, "net_null0", |config| config.rx_burst = 100);
        let mbufs = port.mbufs();
        let mut burst = Burst::with_capacity(0);
        assert_eq!(port.rx_burst(&mut burst).unwrap(), 100);
        let frame = burst.get(0).unwrap();
        assert_eq!((frame.meta.link_type, frame.meta.number), (LinkType::ETHERNET, 1));
        drop(port);
        assert_eq!(mbufs.free(), mbufs.all() - 100);
        let others = mbufs.clone();
        thread::spawn(move || {
            assert!(burst.range_mut(0..100).all(|frame| {
                frame.bytes.fill(1);
                frame.bytes.iter().all(|byte| *byte == 1)
            }));
            drop(burst);
            assert_eq!(others.free(), others.all());
        })
        .join()
        .unwrap();
    });
}

#[test]
fn a_pool_that_is_out_receives_nothing_until_frames_come_back() {
    let test = "net_null::a_pool_that_is_out_receives_nothing_until_frames_come_back";
    with_devices(test, &["net_null0"], |eal| {
        let mut port = open(eal, "net_null0", |_| {});
        let mut held = Vec::new();
        loop {
            let mut burst = Burst::with_capacity(0);
            if port.rx_burst(&mut burst).unwrap() == 0 {
                break;
            }
            held.push(burst);
        }
        assert!(held.len() * 64 > port.mbufs().all() - 512 - 64);
        drop(held);
        assert_eq!(port.rx_burst(&mut Burst::with_capacity(0)).unwrap(), 64);
    });
}

#[test]
fn each_queue_is_a_port() {
    let test = "net_null::each_queue_is_a_port";
    with_devices(test, &["net_null0"], |eal| {
        // DPDK's null devices say that they steer flows, and have as many queues as processors.
        let mut config = pktio_dpdk::DpdkConfig::new("net_null0");
        config.queues = 2;
        let ports = DpdkPort::open(eal, &config).unwrap();
        let numbers: Vec<u16> = ports
            .into_iter()
            .map(|mut port| {
                let mut burst = Burst::with_capacity(0);
                assert!(port.rx_burst(&mut burst).unwrap() > 0);
                burst.live(0).unwrap().queue
            })
            .collect();
        assert_eq!(numbers, [0, 1]);
    });
}

#[test]
fn the_eal_starts_once_and_names_its_devices() {
    with_devices("net_null::the_eal_starts_once_and_names_its_devices", &["net_null7"], |eal| {
        assert!(matches!(Eal::init("tamis", &[]), Err(EalError::Again)));
        assert_eq!(eal.devices(), ["net_null7"]);
        let config = pktio_dpdk::DpdkConfig::new("net_null0");
        let refused = DpdkPort::open(eal, &config).unwrap_err().to_string();
        assert_eq!(refused, "net_null0: no such device; the EAL has: net_null7");
    });
}
