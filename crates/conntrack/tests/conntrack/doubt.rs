//! What is not known stays open: unknown verdicts, bytes that were not captured.

use crate::net::*;
use conntrack::{Certainty, Config, CtState, CtView, Direction, Doubt, States, Visit, Zone};
use packet::craft::{Addresses, Message};

/// A packet whose verdict is not known.
fn maybe(net: &mut Net, frame: &[u8]) -> CtView {
    net.with_frame(frame, usize::MAX, |net, packet, view| {
        net.tracker.confirm(packet, &view, net.now, Certainty::Maybe);
        view
    })
}

fn udp(addresses: Addresses, ports: [u16; 2]) -> Vec<u8> {
    frame(addresses, Message::udp(ports[0], ports[1]), 0)
}

fn either(a: CtState, b: CtState) -> States {
    States::of(a).or(b.into())
}

#[test]
fn after_an_unknown_verdict_the_answer_may_be_new_or_established() {
    let mut net = Net::kernel();
    assert_eq!(maybe(&mut net, &udp(V4, [4000, 53])).state(), Some(New));
    assert_eq!(net.flow().doubt(), Doubt::Existence);
    let again = net.pass_frame(&udp(V4, [4000, 53]));
    assert_eq!(again.state(), Some(New), "with or without a flow");
    let answer = net.pass_frame(&udp(back(V4), [53, 4000]));
    assert_eq!(answer.states, either(New, Established));
    assert_eq!(net.flow().doubt(), Doubt::History);
}

#[test]
fn a_doubtful_connection_may_be_invalid_as_well() {
    let mut net = Net::kernel();
    let line = Line::new(V4);
    assert_eq!(maybe(&mut net, &line.there(SYN, 1000, 0).frame()).state(), Some(New));
    let answer = net.pass_frame(&line.back(SYN_ACK, 5000, 1001).frame());
    assert_eq!(answer.states, either(Invalid, Established));
    let third = net.pass_frame(&line.there(ACK, 1001, 5001).frame());
    assert_eq!(third.states, either(New, Established).or(Invalid.into()));
}

#[test]
fn a_doubtful_flow_does_not_end_with_a_reset() {
    let mut net = Net::kernel();
    let line = Line::new(V4);
    maybe(&mut net, &line.there(SYN, 1000, 0).frame());
    net.pass_frame(&line.back(RST_ACK, 0, 1001).frame());
    net.wait(1000);
    let later = net.pass_frame(&line.there(ACK, 1001, 5001).frame());
    assert_eq!(later.states, either(New, Established).or(Invalid.into()));
}

#[test]
fn a_packet_that_may_not_have_come_leaves_its_flow_in_doubt() {
    let mut net = Net::kernel();
    net.pass_frame(&udp(V4, [4000, 53]));
    let answer = &mut udp(back(V4), [53, 4000]);
    let len = answer.len();
    let packet = packet::Packet::parse(answer, len, packet::Link::Raw, packet::Checksums::Ignore);
    let visit = Visit { certainty: Certainty::Maybe, ..net.visit() };
    assert_eq!(net.tracker.track(&packet, &visit).state(), Some(Established));
    let next = net.pass_frame(&udp(V4, [4000, 53]));
    assert_eq!(next.states, either(New, Established));
}

#[test]
fn a_certain_flow_stays_certain_whatever_becomes_of_its_packets() {
    let mut net = Net::kernel();
    net.pass_frame(&udp(V4, [4000, 53]));
    assert_eq!(maybe(&mut net, &udp(back(V4), [53, 4000])).state(), Some(Established));
    assert_eq!(net.pass_frame(&udp(V4, [4000, 53])).state(), Some(Established));
    assert_eq!(net.flow().doubt(), Doubt::None);
    assert_eq!(net.tracker.doubtful(net.now), 0);
}

#[test]
fn errors_about_a_doubtful_flow_are_related_or_invalid() {
    let mut net = Net::new(Config { checksums: packet::Checksums::Ignore, ..kernel() });
    let quoted = udp(V4, [4000, 53]);
    maybe(&mut net, &quoted);
    let router = Addresses::V4 { source: [10, 9, 9, 9], destination: [10, 0, 0, 1] };
    let message = Message::Icmp { kind: 3, code: 1, id: 0, sequence: 0 };
    let view = net.pass_frame(&with_payload(router, message, &quoted));
    assert_eq!(view.states, either(Related, Invalid));
}

#[test]
fn a_packet_of_a_doubtful_flow_may_begin_one_with_replies_in_another_zone() {
    let mut net = Net::new(Config { checksums: packet::Checksums::Ignore, ..kernel() });
    net.template.zone = Zone { id: 2, original: true, reply: false };
    maybe(&mut net, &udp(V4, [4000, 53]));
    net.template.zone = Zone::default();
    let answer = udp(back(V4), [53, 4000]);
    assert_eq!(net.pass_frame(&answer).states, either(New, Established));
    let message = Message::Icmp { kind: 3, code: 1, id: 0, sequence: 0 };
    let router = Addresses::V4 { source: [10, 9, 9, 9], destination: [10, 0, 0, 2] };
    let about = net.pass_frame(&with_payload(router, message, &answer));
    assert_eq!(about, CtView::UNKNOWN, "RELATED if the answer began a flow, else INVALID");
    assert_eq!(net.pass(V4, Message::udp(4001, 53)), Some(New), "another port is known");
    let there = maybe(&mut net, &udp(V4, [4000, 53]));
    assert!(there.states.may_be(New) && there.states.may_be(Established), "{:?}", there.states);
}

/// A reset that may have been dropped before it was tracked.
#[test]
fn a_flow_that_a_packet_ends_which_may_not_have_come_may_live() {
    let mut net = Net::kernel();
    let line = Line::new(V4);
    open(&mut net, line);
    let reset = &mut line.back(RST, 5001, 0).frame();
    let len = reset.len();
    let packet = packet::Packet::parse(reset, len, packet::Link::Raw, packet::Checksums::Ignore);
    let visit = Visit { certainty: Certainty::Maybe, ..net.visit() };
    net.tracker.track(&packet, &visit);
    let next = net.pass_frame(&line.there(ACK, 1001, 5001).frame());
    assert!(next.states.may_be(Established) && next.states.may_be(New), "{:?}", next.states);
}

#[test]
fn ports_that_were_not_captured_leave_everything_open() {
    let mut net = Net::kernel();
    let view = net.with_frame(&udp(V4, [1, 2]), 22, |_, _, view| view);
    assert_eq!(view, CtView::UNKNOWN);
    assert!(net.tracker.is_empty());
}

#[test]
fn a_checksum_over_bytes_that_were_not_captured_is_not_guessed() {
    let mut net = Net::kernel();
    let long = frame(V4, Message::udp(4000, 53), 100);
    net.with_frame(&long, 60, |net, packet, view| {
        assert_eq!(view.states, States::ANY);
        net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
    });
    let answer = net.pass_frame(&udp(back(V4), [53, 4000]));
    assert_eq!(answer.states, either(New, Established), "the first one may have been INVALID");
    let mut ignoring = Net::new(Config { checksums: packet::Checksums::Ignore, ..kernel() });
    let view = ignoring.with_frame(&long, 60, |_, _, view| view);
    assert_eq!(view.state(), Some(New));
}

#[test]
fn a_scale_that_was_not_captured_makes_far_segments_doubtful_only() {
    let mut net = Net::new(Config { checksums: packet::Checksums::Ignore, ..kernel() });
    let line = Line::new(V4);
    let syn = line.there(SYN, 1000, 0).options(&[1, 3, 3, 7]).frame();
    net.with_frame(&syn, 40, |net, packet, view| {
        assert_eq!(view.state(), Some(New));
        net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
    });
    assert_eq!(line.back(SYN_ACK, 5000, 1001).pass(&mut net), Some(Established));
    assert_eq!(line.there(ACK, 1001, 5001).pass(&mut net), Some(Established));
    assert_eq!(line.back(ACK, 5001, 1001).payload(100).pass(&mut net), Some(Established));
    let far = net.pass_frame(&line.back(ACK, 5001 + 200_000, 1001).frame());
    assert_eq!(far.states, either(Invalid, Established));
}

#[test]
fn what_a_dead_flow_was_taken_for_is_forgotten_with_it() {
    let mut net = Net::kernel();
    maybe(&mut net, &udp(V4, [4000, 53]));
    net.pass_frame(&udp(V4, [4000, 53]));
    net.wait(1000);
    assert_eq!(net.pass_frame(&udp(back(V4), [53, 4000])).state(), Some(New));
}

/// A mapping that another flow may have is neither free nor taken.
#[test]
fn what_a_doubtful_flow_has_may_be_taken() {
    let taken = |certainty| {
        let mut net = Net::kernel();
        net.with_frame(&udp(V4, [4000, 53]), usize::MAX, |net, packet, view| {
            net.tracker.confirm(packet, &view, net.now, certainty);
        });
        net.with_frame(&udp(V4, [4001, 53]), usize::MAX, |net, _, view| {
            let handle = view.flow.unwrap();
            let reply = *net.tracker.flow(handle).unwrap().tuple(Direction::Reply);
            let same = reply.with_destination(reply.destination(), 4000);
            net.tracker.is_taken(&same, handle, net.now)
        })
    };
    assert_eq!([taken(Certainty::Certain), taken(Certainty::Maybe)], [Some(true), None]);
}
