//! Over loopback, without root: datagrams keep their bounds, their order, and what their IP header says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::thread;

use pktio::datagram::{Arrived, Message, RecvBatch, SendBatch, Sent, Source};
use pktio::{FrameBuf, Pool};

use super::end::{Came, End, message};

const LOCAL: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// A datagram that shows when a byte of it is another's.
fn datagram(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 256 + at * 7 + number * 31) as u8).collect()
}

fn sent(messages: usize, datagrams: &[Vec<u8>]) -> Sent {
    let bytes = datagrams.iter().map(|one| one.len() as u64).sum();
    Sent { taken: messages, datagrams: datagrams.len() as u64, bytes, ..Sent::default() }
}

#[test]
fn one_datagram_arrives_with_what_its_header_says() {
    for ip in LOCAL {
        let (mut from, mut to) = (End::new(), End::new());
        let bytes = datagram(1, 700);
        let tos = 0xb9;
        let given = Message { tos, ..message(&bytes, to.at(ip)) };
        assert_eq!(from.send([given]), sent(1, std::slice::from_ref(&bytes)));
        let came = to.one();
        let Arrived { from: source, at, tos: seen, segment } = came.arrived;
        assert_eq!((came.bytes, source, seen, segment), (bytes, from.at(ip), tos, 700));
        assert_eq!(at.map(|at| at.address), Some(ip));
        assert!(at.unwrap().interface.is_some());
    }
}

/// Different lengths, each of which ends a message; bursts longer than a batch.
#[test]
fn datagrams_keep_their_bounds_and_their_order() {
    for ip in LOCAL {
        let (mut from, mut to) = (End::new(), End::new());
        let lengths = [1000, 1000, 1000, 999, 0, 1, 0, 0, 5, 1000, 1001, 1001, 40_000, 65_000];
        let given: Vec<_> = (0..).zip(lengths).map(|(at, length)| datagram(at, length)).collect();
        let at = to.at(ip);
        assert_eq!(from.send(given.iter().map(|one| message(one, at))), sent(14, &given));
        assert!(to.datagrams(14) == given);
        let small: Vec<_> = (0..300).map(|at| datagram(at, 60 + at % 3)).collect();
        assert_eq!(from.send(small.iter().map(|one| message(one, at))), sent(300, &small));
        assert!(to.datagrams(300) == small);
    }
}

#[test]
fn a_message_of_several_arrives_as_they_were() {
    for ip in LOCAL {
        let (mut from, mut to) = (End::new(), End::new());
        // More datagrams than a message may have, and more bytes.
        for (length, segment) in [(130 * 100 + 7, 100_u16), (65_535, 1452), (1452, 1452), (9, 10)] {
            let bytes = datagram(length, length);
            let expected: Vec<_> = bytes.chunks(segment.into()).map(<[u8]>::to_vec).collect();
            let given = Message { segment, ..message(&bytes, to.at(ip)) };
            assert_eq!(from.send([given]), sent(1, &expected));
            assert!(to.datagrams(expected.len()) == expected);
        }
        assert!(from.socket.sends_together());
    }
}

/// The kernel puts together what it was given together.
#[test]
fn several_come_as_one_message() {
    for ip in LOCAL {
        let (mut from, mut to) = (End::new(), End::new());
        let given: Vec<_> = (0..32).map(|at| datagram(at, 1452)).collect();
        let at = to.at(ip);
        from.send(given.iter().map(|one| message(one, at)));
        let came = to.one();
        assert_eq!((came.arrived.segment, came.bytes.len()), (1452, 32 * 1452));
        assert!(came.datagrams() == given);
    }
}

/// Only datagrams to one destination are sent together.
#[test]
fn destinations_take_turns() {
    let (mut from, mut one, mut other) = (End::new(), End::new(), End::new());
    let (at_one, at_other) = (one.at(LOCAL[0]), other.at(LOCAL[1]));
    let given: Vec<_> = (0..64).map(|at| datagram(at, 500)).collect();
    let to = |at: usize| if at % 4 < 2 { at_one } else { at_other };
    from.send(given.iter().enumerate().map(|(at, bytes)| message(bytes, to(at))));
    let all = |keep: fn(usize) -> bool| -> Vec<_> {
        (0..64).filter(|at| keep(*at)).map(|at| given[at].clone()).collect()
    };
    assert!(one.datagrams(32) == all(|at| at % 4 < 2));
    assert!(other.datagrams(32) == all(|at| at % 4 >= 2));
}

/// An answer goes from where the question came to.
#[test]
fn what_is_sent_from_an_address_comes_from_it() {
    let (mut from, mut to) = (End::new(), End::new());
    let address = IpAddr::V4(Ipv4Addr::new(127, 7, 7, 7));
    let source = Some(Source { address, interface: None });
    let given: Vec<_> = (0..4).map(|at| datagram(at, 100)).collect();
    let at = to.at(LOCAL[0]);
    let messages = given.iter().map(|one| Message { from: source, ..message(one, at) });
    from.send(messages);
    let came = to.one();
    assert!(came.datagrams() == given);
    assert_eq!(came.arrived.from, from.at(address));
    let answer = datagram(9, 50);
    let back = Message { from: came.arrived.at, ..message(&answer, came.arrived.from) };
    to.send([back]);
    let came = from.one();
    assert_eq!((came.bytes, came.arrived.from), (answer, at));
    assert_eq!(came.arrived.at.unwrap().address, address);
}

#[test]
fn a_source_that_is_gone_is_told_and_another_is_taken() {
    let gone: [IpAddr; 2] = [Ipv4Addr::new(203, 0, 113, 7).into(), "2001:db8::7".parse().unwrap()];
    for (ip, address) in LOCAL.into_iter().zip(gone) {
        let (mut from, mut to) = (End::new(), End::new());
        let source = Some(Source { address, interface: None });
        let given: Vec<_> = (0..4).map(|at| datagram(at, 100)).collect();
        let at = to.at(ip);
        let messages = given.iter().map(|one| Message { from: source, ..message(one, at) });
        assert_eq!(from.send(messages), sent(4, &given));
        assert_eq!((from.send.astray(), from.send.unsent()), ([at].as_slice(), [].as_slice()));
        assert!(from.socket.sends_together());
        let came = to.messages(4);
        assert!(came.iter().flat_map(Came::datagrams).eq(given.iter().cloned()));
        assert!(came.iter().all(|came| came.arrived.from == from.at(ip)));
        from.send([message(&given[0], at)]);
        assert_eq!(from.send.astray(), [], "it was the last call's");
    }
}

/// A message that does not fit is lost; those before and after it are not.
#[test]
fn a_message_longer_than_its_chunk_is_lost_alone() {
    let mut from = End::new();
    let mut to = End::of(End::new().socket, 16 + 1000);
    let at = to.at(LOCAL[0]);
    let given = [datagram(1, 1000), datagram(2, 1001), datagram(3, 999)];
    for one in &given {
        from.send([message(one, at)]);
    }
    let together = [datagram(4, 600), datagram(5, 600)].concat();
    from.send([Message { segment: 600, ..message(&together, at) }]);
    from.send([message(&given[0], at)]);
    let came = to.datagrams(3);
    assert!(came == [given[0].clone(), given[2].clone(), given[0].clone()]);
    assert_eq!(to.receive.lost(), 2);
}

#[test]
fn nothing_is_received_where_nothing_is_or_into_nothing() {
    let (mut from, mut to) = (End::new(), End::new());
    assert_eq!(to.receive(), []);
    from.send([message(b"here", to.at(LOCAL[0]))]);
    let received = to.socket.recv(&mut to.receive, &mut Vec::new(), |_, _| panic!("into what?"));
    assert_eq!(received.unwrap(), 0);
    assert_eq!(to.one().bytes, b"here");
    assert_eq!(from.send([]), Sent::default());
}

/// A port where nobody listens answers by ICMP; that is no error of the socket.
#[test]
fn who_does_not_listen_is_no_end() {
    for ip in LOCAL {
        let (mut from, mut to) = (End::new(), End::new());
        let closed = End::new().at(ip);
        for _ in 0..3 {
            from.send([message(b"is anyone there?", closed)]);
        }
        assert_eq!(from.receive(), []);
        assert_eq!(from.send([message(b"here", to.at(ip))]).datagrams, 1);
        assert_eq!(to.one().bytes, b"here");
    }
}

/// Each thread with batches of its own; nothing is lost or sent twice, and each thread's are in order.
#[test]
fn threads_share_a_socket() {
    const THREADS: u8 = 4;
    let (from, to) = (End::new(), End::new());
    let (socket, at) = (&from.socket, to.at(LOCAL[0]));
    thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || {
                let mut batch = SendBatch::default();
                let given: Vec<_> = (0..100_u8).map(|at| [number, at]).collect();
                for some in given.chunks(10) {
                    let sent = socket.send(&mut batch, some.iter().map(|one| message(one, at)));
                    assert_eq!(sent.datagrams, 10);
                }
            });
        }
    });
    let receive = || {
        let (mut batch, pool) = (RecvBatch::new(1), Pool::new(1, 65_600, 0));
        let mut came: Vec<[u8; 2]> = Vec::new();
        loop {
            let mut spare: Vec<_> = pool.take().into_iter().collect();
            let each = |frame: FrameBuf, arrived: Arrived| {
                came.extend(frame.bytes().chunks(arrived.segment).map(|one| [one[0], one[1]]));
            };
            if to.socket.recv(&mut batch, &mut spare, each).unwrap() == 0 {
                return came;
            }
        }
    };
    let came = thread::scope(|scope| {
        let [one, other] = [scope.spawn(receive), scope.spawn(receive)];
        [one.join().unwrap(), other.join().unwrap()]
    });
    for came in &came {
        let of = |number: u8| came.iter().filter(move |one| one[0] == number);
        assert!((0..THREADS).all(|number| of(number).is_sorted()));
    }
    let mut all = came.concat();
    all.sort_unstable();
    let sent = (0..THREADS).flat_map(|number| (0..100_u8).map(move |at| [number, at]));
    assert!(all.into_iter().eq(sent));
}

/// What nobody receives in time is lost in the kernel, and counted there; with room for it, it is not.
#[test]
fn a_full_buffer_is_told() {
    for (buffer, loses) in [(1, true), (100_000, false)] {
        let (mut from, mut to) = (End::new(), End::new());
        to.socket.set_buffer(buffer).unwrap();
        let (at, bytes) = (to.at(LOCAL[0]), datagram(1, 1000));
        for _ in 0..16 {
            from.send([message(&bytes, at)]);
        }
        let lost = to.socket.overruns().unwrap();
        assert_eq!(lost > 0, loses, "{lost}");
        assert_eq!(to.datagrams(16 - lost as usize).len(), 16 - lost as usize);
    }
}
