//! ICMP: queries and answers, and errors about other flows.

use crate::net::*;
use conntrack::{AnswerKind, Config, Direction, Tuple, answerable, answered};
use packet::craft::{Addresses, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link, Packet};

fn icmp(kind: u8, id: u16) -> Message {
    Message::Icmp { kind, code: 0, id, sequence: 1 }
}

#[test]
fn echo_requests_and_replies() {
    for (addresses, request, reply) in [(V4, 8, 0), (V6, 128, 129)] {
        let mut net = Net::kernel();
        assert_eq!(net.pass(addresses, icmp(request, 7)), Some(New));
        assert_eq!(net.pass(addresses, icmp(request, 7)), Some(New));
        assert_eq!(net.pass(back(addresses), icmp(reply, 8)), Some(Invalid), "another one's");
        assert_eq!(net.pass(back(addresses), icmp(reply, 7)), Some(Established));
        assert_eq!(net.pass(addresses, icmp(request, 7)), Some(Established));
        net.wait(31);
        assert_eq!(net.pass(back(addresses), icmp(reply, 7)), Some(Invalid));
    }
}

#[test]
fn which_types_begin_a_flow() {
    for kind in 0..=255 {
        let mut net = Net::kernel();
        let expected = if matches!(kind, 8 | 13 | 15 | 17) { New } else { Invalid };
        assert_eq!(net.pass(V4, icmp(kind, 7)), Some(expected), "ICMP {kind}");
        let expected = match kind {
            128 | 139 => New,
            // Multicast router discovery (RFC 4286) is exempt without its termination.
            130..=136 | 143 | 151 | 152 => Untracked,
            _ => Invalid,
        };
        assert_eq!(net.pass(V6, icmp(kind, 7)), Some(expected), "ICMPv6 {kind}");
    }
    // 6.1.192 calls both INVALID.
    let mut older = Net::new(Config { discovery_is_exempt: false, ..kernel() });
    for (kind, state) in [(151, None), (152, None), (143, Some(Untracked)), (153, Some(Invalid))] {
        assert_eq!(older.pass(V6, icmp(kind, 7)), state, "ICMPv6 {kind}");
    }
}

/// An error of this type from a router that quotes the first `len` bytes of a packet.
pub(crate) fn error(addresses: Addresses, kind: u8, quoted: &[u8], len: usize) -> Vec<u8> {
    let quoted = &quoted[..len.min(quoted.len())];
    let mut bytes = frame(addresses, icmp(kind, 0), quoted.len());
    let start = bytes.len() - quoted.len();
    bytes[start..].copy_from_slice(quoted);
    let network = if matches!(addresses, Addresses::V4 { .. }) { 20 } else { 40 };
    let upper = &mut bytes[network..];
    upper[2..4].fill(0);
    let mut sum = packet::checksum::sum(upper);
    if let Addresses::V6 { source, destination } = addresses {
        let pseudo = packet::checksum::pseudo_v6(source, destination, 58, upper.len() as u32);
        sum = packet::checksum::add(sum, pseudo);
    }
    upper[2..4].copy_from_slice(&(!sum).to_be_bytes());
    bytes
}

/// From a router to the client.
fn from_router(addresses: Addresses) -> Addresses {
    match back(addresses) {
        Addresses::V4 { destination, .. } => Addresses::V4 { source: [10, 9, 9, 9], destination },
        Addresses::V6 { destination, .. } => Addresses::V6 { source: [0x2f; 16], destination },
    }
}

#[test]
fn errors_are_related_to_the_flow_that_they_quote() {
    for (addresses, kinds, header) in
        [(V4, &[3u8, 4, 5, 11, 12][..], 20), (V6, &[1, 2, 3, 4][..], 40)]
    {
        let mut net = Net::kernel();
        let quoted = frame(addresses, Message::udp(4000, 53), 30);
        let answer = frame(back(addresses), Message::udp(53, 4000), 30);
        let early = error(from_router(addresses), kinds[0], &quoted, 60);
        assert_eq!(net.pass_frame(&early).state(), Some(Invalid), "no such flow yet");
        net.pass_frame(&quoted);
        net.pass_frame(&answer);
        for kind in kinds {
            let bytes = error(from_router(addresses), *kind, &quoted, 1000);
            let view = net.pass_frame(&bytes);
            assert_eq!((view.state(), view.direction), (Some(Related), Direction::Reply));
            assert!(view.flow.is_some());
            // About the answer, to the server: the other way.
            let to_server = back(from_router(back(addresses)));
            let bytes = error(back(to_server), *kind, &answer, 1000);
            let view = net.pass_frame(&bytes);
            assert_eq!((view.state(), view.direction), (Some(Related), Direction::Original));
        }
        let short = error(from_router(addresses), kinds[0], &quoted, header + 3);
        assert_eq!(net.pass_frame(&short).state(), Some(Invalid), "no ports quoted");
        let mut strange = quoted.clone();
        strange[header + 1] ^= 1;
        let strange = error(from_router(addresses), kinds[0], &strange, 1000);
        assert_eq!(net.pass_frame(&strange).state(), Some(Invalid), "another port");
    }
}

#[test]
fn an_error_must_go_where_the_flow_came_from() {
    let mut net = Net::kernel();
    let quoted = frame(V4, Message::udp(4000, 53), 30);
    net.pass_frame(&quoted);
    let elsewhere = Addresses::V4 { source: [10, 9, 9, 9], destination: [10, 0, 0, 77] };
    assert_eq!(net.pass_frame(&error(elsewhere, 3, &quoted, 1000)).state(), Some(Invalid));
    let fine = error(from_router(V4), 3, &quoted, 1000);
    assert_eq!(net.pass_frame(&fine).state(), Some(Related));
    let mut wrong = fine;
    wrong[22] ^= 1;
    assert_eq!(net.pass_frame(&wrong).state(), Some(Invalid), "checksum");
}

#[test]
fn errors_about_echo_and_tcp() {
    let mut net = Net::kernel();
    let echo = frame(V4, icmp(8, 7), 10);
    net.pass_frame(&echo);
    let syn = frame(V4, Message::tcp(1, 2, Flags::SYN), 0);
    net.pass_frame(&syn);
    for quoted in [echo, syn] {
        let bytes = error(from_router(V4), 11, &quoted, 28);
        assert_eq!(net.pass_frame(&bytes).state(), Some(Related), "eight bytes are enough");
    }
    let of_error = error(from_router(V4), 11, &error(V4, 3, &[0x45; 28], 28), 28);
    assert_eq!(net.pass_frame(&of_error).state(), Some(Invalid));
}

#[test]
fn a_redirect_of_neighbour_discovery_is_about_what_it_quotes() {
    let mut net = Net::kernel();
    let quoted = frame(V6, Message::udp(4000, 53), 30);
    net.pass_frame(&quoted);
    let Addresses::V6 { source: client, .. } = V6 else { unreachable!() };
    let redirect = |router: [u8; 16], hop_limit: u8| {
        let addresses = Addresses::V6 { source: router, destination: client };
        let mut payload = vec![0; 32];
        payload.extend_from_slice(&[4, 10, 0, 0, 0, 0, 0, 0]);
        payload.extend_from_slice(&quoted);
        let mut bytes = error(addresses, 137, &payload, 1000);
        bytes[7] = hop_limit;
        bytes
    };
    let mut link_local = [0x11; 16];
    link_local[..8].copy_from_slice(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0]);
    assert_eq!(net.pass_frame(&redirect(link_local, 255)).state(), Some(Related));
    assert_eq!(net.pass_frame(&redirect(link_local, 254)).state(), Some(Invalid));
    assert_eq!(net.pass_frame(&redirect([0x2f; 16], 255)).state(), Some(Invalid));
}

/// RFC 1122 section 3.2.2, RFC 9293 section 3.10.7: no reset answers a reset, and no error an error.
#[test]
fn an_answer_of_the_host_is_about_what_may_be_answered() {
    let read = |frame: &[u8], then: &dyn Fn(&Packet<'_>) -> Option<Tuple>| {
        let (mut bytes, len) = (frame.to_vec(), frame.len());
        then(&Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore))
    };
    let may = |frame: &[u8], kind| read(frame, &|packet| answerable(packet, kind));
    let tuple =
        |protocol, ports| Tuple::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), protocol, ports);
    let line = Line::new(V4);
    let syn = line.there(SYN, 1000, 0).frame();
    let datagram = frame(V4, Message::udp(4000, 53), 0);
    let connection = Some(tuple(6, [40_000, 80]));
    assert_eq!(may(&syn, AnswerKind::Reset), connection);
    assert_eq!(may(&syn, AnswerKind::Error), connection);
    assert_eq!(may(&line.there(RST, 1000, 0).frame(), AnswerKind::Reset), None);
    assert_eq!(may(&datagram, AnswerKind::Reset), None);
    assert_eq!(may(&datagram, AnswerKind::Error), Some(tuple(17, [4000, 53])));
    let error = Message::Icmp { kind: 3, code: 3, id: 0, sequence: 0 };
    assert_eq!(may(&frame(V4, error.clone(), 28), AnswerKind::Error), None);
    // Each answer names the packet that it is about.
    let kind = |frame: &[u8]| read(frame, &|packet| answered(packet).map(|(_, about)| about));
    assert_eq!(kind(&line.back(RST_ACK, 0, 1001).frame()), connection);
    assert_eq!(kind(&with_payload(back(V4), error, &datagram)), Some(tuple(17, [4000, 53])));
    assert_eq!(kind(&syn), None);
}

/// A router's error about an answer is about the flow as well, and goes to who answered.
#[test]
fn an_error_about_an_answer_is_related() {
    let router = |to: Addresses| match to {
        Addresses::V4 { source, .. } => {
            Addresses::V4 { source: [10, 9, 9, 9], destination: source }
        }
        Addresses::V6 { source, .. } => Addresses::V6 { source: [0x29; 16], destination: source },
    };
    for (addresses, request, reply, error) in [
        (V4, 8, 0, 3),
        (V4, 13, 14, 3),
        (V4, 15, 16, 3),
        (V4, 17, 18, 3),
        (V6, 128, 129, 1),
        (V6, 139, 140, 1),
    ] {
        let mut net = Net::new(conntrack::Config { checksums: Checksums::Ignore, ..kernel() });
        assert_eq!(net.pass(addresses, icmp(request, 7)), Some(New));
        assert_eq!(net.pass(back(addresses), icmp(reply, 7)), Some(Established));
        let answer = frame(back(addresses), icmp(reply, 7), 0);
        let about = with_payload(router(back(addresses)), icmp(error, 0), &answer);
        assert_eq!(net.pass_frame(&about).state(), Some(Related), "{reply}");
    }
}
