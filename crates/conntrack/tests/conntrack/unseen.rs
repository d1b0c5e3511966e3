//! Captures that begin in the middle of connections, or hold one side of them.

use super::net::*;
use super::other_protocols::{chunks, init};
use conntrack::{Config, CtState, CtView, Mode, States, Taken, Unseen, Visit};
use packet::craft::Message;

fn net() -> Net {
    Net::new(Config { mode: Mode::Midstream, ..kernel() })
}

const FRESH: [CtState; 2] = [New, Established];

fn states(view: &CtView) -> Vec<CtState> {
    CtState::ALL.into_iter().filter(|state| view.states.may_be(*state)).collect()
}

#[track_caller]
fn expect(view: &CtView, expected: &[CtState], taken: Taken) {
    let union = expected.iter().map(|state| States::of(*state)).reduce(States::or).unwrap();
    assert_eq!((view.states, view.taken), (union, taken), "{:?}", states(view));
}

fn udp(ports: [u16; 2]) -> Vec<u8> {
    frame(V4, Message::Udp { source_port: ports[0], destination_port: ports[1] }, 4)
}

#[test]
fn a_datagram_near_the_start_is_new_or_of_a_stream_until_it_is_answered() {
    let mut net = net();
    for _ in 0..2 {
        expect(&net.pass_frame(&udp([7, 53])), &FRESH, Taken::For(New));
        net.wait(1);
    }
    let back = frame(back(V4), Message::Udp { source_port: 53, destination_port: 7 }, 4);
    expect(&net.pass_frame(&back), &[Established], Taken::Seen);
    expect(&net.pass_frame(&udp([7, 53])), &[Established], Taken::Seen);
    // A stream lives for two minutes.
    net.wait(116);
    expect(&net.pass_frame(&udp([8, 53])), &FRESH, Taken::For(New));
    net.wait(2);
    expect(&net.pass_frame(&udp([9, 53])), &[New], Taken::Seen);
    expect(&net.pass_frame(&udp([9, 53])), &[New], Taken::Seen);
}

#[test]
fn what_the_start_is_may_be_told() {
    let mut net = net();
    net.wait(1000);
    let view = net.visit_frame(&udp([7, 53]), |visit| Visit { began: Some(SECOND), ..visit });
    expect(&view, &[New], Taken::Seen);
}

#[test]
fn a_segment_is_of_an_established_connection_or_picked_up() {
    let mut net = net();
    let line = Line::new(V4);
    net.wait(10_000);
    for sequence in [1001, 1011] {
        let view = net.pass_frame(&line.there(ACK, sequence, 5001).payload(10).frame());
        expect(&view, &FRESH, Taken::For(Established));
        assert!(view.assumed);
    }
    expect(&net.pass_frame(&line.back(ACK, 5001, 1021).frame()), &[Established], Taken::Seen);
    expect(&net.pass_frame(&line.there(ACK, 1021, 5001).frame()), &[Established], Taken::Seen);
}

#[test]
fn a_connection_of_which_answers_are_missing_goes_on() {
    let mut net = net();
    let line = Line::new(V4);
    expect(&net.pass_frame(&line.there(SYN, 1000, 0).frame()), &[New], Taken::Seen);
    let all = [Invalid, New, Established];
    for sequence in [1001, 90_001] {
        let view = net.pass_frame(&line.there(ACK, sequence, 5001).payload(10).frame());
        expect(&view, &all, Taken::For(Established));
        assert_eq!(net.flow().unseen(), Unseen::Answers);
    }
    expect(&net.pass_frame(&line.back(ACK, 5001, 1011).frame()), &[Established], Taken::Seen);
}

#[test]
fn under_kernel_nothing_is_in_doubt() {
    let mut net = Net::kernel();
    let line = Line::new(V4);
    expect(&net.pass_frame(&udp([7, 53])), &[New], Taken::Seen);
    expect(&net.pass_frame(&line.there(SYN, 1000, 0).frame()), &[New], Taken::Seen);
    expect(&net.pass_frame(&line.there(ACK, 1001, 5001).frame()), &[Invalid], Taken::Seen);
    expect(&net.pass_frame(&line.back(RST, 5001, 0).frame()), &[Established], Taken::Seen);
}

#[test]
fn a_packet_that_begins_no_flow_may_be_of_one() {
    let mut net = net();
    let line = Line::new(V4);
    let lost = [Invalid, Established];
    let reply = || Message::Icmp { kind: 0, code: 0, id: 9, sequence: 1 };
    expect(&net.pass_frame(&frame(V4, reply(), 4)), &lost, Taken::For(Established));
    let syn_ack = line.there(SYN_ACK, 1, 1).frame();
    expect(&net.pass_frame(&syn_ack), &lost, Taken::For(Established));
    expect(&net.pass_frame(&line.there(RST, 1, 0).frame()), &lost, Taken::For(Invalid));
    net.wait(130);
    expect(&net.pass_frame(&syn_ack), &[Invalid], Taken::Seen);
    expect(&net.pass_frame(&frame(V4, reply(), 4)), &[Invalid], Taken::Seen);
    assert!(net.tracker.is_empty());
}

#[test]
fn what_a_host_answers_that_is_not_heard_is_not_known() {
    let mut net = net();
    net.pass_frame(&udp([1, 1]));
    net.wait(1000);
    let unheard = |visit| Visit { unheard: true, ..visit };
    let line = Line::new(V4);
    let mut at = |frame: &[u8]| net.visit_frame(frame, unheard);
    expect(&at(&line.there(SYN, 1000, 0).frame()), &[New], Taken::Seen);
    expect(&at(&line.there(SYN, 1000, 0).frame()), &FRESH, Taken::For(Established));
    let ack = line.there(ACK, 1001, 5001).frame();
    expect(&at(&ack), &[Invalid, New, Established], Taken::For(Established));
    expect(&at(&udp([7, 53])), &FRESH, Taken::ForNone);
    let other = Line { ports: [40_001, 80], ..line };
    expect(
        &at(&other.there(SYN_ACK, 1, 1).frame()),
        &[Invalid, Established],
        Taken::For(Established),
    );
}

/// RFC 9260 section 5.1: an association begins with an INIT, and with nothing else.
#[test]
fn an_init_begins_its_association_and_data_may_be_of_one_that_was_not_seen() {
    let init = chunks(V4, false, 0, &[&init(1, 11)]);
    expect(&net().pass_frame(&init), &[New], Taken::Seen);
    let data = chunks(V4, false, 5, &[&[0, 3, 0, 4]]);
    expect(&net().pass_frame(&data), &[Invalid, Established], Taken::For(Established));
}
