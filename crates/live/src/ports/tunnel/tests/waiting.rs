//! Packets for a peer that has no session yet.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use pktio::{Burst, Lost};

use super::super::waiting::WAITING;
use super::ends::{Came, Pair, assert_whole, raw};
use super::packets::ping;

/// After that what is waited for does not come.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn the_first_ones_wait_and_come_in_order_and_later_ones_are_lost() {
    for is_v6 in [false, true] {
        let mut pair = Pair::new(is_v6);
        let packets: Vec<_> = (0..WAITING as u16 + 5).map(|at| ping(1, 2, at)).collect();
        let (first, second) = packets.split_at(4);
        let offered = pair.a.send_packets(first);
        assert_eq!((offered.sent, offered.waiting, offered.lost), (0, 4, vec![]));
        let offered = pair.a.send_packets(second);
        assert_eq!((offered.sent, offered.waiting), (0, WAITING - 4));
        assert_eq!(offered.lost, vec![Lost::NoSession; 5]);
        pair.shake_hands();
        assert_eq!(pair.b.receive_packets(WAITING).packets(), packets[..WAITING]);
        let after = [ping(1, 2, 100)];
        assert_eq!(pair.a.send_packets(&after).sent, 1);
        assert_eq!(pair.b.receive_packets(1).packets(), after);
        assert_whole(&pair.a.worker.pool, 0);
    }
}

/// The end that answered may have something to say as well: that goes once the other has shown that it has the keys.
#[test]
fn what_waits_at_the_end_that_answers_goes_too() {
    let mut pair = Pair::new(false);
    // Nobody is where it sends its own initiation.
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let id = *pair.b.site.lock().peers.keys().next().unwrap();
    pair.b.site.lock().tunnel.set_endpoint(id, nobody.local_addr().unwrap());
    let [there, back] = [[ping(1, 2, 1)], [ping(2, 1, 2)]];
    assert_eq!(pair.a.send_packets(&there).waiting, 1);
    assert_eq!(pair.b.send_packets(&back).waiting, 1);
    let (mut at_a, mut at_b) = (Came::default(), Came::default());
    let start = Instant::now();
    while at_a.frames.is_empty() || at_b.frames.is_empty() {
        assert!(start.elapsed() < PATIENCE, "{} and {}", at_a.frames.len(), at_b.frames.len());
        pair.a.receive(&mut at_a);
        pair.b.receive(&mut at_b);
    }
    assert_eq!((at_a.packets(), at_b.packets()), (back.to_vec(), there.to_vec()));
}

/// A session that another worker made between a packet's looking for one and its beginning to wait.
#[test]
fn nothing_waits_for_a_session_that_is_there() {
    let mut pair = Pair::new(false);
    assert_eq!(pair.a.send_packets(&[ping(1, 2, 0)]).waiting, 1);
    let (late, mut burst) = (ping(1, 2, 1), Burst::new());
    burst.push(&late, raw(late.len()));
    pair.a.worker.plan(&burst);
    pair.shake_hands();
    assert_eq!(pair.a.worker.carry_out(&mut burst, &mut |why, _| panic!("{why:?}")), 1);
    assert_eq!(pair.b.receive_packets(2).packets(), [ping(1, 2, 0), late]);
}

#[test]
fn what_waits_for_a_peer_that_is_removed_goes_back_to_its_memory() {
    let mut pair = Pair::new(false);
    assert_eq!(pair.a.send_packets(&[ping(1, 2, 0)]).waiting, 1);
    assert!(pair.a.site.remove_peer("peer2"));
    assert_whole(&pair.a.worker.pool, 0);
    assert_eq!(pair.a.send_packets(&[ping(1, 2, 0)]).lost, [Lost::NoPeer]);
}
