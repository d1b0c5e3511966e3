//! Wires on which packets age, and have to fit the output port, as on a router; and what every wire does with the MTUs
//! of its ports.

use dataplane::Crossing;
use live::Reason;
use packet::craft::{Craft, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link, Packet, checksum};
use pktio::{LiveMeta, SegmentKind, Segments};
use rules::model::Family;

use super::{Rig, craft, datagram, filter, in_session, inside, ruleset, send_live, syn};

const ADDRESSES: [(usize, &str); 2] = [(0, "10.0.0.1"), (0, "fd00::1")];
const ENDS: [&str; 2] = ["10.0.0.7", "192.0.2.9"];
const ENDS6: [&str; 2] = ["fd00::7", "2001:db8::9"];

/// A wire on which packets age, and leave the right port with this many bytes at most.
fn aging(rig: Rig, mtu: u32) -> Rig {
    let crossing = Crossing { ages: true, mtu: Some(mtu), mtu_back: Some(1500) };
    Rig { crossings: [crossing; 2], ..rig.addressed(ADDRESSES) }
}

fn both(rules: &str) -> Rig {
    Rig::of([Family::Ipv4, Family::Ipv6].map(|family| ruleset(family, rules)))
}

fn of_age(ends: [&str; 2], ttl: u8) -> Vec<u8> {
    Craft { ttl, payload_len: 9, ..craft(ends, Message::udp(4000, 53)) }.frame()
}

/// What a frame holds, in the words of `packet`.
fn said(frame: &[u8]) -> String {
    let mut bytes = frame.to_vec();
    let len = bytes.len();
    Packet::parse(&mut bytes, len, Link::Wire, Checksums::Verify).to_string()
}

#[test]
fn every_packet_gets_older_by_one_before_forward() {
    // As in the kernel, FORWARD sees the time to live that the packet leaves with.
    let v4 = filter("DROP", "-A FORWARD -m ttl --ttl-eq 63 -j ACCEPT\n");
    let v6 = filter("DROP", "-A FORWARD -m hl --hl-eq 63 -j ACCEPT\n");
    let rig = Rig::of([ruleset(Family::Ipv4, &v4), ruleset(Family::Ipv6, &v6)]);
    let came = [of_age(ENDS, 64), of_age(ENDS6, 64)];
    let tagged = in_session(&came[0], &[0, 0x21]);
    let left = aging(rig, 1500).sends(0, &came).sends(0, std::slice::from_ref(&tagged)).run();
    let older = [of_age(ENDS, 63), of_age(ENDS6, 63)];
    let expected = [older[0].clone(), older[1].clone(), in_session(&older[0], &[0, 0x21])];
    assert_eq!(left.frames[1], expected);
}

#[test]
fn what_is_too_old_is_answered_by_the_port_it_came_by() {
    for (ends, answer) in [
        (ENDS, "icmp 10.0.0.1 > 10.0.0.7 time-exceeded"),
        (ENDS6, "icmpv6 fd00::1 > fd00::7 time-exceeded"),
    ] {
        let old = of_age(ends, 1);
        let left =
            aging(both(&filter("ACCEPT", "")), 1500).sends(0, std::slice::from_ref(&old)).run();
        assert_eq!((left.frames[1].len(), left.direction(0).of(Reason::Ttl)), (0, 1));
        let [reply] = &left.frames[0][..] else { panic!("one reply") };
        assert!(said(reply).starts_with(answer), "{}", said(reply));
        // It goes back by the addresses of the frame, and quotes the packet as it came.
        assert_eq!((&reply[..6], &reply[6..12]), (&old[6..12], &old[..6]));
        assert!(reply.ends_with(&old[14..]));
    }
}

/// No router sends these on, and hosts on both sides of a wire need them as they are.
#[test]
fn what_stays_within_a_link_does_not_age() {
    let solicitation = |ends| {
        let message = Message::Icmp { kind: 135, code: 0, id: 0, sequence: 0 };
        Craft { ttl: 255, payload_len: 16, ..craft(ends, message) }.frame()
    };
    let frames = [
        solicitation(["fe80::7", "ff02::1:ff00:9"]),
        solicitation(ENDS6),
        of_age(["10.0.0.7", "224.0.0.251"], 1),
        of_age(["0.0.0.0", "255.255.255.255"], 64),
        of_age(["fe80::7", "fe80::9"], 1),
        of_age(["fd00::7", "ff05::2"], 8),
    ];
    let left = aging(both(&filter("ACCEPT", "")), 1500).sends(0, &frames).run();
    assert_eq!(left.frames[1], frames);
}

fn long(ends: [&str; 2], dont_fragment: bool) -> Vec<u8> {
    Craft { payload_len: 1400, dont_fragment, ..craft(ends, Message::udp(4000, 53)) }.frame()
}

#[test]
fn what_is_too_big_is_cut_or_refused_with_the_mtu() {
    let rig = || aging(both(&filter("ACCEPT", "")), 1300);
    let left = rig().sends(0, &[long(ENDS, true), long(ENDS6, false)]).run();
    assert_eq!((left.frames[1].len(), left.direction(0).of(Reason::TooBig)), (0, 2));
    let [v4, v6] = &left.frames[0][..] else { panic!("two replies") };
    assert_eq!((v4[34], v4[35], &v4[40..42]), (3, 4, &1300_u16.to_be_bytes()[..]));
    assert_eq!((v6[54], &v6[58..62]), (2, &1300_u32.to_be_bytes()[..]));
    // Quoted as it came: its time to live is that of its sender.
    assert_eq!(v4[42 + 8], 64);
    let left = rig().sends(0, &[long(ENDS, false)]).run();
    let lengths: Vec<_> = left.frames[1].iter().map(|frame| frame.len() - 14).collect();
    assert_eq!((lengths.len(), lengths.iter().all(|len| *len <= 1300)), (2, true));
    assert!(
        left.frames[1]
            .iter()
            .all(|frame| frame[22] == 63 && checksum::sum(&frame[14..34]) == 0xffff)
    );
    let without = Rig { addresses: Vec::new(), ..rig() }.sends(0, &[long(ENDS, true)]).run();
    assert_eq!(without.frames, [Vec::<Vec<u8>>::new(), vec![]]);
}

/// A wire that is transparent leaves sizes to its ports.
#[test]
fn nothing_is_measured_where_nothing_ages() {
    let frames = [long(ENDS, true), of_age(ENDS, 1)];
    let mtu = Crossing { ages: false, mtu: Some(100), mtu_back: Some(100) };
    let rig = Rig { crossings: [mtu; 2], ..Rig::new(&filter("ACCEPT", "")) };
    assert_eq!(rig.sends(0, &frames).run().frames[1], frames);
}

/// A superframe is as big as the largest segment that it stands for.
#[test]
fn superframes_are_measured_by_their_segments() {
    let frame = Craft {
        payload_len: 2000,
        dont_fragment: true,
        ..craft(ENDS, Message::tcp(4000, 80, Flags::ACK))
    }
    .frame();
    let sent = |size: u16| {
        let mut rig = aging(Rig::new(&filter("ACCEPT", "")), 1040);
        let segments = Some(Segments { size, kind: SegmentKind::TcpV4 });
        send_live(&mut rig.far[0], &frame, LiveMeta { segments, ..LiveMeta::default() });
        let left = rig.run();
        (left.frames[1].len(), left.direction(0).of(Reason::TooBig))
    };
    assert_eq!((sent(1000), sent(1001)), ((1, 0), (0, 1)));
}

#[test]
fn a_segment_size_is_clamped_to_the_smaller_port() {
    let rules = "*mangle\n:FORWARD ACCEPT [0:0]\n\
        -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu\nCOMMIT\n";
    let crossing =
        |mtu, mtu_back| Crossing { ages: false, mtu: Some(mtu), mtu_back: Some(mtu_back) };
    for crossing in [crossing(400, 1500), crossing(1500, 400)] {
        let rig = Rig { crossings: [crossing; 2], ..Rig::new(rules) };
        let left = rig.sends(0, &[syn(80)]).run();
        // There was none, so one is added: 400 bytes without both headers.
        assert_eq!(left.frames[1][0][54..], [2, 4, 1, 104]);
    }
    // With a port that does not say what it carries nobody knows the size.
    let left = Rig::new(rules).sends(0, &[syn(80)]).run();
    assert_eq!(left.direction(0).of(Reason::NotKnown), 1);
}

/// The kernel takes tags out of frames, and rules see them all the same.
#[test]
fn a_tag_that_was_taken_out_is_back_for_rules_and_replies() {
    let tag = [0x81, 0, 0x20, 5, 8, 0];
    let frame = datagram(ENDS, 53);
    let live = LiveMeta {
        vlan: Some(pktio::VlanTag { tci: 0x2005, tpid: 0x8100 }),
        checksum: pktio::ChecksumState::Unfinished { start: 34, offset: 6 },
        ..LiveMeta::default()
    };
    let bridged = "*filter\n:INPUT ACCEPT\n:FORWARD DROP\n:OUTPUT ACCEPT\n\
        -A FORWARD -p 802_1Q --vlan-id 5 -j ACCEPT\n";
    // The sum of what is left to complete is that of the pseudo header.
    let mut unfinished = frame.clone();
    let pseudo = checksum::pseudo_v4([10, 0, 0, 7], [192, 0, 2, 9], 17, (frame.len() - 34) as u16);
    unfinished[40..42].copy_from_slice(&pseudo.to_be_bytes());
    let mut rig = Rig::of([ruleset(Family::Bridge, bridged)]);
    send_live(&mut rig.far[0], &unfinished, live);
    assert_eq!(rig.run().frames[1], [inside(&frame, &tag)]);

    let mut rig = Rig::new(&filter("ACCEPT", "-A FORWARD -p udp -j REJECT\n"));
    send_live(&mut rig.far[0], &unfinished, live);
    let left = rig.run();
    assert_eq!(left.frames[0][0][12..18], tag);
}
