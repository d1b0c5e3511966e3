//! From creation to death: confirmation, zones, helpers, translation, accounting.

use crate::net::*;
use packet::craft::{Addresses, Message};
use rules::conntrack::{
    Certainty, Config, Confirmation, Direction, Helper, Mode, Status, Template, Tuple, Zone,
};

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
        assert!(view.state() == Some(New) || view.table_full);
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

/// An FTP control connection, both sides past their first line.
fn control(net: &mut Net) -> (Line, u32, u32) {
    let line = Line { ports: [40_000, 21], ..Line::new(V4) };
    net.template = Template { helper: Helper::Ftp, ..Template::default() };
    open(net, line);
    let (mut client, mut server) = (1001, 5001);
    say(net, &line, false, &mut client, server, "USER x\r\n");
    say(net, &line, true, &mut server, client, "220 hello\r\n");
    net.template = Template::default();
    (line, client, server)
}

fn say(net: &mut Net, line: &Line, is_back: bool, sequence: &mut u32, other: u32, text: &str) {
    let make = if is_back { Line::back } else { Line::there };
    let segment = make(line, ACK, *sequence, other);
    let message = Message::Tcp {
        source_port: segment.ports[0],
        destination_port: segment.ports[1],
        flags: ACK,
        sequence: *sequence,
        acknowledgement: other,
        window: 10_000,
    };
    let bytes = with_payload(segment.addresses, message, text.as_bytes());
    // The payload was written over the one that the checksum is of.
    let checksums = fix_checksum(bytes);
    assert_eq!(net.pass_frame(&checksums).state(), Some(Established), "{text}");
    *sequence += text.len() as u32;
}

fn fix_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[36..38].fill(0);
    let len = (bytes.len() - 20) as u16;
    let source = bytes[12..16].try_into().unwrap();
    let destination = bytes[16..20].try_into().unwrap();
    let pseudo = packet::checksum::pseudo_v4(source, destination, 6, len);
    let sum = !packet::checksum::add(packet::checksum::sum(&bytes[20..]), pseudo);
    bytes[36..38].copy_from_slice(&sum.to_be_bytes());
    bytes
}

#[test]
fn ftp_foretells_its_data_connections() {
    let mut net = Net::kernel();
    let (line, mut client, mut server) = control(&mut net);
    net.tracker.living(net.now).for_each(|flow| assert_eq!(flow.helper(), Helper::Ftp));
    say(&mut net, &line, false, &mut client, server, "PORT 10,0,0,1,117,48\r\n");
    assert_eq!(net.tracker.expected(), 1);
    let data = Line { addresses: back(V4), ports: [20, 117 << 8 | 48] };
    assert_eq!(data.there(SYN, 1, 0).pass(&mut net), Some(Related));
    assert_eq!(net.tracker.expected(), 0);
    assert_eq!(data.back(SYN_ACK, 1, 2).pass(&mut net), Some(Established));
    let expected = net.tracker.living(net.now).find(|f| f.status().contains(Status::EXPECTED));
    assert_eq!(expected.unwrap().master_helper(), Helper::Ftp);
    say(&mut net, &line, true, &mut server, client, "227 Passive (10,0,0,2,9,9)\r\n");
    let passive = Line { addresses: V4, ports: [40_001, 9 << 8 | 9] };
    assert_eq!(passive.there(SYN, 1, 0).pass(&mut net), Some(Related));
    say(&mut net, &line, false, &mut client, server, "PORT 10,0,0,77,1,1\r\n");
    assert_eq!(net.tracker.expected(), 0, "an address of another host is not believed");
}

#[test]
fn expectations_end_with_time_and_with_their_master() {
    let mut net = Net::kernel();
    let (line, mut client, server) = control(&mut net);
    say(&mut net, &line, false, &mut client, server, "PORT 10,0,0,1,117,48\r\n");
    net.wait(301);
    let data = Line { addresses: back(V4), ports: [20, 117 << 8 | 48] };
    assert_eq!(data.there(SYN, 1, 0).pass(&mut net), Some(New));
    let mut net = Net::kernel();
    let (line, mut client, server) = control(&mut net);
    say(&mut net, &line, false, &mut client, server, "PORT 10,0,0,1,117,48\r\n");
    line.back(RST, server, 0).pass(&mut net);
    net.wait(11);
    assert_eq!(line.there(SYN, 1, 0).pass(&mut net), Some(New), "the control connection is gone");
    assert_eq!(net.tracker.expected(), 0);
}

#[test]
fn tftp_answers_come_from_another_port() {
    let mut net = Net::kernel();
    net.template = Template { helper: Helper::Tftp, ..Template::default() };
    let request = with_payload(V4, Message::udp(4000, 69), b"\0\x01file\0octet\0");
    let mut request = request;
    request[26..28].fill(0);
    assert_eq!(net.pass_frame(&request).state(), Some(New));
    net.template = Template::default();
    assert_eq!(net.pass(back(V4), Message::udp(5555, 4000)), Some(Related));
    assert_eq!(net.pass(V4, Message::udp(4000, 5555)), Some(Established));
    assert_eq!(net.pass(back(V4), Message::udp(5556, 4000)), Some(New), "one only");
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
