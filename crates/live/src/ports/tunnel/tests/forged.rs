//! Packets of a third host that lies about who it is, by raw sockets, as root.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Instant;

use ::tunnel::Due;
use packet::craft::{Addresses, Craft, Message};
use pktio::Port;
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};

use super::ends::{Came, End, MTU, Pair, peer, settings};
use super::namespace::Namespace;
use super::packets::{datagram, ping};
use super::partial::Apart;

/// Outer addresses of the ends.
const NEAR: [u8; 4] = [10, 9, 0, 1];
const FAR: [u8; 4] = [10, 9, 0, 2];

/// Sends whole packets from a namespace.
fn send(place: &Namespace, packets: Vec<Craft>) {
    place.run(move || {
        let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW)).unwrap();
        for packet in packets {
            let Addresses::V4 { destination, .. } = packet.addresses else { panic!("IPv4 here") };
            let to = SocketAddrV4::new(destination.into(), 0);
            sendto(&raw, &packet.frame(), SendFlags::empty(), &to).unwrap();
        }
    });
}

fn packet(from: impl Into<Ipv4Addr>, to: [u8; 4], message: Message, payload: &[u8]) -> Craft {
    let addresses = Addresses::new(from.into().into(), Ipv4Addr::from(to).into()).unwrap();
    Craft { ethernet: None, payload: payload.to_vec(), ..Craft::new(addresses, message) }
}

/// An ICMP error of no router's: of what the near end sends to the far one nothing longer than 552 bytes goes on.
fn too_long(source_port: u16, destination_port: u16) -> Craft {
    let quoted = packet(NEAR, FAR, Message::Udp { source_port, destination_port }, &[0; 1_300]);
    let error = Message::Icmp { kind: 3, code: 4, id: 0, sequence: 552 };
    packet([10, 9, 0, 66], NEAR, error, &quoted.frame()[..28])
}

fn told(end: &End) -> (u16, Vec<(String, u64)>) {
    let peer = end.site.told().remove(0);
    (peer.path_mtu, peer.unsent.into_iter().collect())
}

/// Finding: one such packet stopped all larger ones for ten minutes, from any source, even with a wrong port.
#[test]
fn an_icmp_error_of_anybody_stops_no_packet() {
    let Some(mut apart) = Apart::new() else { return };
    let [near, far] = [&apart.pair.a, &apart.pair.b].map(|end| end.site.socket.port());
    let long = datagram(1, 2, false, 1_300).frame();
    // The sockets of peers hear of it, too.
    apart.pair.a.site.follow_peers();
    for ports in [(near, far), (near, far ^ 1), (near ^ 1, far)] {
        send(&apart.far, vec![too_long(ports.0, ports.1)]);
        for _ in 0..3 {
            assert_eq!(apart.pair.a.send_packets(std::slice::from_ref(&long)).lost, []);
            assert_eq!(apart.pair.b.receive_packets(1).packets(), std::slice::from_ref(&long));
        }
    }
    apart.pair.b.send_packets(&[ping(2, 1, 1)]);
    assert_eq!(apart.pair.a.receive_packets(1).packets(), [ping(2, 1, 1)]);
    assert_eq!(told(&apart.pair.a), (MTU, vec![]));
    // What the device itself does not take is counted, and believed once probes say so.
    apart.near.command("ip link set n0 mtu 1300");
    apart.pair.a.send_packets(&[long]);
    assert_eq!(told(&apart.pair.a), (MTU, vec![("too_long".to_owned(), 1)]));
}

/// Forged initiations, as many as the queue holds at once; a peer's own among them, and after them.
#[test]
fn initiations_of_anybody_keep_no_peer_out() {
    let Some(apart) = Apart::new() else { return };
    let Apart { near, far, pair: Pair { a: other, mut b } } = apart;
    let place = SocketAddr::from((FAR, b.site.socket.port()));
    let initiation = {
        let stranger = End::new(&settings(9, vec![peer(2, Some(place))]));
        let mut state = stranger.site.lock();
        let _ = state.tunnel.stage(&ping(9, 2, 0), 0);
        let Some(Due::Send(initiation)) = state.tunnel.due(0) else { panic!("nothing is due") };
        initiation.bytes().to_vec()
    };
    let to = Message::Udp { source_port: 9, destination_port: place.port() };
    let mut sources = 0x2d00_0000_u32..;
    let mut flood = |count| {
        let forged = sources.by_ref().take(count);
        send(&near, forged.map(|from| packet(from, FAR, to.clone(), &initiation)).collect());
    };
    // A peer that has no session yet, while one has.
    b.site.add_peer(&peer(3, None)).unwrap();
    let mut a = near.run(move || End::new(&settings(3, vec![peer(2, Some(place))])));
    let packet = [ping(3, 2, 1)];
    assert_eq!(a.send_packets(&packet).waiting, 1);
    let (mut at_a, mut at_b, began) = (Came::default(), Came::default(), Instant::now());
    let mut tries = 1;
    while at_b.packets() != packet {
        assert!(began.elapsed().as_secs() < 20, "no session");
        flood(500);
        let before = b.port.stats().rx_lost;
        for _ in 0..100 {
            b.receive(&mut at_b);
        }
        assert_eq!(b.port.stats().rx_lost, before, "it keeps up with so many");
        a.receive(&mut at_a);
        let now = a.site.now();
        let mut state = a.site.lock();
        let due: Vec<_> = std::iter::from_fn(|| state.tunnel.due(now)).collect();
        drop(state);
        for due in due {
            let Due::Send(own) = due else { panic!("{due:?}") };
            tries += usize::from(own.bytes().len() == initiation.len());
            a.site.send_own(&[(own, None)], &mut a.worker.sending);
        }
    }
    assert!(tries <= 3, "{tries} tries");
    drop((other, far));
}
