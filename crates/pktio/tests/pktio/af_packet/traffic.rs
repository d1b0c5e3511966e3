//! Real traffic between two kernels by way of two ports: every byte arrives, whatever the kernel leaves unfinished.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;

use pktio::VlanTag;

use super::forwarder::{Between, Forwarder, Seen};
use crate::tun::sys::set_udp_segment;
use crate::tun::traffic::{PATIENCE, exchange, stream};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
const MTU: usize = 1500;

fn address(is_v4: bool, host: u8) -> SocketAddr {
    let v4 = || IpAddr::V4(Ipv4Addr::new(10, 77, 0, host));
    let v6 = || IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, host.into()));
    SocketAddr::new(if is_v4 { v4() } else { v6() }, 5001)
}

/// A stream each way, compared byte for byte; what each namespace between the ends saw.
fn tcp(between: Between, is_offloaded: bool, is_v4: bool) -> Option<Vec<Seen>> {
    let forwarder = Forwarder::new(between, is_offloaded)?;
    forwarder.set_up();
    let listener = forwarder.ends[1].run(move || TcpListener::bind(address(is_v4, 2)).unwrap());
    let server = thread::spawn(move || {
        let (connection, _) = listener.accept().unwrap();
        exchange(&connection, stream(2), &stream(1));
    });
    let connection = forwarder.ends[0].run(move || TcpStream::connect(address(is_v4, 2)).unwrap());
    exchange(&connection, stream(1), &stream(2));
    server.join().unwrap();
    let seen = forwarder.end();
    for seen in &seen {
        for stats in seen.stats {
            assert_eq!((stats.rx_lost, stats.tx_too_long, stats.tx_refused), (0, 0, 0), "{seen:?}");
        }
        let [near, far] = seen.stats;
        assert_eq!((near.rx_frames, far.rx_frames), (far.tx_frames, near.tx_frames));
    }
    Some(seen)
}

fn has_ethtool() -> bool {
    let is_there = Command::new("ethtool").arg("--version").output().is_ok();
    if !is_there {
        eprintln!("SKIPPED: no ethtool, so offloads cannot be switched off");
    }
    is_there
}

#[test]
fn tcp_arrives_in_superframes_with_unfinished_checksums() {
    for is_v4 in [true, false] {
        let Some(seen) = tcp(Between::One, true, is_v4) else { return };
        let [seen] = seen[..] else { panic!("{seen:?}") };
        assert!(seen.superframes > 0 && seen.unfinished > seen.superframes, "{seen:?}");
        assert!(seen.longest > ETHERNET + MTU, "{seen:?}");
    }
}

#[test]
fn tcp_arrives_when_the_kernel_finishes_its_frames() {
    for is_v4 in [true, false] {
        if !has_ethtool() {
            return;
        }
        let Some(seen) = tcp(Between::One, false, is_v4) else { return };
        let [seen] = seen[..] else { panic!("{seen:?}") };
        assert_eq!((seen.superframes, seen.unfinished), (0, 0), "{seen:?}");
        assert_eq!(seen.longest, ETHERNET + MTU);
    }
}

/// Each tag is put back before what its frame's checksum covers, and before what is cut: by the device, or first.
#[test]
fn tcp_arrives_by_way_of_a_tagged_wire() {
    for (tpid, is_finished, is_v4) in
        [(0x8100, false, true), (0x8100, true, false), (0x88a8, false, false), (0x88a8, true, true)]
    {
        if is_finished && !has_ethtool() {
            return;
        }
        let tag = VlanTag { tci: 0x6005, tpid };
        let Some(seen) = tcp(Between::Tagged(tag, is_finished), true, is_v4) else { return };
        for seen in seen {
            assert!(seen.superframes > 0 && seen.longest > ETHERNET + MTU, "{seen:?}");
        }
    }
}

#[test]
fn datagrams_sent_at_once_arrive_one_by_one() {
    let Some(forwarder) = Forwarder::new(Between::One, true) else { return };
    forwarder.set_up();
    let receiver = forwarder.ends[1].run(|| UdpSocket::bind(address(true, 2)).unwrap());
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let sender = forwarder.ends[0].run(|| UdpSocket::bind(address(true, 1)).unwrap());
    sender.connect(address(true, 2)).unwrap();
    if let Err(error) = set_udp_segment(&sender, 1000) {
        eprintln!("SKIPPED: UDP_SEGMENT: {error}");
        return;
    }
    let payload = &stream(3)[..30_500];
    assert_eq!(sender.send(payload).unwrap(), payload.len());
    for expected in payload.chunks(1000) {
        let mut room = [0; 2000];
        let length = receiver.recv(&mut room).unwrap();
        assert!(&room[..length] == expected, "{length} bytes of {}", expected.len());
    }
    assert!(forwarder.end()[0].superframes > 0);
}
