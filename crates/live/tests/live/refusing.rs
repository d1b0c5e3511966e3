//! What a wire refuses: replies to what is rejected, and what is done about verdicts that nobody knows.

use dataplane::Unresolved;
use live::Reason;
use live::replies::PER_SECOND;
use packet::craft::{Craft, Ethernet, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link, Packet};

use super::{Rig, craft, datagram, filter, in_session, inside, syn};

const RESETS: &str = "-A FORWARD -p tcp -j REJECT --reject-with tcp-reset\n";
const BACK: Ethernet =
    Ethernet { source: [2, 0, 0, 0, 0, 2], destination: [2, 0, 0, 0, 0, 1], vlan: None };

/// The reset that answers [`syn`], whose number is 1.
fn reset(port: u16) -> Vec<u8> {
    let message = Message::Tcp {
        source_port: port,
        destination_port: 40000,
        flags: Flags::RST.union(Flags::ACK),
        sequence: 0,
        acknowledgement: 2,
        window: 0,
    };
    let craft = craft(["10.0.0.9", "10.0.0.7"], message);
    Craft { ethernet: Some(BACK), dont_fragment: true, ..craft }.frame()
}

#[test]
fn a_reset_goes_back_by_the_port_of_arrival_with_everything_swapped() {
    let tag = [0x81, 0, 0x20, 5, 8, 0];
    let frames = [syn(80), inside(&syn(81), &tag), in_session(&syn(82), &[0, 0x21])];
    let left = Rig::new(&filter("ACCEPT", RESETS)).sends(0, &frames).run();
    let expected = [reset(80), inside(&reset(81), &tag), in_session(&reset(82), &[0, 0x21])];
    assert_eq!(left.frames, [expected.to_vec(), vec![]]);
    let counted = left.direction(0);
    assert_eq!((counted.of(Reason::Reject), counted.made, counted.sent), (3, 3, 3));
}

#[test]
fn an_error_comes_from_the_destination_and_quotes_what_was_sent() {
    let rules =
        filter("ACCEPT", "-A FORWARD -p udp -j REJECT --reject-with icmp-admin-prohibited\n");
    let sent = datagram(["10.0.0.7", "10.0.0.9"], 53);
    let left = Rig::new(&rules).sends(1, std::slice::from_ref(&sent)).run();
    let [[], [reply]] = left.frames.each_ref().map(Vec::as_slice) else { panic!("one reply") };
    assert_eq!(
        reply[..14],
        [BACK.destination, BACK.source].concat().into_iter().chain([8, 0]).collect::<Vec<_>>()
    );
    let mut bytes = reply.clone();
    let len = bytes.len();
    let packet = Packet::parse(&mut bytes, len, Link::Ethernet, Checksums::Verify);
    assert_eq!(packet.to_string(), "icmp 10.0.0.9 > 10.0.0.7 destination-unreachable/13");
    assert_eq!(reply[14 + 20 + 8..], sent[14..]);
}

/// The reply to a packet that was translated before it was rejected has the addresses that its sender gave it.
#[test]
fn a_translation_is_undone_in_the_reply() {
    let rules = format!(
        "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 192.0.2.1:8080\n\
         COMMIT\n{}",
        filter("ACCEPT", RESETS)
    );
    let left = Rig::new(&rules).sends(0, &[syn(80)]).run();
    assert_eq!(left.frames[0], [reset(80)]);
}

#[test]
fn what_everybody_got_is_not_answered() {
    let to_all = Ethernet { destination: [0xff; 6], ..Ethernet::default() };
    let message = Message::tcp(40000, 80, Flags::SYN);
    let broadcast = Craft { ethernet: Some(to_all), ..craft(["10.0.0.7", "10.0.0.9"], message) };
    let left = Rig::new(&filter("ACCEPT", RESETS)).sends(0, &[broadcast.frame()]).run();
    assert_eq!(left.frames, [Vec::<Vec<u8>>::new(), vec![]]);
    assert_eq!((left.direction(0).of(Reason::Reject), left.direction(0).made), (1, 0));
}

#[test]
fn a_flood_is_not_answered_by_a_flood() {
    let frames: Vec<_> = (0..3000).map(|_| syn(80)).collect();
    let left = Rig::new(&filter("ACCEPT", RESETS)).sends(0, &frames).run();
    let counted = left.direction(0);
    let sent = left.frames[0].len() as u64;
    assert!((PER_SECOND..2999).contains(&sent), "{sent}");
    assert_eq!((counted.sent, counted.of(Reason::ReplyRate)), (sent, 3000 - sent));
}

#[test]
fn an_unknown_verdict_is_as_configured_and_counted_by_its_cause() {
    let rules = filter("ACCEPT", "-A FORWARD -p tcp -m set --match-set bad src -j DROP\n");
    let frames = [syn(80), datagram(["10.0.0.7", "10.0.0.9"], 53)];
    let rig = || Rig::new(&rules).sends(0, &frames);
    let left = rig().run();
    assert_eq!((&left.frames[1][..], left.direction(0).of(Reason::Unknown)), (&frames[1..], 1));
    let because: Vec<_> = left.status.unknown_because.into_iter().collect();
    assert_eq!(because, [("ip line 3: -m set".to_owned(), 1)]);
    let left = Rig { unknown: Unresolved::Accept, ..rig() }.run();
    assert_eq!(left.frames[1], frames);
    assert_eq!(left.status.unknown_because.values().sum::<u64>(), 1);
}
