//! Several sockets at one port, over loopback: each receives from its sender, and the first one from all others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use pktio::datagram::{DatagramConfig, DatagramSocket, Message, Source};

use super::end::{End, message};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// A socket, and two others at its port.
fn ends() -> (End, [End; 2]) {
    let (main, others) = DatagramSocket::bind_with(&DatagramConfig::default(), 2).unwrap();
    assert!(others.iter().all(|other| other.port() == main.port()));
    let others: Vec<_> = others.into_iter().map(|other| End::of(other, 65_600)).collect();
    (End::of(main, 65_600), others.try_into().ok().unwrap())
}

/// Sends a datagram from each to the port that they share: which one arrived at `to`, and nothing else.
#[track_caller]
fn arrives(from: &mut End, to: &mut End, ip: IpAddr) {
    let (bytes, port) = (from.socket.port().to_ne_bytes(), to.at(ip));
    from.send([message(&bytes, port)]);
    let came = to.one();
    assert_eq!((came.bytes.as_slice(), came.arrived.from), (&bytes[..], from.at(ip)));
}

#[test]
fn each_receives_from_its_sender_and_the_first_from_all_others() {
    for ip in [V4, V6] {
        let (mut main, [mut one, mut other]) = ends();
        let mut senders = [End::new(), End::new(), End::new()];
        for sender in &mut senders {
            arrives(sender, &mut main, ip);
        }
        let [a, b, c] = &mut senders;
        assert_eq!(one.socket.receive_from(a.at(ip)).unwrap(), ip);
        assert_eq!(other.socket.receive_from(b.at(ip)).unwrap(), ip);
        arrives(a, &mut one, ip);
        arrives(b, &mut other, ip);
        arrives(c, &mut main, ip);
        for end in [&mut main, &mut one, &mut other] {
            assert_eq!(end.receive(), []);
        }
    }
}

#[test]
fn a_sender_of_the_same_port_at_another_address_is_another() {
    let (mut main, [mut one, _]) = ends();
    let mut sender = End::new();
    let elsewhere = IpAddr::from([127, 0, 0, 2]);
    let at = one.socket.receive_from(sender.at(elsewhere)).unwrap();
    arrives(&mut sender, &mut main, V4);
    let from = Some(Source { address: elsewhere, interface: None });
    let to = SocketAddr::new(at, main.socket.port());
    sender.send([Message { from, ..message(b"two", to) }]);
    assert_eq!(one.one().bytes, b"two");
    assert_eq!(main.receive(), []);
}

#[test]
fn a_sender_moves_also_to_another_family() {
    let (mut main, [mut one, _]) = ends();
    let (mut a, mut b) = (End::new(), End::new());
    for (ip, later) in [(V4, V4), (V4, V6), (V6, V4)] {
        one.socket.receive_from(a.at(ip)).unwrap();
        arrives(&mut a, &mut one, ip);
        assert_eq!(one.socket.receive_from(b.at(later)).unwrap(), later);
        arrives(&mut b, &mut one, later);
        arrives(&mut a, &mut main, ip);
    }
}

/// What is full of others' is not the queue of a sender.
#[test]
fn a_flood_fills_the_first_queue_alone() {
    let config = DatagramConfig { buffer: 64 << 10, ..DatagramConfig::default() };
    let (main, mut others) = DatagramSocket::bind_with(&config, 1).unwrap();
    let (main, mut one) = (End::of(main, 65_600), End::of(others.remove(0), 65_600));
    let (mut friend, mut stranger) = (End::new(), End::new());
    one.socket.receive_from(friend.at(V4)).unwrap();
    let noise = [0; 1_000];
    while main.socket.overruns().unwrap() == 0 {
        stranger.send([message(&noise, main.at(V4))]);
    }
    for number in 0..10_u8 {
        friend.send([message(&[number], main.at(V4))]);
    }
    assert_eq!(one.datagrams(10), (0..10_u8).map(|number| vec![number]).collect::<Vec<_>>());
    assert_eq!(one.socket.overruns().unwrap(), 0);
}

/// Otherwise another program could get what is sent to us.
#[test]
fn nobody_else_gets_the_port() {
    let config = DatagramConfig::default();
    let (main, others) = DatagramSocket::bind_with(&config, 3).unwrap();
    let same = DatagramConfig { port: main.port(), ..config };
    for count in [0, 3] {
        assert!(DatagramSocket::bind_with(&same, count).is_err());
    }
    drop((main, others));
    assert!(DatagramSocket::bind_with(&same, 3).is_ok());
}

#[test]
fn sockets_that_share_a_port_each_have_their_senders_in_order() {
    for at in [V4, V6] {
        let sockets = DatagramSocket::bind_each(&DatagramConfig::default(), at, 3).unwrap();
        let mut ends: Vec<End> = sockets.into_iter().map(|it| End::of(it, 65_600)).collect();
        let to = ends[0].at(at);
        assert!(ends.iter().all(|end| end.at(at) == to));
        let mut senders: Vec<End> = (0..24).map(|_| End::new()).collect();
        for number in 0..8_u8 {
            for sender in &mut senders {
                assert_eq!(sender.send([message(&[number], to)]).datagrams, 1);
            }
        }
        let mut numbers = std::collections::BTreeMap::<SocketAddr, (usize, Vec<u8>)>::new();
        let mut count = 0;
        while count < 24 * 8 {
            for (which, end) in ends.iter_mut().enumerate() {
                for came in end.receive() {
                    let (first, all) =
                        numbers.entry(came.arrived.from).or_insert((which, Vec::new()));
                    assert_eq!(*first, which, "one sender, one socket");
                    count += came.datagrams().len();
                    all.extend(came.bytes);
                }
            }
        }
        assert!(numbers.len() == 24 && numbers.values().all(|it| it.1 == [0, 1, 2, 3, 4, 5, 6, 7]));
        let used: std::collections::BTreeSet<usize> = numbers.values().map(|it| it.0).collect();
        assert!(used.len() > 1, "24 senders, and one socket has them all");
        // Nobody takes a port that is in use, nor joins in without being asked to.
        let same = DatagramConfig { port: to.port(), ..DatagramConfig::default() };
        assert!(DatagramSocket::bind_each(&same, at, 2).is_err());
    }
}
