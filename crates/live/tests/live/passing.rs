//! What a wire passes on, and how it leaves.

use live::Reason;
use live::config::Other;
use packet::craft::{Craft, Fragment, Message, arp_frame};
use packet::tcp::Flags;
use packet::{Checksums, Link, checksum, parse};
use rules::model::Family;

use super::{Rig, craft, datagram, filter, in_session, inside, ruleset, send, syn};

#[test]
fn both_ways_pass_by_their_ports_names_and_as_they_came() {
    let rules = "-A FORWARD -i left -o right -p tcp --dport 80 -j ACCEPT\n\
        -A FORWARD -i right -o left -p tcp --dport 443 -j ACCEPT\n";
    let dying =
        Craft { ttl: 1, ..craft(["10.0.0.7", "10.0.0.9"], Message::tcp(1, 80, Flags::SYN)) };
    let there = [syn(80), syn(443), dying.frame()];
    let back = [syn(80), syn(443)];
    let left = Rig::new(&filter("DROP", rules)).sends(0, &there).sends(1, &back).run();
    assert_eq!(left.frames, [vec![syn(443)], vec![syn(80), dying.frame()]]);
    assert_eq!((left.direction(0).sent, left.direction(0).of(Reason::Policy)), (2, 1));
    assert_eq!((left.direction(1).sent, left.direction(1).of(Reason::Policy)), (1, 1));
    assert!(left.ended.is_ok());
}

/// A router would route, refuse or deliver all of these.
#[test]
fn addresses_decide_nothing() {
    let v4 = [
        ["0.0.0.0", "255.255.255.255"],
        ["10.0.0.7", "224.0.0.251"],
        ["127.0.0.1", "10.0.0.9"],
        ["224.0.0.1", "10.0.0.9"],
        ["10.0.0.7", "127.0.0.1"],
        ["240.0.0.1", "0.0.0.0"],
    ];
    let v6 =
        [["::", "ff02::1:ff00:2"], ["::1", "fd00::9"], ["ff02::1", "fd00::9"], ["fd00::7", "::1"]];
    let frames: Vec<_> = v4.iter().chain(&v6).map(|ends| datagram(*ends, 67)).collect();
    let accepts = filter("DROP", "-A FORWARD -i left -o right -p udp --dport 67 -j ACCEPT\n");
    let families = [Family::Ipv4, Family::Ipv6];
    let left = Rig::of(families.map(|family| ruleset(family, &accepts))).sends(0, &frames).run();
    assert_eq!(left.frames[1], frames);
    let drops = filter("DROP", "");
    let left = Rig::of(families.map(|family| ruleset(family, &drops))).sends(0, &frames).run();
    assert_eq!(left.direction(0).of(Reason::Policy), frames.len() as u64);
}

/// Every way to wrap a frame that is to be evaluated.
fn wrapped(frame: &[u8]) -> Vec<Vec<u8>> {
    vec![
        inside(frame, &[0x81, 0, 0x20, 5, 8, 0]),
        inside(frame, &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0]),
        in_session(frame, &[0, 0x21]),
        in_session(frame, &[0x21]),
        inside(&in_session(frame, &[0, 0x21]), &[0x81, 0, 0, 5, 0x88, 0x64]),
    ]
}

#[test]
fn no_tag_walks_round_the_rules() {
    let rules = filter("ACCEPT", "-A FORWARD -p tcp --dport 23 -j DROP\n");
    let (bad, good) = (wrapped(&syn(23)), wrapped(&syn(80)));
    let left = Rig::new(&rules).sends(0, &bad).sends(0, &good).run();
    assert_eq!(left.frames[1], good);
    assert_eq!(left.direction(0).of(Reason::Rule), bad.len() as u64);
}

/// A replay reads frames as the host that captured them: there sessions are another device's.
#[test]
fn only_a_wire_looks_into_sessions() {
    let frame = in_session(&syn(80), &[0, 0x21]);
    let found = |link| parse(link, &frame, frame.len(), Checksums::Ignore);
    assert_eq!((found(Link::Wire).link.ethertype, found(Link::Wire).network), (0x0800, 22));
    assert_eq!((found(Link::Ethernet).link.ethertype, found(Link::Ethernet).network), (0x8864, 14));
    for len in 14..frame.len() {
        assert!(parse(Link::Wire, &frame[..len], len, Checksums::Ignore).end <= len);
    }
}

#[test]
fn what_no_rules_are_for_is_as_configured() {
    let arp = arp_frame(packet::craft::Ethernet::default(), 1, [10, 0, 0, 1], [10, 0, 0, 2]);
    let v6 = datagram(["fd00::7", "fd00::9"], 53);
    // PPP's own negotiation, and a runt.
    let link_control = in_session(&syn(80), &[0xc0, 0x21]);
    let frames = [arp, link_control, vec![2; 9], v6.clone()];
    let rig = || Rig::new(&filter("DROP", "")).sends(0, &frames);
    assert_eq!(rig().run().frames[1], frames);
    let left = Rig { other: Other::Drop, ..rig() }.run();
    assert_eq!((&left.frames[1], left.direction(0).of(Reason::Other)), (&vec![v6], 3));
}

#[test]
fn bridge_rules_see_every_frame() {
    let rules = "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n\
        -A FORWARD -p ARP -i left -o right -j DROP\n";
    let arp = arp_frame(packet::craft::Ethernet::default(), 1, [10, 0, 0, 1], [10, 0, 0, 2]);
    let left = Rig::of([ruleset(Family::Bridge, rules)]).sends(0, &[arp, syn(80)]).run();
    assert_eq!((&left.frames[1], left.direction(0).of(Reason::Rule)), (&vec![syn(80)], 1));
}

#[test]
fn what_is_translated_keeps_its_link_header() {
    let rules = "*nat\n:PREROUTING ACCEPT [0:0]\n\
        -A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 192.0.2.1:8080\nCOMMIT\n";
    let frame = inside(&syn(80), &[0x81, 0, 0, 5, 8, 0]);
    let left = Rig::new(rules).sends(0, std::slice::from_ref(&frame)).run();
    let [_, out] = &left.frames;
    assert_eq!(out[0][..18], frame[..18]);
    assert_eq!(
        (&out[0][34..38], &out[0][40..42]),
        (&[192, 0, 2, 1][..], &8080_u16.to_be_bytes()[..])
    );
    let sum = checksum::sum(&out[0][18..38]);
    assert_eq!(sum, 0xffff);
}

fn pieces(ends: [&str; 2]) -> [Vec<u8>; 2] {
    let whole = Craft { id: 9, payload_len: 24, ..craft(ends, Message::udp(4000, 53)) };
    let first = Fragment { offset: 0, more: true };
    let last = Fragment { offset: 32, more: false };
    [
        Craft { fragment: Some(first), ..whole.clone() }.frame(),
        Craft { fragment: Some(last), payload_len: 8, ..whole }.frame(),
    ]
}

/// Under rules that track connections the kernel puts fragments together; what leaves are fragments again, between
/// the frames that were around them.
#[test]
fn fragments_leave_in_their_place() {
    let rules = filter("DROP", "-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\n");
    let [first, last] = pieces(["10.0.0.7", "10.0.0.9"]);
    let frames = [syn(80), first.clone(), syn(81), last.clone(), syn(82)];
    let left = Rig::new(&rules).sends(0, &frames).run();
    assert_eq!(left.frames[1], [syn(80), syn(81), first, last, syn(82)]);
    let counted = left.direction(0);
    assert_eq!((counted.made, counted.of(Reason::Fragment), counted.sent), (2, 2, 5));
}

#[test]
fn fragments_of_a_session_tell_their_own_lengths() {
    let rules = filter("DROP", "-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\n");
    let frames = pieces(["10.0.0.7", "10.0.0.9"]).map(|piece| in_session(&piece, &[0, 0x21]));
    let left = Rig::new(&rules).sends(0, &frames).run();
    assert_eq!(left.frames[1], frames);
}

#[test]
fn padding_goes_and_a_session_says_so() {
    let padded = [syn(80), vec![0; 6]].concat();
    let mut session = in_session(&padded, &[0, 0x21]);
    let left = Rig::new(&filter("ACCEPT", "")).sends(0, &[padded, session.clone()]).run();
    session.truncate(session.len() - 6);
    session[19] -= 6;
    assert_eq!(left.frames[1], [syn(80), session.clone()]);
    let headers = parse(Link::Wire, &session, session.len(), Checksums::Verify);
    assert_eq!(headers.end, session.len());
}

#[test]
fn a_port_that_is_full_loses_frames_by_name() {
    let mut rig = Rig::new(&filter("ACCEPT", ""));
    let frames: Vec<_> = (0..3000).map(syn).collect();
    send(&mut rig.far[0], &frames);
    let (run, mut far) = rig.start();
    // Nobody receives, so the queue takes its 3000 and no more.
    while run.status().directions[0].frames.sent < 3000 {
        std::thread::yield_now();
    }
    send(&mut far[0], &frames[..40]);
    let left = super::finish(run, far);
    assert_eq!(left.frames[1], frames);
    assert_eq!(left.direction(0).of(Reason::TxFull), 40);
}
