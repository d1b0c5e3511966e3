//! What a port does when its device has several queues, is another's, is deleted, is down, or its frames are no
//! packets.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use pktio::{Burst, FrameMeta, LinkType, Pool, Port, PortError, TunConfig, TunPort};

use super::joined::{config, pool, set_up};
use super::namespace::Namespace;

/// Ports of a new device in a new namespace.
fn open(queues: u16, offload: bool, pool: &Pool) -> Option<(Namespace, Vec<TunPort>)> {
    let namespace = Namespace::new()?;
    let pool = pool.clone();
    let ports = namespace.run(move || TunPort::open(&config(queues, offload), &pool)).unwrap();
    set_up(&namespace, 1, 1400);
    Some((namespace, ports))
}

/// Receives until `wanted` frames to this UDP port have come; each with its first byte of payload and its queue.
fn receive(ports: &mut [TunPort], wanted: usize) -> Vec<(u8, u16)> {
    let began = Instant::now();
    let mut burst = Burst::with_capacity(0);
    let mut found = Vec::new();
    while found.len() < wanted && began.elapsed() < Duration::from_secs(20) {
        for port in &mut *ports {
            port.rx_burst(&mut burst).unwrap();
            for (index, frame) in burst.iter().enumerate() {
                if frame.bytes.len() == 29 && frame.bytes[9] == 17 {
                    assert_eq!(frame.meta.link_type, LinkType::RAW);
                    assert_eq!(frame.meta.wire_length, 29);
                    found.push((frame.bytes[28], burst.live(index).unwrap().queue));
                }
            }
        }
    }
    found
}

#[test]
fn each_queue_receives_and_says_so() {
    let pool = pool(200);
    let Some((namespace, mut ports)) = open(4, false, &pool) else { return };
    assert_eq!(ports.len(), 4);
    namespace.run(|| {
        for flow in 0..100_u8 {
            let socket = UdpSocket::bind("10.77.0.1:0").unwrap();
            socket.send_to(&[flow], "10.77.0.9:9").unwrap();
        }
    });
    let mut found = receive(&mut ports, 100);
    for queue in 0..4 {
        assert!(found.iter().any(|(_, of)| *of == queue), "queue {queue}: {found:?}");
    }
    found.sort_unstable();
    assert!(found.iter().map(|(flow, _)| *flow).eq(0..100), "{found:?}");
    let index = namespace.command("ip -o link show dev tun0");
    let index: u32 = index.split(':').next().unwrap().parse().unwrap();
    namespace.run(|| UdpSocket::bind("10.77.0.1:0").unwrap().send_to(&[1], "10.77.0.9:9").unwrap());
    let mut burst = Burst::with_capacity(0);
    while burst.is_empty() {
        ports.iter_mut().any(|port| port.rx_burst(&mut burst).unwrap() > 0);
    }
    assert_eq!(burst.live(0).unwrap().ifindex.unwrap().get(), index);
    drop((ports, burst));
    assert_eq!(pool.free(), pool.chunks(), "a closed port keeps no chunk");
    // A program that a concurrent test starts holds on to its descriptors until it runs.
    let is_gone = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        !namespace.command("ip -o link").contains("tun0")
    });
    assert!(is_gone, "the device goes with its ports");
}

#[test]
fn a_deleted_device_is_an_error_with_its_name() {
    let Some((namespace, mut ports)) = open(1, true, &pool(64)) else { return };
    let mut burst = Burst::with_capacity(0);
    namespace.command("ip link del tun0");
    let error = ports[0].rx_burst(&mut burst).unwrap_err();
    assert!(matches!(&error, PortError::Gone { name } if name == "tun0"), "{error:?}");
    assert_eq!(error.to_string(), "tun0: the interface is gone");
    burst.push(&[0x45; 40], FrameMeta::default());
    let error = ports[0].tx_burst(&mut burst).unwrap_err();
    assert!(matches!(error, PortError::Gone { .. }), "{error:?}");
    assert_eq!((burst.len(), ports[0].stats().tx_full), (1, 1));
}

#[test]
fn what_is_no_packet_is_refused_and_counted() {
    let Some((namespace, mut ports)) = open(1, false, &pool(64)) else { return };
    let mut burst = Burst::with_capacity(0);
    let echo = packet::craft::Craft {
        ethernet: None,
        ..packet::craft::Craft::new(
            packet::craft::Addresses::V4 { source: [10, 77, 0, 2], destination: [10, 77, 0, 1] },
            packet::craft::Message::Icmp { kind: 8, code: 0, id: 1, sequence: 1 },
        )
    };
    for bytes in [&[][..], &[0x15; 40], &echo.frame()] {
        burst.push(bytes, FrameMeta::default());
    }
    assert_eq!(ports[0].tx_burst(&mut burst).unwrap(), 3);
    let stats = ports[0].stats();
    assert_eq!((stats.tx_frames, stats.tx_bytes, stats.tx_refused), (1, 28, 2));
    namespace.command("ip link set tun0 down");
    burst.push(&echo.frame(), FrameMeta::default());
    assert_eq!(ports[0].tx_burst(&mut burst).unwrap(), 1);
    assert_eq!((ports[0].stats().tx_frames, ports[0].stats().tx_refused), (1, 3));
}

/// Chunks of which some frames need the last byte, and others one more.
#[test]
fn a_frame_longer_than_its_chunk_is_lost_and_counted() {
    let pool = Pool::new(64, 16 + 29, 16);
    let Some((namespace, mut ports)) = open(1, false, &pool) else { return };
    namespace.run(|| {
        let socket = UdpSocket::bind("10.77.0.1:0").unwrap();
        for length in [1, 2, 1, 500] {
            socket.send_to(&vec![7; length], "10.77.0.9:9").unwrap();
        }
    });
    assert_eq!(receive(&mut ports, 2), [(7, 0); 2]);
    let mut burst = Burst::with_capacity(0);
    while ports[0].rx_burst(&mut burst).unwrap() > 0 {}
    // What the kernel says of itself (MLD, router solicitations) is longer, too.
    assert!(ports[0].stats().rx_lost >= 2, "{:?}", ports[0].stats());
    assert_eq!(ports[0].stats().rx_frames, 2);
}

#[test]
fn a_device_made_for_one_queue_can_be_opened_and_another_s_cannot() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.command("ip tuntap add dev tun0 mode tun");
    let pool = pool(8);
    let opened = |queues, name: &str| {
        let (pool, name) = (pool.clone(), name.to_string());
        namespace.run(move || TunPort::open(&TunConfig { name, ..config(queues, true) }, &pool))
    };
    let ports = opened(1, "tun0").unwrap();
    assert_eq!(ports[0].name(), "tun0");
    assert!(ports[0].offloads().checksum && ports[0].offloads().tcp);
    drop(ports);
    let message = |result: Result<Vec<TunPort>, PortError>| result.unwrap_err().to_string();
    assert!(message(opened(2, "tun0")).starts_with("tun0: "));
    assert!(message(opened(1, "lo")).starts_with("lo: "));
    assert_eq!(message(opened(1, "sixteen-bytes-ab")), "sixteen-bytes-ab: longer than 15 bytes");
    let named = opened(2, "tamis%d").unwrap();
    assert_eq!([named[0].name(), named[1].name()], ["tamis0"; 2]);
}
