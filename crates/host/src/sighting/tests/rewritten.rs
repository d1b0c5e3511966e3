//! Packets whose payload or numbers change on their way.

use super::*;

#[test]
fn a_flow_that_goes_through_is_known_by_its_ends_where_a_helper_writes_to_it() {
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &segment((CLIENT, 4000), (SERVER, 21), 1, 20));
    capture.frame(Way::Out, "wan0", &segment((ROUTER, 4000), (SERVER, 21), 1, 20));
    capture.frame(Way::In, "lan0", &segment((CLIENT, 4000), (SERVER, 21), 21, 25));
    capture.frame(Way::Out, "wan0", &segment((ROUTER, 4000), (SERVER, 21), 900, 27));
    let seen = capture.take();
    assert_eq!(seen[3].sighting, Sighting::Second { of: None });
    assert_eq!((seen[2].sighting, seen[2].left), (Sighting::Arrival, None));
}

/// The numbers that a proxy of SYNs gives the client (900) and has from the server (5,000) pair, once both are seen.
#[test]
fn what_a_proxy_of_syns_renumbers_is_one_packet() {
    let message = |ports: (u16, u16), flags, sequence, acknowledgement| Message::Tcp {
        source_port: ports.0,
        destination_port: ports.1,
        flags,
        sequence,
        acknowledgement,
        window: 1000,
    };
    let to = |flags, sequence, acknowledgement| {
        craft(CLIENT, SERVER, message((4000, 80), flags, sequence, acknowledgement))
    };
    let from = |flags, sequence, acknowledgement| {
        craft(SERVER, CLIENT, message((80, 4000), flags, sequence, acknowledgement))
    };
    let (syn, answer) = (Flags::SYN, Flags::SYN.union(Flags::ACK));
    let play = |proxies| {
        let mut capture = Capture::new();
        capture.sightings = capture.sightings.with_proxy(proxies);
        capture.frame(Way::In, "wan0", &to(syn, 100, 0));
        capture.frame(Way::Out, "wan0", &from(answer, 900, 101));
        capture.frame(Way::In, "wan0", &to(Flags::ACK, 101, 901));
        capture.frame(Way::Out, "lan0", &to(syn, 100, 900));
        capture.frame(Way::In, "lan0", &from(answer, 5000, 101));
        capture.frame(Way::In, "wan0", &to(Flags::ACK, 101, 901));
        capture.frame(Way::Out, "lan0", &to(Flags::ACK, 101, 5001));
        capture.frame(Way::In, "lan0", &from(Flags::ACK, 5001, 121));
        capture.frame(Way::Out, "wan0", &from(Flags::ACK, 901, 121));
        sightings(&capture.take())
    };
    let (came, own) = (Sighting::Arrival, Sighting::Own);
    assert_eq!(play(true), [came, own, came, own, came, came, second(6), came, second(8)]);
    assert_eq!(play(false)[6..], [own, came, own], "numbers that nobody moves tell packets apart");
}

#[test]
fn a_program_that_gets_packets_may_change_what_they_hold() {
    let query = |from: &str, to: &str, port, text: u8| {
        let message = Message::Udp { source_port: port, destination_port: 53 };
        Craft { payload: vec![text; 20], ..craft(from, to, message) }
    };
    let forwarded = |queues| {
        let mut capture = Capture::new();
        capture.sightings = Sightings::new(host()).with_queues(queues);
        capture.frame(Way::In, "lan0", &query(CLIENT, SERVER, 4000, 1));
        capture.frame(Way::In, "lan0", &query(CLIENT, ROUTER, 4001, 1));
        capture.frame(Way::Out, "wan0", &query(ROUTER, SERVER, 4003, 4));
        let left = Craft { ttl: 63, ..query(ROUTER, SERVER, 4000, 2) };
        capture.frame(Way::Out, "wan0", &left);
        // What the host asks for a client has but the destination's port alike; of one whose TTL is higher no hop lies between.
        capture.frame(Way::Out, "wan0", &query(ROUTER, "192.0.2.99", 5000, 3));
        let seen = capture.take();
        let left = seen[0].left.map(|left| left.number);
        assert_eq!(left, queues.then_some(4), "no other may be meant");
        sightings(&seen)
    };
    let [arrival, own] = [Sighting::Arrival, Sighting::Own];
    assert_eq!(forwarded(true), [arrival, arrival, own, second(1), own]);
    assert_eq!(forwarded(false), [arrival, arrival, own, own, own]);
}

/// Datagrams that may not be cut have the identification 0: but for the payload they are alike.
#[test]
fn where_rules_queue_the_payload_tells_packets_apart_that_nobody_changed() {
    const MANY: u8 = 100;
    let datagram = |from: &str, port, text: u8| {
        let message = Message::Udp { source_port: port, destination_port: 53 };
        Craft { payload: vec![text; 20], id: 0, ..craft(from, SERVER, message) }
    };
    let mut capture = Capture::new();
    capture.sightings = Sightings::new(host()).with_queues(true);
    for text in 0..MANY {
        capture.frame(Way::In, "lan0", &datagram(CLIENT, 4000, text));
    }
    for text in MANY - 30..MANY {
        capture.frame(Way::Out, "wan0", &Craft { ttl: 63, ..datagram(ROUTER, 4000, text) });
    }
    let seen = capture.take();
    let wanted: Vec<_> = (u64::from(MANY) - 29..=u64::from(MANY)).map(second).collect();
    assert_eq!(sightings(&seen[MANY.into()..]), wanted);
    assert!(seen[..usize::from(MANY) - 30].iter().all(|seen| seen.left.is_none()));

    // Of more than are looked at, another may be meant: no frame is surely the host's own.
    let mut capture = Capture::new();
    capture.sightings = Sightings::new(host()).with_queues(true);
    for _ in 0..MANY {
        capture.frame(Way::In, "lan0", &datagram("10.0.0.7", 1000, 1));
    }
    let left = Craft { ttl: 63, ..craft(ROUTER, "192.0.2.99", Message::udp(5000, 99)) };
    capture.frame(Way::Out, "wan0", &Craft { id: 0, payload: vec![2; 20], ..left });
    let last = capture.take().pop().unwrap();
    assert_eq!((last.sighting, last.may_have_come), (Sighting::Own, true));
}
