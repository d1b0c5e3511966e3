//! Signals between packets inside and outside, and losses with their reasons.

use std::net::IpAddr;

use packet::craft::{Addresses, Craft, Message};
use packet::{checksum, tcp};
use pktio::{Burst, FrameMeta, LinkType, Lost, Port};

use super::super::outer::{OUTER, Outer};
use super::ends::{Came, End, MTU, Pair, inside, peer, raw, settings};
use super::narrow::narrow;
use super::packets::{datagram, from_to, ping};
use crate::config::tunnel::Dscp;

/// A segment that begins a connection, and announces this maximum segment size.
fn syn(from: u8, to: u8, is_v6: bool, mss: u16) -> Vec<u8> {
    let mut header = vec![0; 24];
    header[..4].copy_from_slice(&[0x9c, 0x40, 0, 80]);
    (header[12], header[13]) = (6 << 4, 2);
    header[20..22].copy_from_slice(&[2, 4]);
    header[22..].copy_from_slice(&mss.to_be_bytes());
    let [source, destination] = [from, to].map(|of| inside(of, 1, is_v6));
    let addresses = Addresses::new(source, destination).unwrap();
    let message = Message::Other { protocol: tcp::PROTOCOL, header };
    let mut packet = Craft { ethernet: None, ..Craft::new(addresses, message) }.frame();
    let sum = !summed(&packet);
    let at = packet.len() - 24;
    packet[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// The sum of a segment without payload, and of its pseudo header.
fn summed(packet: &[u8]) -> u16 {
    let at = packet.len() - 24;
    let v6 = |from: usize| packet[from..from + 16].try_into().unwrap();
    let v4 = |from: usize| packet[from..from + 4].try_into().unwrap();
    let pseudo = match at {
        40 => checksum::pseudo_v6(v6(8), v6(24), tcp::PROTOCOL, 24),
        _ => checksum::pseudo_v4(v4(12), v4(16), tcp::PROTOCOL, 24),
    };
    checksum::add(pseudo, checksum::sum(&packet[at..]))
}

fn mss(packet: &[u8]) -> u16 {
    let [.., high, low] = packet else { panic!("no segment") };
    u16::from_be_bytes([*high, *low])
}

#[test]
fn connections_learn_of_the_path_both_ways() {
    let mut pair = Pair::established(false);
    let whole = MTU - 40;
    let come = |from: &mut End, to: &mut End, packet: Vec<u8>| {
        from.send_packets(&[packet]);
        let came = to.receive_packets(1).packets().remove(0);
        assert_eq!(summed(&came), 0xffff);
        mss(&came)
    };
    let Pair { a, b } = &mut pair;
    assert_eq!(come(a, b, syn(1, 2, false, 1_460)), whole);
    assert_eq!(come(a, b, syn(1, 2, false, 500)), 500);
    let most = narrow(a);
    assert_eq!(come(a, b, syn(1, 2, false, 1_460)), most - 40);
    assert_eq!(come(b, a, syn(2, 1, false, 1_460)), most - 40);
    assert_eq!(come(a, b, syn(1, 2, true, 1_440)), most - 60);
    assert_eq!(come(b, a, syn(2, 1, true, 1_440)), most - 60);
}

/// The marks that arrive of a packet with this TOS byte, if it met `outside` on its way.
fn marked(pair: &mut Pair, tos: u8, outside: Option<u8>) -> (u8, Result<u8, Lost>) {
    let packet = Craft { tos, ..datagram(1, 2, false, 10) }.frame();
    pair.a.send_packets(&[packet]);
    pair.b.wait();
    let mut burst = Burst::new();
    pair.b.port.rx_burst(&mut burst).unwrap();
    let frame = burst.get_mut(0).unwrap();
    let outer = Outer::read(frame.bytes).unwrap();
    if let Some(mark) = outside {
        assert!(Outer { tos: outer.tos & !3 | mark, ..outer }.write(frame.bytes));
    }
    let mut came = Came::default();
    pair.b.open(&mut burst, &mut came);
    let packets = came.packets();
    let inner = packets.first().map(|packet| packet[1]);
    (outer.tos, inner.ok_or_else(|| came.lost[0]))
}

#[test]
fn congestion_and_class_are_carried() {
    let mut pair = Pair::established(false);
    for (tos, outside, inside) in [
        (0, None, Ok(0)),
        (0xb8 | 2, None, Ok(0xb8 | 2)),
        (0xb8 | 2, Some(3), Ok(0xb8 | 3)),
        (1, Some(3), Ok(3)),
        (3, None, Ok(3)),
        (0x28, Some(3), Err(Lost::Congestion)),
    ] {
        assert_eq!(marked(&mut pair, tos, outside), (tos, inside));
    }
    let b = End::new(&settings(2, vec![peer(1, None)]));
    let mut fixed = settings(1, vec![peer(2, Some(b.place(false)))]);
    fixed.dscp = Dscp::Fixed(10);
    let mut pair = Pair { a: End::new(&fixed), b };
    pair.establish();
    assert_eq!(marked(&mut pair, 0xb8 | 2, Some(2)), (10 << 2 | 2, Ok(0xb8 | 2)));
}

#[test]
fn what_no_peer_may_have_or_send_is_lost() {
    let mut pair = Pair::established(false);
    let elsewhere: IpAddr = "192.0.2.1".parse().unwrap();
    let (own, theirs) = (inside(1, 1, false), inside(2, 1, false));
    let Pair { a, b } = &mut pair;
    assert_eq!(a.send_packets(&[from_to(own, elsewhere)]).lost, [Lost::NoPeer]);
    for noise in [vec![], vec![0x45; 19], vec![0x15; 60], vec![0x60; 39]] {
        assert_eq!(a.send_packets(&[noise]).lost, [Lost::NotIp]);
    }
    let (mut cut, mut burst) = (ping(1, 2, 1), Burst::new());
    cut.pop();
    assert_eq!(a.send_packets(&[cut]).lost, [Lost::NotIp]);
    let frame = [vec![0; 14], ping(1, 2, 1)].concat();
    burst.push(&frame, FrameMeta { link_type: LinkType::ETHERNET, ..raw(frame.len()) });
    assert_eq!(a.send(burst).lost, [Lost::NotIp]);
    for source in [elsewhere, theirs] {
        assert_eq!(a.send_packets(&[from_to(source, theirs), ping(1, 2, 2)]).lost, []);
        let came = b.receive_packets(1);
        // Who watches sees the packet, not what it was sealed in.
        assert!(came.lost_packets[0].starts_with(&from_to(source, theirs)));
        assert_eq!((came.packets(), came.lost), (vec![ping(1, 2, 2)], vec![Lost::Source]));
    }
}

/// The sealed datagrams of a packet.
fn sealed(end: &mut End, packet: &[u8]) -> Vec<u8> {
    let mut burst = Burst::new();
    burst.push(packet, raw(packet.len()));
    assert_eq!(end.seal(&mut burst).lost, []);
    burst.get(0).unwrap().bytes.to_vec()
}

/// Sends a sealed frame as it is: what the other end says of it.
fn delivered(pair: &mut Pair, frame: &[u8]) -> Came {
    let Pair { a, b } = pair;
    assert_eq!(a.site.send([frame].into_iter(), &mut a.worker.sending), 1);
    let mut came = Came::default();
    b.wait();
    b.receive(&mut came);
    came
}

#[test]
fn replays_forgeries_and_strays_are_told_apart() {
    let mut pair = Pair::established(false);
    let whole = sealed(&mut pair.a, &ping(1, 2, 7));
    for (at, why) in
        [(OUTER + 4, Lost::Unknown), (whole.len() - 1, Lost::Forged), (OUTER + 20, Lost::Forged)]
    {
        let mut turned = whole.clone();
        turned[at] ^= 1;
        assert_eq!(delivered(&mut pair, &turned).lost, [why]);
    }
    let came = delivered(&mut pair, &whole);
    assert_eq!((came.packets(), came.lost), (vec![ping(1, 2, 7)], vec![]));
    assert_eq!(delivered(&mut pair, &whole).lost, [Lost::Replayed]);
    // What is no message of ours is nobody's.
    let refused = || pair.b.site.refused.load(std::sync::atomic::Ordering::Relaxed);
    let before = refused();
    let mut other = whole.clone();
    other[OUTER] = 4;
    let came = delivered(&mut pair, &other);
    assert!(came.frames.is_empty() && came.lost.is_empty());
    assert_eq!(pair.b.site.refused.load(std::sync::atomic::Ordering::Relaxed), before + 1);
}

/// Answers leave from the address that the peer used, of several that an end has.
#[test]
fn an_end_answers_from_where_it_was_spoken_to() {
    let mut b = End::new(&settings(2, vec![peer(1, None)]));
    let other = std::net::SocketAddr::new("127.0.0.77".parse().unwrap(), b.site.socket.port());
    let mut a = End::new(&settings(1, vec![peer(2, Some(other))]));
    assert_eq!(a.send_packets(&[ping(1, 2, 0)]).waiting, 1);
    let mut came = Came::default();
    b.wait();
    b.receive(&mut came);
    // The response, sealed data and the answer to a probe.
    let endpoint = |end: &End| {
        let state = end.site.lock();
        let id = *state.peers.keys().next().unwrap();
        state.tunnel.status(id).unwrap().endpoint
    };
    a.wait();
    a.receive(&mut came);
    assert_eq!(endpoint(&a), Some(other));
    assert_eq!(b.receive_packets(1).packets(), [ping(1, 2, 0)]);
    b.send_packets(&[ping(2, 1, 0)]);
    assert_eq!(a.receive_packets(1).packets(), [ping(2, 1, 0)]);
    assert_eq!(endpoint(&a), Some(other));
}
