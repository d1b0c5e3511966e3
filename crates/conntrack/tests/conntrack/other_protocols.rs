//! UDP, UDP-Lite, SCTP, GRE and protocols without a tracker.

use crate::icmp::error;
use crate::net::*;
use conntrack::{Config, CtState, Direction, Space, Status, sctp};
use packet::craft::{Addresses, Craft, Message};

fn left(net: &Net) -> u64 {
    net.flow().expires_in(net.now) / SECOND
}

#[test]
fn an_answered_datagram_flow_is_a_stream_after_two_seconds() {
    for addresses in [V4, V6] {
        let mut net = Net::kernel();
        let (there, answer) = (Message::udp(4000, 53), Message::udp(53, 4000));
        assert_eq!(net.pass(addresses, there.clone()), Some(New));
        assert_eq!(left(&net), 30);
        assert_eq!(net.pass(back(addresses), answer.clone()), Some(Established));
        assert_eq!(net.pass(addresses, there.clone()), Some(Established));
        assert_eq!(left(&net), 30);
        assert!(!net.flow().status().contains(Status::ASSURED));
        net.wait(3);
        assert_eq!(net.pass(back(addresses), answer), Some(Established));
        assert_eq!(left(&net), 120);
        assert!(net.flow().status().contains(Status::ASSURED));
        net.wait(121);
        assert_eq!(net.pass(addresses, there), Some(New), "its time is over");
    }
}

#[test]
fn datagrams_that_lie_are_invalid() {
    let mut net = Net::kernel();
    let good = frame(V4, Message::udp(4000, 53), 10);
    let with = |range: std::ops::Range<usize>, value: [u8; 2]| {
        let mut bytes = good.clone();
        bytes[range].copy_from_slice(&value);
        bytes
    };
    assert_eq!(net.pass_frame(&with(24..26, [0, 19])).state(), Some(Invalid), "too long");
    assert_eq!(net.pass_frame(&with(24..26, [0, 7])).state(), Some(Invalid), "too short");
    assert_eq!(net.pass_frame(&with(26..28, [1, 1])).state(), Some(Invalid), "checksum");
    assert_eq!(net.pass_frame(&with(26..28, [0, 0])).state(), Some(New), "no checksum");
    let mut unverified = Net::new(Config { checksums: packet::Checksums::Ignore, ..kernel() });
    assert_eq!(unverified.pass_frame(&with(26..28, [1, 1])).state(), Some(New));
}

#[test]
fn udp_lite_wants_a_checksum_over_what_it_covers() {
    let pseudo = packet::checksum::pseudo_v4([10, 0, 0, 1], [10, 0, 0, 2], 17, 16);
    let lite = |coverage: u16, good: bool| {
        let mut header = vec![0x0f, 0xa0, 0, 53];
        header.extend_from_slice(&coverage.to_be_bytes());
        header.extend_from_slice(&[0, 0]);
        let mut bytes = frame(V4, Message::Other { protocol: 136, header }, 8);
        let covered = if coverage == 0 { 16 } else { usize::from(coverage).min(16) };
        let upper = &bytes[20..20 + covered];
        let sum = !packet::checksum::add(packet::checksum::sum(upper), pseudo);
        let stored = if good { sum } else { 0 };
        bytes[26..28].copy_from_slice(&stored.to_be_bytes());
        bytes
    };
    for (coverage, good, expected) in [
        (0, true, New),
        (8, true, New),
        (16, true, New),
        (7, true, Invalid),
        (17, true, Invalid),
        (8, false, Invalid),
    ] {
        let state = Net::kernel().pass_frame(&lite(coverage, good)).state();
        assert_eq!(state, Some(expected), "{coverage} {good}");
    }
    let mut unfinished = lite(8, true);
    unfinished[26..28].copy_from_slice(&pseudo.to_be_bytes());
    let state = Net::kernel().pass_frame(&unfinished).state();
    assert_eq!(state, Some(Invalid), "no network card finishes it");
}

#[test]
fn gre_flows_are_told_apart_by_call_only() {
    let gre = |header: &[u8]| Message::Other { protocol: 47, header: header.to_vec() };
    let pptp = |call: u8| gre(&[0x30, 0x01, 0x88, 0x0b, 0, 4, 0, call, 0, 0, 0, 0]);
    let mut net = Net::kernel();
    let keyed = |key: u8| gre(&[0x20, 0, 8, 0, 0, 0, 0, key]);
    assert_eq!(net.pass(V4, keyed(1)), Some(New));
    assert_eq!(left(&net), 30);
    assert_eq!(net.pass(back(V4), keyed(2)), Some(Established), "keys do not matter");
    assert_eq!(net.pass(V4, gre(&[0, 0, 8, 0])), Some(Established));
    assert_eq!(left(&net), 180);
    assert_eq!(net.pass(V4, pptp(5)), Some(New), "calls do");
    assert_eq!(net.pass(V4, gre(&[0x30, 0x01, 0x08, 0, 0, 4, 0, 9])), Some(Invalid));
    assert_eq!(net.pass(V4, gre(&[0])), Some(Established), "too short for a key");
}

#[test]
fn protocols_without_a_tracker_have_one_flow_between_two_hosts() {
    for protocol in [2, 33, 50, 89, 255] {
        let mut net = Net::kernel();
        let any = |first: u8| Message::Other { protocol, header: vec![first; 12] };
        assert_eq!(net.pass(V4, any(1)), Some(New));
        assert_eq!(left(&net), 600);
        assert_eq!(net.pass(back(V4), any(9)), Some(Established));
        let view = net.pass_frame(&frame(V4, any(7), 0));
        assert_eq!((view.state(), view.direction), (Some(Established), Direction::Original));
    }
    let mut net = Net::kernel();
    let none = Message::Other { protocol: 59, header: vec![] };
    assert_eq!(net.pass(V6, none), Some(Invalid), "no next header");
}

#[test]
fn dccp_is_unknown_where_a_kernel_has_a_tracker_for_it() {
    let mut net = Net::new(Config { dccp_is_generic: false, ..kernel() });
    let message = |protocol| Message::Other { protocol, header: vec![1; 12] };
    let sent = frame(V4, message(33), 0);
    assert_eq!(net.pass(V4, message(33)), None);
    assert_eq!(net.pass(back(V4), message(33)), None, "no connection is known to be there");
    let space = |net: &mut Net, len| net.pass_frame(&frame(V4, message(33), len)).space;
    assert_eq!(
        space(&mut net, 15),
        Space::Unmodelled,
        "6.1.192 drops what lacks some of its header"
    );
    assert_eq!(space(&mut net, 16), Space::Enough);
    assert_eq!(net.pass(V4, message(50)), Some(New), "others are as ever");
    let error = error(back(V4), 3, &sent, sent.len());
    assert_eq!(net.pass_frame(&error).state(), None, "nor is that an error is about one");
}

/// An SCTP packet between ports 7 and 8 or back, its CRC correct.
pub(crate) fn chunks(addresses: Addresses, is_back: bool, tag: u32, chunks: &[&[u8]]) -> Vec<u8> {
    let mut header = if is_back { vec![0, 8, 0, 7] } else { vec![0, 7, 0, 8] };
    header.extend_from_slice(&tag.to_be_bytes());
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&chunks.concat());
    let crc = crc32c(&header);
    header[8..12].copy_from_slice(&crc.to_le_bytes());
    frame(addresses, Message::Other { protocol: 132, header }, 0)
}

/// Bit by bit, as the slow reference.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 }
        })
    })
}

pub(crate) fn init(kind: u8, tag: u32) -> Vec<u8> {
    let mut chunk = vec![kind, 0, 0, 20];
    chunk.extend_from_slice(&tag.to_be_bytes());
    chunk.extend_from_slice(&[0; 12]);
    chunk
}

#[test]
fn an_association_opens_and_shuts_down() {
    for addresses in [V4, V6] {
        let mut net = Net::kernel();
        let mut say = |is_back: bool, tag: u32, chunk: &[u8]| -> Option<CtState> {
            let way = if is_back { back(addresses) } else { addresses };
            net.pass_frame(&chunks(way, is_back, tag, &[chunk])).state()
        };
        assert_eq!(say(false, 0, &init(1, 11)), Some(New));
        assert_eq!(say(true, 11, &init(2, 22)), Some(Established));
        assert_eq!(say(false, 99, &[10, 0, 0, 4]), Some(Invalid), "a wrong tag");
        assert_eq!(say(false, 22, &[10, 0, 0, 4]), Some(Established));
        assert_eq!(say(true, 11, &[11, 0, 0, 4]), Some(Established));
        assert_eq!(say(false, 22, &[0, 3, 0, 4]), Some(Established), "data");
        assert_eq!(say(false, 22, &[0, 3, 0, 0]), Some(Invalid), "an empty chunk");
        assert_eq!(say(false, 22, &[7, 0, 0, 8, 0, 0, 0, 0]), Some(Established));
        assert_eq!(say(true, 11, &[8, 0, 0, 4]), Some(Established));
        assert_eq!(say(false, 22, &[14, 0, 0, 4]), Some(Established));
        let flow = net.flow();
        let conntrack::Proto::Sctp(sctp) = flow.proto() else { panic!("{flow:?}") };
        assert_eq!(sctp.state, sctp::State::Closed);
        assert!(flow.status().contains(Status::ASSURED));
        assert_eq!(left(&net), 10);
    }
}

#[test]
fn what_begins_no_association_is_invalid() {
    for (tag, chunk, expected) in [
        (5, init(1, 11), Invalid),
        (5, vec![0, 3, 0, 4], Invalid),
        (5, vec![6, 0, 0, 4], Invalid),
        (5, vec![11, 0, 0, 4], Invalid),
        (0, vec![0, 3, 0, 4], Invalid),
        (0, vec![6, 0, 0, 4], Invalid),
        (0, vec![11, 0, 0, 4], Invalid),
        (0, vec![14, 0, 0, 4], Invalid),
        (5, vec![4, 0, 0, 4], New),
        (0, vec![1, 0, 0, 4], Invalid),
    ] {
        let bytes = chunks(V4, false, tag, &[&chunk]);
        assert_eq!(Net::kernel().pass_frame(&bytes).state(), Some(expected), "{chunk:?}");
    }
    let mut wrong = chunks(V4, false, 0, &[&init(1, 11)]);
    wrong[28] ^= 1;
    assert_eq!(Net::kernel().pass_frame(&wrong).state(), Some(Invalid), "checksum");
}

#[test]
fn a_heartbeat_opens_another_path() {
    let mut net = Net::kernel();
    let heartbeat = chunks(V4, false, 5, &[&[4, 0, 0, 4]]);
    assert_eq!(net.pass_frame(&heartbeat).state(), Some(New));
    let answer = chunks(back(V4), true, 6, &[&[5, 0, 0, 4]]);
    assert_eq!(net.pass_frame(&answer).state(), Some(Established));
    assert!(net.flow().status().contains(Status::ASSURED));
}

/// An association between 11 of the client and 22 of the server.
fn associated(net: &mut Net) {
    for (is_back, tag, chunk) in [
        (false, 0, init(1, 11)),
        (true, 11, init(2, 22)),
        (false, 22, vec![10, 0, 0, 4]),
        (true, 11, vec![11, 0, 0, 4]),
    ] {
        let way = if is_back { back(V4) } else { V4 };
        net.pass_frame(&chunks(way, is_back, tag, &[&chunk]));
    }
    assert!(net.flow().status().contains(Status::ASSURED));
}

fn says(net: &mut Net, is_back: bool, tag: u32, said: &[&[u8]]) -> Option<CtState> {
    let way = if is_back { back(V4) } else { V4 };
    net.pass_frame(&chunks(way, is_back, tag, said)).state()
}

const DATA: &[u8] = &[0, 3, 0, 4];
const HEARTBEAT: &[u8] = &[4, 0, 0, 4];
const HEARTBEAT_ACK: &[u8] = &[5, 0, 0, 4];

/// `nf_conntrack_sctp_packet`, SCTP_FLAG_HEARTBEAT_VTAG_FAILED.
#[test]
fn tags_that_a_heartbeat_brings_hold_once_the_other_side_has_answered_it() {
    let mut net = Net::kernel();
    associated(&mut net);
    assert_eq!(says(&mut net, false, 77, &[HEARTBEAT, DATA]), Some(Invalid), "with data");
    assert_eq!(says(&mut net, true, 99, &[HEARTBEAT_ACK]), Some(Invalid), "nobody asked");
    net.wait(10);
    assert_eq!(says(&mut net, false, 77, &[HEARTBEAT]), Some(Established));
    assert_eq!(left(&net), 200, "it does not renew the timeout");
    assert_eq!(says(&mut net, false, 77, &[HEARTBEAT_ACK]), Some(Invalid), "its own side");
    assert_eq!(says(&mut net, true, 99, &[HEARTBEAT_ACK]), Some(Established));
    assert_eq!(says(&mut net, true, 11, &[DATA]), Some(Invalid), "the tag of before");
    assert_eq!(says(&mut net, true, 99, &[DATA]), Some(Established));
    assert_eq!(says(&mut net, false, 77, &[HEARTBEAT]), Some(Established));
    assert_eq!(says(&mut net, false, 77, &[DATA]), Some(Established));
}

#[test]
fn an_init_that_nobody_answers_does_not_renew_the_timeout() {
    let mut net = Net::kernel();
    assert_eq!(says(&mut net, false, 0, &[&init(1, 11)]), Some(New));
    net.wait(4);
    assert_eq!(says(&mut net, false, 0, &[&init(1, 11)]), Some(New));
    assert_eq!(left(&net), 6);
}

/// Measured: a flow that begins with the answer to a heartbeat knows the tag of that direction alone.
#[test]
fn an_answer_to_a_heartbeat_leaves_the_other_tag_open() {
    let mut net = Net::kernel();
    assert_eq!(says(&mut net, false, 5, &[HEARTBEAT_ACK]), Some(New));
    assert_eq!(says(&mut net, true, 6, &[HEARTBEAT]), Some(Established));
    assert_eq!(says(&mut net, true, 6, &[DATA]), Some(Established));
    assert_eq!(says(&mut net, true, 5, &[DATA]), Some(Invalid));
}

#[test]
fn an_init_within_an_association_renews_the_timeout() {
    let mut net = Net::kernel();
    associated(&mut net);
    net.wait(10);
    assert_eq!(says(&mut net, false, 0, &[&init(1, 33)]), Some(Established));
    assert_eq!(left(&net), 210);
}

/// RFC 9260 section 5.2.1: both sides open at once, and acknowledge with the tags that they began with.
#[test]
fn acknowledgements_of_a_collision_have_the_tags_of_its_inits() {
    for (tag, expected) in [(11, Established), (33, Invalid)] {
        let mut net = Net::kernel();
        assert_eq!(says(&mut net, false, 0, &[&init(1, 11)]), Some(New));
        assert_eq!(says(&mut net, true, 0, &[&init(1, 22)]), Some(Established));
        assert_eq!(says(&mut net, false, 22, &[&init(2, tag)]), Some(expected), "{tag}");
    }
}

/// A tunnel's outer sum counts on the inner sum that the network card will finish (`lco_csum`).
#[test]
fn the_sum_of_a_tunnel_over_an_unfinished_inner_one_is_not_wrong() {
    const INNER: usize = 20 + 8 + 8;
    const SUM: usize = INNER + 14 + 20 + 16;
    let inner = Craft::new(V4, Message::tcp(4000, 80, packet::tcp::Flags::SYN)).frame();
    for header in [[8, 0, 0, 0, 0, 0, 77, 0], [0, 0, 0x65, 0x58, 0, 0, 77, 0]] {
        let message = Message::udp(4000, 4789);
        let payload_len = header.len() + inner.len();
        let mut frame = Craft { ethernet: None, payload_len, ..Craft::new(V4, message) }.frame();
        frame[28..INNER].copy_from_slice(&header);
        frame[INNER..].copy_from_slice(&inner);
        // The outer sum is that over the finished inner one, which then is taken back to the pseudo header's.
        frame[26..28].fill(0);
        let len = (frame.len() - 20) as u16;
        let pseudo = |protocol, len| {
            let Addresses::V4 { source, destination } = V4 else { unreachable!() };
            packet::checksum::pseudo_v4(source, destination, protocol, len)
        };
        let sum = packet::checksum::add(packet::checksum::sum(&frame[20..]), pseudo(17, len));
        frame[26..28].copy_from_slice(&(!sum).to_be_bytes());
        let inner_len = (frame.len() - INNER - 14 - 20) as u16;
        frame[SUM..SUM + 2].copy_from_slice(&pseudo(6, inner_len).to_be_bytes());
        assert_eq!(Net::kernel().pass_frame(&frame).state(), Some(New));
        frame[26] ^= 1;
        assert_eq!(Net::kernel().pass_frame(&frame).state(), Some(CtState::Invalid));
    }
}
