//! From creation to death: confirmation, zones, helpers, translation, accounting.

use crate::net::*;
use conntrack::{Certainty, Config, Confirmation, Direction, Mode, Space, Status, Tuple, Zone};
use packet::craft::{Addresses, Message};

#[test]
fn a_flow_exists_once_its_first_packet_left() {
    let mut net = Net::kernel();
    let udp = || Message::udp(4000, 53);
    assert_eq!(net.drop(V4, udp()), Some(New));
    assert_eq!(net.pass(back(V4), Message::udp(53, 4000)), Some(New), "nobody asked");
    assert_eq!(net.pass(V4, udp()), Some(Established), "now it answers");
}

#[test]
fn an_unconfirmed_flow_is_forgotten_by_the_next_packet() {
    let mut net = Net::kernel();
    for port in 0..100 {
        net.with_frame(&frame(V4, Message::udp(port, 53), 0), usize::MAX, |net, _, view| {
            assert!(view.is_first);
            assert_eq!(net.tracker.flow(view.flow.unwrap()).unwrap().expires_in(net.now), 0);
        });
    }
    assert!(net.tracker.len() <= 1);
}

#[test]
fn zones_keep_equal_tuples_apart() {
    let mut net = Net::kernel();
    let (there, answer) = (Message::udp(4000, 53), Message::udp(53, 4000));
    net.template.zone = Zone::both(1);
    assert_eq!(net.pass(V4, there.clone()), Some(New));
    net.template.zone = Zone::default();
    assert_eq!(net.pass(back(V4), answer.clone()), Some(New), "not of zone 0");
    net.template.zone = Zone::both(1);
    assert_eq!(net.pass(back(V4), answer.clone()), Some(Established));

    let mut net = Net::kernel();
    net.template.zone = Zone { id: 1, original: true, reply: false };
    assert_eq!(net.pass(V4, there), Some(New));
    net.template.zone = Zone::default();
    assert_eq!(net.pass(back(V4), answer), Some(Established), "replies are in zone 0");
}

#[test]
fn packets_and_bytes_are_counted_for_each_direction() {
    let mut net = Net::kernel();
    net.pass_frame(&frame(V4, Message::udp(4000, 53), 10));
    net.pass_frame(&frame(V4, Message::udp(4000, 53), 20));
    net.pass_frame(&frame(back(V4), Message::udp(53, 4000), 100));
    let flow = net.flow();
    let counts = |direction| {
        let counters = flow.counters(direction);
        (counters.packets, counters.bytes)
    };
    assert_eq!(counts(Direction::Original), (2, 38 + 48));
    assert_eq!(counts(Direction::Reply), (1, 128));
}

#[test]
fn a_translated_flow_is_found_by_what_replies_look_like() {
    let mut net = Net::kernel();
    let router = [192, 0, 2, 1];
    net.with_frame(&frame(V4, Message::udp(4000, 53), 0), usize::MAX, |net, packet, view| {
        let handle = view.flow.unwrap();
        let reply = *net.tracker.flow(handle).unwrap().tuple(Direction::Reply);
        let translated = reply.with_destination(router.into(), 6000);
        assert_eq!(net.tracker.is_taken(&translated, handle, net.now), Some(false));
        assert!(net.tracker.translate(handle, translated, Status::SRC_NAT));
        net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
        assert!(!net.tracker.translate(handle, reply, Status::SRC_NAT), "too late");
    });
    let answer = Addresses::V4 { source: [10, 0, 0, 2], destination: router };
    let view = net.pass_frame(&frame(answer, Message::udp(53, 6000), 0));
    assert_eq!((view.state(), view.direction), (Some(Established), Direction::Reply));
    assert_eq!(net.drop(back(V4), Message::udp(53, 4000)), Some(New), "not by the plain inverse");
    // Another flow cannot have the same replies.
    net.with_frame(&frame(V4, Message::udp(4001, 53), 0), usize::MAX, |net, packet, view| {
        let handle = view.flow.unwrap();
        let same = *net.tracker.flow(handle).unwrap().tuple(Direction::Reply);
        let same = same.with_destination(router.into(), 6000);
        assert_eq!(net.tracker.is_taken(&same, handle, net.now), Some(true));
        net.tracker.translate(handle, same, Status::SRC_NAT);
        let end = net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
        assert_eq!(
            end,
            Confirmation::Clash,
            "also a datagram: no flow is merged with one it finds"
        );
    });
    assert_eq!(net.tracker.living(net.now).count(), 1);
}

#[test]
fn a_full_table_never_holds_more_than_its_limit() {
    let mut net = Net::new(Config { max: 100, ..kernel() });
    for port in 0..5000 {
        let view = net.pass_frame(&frame(V4, Message::udp(port, 53), 0));
        let space = if port < 100 { Space::Enough } else { Space::MayBeFull };
        assert_eq!((view.state(), view.space), (Some(New), space));
        assert!(net.tracker.len() <= 100);
    }
    assert!(net.tracker.stats().early_drops > 4000);
}

#[test]
fn off_knows_nothing() {
    let mut net = Net::new(Config { mode: Mode::Off, ..kernel() });
    assert_eq!(net.pass(V4, Message::udp(1, 2)), None);
    assert!(net.tracker.is_empty());
}

#[test]
fn a_flow_to_oneself_on_one_port_is_answered_by_its_next_packet() {
    let own = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 1] };
    let mut net = Net::kernel();
    assert_eq!(net.pass(own, Message::udp(5, 5)), Some(New));
    assert_eq!(net.pass(own, Message::udp(5, 5)), Some(Established));
}

#[test]
fn a_tuple_can_be_asked_for() {
    let mut net = Net::kernel();
    net.pass(V4, Message::udp(4000, 53));
    let reply = Tuple::new([10, 0, 0, 2].into(), [10, 0, 0, 1].into(), 17, [53, 4000]);
    let (_, direction) = net.tracker.find(&reply, Zone::default(), net.now).unwrap();
    assert_eq!(direction, Direction::Reply);
    assert_eq!(net.tracker.find(&reply, Zone::both(9), net.now), None);
}

/// A datagram's flow whose source gets this port at the router.
fn masqueraded(net: &mut Net, ports: [u16; 2], port: u16) {
    net.with_frame(
        &frame(V4, Message::udp(ports[0], ports[1]), 0),
        usize::MAX,
        |net, packet, view| {
            let handle = view.flow.unwrap();
            let reply = *net.tracker.flow(handle).unwrap().tuple(Direction::Reply);
            let reply = reply.with_destination([192, 0, 2, 1].into(), port);
            net.tracker.translate(handle, reply, Status::SRC_NAT);
            net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
        },
    );
}

/// `find_appropriate_src`: a source keeps the mapping that it has, as long as a flow lives that has it.
#[test]
fn the_mapping_of_a_source_is_found_while_its_flow_lives() {
    let mapped = |net: &mut Net| {
        net.with_frame(&frame(V4, Message::udp(4000, 99), 0), usize::MAX, |net, _, view| {
            let others = net.tracker.of_same_source(view.flow.unwrap(), net.now);
            others.map(|flow| flow.tuple(Direction::Reply).destination_part()).collect::<Vec<_>>()
        })
    };
    let mut net = Net::kernel();
    masqueraded(&mut net, [4000, 53], 6000);
    masqueraded(&mut net, [4001, 53], 6001);
    assert_eq!(mapped(&mut net), [6000]);
    net.wait(31);
    assert_eq!(mapped(&mut net), []);
}

#[test]
fn a_source_with_another_port_is_told() {
    let mut net = Net::kernel();
    masqueraded(&mut net, [4000, 53], 4000);
    assert!(net.tracker.keeps_ports());
    masqueraded(&mut net, [4001, 53], 6001);
    assert!(!net.tracker.keeps_ports());
}

/// `nf_nat_used_tuple_new`: datagrams keep their tuple where two hosts send to each other, replies in another zone.
#[test]
fn the_other_side_of_a_datagram_is_no_clash_but_that_of_a_connection_is() {
    let is_reverse = |there: Message, turned: Message| {
        let mut net = Net::kernel();
        net.template.zone = Zone { id: 1, original: false, reply: true };
        net.pass(V4, there);
        net.template.zone = Zone::default();
        net.with_frame(&frame(back(V4), turned, 0), usize::MAX, |net, _, view| {
            let handle = view.flow.unwrap();
            let reply = *net.tracker.flow(handle).unwrap().tuple(Direction::Reply);
            assert_eq!(net.tracker.is_taken(&reply, handle, net.now), Some(true));
            net.tracker.is_reverse(&reply, handle, net.now)
        })
    };
    assert!(is_reverse(Message::udp(4000, 53), Message::udp(53, 4000)));
    assert!(!is_reverse(Message::tcp(4000, 80, SYN), Message::tcp(80, 4000, SYN)));
}
