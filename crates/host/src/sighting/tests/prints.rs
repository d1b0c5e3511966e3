//! What frames are compared by: hashes, contents, ends.

use std::collections::HashSet;
use std::hash::BuildHasher;

use super::*;
use crate::sighting::print::Segment;
use crate::sighting::table::{Table, clear_full};

const V6: [&str; 3] = ["2001:db8:1::2", "2001:db8::1", "2001:db8::9"];

fn print_of(keys: &Keys, frame: &[u8]) -> Print {
    let headers = parse(LinkType::Raw, frame, frame.len(), Checksums::Ignore);
    Print::of(frame, &headers, keys, |_, segment| segment).unwrap()
}

/// Hashes of things that differ in a bit each are all different, and in many bits.
fn tell_apart(base: u64, others: impl IntoIterator<Item = u64>) {
    let mut all = HashSet::from([base]);
    for other in others {
        assert!((base ^ other).count_ones() > 3, "{base:x} {other:x}");
        assert!(all.insert(other), "{other:x} twice");
    }
}

#[test]
fn each_bit_tells_ends_and_stations_apart() {
    let keys = Keys::random();
    let ends = |source: IpAddr, protocol, ports| Ends {
        source,
        destination: SERVER.parse().unwrap(),
        protocol,
        ports: Some(ports),
    };
    let client: IpAddr = CLIENT.parse().unwrap();
    let of = |protocol, ports| keys.ends(&ends(client, protocol, ports));
    let ports = (0..16).flat_map(|bit| [[1 << bit, 0], [0, 1 << bit]]).map(|ports| of(0, ports));
    tell_apart(of(0, [0, 0]), ports.chain((0..8).map(|bit| of(1 << bit, [0, 0]))));
    let turned = keys.ends(&ends(client, 6, [1, 2]).turned());
    tell_apart(of(6, [1, 2]), [turned]);

    let v4 = |addr: u32| keys.station(1, IpAddr::V4(addr.into()));
    tell_apart(v4(0), (0..32).map(|bit| v4(1 << bit)));
    let v6 = |addr: u128| keys.station(1, IpAddr::V6(addr.into()));
    tell_apart(v6(0), (0..128).map(|bit| v6(1 << bit)));
    tell_apart(keys.station(0, client), (0..32).map(|bit| keys.station(1 << bit, client)));
    let mac = [2, 0, 0, 0, 0, 1];
    let others = (0..32).map(|bit| keys.link_address(1 << bit, mac));
    tell_apart(keys.link_address(0, mac), others.chain([keys.link_address(0, [2, 0, 0, 0, 1, 0])]));
    assert_ne!(Keys::random().station(1, client), keys.station(1, client), "nobody knows the keys");
}

#[test]
fn a_packet_s_key_depends_on_its_ends_and_on_its_content() {
    let keys = Keys::random();
    let of = |port, sequence| {
        keys.packet(&print_of(&keys, &segment((CLIENT, port), (SERVER, 80), sequence, 9).frame()))
    };
    let others: Vec<u64> = (0..16).flat_map(|bit| [of(1 << bit, 0), of(0, 1 << bit)]).collect();
    // As many bits are 1 as are 0.
    let ones: u32 = others.iter().map(|key| key.count_ones()).sum();
    assert!((850..1200).contains(&ones), "{ones} of {}", 32 * 64);
    tell_apart(of(0, 0), others);
}

/// A segment of a connection with these numbers, flags and payload.
fn numbered(sequence: u32, acknowledgement: u32, flags: u8, payload: &[u8]) -> Craft {
    let message = Message::Tcp {
        source_port: 4000,
        destination_port: 80,
        flags: Flags(flags),
        sequence,
        acknowledgement,
        window: 1000,
    };
    let payload = payload.to_vec();
    Craft { payload_len: 0, payload, ..craft(CLIENT, SERVER, message) }
}

/// Which of these frames have the content of the first.
fn same(frames: &[Vec<u8>]) -> Vec<bool> {
    let keys = Keys::random();
    let content = |frame: &Vec<u8>| print_of(&keys, frame).content;
    frames.iter().map(|frame| content(frame) == content(&frames[0])).collect()
}

#[test]
fn a_segment_is_known_by_its_numbers_its_flags_and_its_payload() {
    const PUSH: u8 = 8;
    let (syn, reset, ack) = (2, 4, 16);
    let frames = [
        numbered(1, 2, ack, &[7; 60]),
        numbered(1, 2, ack | PUSH, &[7; 60]),
        Craft { ttl: 63, tos: 4, id: 9, ..numbered(1, 2, ack, &[7; 60]) },
        segmented(&[7; 48], &[8; 12]),
        numbered(2, 2, ack, &[7; 60]),
        numbered(1, 1, ack, &[7; 60]),
        numbered(1, 2, ack | syn, &[7; 60]),
        numbered(1, 2, ack | reset, &[7; 60]),
        numbered(1, 2, 0, &[7; 60]),
        segmented(&[7; 47], &[8; 13]),
        numbered(1, 2, ack, &[7; 40]),
    ];
    let found = same(&frames.map(|craft| craft.frame()));
    assert_eq!(found, [[true; 4].as_slice(), &[false; 7]].concat());
    let keys = Keys::random();
    let flags = |flags| {
        let print = print_of(&keys, &numbered(1, 2, flags, &[]).frame());
        (print.is_reset, print.opens)
    };
    let flags = [ack, syn, syn | ack, reset, reset | ack, reset | syn].map(flags);
    let expected = [
        (false, None),
        (false, Some(false)),
        (false, Some(true)),
        (true, None),
        (true, None),
        (true, None),
    ];
    assert_eq!(flags, expected);
}

fn segmented(first: &[u8], rest: &[u8]) -> Craft {
    numbered(1, 2, 16, &[first, rest].concat())
}

#[test]
fn datagrams_are_known_by_length_payload_and_the_id_of_ipv4() {
    for [client, router, server] in [[CLIENT, ROUTER, SERVER], V6] {
        let datagram = |source, port, len| Craft {
            payload_len: len,
            ..craft(source, server, Message::udp(port, 53))
        };
        let is_v4 = client == CLIENT;
        let frames = [
            datagram(client, 5000, 20),
            Craft { ttl: 63, ..datagram(router, 61_000, 20) },
            Craft { id: 1, ..datagram(client, 5000, 20) },
            datagram(client, 5000, 21),
            Craft { payload: vec![1], ..datagram(client, 5000, 19) },
            datagram(client, 5000, 80),
        ];
        let found = same(&frames.map(|craft| craft.frame()));
        assert_eq!(found, [true, true, !is_v4, false, false, false], "{client}");
    }
}

/// RFC 792, RFC 4443: of an error what it quotes is translated, too, but not how long that was.
#[test]
fn errors_are_known_by_what_they_quote_but_for_its_ends() {
    for (icmp, kind, at, [client, router, server]) in
        [(1, 3, 2..8, [CLIENT, ROUTER, SERVER]), (58, 1, 4..7, V6)]
    {
        let quoted = craft(client, server, Message::udp(5000, 53)).frame();
        let error = |source, kind, code, quoted: &[u8]| {
            let header = vec![kind, code, 0, 0, 0, 0, 0, 0];
            let message = Message::Other { protocol: icmp, header };
            let payload = quoted.to_vec();
            Craft { payload_len: 0, payload, ..craft(source, client, message) }.frame()
        };
        let other_ends = craft(router, server, Message::udp(61_000, 53)).frame();
        let mut frames = vec![
            error(server, kind, 1, &quoted),
            error(router, kind, 1, &other_ends),
            error(server, kind, 0, &quoted),
            error(server, kind + 1, 1, &quoted),
            error(server, kind, 1, &quoted[..quoted.len() - 4]),
        ];
        for byte in at.clone() {
            let mut quoted = quoted.clone();
            quoted[byte] ^= 1;
            frames.push(error(server, kind, 1, &quoted));
        }
        let found = same(&frames);
        assert_eq!(found[..2], [true; 2], "{icmp}");
        assert_eq!(found[2..], vec![false; 3 + at.len()], "{icmp}");
    }
}

#[test]
fn queries_are_known_by_their_number_and_not_by_their_identifier() {
    for (kind, [client, router, server]) in [(8, [CLIENT, ROUTER, SERVER]), (128, V6)] {
        let echo = |source, kind, id, sequence| {
            craft(source, server, Message::Icmp { kind, code: 0, id, sequence })
        };
        let frames = [
            echo(client, kind, 7, 1),
            echo(router, kind, 9, 1),
            echo(client, kind, 7, 2),
            echo(client, kind + 1, 7, 1),
            Craft { payload: vec![1], payload_len: 19, ..echo(client, kind, 7, 1) },
        ];
        let keys = Keys::random();
        let ports = print_of(&keys, &frames[1].frame()).ends.ports;
        assert_eq!(ports, Some([9, 9]));
        assert_eq!(same(&frames.map(|craft| craft.frame())), [true, true, false, false, false]);
    }
}

/// SCTP's verification tag stays (RFC 9260), the ports of all of them are translated.
#[test]
fn other_protocols_are_known_by_what_follows_their_ports() {
    let other = |protocol, header: &[u8], payload: u8| {
        let message = Message::Other { protocol, header: header.to_vec() };
        Craft { payload: vec![payload; 8], ..craft(CLIENT, SERVER, message) }.frame()
    };
    let sctp = |port, tag, payload| other(132, &[0, port, 0, 2, 0, 0, 0, tag, 9, 9, 9, 9], payload);
    let frames = [sctp(1, 1, 1), sctp(5, 1, 1), sctp(1, 2, 1), sctp(1, 1, 2)];
    assert_eq!(same(&frames), [true, true, false, false]);
    let dccp = |port, payload| other(33, &[0, port, 0, 2, 4, 0, 0, 0], payload);
    assert_eq!(same(&[dccp(1, 1), dccp(5, 1), dccp(1, 2)]), [true, true, false]);
    let gre = |key| other(47, &[0, 0, 8, 0], key);
    assert_eq!(same(&[gre(1), gre(1), gre(2)]), [true, true, false]);
    assert_eq!(same(&[other(47, &[1; 4], 1), other(50, &[1; 4], 1)]), [true, false]);
    let keys = Keys::random();
    let ports = [sctp(1, 1, 1), dccp(5, 1), gre(1)].map(|frame| print_of(&keys, &frame).ends.ports);
    assert_eq!(ports, [Some([1, 2]), Some([5, 2]), None]);
}

#[test]
fn fragments_are_known_by_their_datagram_and_their_place() {
    for [client, router, server] in [[CLIENT, ROUTER, SERVER], V6] {
        let part = |source, id, offset, more| {
            let fragment = Some(Fragment { offset, more });
            Craft { id, fragment, ..craft(source, server, Message::udp(5000, 53)) }
        };
        let keys = Keys::random();
        let print = |craft: Craft| print_of(&keys, &craft.frame());
        let whole = print(craft(client, server, Message::udp(5000, 53)));
        assert_eq!((whole.datagram, whole.is_later_fragment), (None, false));
        let first = print(part(client, 9, 0, true));
        let [middle, last] =
            [(24, true), (48, false)].map(|(at, more)| print(part(client, 9, at, more)));
        assert!(first.datagram.is_some() && !first.is_later_fragment);
        for later in [&middle, &last] {
            assert!(later.is_later_fragment && later.datagram == first.datagram);
        }
        assert_ne!(print(part(client, 10, 0, true)).datagram, first.datagram);
        assert_ne!(print(part(router, 9, 0, true)).datagram, first.datagram);
        assert_eq!(first.stays_whole, client != CLIENT);
        if client == CLIENT {
            assert_ne!(middle.content, print(part(client, 9, 32, true)).content);
        }
    }
}

#[test]
fn a_packet_does_not_change_its_family() {
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &craft(V6[0], V6[2], Message::udp(5000, 53)));
    capture.frame(
        Way::Out,
        "wan0",
        &Craft { ttl: 63, ..craft(CLIENT, SERVER, Message::udp(5000, 53)) },
    );
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival, Sighting::Own]);
}

#[test]
fn a_segment_holds_its_own_bytes_also_where_numbers_begin_again() {
    let segment = Segment { sequence: u32::MAX - 1, acknowledgement: 5, len: 4 };
    let held: Vec<u32> = [u32::MAX - 2, u32::MAX - 1, u32::MAX, 0, 1, 2, 3]
        .into_iter()
        .filter(|byte| segment.holds(*byte))
        .collect();
    assert_eq!(held, [u32::MAX - 1, u32::MAX, 0, 1]);
    assert!(!Segment { len: 0, ..segment }.holds(u32::MAX - 1));
    assert_eq!(segment.key(true), (true, 5, u32::MAX - 1));
    assert_eq!(segment.key(false), (false, 5, u32::MAX - 1));
}

#[test]
fn tables_are_their_keys_own_hash_and_are_cleared_once_they_hold_too_much() {
    let mut table: Table<u8> = Table::default();
    assert_eq!([0, 7, u64::MAX].map(|key: u64| table.hasher().hash_one(key)), [0, 7, u64::MAX]);
    table.extend((0..REMEMBERED as u64).map(|key| (key, 1)));
    clear_full(&mut table);
    assert_eq!(table.len(), REMEMBERED);
    table.insert(u64::MAX, 1);
    clear_full(&mut table);
    assert!(table.is_empty());
}

#[test]
fn each_sighting_has_a_name_of_its_own() {
    let (of, all) =
        (None, [Sighting::Unknown, Sighting::Arrival, Sighting::Own, Sighting::OtherHost]);
    let names = all.into_iter().chain([Sighting::Second { of }, Sighting::Lower { of }]);
    let names: Vec<_> = names.map(Sighting::name).collect();
    assert_eq!(names, ["unknown", "arrival", "own", "other_host", "second", "lower"]);
}
