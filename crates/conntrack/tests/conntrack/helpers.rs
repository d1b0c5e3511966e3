//! What helpers find in payloads: connections that are expected, and connections that may be.

use crate::net::*;
use conntrack::{Certainty, Confirmation, Direction, Helper, Side, States, Status, Template};
use packet::craft::{Addresses, Message};

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
    assert_eq!(
        net.pass_frame(&spoken(&segment, text.as_bytes())).state(),
        Some(Established),
        "{text}"
    );
    *sequence += text.len() as u32;
}

/// An IPv4 segment with this payload.
fn spoken(segment: &Segment, text: &[u8]) -> Vec<u8> {
    let mut bytes = segment.clone().payload(text.len()).frame();
    let start = bytes.len() - text.len();
    bytes[start..].copy_from_slice(text);
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
fn ftp_expects_its_data_connections() {
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

/// What would be NEW may be RELATED.
fn is_open(view: &conntrack::CtView) -> bool {
    view.states.may_be(New) && view.states.may_be(Related)
}

#[test]
fn a_payload_that_was_not_captured_may_announce_a_connection() {
    let mut net = Net::kernel();
    let (line, client, server) = control(&mut net);
    let command = line.there(ACK, client, server).payload(24).frame();
    net.with_frame(&command, 44, |net, packet, view| {
        let end = net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
        assert_eq!(end, Confirmation::MayClash, "a cut command is dropped");
    });
    let data = Line { addresses: back(V4), ports: [20, 30_000] };
    assert!(is_open(&net.pass_frame(&data.there(SYN, 1, 0).frame())));
    let other = Addresses::V4 { source: [10, 0, 0, 2], destination: [10, 0, 0, 3] };
    assert_eq!(net.pass(other, Message::udp(20, 30_000)), Some(New));
}

/// Whether a datagram with this payload, to this helper, may announce a connection back.
fn may_act(helper: &str, payload: &[u8]) -> bool {
    let mut net = Net::kernel();
    net.template = Template { helper: Helper::named(helper), ..Template::default() };
    let mut datagram = with_payload(V4, Message::udp(5060, 5060), payload);
    datagram[26..28].fill(0);
    let end = net.with_frame(&datagram, usize::MAX, |net, packet, view| {
        net.tracker.confirm(packet, &view, net.now, Certainty::Certain)
    });
    net.template = Template::default();
    let is_told = is_open(&net.pass_frame(&frame(back(V4), Message::udp(7000, 7001), 0)));
    assert_eq!(end == Confirmation::MayClash, is_told);
    let others = Addresses::V4 { source: [10, 0, 0, 8], destination: [10, 0, 0, 9] };
    assert_eq!(net.pass(others, Message::udp(7000, 7001)), Some(New));
    is_told
}

/// A flow that is expected is RELATED until it is answered, not in its first packet alone. A conversation with the kernel told.
#[test]
fn each_packet_of_a_flow_that_may_be_expected_may_be_related() {
    let mut net = Net::kernel();
    net.template = Template { helper: Helper::named("sip"), ..Template::default() };
    let mut invite = with_payload(V4, Message::udp(5060, 5060), b"invite sip:x@y SIP/2.0\r\n\r\n");
    invite[26..28].fill(0);
    net.with_frame(&invite, usize::MAX, |net, packet, view| {
        net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
    });
    net.template = Template::default();
    for packet in 1..=3 {
        let view = net.pass_frame(&frame(back(V4), Message::udp(7000, 7001), 0));
        assert!(is_open(&view), "packet {packet}: {:?}", view.states);
    }
}

#[test]
fn helpers_that_are_not_modelled_may_expect_anything_with_their_hosts() {
    assert!(may_act("sip", b"invite sip:x@y SIP/2.0\r\n\r\n"));
    assert!(!may_act("sip", b"OPTIONS sip:x@y SIP/2.0\r\n"), "passed over");
    assert!(!may_act("sip", b"ACK"), "too short");
    assert!(may_act("RAS", &[1 << 2]) && !may_act("RAS", &[0]) && !may_act("RAS", b""));
    assert!(may_act("H.245", b"x") && !may_act("H.245", b""));
    assert!(!may_act("amanda", b"CONNECT DATA 1\n"), "only answers");
}

#[test]
fn sip_writes_to_every_message_of_a_translated_flow() {
    let end = |is_translated| {
        let mut net = Net::kernel();
        net.template = Template { helper: Helper::named("sip"), ..Template::default() };
        let mut datagram = with_payload(V4, Message::udp(5060, 5060), b"OPTIONS sip:x@y SIP/2.0");
        datagram[26..28].fill(0);
        net.with_frame(&datagram, usize::MAX, |net, packet, view| {
            let handle = view.flow.unwrap();
            let reply = *net.tracker.flow(handle).unwrap().tuple(Direction::Reply);
            if is_translated {
                let router = reply.with_destination([192, 0, 2, 1].into(), 6000);
                net.tracker.translate(handle, router, Status::SRC_NAT);
            }
            net.tracker.confirm(packet, &view, net.now, Certainty::Certain)
        })
    };
    assert_eq!((end(false), end(true)), (Confirmation::Pass, Confirmation::MayClash));
}

#[test]
fn segments_of_a_helper_are_passed_over_unless_they_are_its_own() {
    let told = |helper: &str, is_back: bool, payload: &[u8]| {
        let mut net = Net::kernel();
        let line = Line { ports: [40_000, 6667], ..Line::new(V4) };
        net.template = Template { helper: Helper::named(helper), ..Template::default() };
        open(&mut net, line);
        net.template = Template::default();
        let segment =
            if is_back { line.back(ACK, 5001, 1001) } else { line.there(ACK, 1001, 5001) };
        net.with_frame(&spoken(&segment, payload), usize::MAX, |net, packet, view| {
            net.tracker.confirm(packet, &view, net.now, Certainty::Certain)
        }) == Confirmation::MayClash
    };
    assert!(told("irc", false, b"PRIVMSG x :\x01DCC SEND f 1 2\x01\n"));
    assert!(!told("irc", true, b"PRIVMSG x :\x01DCC SEND f 1 2\x01\n"));
    assert!(!told("irc", false, b"PRIVMSG x :hello\n"));
    assert!(told("Q.931", true, b"\x03\0\0\x08\x08") && !told("Q.931", true, b"\x02\0\0\x08"));
    assert!(told("pptp", false, b"\0\x9c\0\x01\x1a\x2b\x3c\x4d\0\x01"));
    assert!(!told("pptp", false, b"\0\x9c\0\x01\x1a\x2b\x3c\x4e\0\x01"));
    assert!(told("sane", true, &[0, 0, 0, 0, 0, 0, 9, 9]));
    assert!(!told("sane", true, &[0, 0, 0, 1, 0, 0, 9, 9]) && !told("sane", false, &[0; 8]));
    assert!(told("sip", false, b"whatever, in TCP") && !told("sip", false, b"short"));
}

#[test]
fn sip_keeps_its_connection_for_an_hour_and_amanda_for_five_minutes() {
    let left = |helper: &str, is_back: bool| {
        let mut net = Net::kernel();
        net.template = Template { helper: Helper::named(helper), ..Template::default() };
        net.pass_frame(&frame(V4, Message::udp(5060, 5060), 3));
        if is_back {
            net.pass_frame(&frame(back(V4), Message::udp(5060, 5060), 3));
        }
        net.flow().expires_in(net.now) / SECOND
    };
    assert_eq!((left("sip", false), left("sip", true)), (3600, 3600));
    assert_eq!((left("amanda", false), left("amanda", true), left("irc", true)), (30, 300, 30));
}

#[test]
fn broadcasts_may_be_answered_by_anyone() {
    let mut net = Net::kernel();
    net.template = Template { helper: Helper::named("netbios-ns"), ..Template::default() };
    assert_eq!(net.pass(V4, Message::udp(137, 137)), Some(New));
    net.template = Template::default();
    let answer = Addresses::V4 { source: [10, 0, 0, 77], destination: [10, 0, 0, 1] };
    assert!(is_open(&net.pass_frame(&frame(answer, Message::udp(137, 137), 0))));
    assert_eq!(net.pass(answer, Message::udp(137, 138)), Some(New));
}

#[test]
fn a_reply_that_is_not_found_may_announce_what_its_helper_would_find_in_it() {
    let router = [192, 0, 2, 1];
    let answer = Addresses::V4 { source: [10, 0, 0, 2], destination: router };
    let passive = |text: &str| {
        let mut net = Net::kernel();
        net.template = Template { helper: Helper::Ftp, ..Template::default() };
        let syn = Line { ports: [40_000, 21], ..Line::new(V4) }.there(SYN, 1000, 0).frame();
        net.with_frame(&syn, usize::MAX, |net, packet, view| {
            let handle = view.flow.unwrap();
            net.tracker.lose_translation(handle, Direction::Original, Side::Source);
            net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
        });
        net.template = Template::default();
        let line = Line { addresses: answer, ports: [21, 6000] };
        let reply = spoken(&line.there(ACK, 5001, 1001), text.as_bytes());
        let end = net.with_frame(&reply, usize::MAX, |net, packet, view| {
            assert_eq!(view.states, States::ANY);
            net.tracker.confirm(packet, &view, net.now, Certainty::Certain)
        });
        let data = Line { addresses: V4, ports: [40_001, 9 << 8 | 9] }.there(SYN, 1, 0).frame();
        (end, is_open(&net.pass_frame(&data)))
    };
    assert_eq!(passive("227 Passive (10,0,0,2,9,9)\r\n"), (Confirmation::MayClash, true));
    assert_eq!(passive("220 Good morning\r\n"), (Confirmation::Pass, false));
}

/// `try_number` of `nf_conntrack_ftp.c`: six numbers and the end of the line, or the helper drops the command.
#[test]
fn a_command_with_too_few_or_too_many_numbers_is_dropped() {
    let end = |text: &str| {
        let mut net = Net::kernel();
        let (line, client, server) = control(&mut net);
        let command = spoken(&line.there(ACK, client, server), text.as_bytes());
        net.with_frame(&command, usize::MAX, |net, packet, view| {
            net.tracker.confirm(packet, &view, net.now, Certainty::Certain)
        })
    };
    assert_eq!(end("PORT 10,0,0,1,117,48\r\n"), Confirmation::Pass);
    for text in [
        "PORT 10,0,0,1\r\n",
        "PORT 10,0,0,1,117\r\n",
        "PORT 10,0,0,1,117,48,\r\n",
        "PORT 10,0,0,1,117,48,9\r\n",
        "PORT 10,0,0,1;117,48\r\n",
    ] {
        assert_eq!(end(text), Confirmation::Helper, "{text:?}");
    }
}

/// An FTP control connection that the router masquerades, if it is there at all, and what becomes of a command.
fn doubtful(is_translated: bool, text: &str) -> (Confirmation, usize) {
    let mut net = Net::kernel();
    let line = Line { ports: [40_000, 21], ..Line::new(V4) };
    net.template.helper = Helper::Ftp;
    net.with_frame(&line.there(SYN, 1000, 0).frame(), usize::MAX, |net, packet, view| {
        let handle = view.flow.unwrap();
        if is_translated {
            let reply = *net.tracker.flow(handle).unwrap().tuple(Direction::Reply);
            let router = reply.with_destination([192, 0, 2, 1].into(), 40_000);
            net.tracker.translate(handle, router, Status::SRC_NAT);
        }
        net.tracker.confirm(packet, &view, net.now, Certainty::Maybe);
    });
    let server = if is_translated {
        Addresses::V4 { source: [10, 0, 0, 2], destination: [192, 0, 2, 1] }
    } else {
        back(V4)
    };
    let answer = Line { addresses: server, ports: [21, 40_000] }.there(SYN_ACK, 5000, 1001);
    net.visit_frame(&answer.frame(), |visit| visit);
    net.visit_frame(&spoken(&line.there(ACK, 1001, 5001), b"USER x\r\n"), |visit| visit);
    let command = spoken(&line.there(ACK, 1009, 5001), text.as_bytes());
    let end = net.with_frame(&command, usize::MAX, |net, packet, view| {
        net.tracker.confirm(packet, &view, net.now, Certainty::Certain)
    });
    (end, net.tracker.expected())
}

#[test]
fn a_flow_that_may_not_be_there_expects_nothing_surely() {
    assert_eq!(doubtful(false, "PORT 10,0,0,1,117,48\r\n"), (Confirmation::MayClash, 0));
}

/// `nf_nat_ftp`: the ports above the named one are tried, and there may be none left near the last port.
#[test]
fn a_command_is_rewritten_unless_its_port_is_among_the_last() {
    assert_eq!(doubtful(true, "PORT 10,0,0,1,117,48\r\n").0, Confirmation::Rewritten);
    assert_eq!(doubtful(true, "PORT 10,0,0,1,255,250\r\n").0, Confirmation::MayClash);
    assert_eq!(doubtful(true, "PORT 10,0,0,1,0,0\r\n").0, Confirmation::MayClash);
}

/// RFC 2428: the delimiter is a printable character, and `nf_conntrack_ftp.c` takes no digit for one.
#[test]
fn an_extended_port_has_a_delimiter() {
    let end = |text: &str| {
        let mut net = Net::kernel();
        let (line, client, server) = control(&mut net);
        let command = spoken(&line.there(ACK, client, server), text.as_bytes());
        net.with_frame(&command, usize::MAX, |net, packet, view| {
            net.tracker.confirm(packet, &view, net.now, Certainty::Certain)
        })
    };
    for delimiter in ["|", "!", "~"] {
        let text = "EPRT |1|10.0.0.1|30000|\r\n".replace('|', delimiter);
        assert_eq!(end(&text), Confirmation::Pass, "{text:?}");
    }
    for delimiter in [" ", "9", "\t"] {
        let text = "EPRT |1|10.0.0.1|30000|\r\n".replace('|', delimiter);
        assert_eq!(end(&text), Confirmation::Helper, "{text:?}");
    }
}

/// `nf_nat_ftp`, `nf_ct_seqadj_set`: the command grows with the address, and what comes after it moves by as much.
#[test]
fn numbers_move_by_what_a_command_grew() {
    let mut net = Net::kernel();
    let line = Line { ports: [40_000, 21], ..Line::new(V4) };
    net.template.helper = Helper::Ftp;
    net.with_frame(&line.there(SYN, 1000, 0).frame(), usize::MAX, |net, packet, view| {
        let handle = view.flow.unwrap();
        let reply = *net.tracker.flow(handle).unwrap().tuple(Direction::Reply);
        let router = reply.with_destination([192, 168, 200, 100].into(), 40_000);
        net.tracker.translate(handle, router, Status::SRC_NAT);
        net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
    });
    let there = Addresses::V4 { source: [10, 0, 0, 2], destination: [192, 168, 200, 100] };
    let server = Line { addresses: there, ports: [21, 40_000] };
    net.pass_frame(&server.there(SYN_ACK, 5000, 1001).frame());
    let mut edited = |sequence: u32, text: &str| {
        let command = spoken(&line.there(ACK, sequence, 5001), text.as_bytes());
        net.with_frame(&command, usize::MAX, |net, packet, view| {
            net.tracker.confirm(packet, &view, net.now, Certainty::Certain)
        })
    };
    assert_eq!(edited(1001, "USER x\r\n"), Confirmation::Pass);
    let Confirmation::Edited(command) = edited(1009, "PORT 10,0,0,1,117,48\r\n") else { panic!() };
    let grown = "192,168,200,100,117,48".len() - "10,0,0,1,117,48".len();
    assert_eq!(command.text.map(|text| text.growth()), Some(grown as u32));
    let Confirmation::Edited(next) = edited(1031, "LIST\r\n") else { panic!() };
    let numbers = next.numbers.unwrap();
    assert_eq!(u32::from_be_bytes(numbers.sequence(1031_u32.to_be_bytes())), 1031 + grown as u32);
    let server = server.there(ACK, 5001, 1037 + grown as u32).frame();
    let answer = net.with_frame(&server, usize::MAX, |net, packet, view| {
        assert_eq!(view.state(), Some(Established));
        net.tracker.confirm(packet, &view, net.now, Certainty::Certain)
    });
    let Confirmation::Edited(answer) = answer else { panic!("{answer:?}") };
    let acknowledged = (1037 + grown as u32).to_be_bytes();
    let back = u32::from_be_bytes(answer.numbers.unwrap().acknowledged(acknowledged));
    assert_eq!(back, 1037, "as the client counts");
}

/// `nf_nat_follow_master`: the data connection is masqueraded as the one is that announced it.
#[test]
fn a_data_connection_is_translated_as_its_master_is() {
    let mut net = Net::kernel();
    let line = Line { ports: [40_000, 21], ..Line::new(V4) };
    let router = [192, 0, 2, 1];
    net.template.helper = Helper::Ftp;
    net.with_frame(&line.there(SYN, 1000, 0).frame(), usize::MAX, |net, packet, view| {
        let handle = view.flow.unwrap();
        let reply = *net.tracker.flow(handle).unwrap().tuple(Direction::Reply);
        let router = reply.with_destination(router.into(), 40_000);
        net.tracker.translate(handle, router, Status::SRC_NAT);
        net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
    });
    net.template = Template::default();
    let there = Addresses::V4 { source: [10, 0, 0, 2], destination: router };
    net.pass_frame(
        &Line { addresses: there, ports: [21, 40_000] }.there(SYN_ACK, 5000, 1001).frame(),
    );
    for (sequence, text) in [(1001, "USER x\r\n"), (1009, "PORT 10,0,0,1,117,48\r\n")] {
        let command = spoken(&line.there(ACK, sequence, 5001), text.as_bytes());
        net.visit_frame(&command, |visit| visit);
    }
    // To the router, whose client it is for.
    let data = Line { addresses: there, ports: [20, 117 << 8 | 48] };
    let view = net.pass_frame(&data.there(SYN, 1, 0).frame());
    assert_eq!(view.state(), Some(Related));
    let flow = net.tracker.flow(view.flow.unwrap()).unwrap();
    assert!(flow.status().contains(Status::DST_NAT));
    assert_eq!(flow.tuple(Direction::Reply).source(), std::net::IpAddr::from([10, 0, 0, 1]));
}

#[test]
fn a_datagram_whose_flow_is_not_found_may_be_a_request_of_tftp() {
    let may_announce = |payload: &[u8]| {
        let mut net = Net::kernel();
        net.template.helper = Helper::Tftp;
        net.with_frame(&frame(V4, Message::udp(4000, 69), 0), usize::MAX, |net, packet, view| {
            let handle = view.flow.unwrap();
            net.tracker.lose_translation(handle, Direction::Original, Side::Source);
            net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
        });
        net.template = Template::default();
        let router = Addresses::V4 { source: [10, 0, 0, 2], destination: [192, 0, 2, 1] };
        let mut answer = with_payload(router, Message::udp(69, 6000), payload);
        answer[26..28].fill(0);
        net.with_frame(&answer, usize::MAX, |net, packet, view| {
            net.tracker.confirm(packet, &view, net.now, Certainty::Certain)
        })
    };
    assert_eq!(may_announce(b"\0\x01file\0octet\0"), Confirmation::MayClash);
    assert_eq!(may_announce(b"\0\x03\0\x01data"), Confirmation::Pass);
}
