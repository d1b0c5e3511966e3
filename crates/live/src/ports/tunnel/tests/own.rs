//! Sockets of peers: a peer is received on its own socket, wherever it moves, and a flood of the port fills another
//! one.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ::tunnel::message::{INITIATION, SHORTEST_DATA};
use pktio::{Burst, Port};

use super::super::outer::OUTER;
use super::super::own::STEADY;
use super::ends::{Came, End, Pair, peer, raw, settings};
use super::packets::ping;

/// Whether messages wait at the main socket, and the peers' sockets at which some wait.
fn waiting(end: &End) -> (bool, Vec<usize>) {
    let mut ready = super::super::own::Ready::default();
    end.site.own.find_ready(&mut ready).unwrap();
    (ready.is_main, ready.own)
}

/// Makes the first end send, and the other receive it on these sockets.
#[track_caller]
fn comes_by(from: &mut End, to: &mut End, (is_main, own): (bool, &[usize]), number: u16) {
    from.send_packets(&[ping(1, 2, number)]);
    to.wait();
    assert_eq!(waiting(to), (is_main, own.to_vec()));
    assert_eq!(to.receive_packets(1).packets(), [ping(1, 2, number)]);
    assert_eq!(waiting(to), (false, Vec::new()));
}

#[test]
fn a_peer_is_received_by_its_own_socket() {
    for is_v6 in [false, true] {
        let mut pair = Pair::established(is_v6);
        comes_by(&mut pair.a, &mut pair.b, (true, &[]), 1);
        pair.b.site.follow_peers();
        for number in 2..5 {
            comes_by(&mut pair.a, &mut pair.b, (false, &[0]), number);
        }
        // Others are not.
        let stranger = UdpSocket::bind("127.0.0.2:0").unwrap();
        let place = SocketAddr::from(([127, 0, 0, 1], pair.b.site.socket.port()));
        stranger.send_to(b"noise", place).unwrap();
        pair.b.wait();
        assert_eq!(waiting(&pair.b), (true, vec![]));
    }
}

#[test]
fn a_socket_follows_a_peer_that_moves() {
    let mut pair = Pair::established(false);
    pair.b.site.follow_peers();
    comes_by(&mut pair.a, &mut pair.b, (false, &[0]), 1);
    // The same peer, by another socket: its first datagrams are a stranger's.
    let mut moved = End::new(&settings(1, vec![peer(2, Some(pair.b.place(false)))]));
    std::mem::swap(&mut pair.a, &mut moved);
    // Initiations of a peer that come sooner after each other are not answered.
    std::thread::sleep(std::time::Duration::from_millis(100));
    pair.establish();
    for number in 1..STEADY {
        comes_by(&mut pair.a, &mut pair.b, (true, &[]), number as u16);
        pair.b.site.follow_peers();
    }
    comes_by(&mut pair.a, &mut pair.b, (true, &[]), 100);
    pair.b.site.follow_peers();
    comes_by(&mut pair.a, &mut pair.b, (false, &[0]), 101);
    // Where it was, nobody is listened to any more but by the main socket.
    moved.send_packets(&[ping(1, 2, 102)]);
    pair.b.wait();
    assert_eq!(waiting(&pair.b), (true, vec![]));
}

/// Every second datagram of one session leaves through another socket.
#[test]
fn a_socket_stays_where_a_peer_is_that_is_at_two_places_in_turn() {
    let mut pair = Pair::established(false);
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    pair.b.site.follow_peers();
    let place = pair.b.place(false);
    for number in 0..3 * STEADY as u16 {
        let (packet, is_astray) = (ping(1, 2, number), number % 2 == 1);
        if is_astray {
            let mut burst = Burst::new();
            burst.push(&packet, raw(packet.len()));
            pair.a.seal(&mut burst);
            other.send_to(&burst.get(0).unwrap().bytes[OUTER..], place).unwrap();
        } else {
            pair.a.send_packets(&[packet]);
        }
        pair.b.wait();
        let expected = if is_astray { (true, vec![]) } else { (false, vec![0]) };
        assert_eq!(waiting(&pair.b), expected, "packet {number}");
        assert_eq!(pair.b.receive_packets(1).packets(), [ping(1, 2, number)]);
        pair.b.site.follow_peers();
    }
}

#[test]
fn a_socket_of_a_peer_that_is_removed_is_another_s() {
    let mut pair = Pair::established(false);
    pair.b.site.follow_peers();
    assert!(pair.b.site.remove_peer("peer1"));
    pair.b.site.follow_peers();
    // What it sends is still received, and refused.
    pair.a.send_packets(&[ping(1, 2, 1)]);
    pair.b.wait();
    let mut came = Came::default();
    pair.b.receive(&mut came);
    assert_eq!((came.frames.len(), came.lost.len()), (0, 1));
    pair.b.site.add_peer(&peer(3, None)).unwrap();
    let mut other = End::new(&settings(3, vec![peer(2, Some(pair.b.place(false)))]));
    let first = [ping(3, 2, 1)];
    other.send_packets(&first);
    for end in [&mut pair.b, &mut other] {
        end.wait();
        end.receive(&mut came);
    }
    pair.b.receive_packets(1);
    pair.b.site.follow_peers();
    other.send_packets(&[ping(3, 2, 2)]);
    pair.b.wait();
    assert_eq!(waiting(&pair.b), (false, vec![0]));
    // There is one socket, and the peer that was there is a stranger.
    pair.a.send_packets(&[ping(1, 2, 2)]);
    assert_eq!(waiting(&pair.b), (true, vec![0]));
}

/// The main queue is full before the session has anything to say, and stays so.
#[test]
fn a_flood_costs_a_session_nothing() {
    let mut pair = Pair::established(false);
    pair.b.site.follow_peers();
    pair.b.site.socket.set_buffer(64 << 10).unwrap();
    let stranger = UdpSocket::bind("127.0.0.2:0").unwrap();
    let (place, site) = (pair.b.place(false), Arc::clone(&pair.b.site));
    let mut data = vec![0_u8; SHORTEST_DATA + 1_000];
    data[..4].copy_from_slice(&[0x84, 1, 0, 0]);
    let mut initiation = [0_u8; INITIATION];
    initiation[..4].copy_from_slice(&[0x81, 1, 0, 0]);
    let flood = || {
        let before = site.overruns();
        while site.overruns() == before {
            for noise in [&data[..], &initiation, b"noise"] {
                stranger.send_to(noise, place).unwrap();
            }
        }
    };
    let packets: Vec<_> = (0..100).map(|number| ping(1, 2, number)).collect();
    let mut came = Came::default();
    flood();
    for some in packets.chunks(10) {
        pair.a.send_packets(some);
        pair.b.receive(&mut came);
        flood();
    }
    while waiting(&pair.b) != (false, vec![]) {
        pair.b.receive(&mut came);
    }
    assert!(came.packets() == packets, "{} of {}", came.packets().len(), packets.len());
    let by_peers: u32 = site.own.iter().map(|socket| socket.overruns().unwrap()).sum();
    assert!(by_peers == 0 && pair.b.port.stats().rx_lost > 0, "the flood is counted");
    assert!(pair.b.site.refused.load(Ordering::Relaxed) > 0);
    let mut burst = Burst::new();
    assert_eq!(pair.b.port.rx_burst(&mut burst).unwrap(), 0);
}
