use std::net::IpAddr;

use packet::craft::{Addresses, Craft, Fragment, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link as LinkType, parse};
use proptest::prelude::*;

use super::*;

const CLIENT: &str = "10.0.0.2";
const ROUTER: &str = "203.0.113.1";
const SERVER: &str = "203.0.113.9";

fn link<'a>(index: u32, name: &'a str, master: Option<&'a str>) -> Link<'a> {
    Link { index: Some(index), name, master, vlan: None, is_loopback: false }
}

/// A host with a bridge of two ports, a LAN and a WAN.
fn host() -> Devices {
    Devices::of([
        Link { is_loopback: true, ..link(1, "lo", None) },
        link(2, "lan0", None),
        link(3, "wan0", None),
        link(4, "br0", None),
        link(5, "port0", Some("br0")),
        link(6, "port1", Some("br0")),
        Link { vlan: Some(("lan0", 7)), ..link(8, "lan0.7", None) },
    ])
}

/// A capture of that host, frame by frame, 10 microseconds apart.
struct Capture {
    sightings: Sightings,
    number: u64,
    time: u64,
    is_told: bool,
}

impl Capture {
    fn new() -> Self {
        Self { sightings: Sightings::new(host()), number: 0, time: 0, is_told: true }
    }

    fn frame(&mut self, way: Way, device: &str, craft: &Craft) -> u64 {
        self.bytes(way, device, &craft.frame(), LinkType::Raw)
    }

    fn bytes(&mut self, way: Way, device: &str, bytes: &[u8], link: LinkType) -> u64 {
        let headers = parse(link, bytes, bytes.len(), Checksums::Ignore);
        let device = self.sightings.devices_mut().named(device);
        self.number += 1;
        self.time += 10_000;
        let (number, time) = (self.number, self.time);
        let is_told = self.is_told;
        self.sightings.see(&Frame { number, time, bytes, headers: &headers, way, is_told, device });
        number
    }

    fn take(mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.sightings.take()).collect()
    }
}

fn craft(source: &str, destination: &str, message: Message) -> Craft {
    let [source, destination] = [source, destination].map(|addr| addr.parse::<IpAddr>().unwrap());
    let addresses = Addresses::new(source, destination).unwrap();
    Craft { ethernet: None, payload_len: 20, ..Craft::new(addresses, message) }
}

fn segment(source: (&str, u16), destination: (&str, u16), sequence: u32, len: usize) -> Craft {
    let message = Message::Tcp {
        source_port: source.1,
        destination_port: destination.1,
        flags: Flags::ACK,
        sequence,
        acknowledgement: 77,
        window: 1000,
    };
    Craft { payload_len: len, ..craft(source.0, destination.0, message) }
}

fn sightings(seen: &[Seen]) -> Vec<Sighting> {
    seen.iter().map(|seen| seen.sighting).collect()
}

fn second(of: u64) -> Sighting {
    Sighting::Second { of: Some(of) }
}

#[test]
fn what_left_tells_what_translation_drew() {
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &segment((CLIENT, 4000), (SERVER, 80), 1, 0));
    let routed = Craft { ttl: 63, ..segment((ROUTER, 61_234), (SERVER, 80), 1, 0) };
    capture.frame(Way::Out, "wan0", &routed);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Arrival, second(1)]);
    let left = seen[0].left.unwrap();
    assert_eq!((left.number, left.device, left.bridged), (2, 3, false));
    assert_eq!(left.ends.source, ROUTER.parse::<IpAddr>().unwrap());
    assert_eq!(left.ends.ports, Some([61_234, 80]));
}

#[test]
fn what_no_arrival_explains_is_the_hosts_own() {
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &craft(CLIENT, ROUTER, Message::udp(5000, 53)));
    capture.frame(Way::Out, "lan0", &craft(ROUTER, CLIENT, Message::udp(53, 5000)));
    // An answer with the payload of the question, as an echo server gives it.
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival, Sighting::Own]);
}

#[test]
fn an_answer_by_the_same_ports_is_no_packet_that_went_on() {
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &craft(CLIENT, ROUTER, Message::udp(123, 123)));
    capture.frame(Way::Out, "lan0", &craft(ROUTER, CLIENT, Message::udp(123, 123)));
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival, Sighting::Own]);
}

#[test]
fn a_frame_whose_way_is_not_told_is_left_to_its_addresses() {
    let mut capture = Capture::new();
    capture.frame(Way::Unknown, "lan0", &craft(CLIENT, SERVER, Message::udp(5000, 53)));
    capture.frame(Way::Unknown, "wan0", &craft(CLIENT, SERVER, Message::udp(5000, 53)));
    assert_eq!(sightings(&capture.take()), [Sighting::Unknown; 2]);
}

#[test]
fn frames_of_which_nothing_can_be_read_keep_their_place_and_are_forgotten() {
    let mut capture = Capture::new();
    capture.sightings.see_other(1);
    capture.frame(Way::In, "lan0", &segment((CLIENT, 1), (SERVER, 2), 1, 10));
    capture.sightings.see_other(3);
    assert_eq!(capture.sightings.waiting(), 3);
    let seen: Vec<_> = std::iter::from_fn(|| capture.sightings.take()).collect();
    assert_eq!(sightings(&seen), [Sighting::Unknown, Sighting::Arrival, Sighting::Unknown]);
    for number in 0..2 * KEPT as u64 {
        capture.sightings.see_other(number);
        assert_eq!(capture.sightings.take(), Some(Seen::default()));
    }
    assert!(capture.sightings.entries.len() <= KEPT + 1, "{}", capture.sightings.entries.len());
}

#[test]
fn equal_packets_pair_again_once_the_first_are_forgotten() {
    let mut capture = Capture::new();
    let arrived = segment((CLIENT, 4000), (SERVER, 80), 1, 0);
    let left = Craft { ttl: 63, ..segment((CLIENT, 4000), (SERVER, 80), 1, 0) };
    let pass = |capture: &mut Capture| {
        let number = capture.frame(Way::In, "lan0", &arrived);
        capture.frame(Way::Out, "wan0", &left);
        let seen: Vec<_> = std::iter::from_fn(|| capture.sightings.take()).collect();
        assert_eq!(sightings(&seen), [Sighting::Arrival, second(number)]);
    };
    pass(&mut capture);
    for number in 0..2 * KEPT as u64 {
        capture.sightings.see_other(number);
        capture.sightings.take();
    }
    let Sightings { by_ends, by_bytes, by_content, .. } = &capture.sightings;
    assert_eq!([by_ends.len(), by_bytes.len(), by_content.len()], [0; 3], "no table has any more");
    pass(&mut capture);
}

#[test]
fn what_leaves_too_late_is_another_packet() {
    for (waits, expected) in [(LONGEST / 2, second(1)), (LONGEST + 1, Sighting::Own)] {
        let mut capture = Capture::new();
        capture.frame(Way::In, "lan0", &segment((CLIENT, 4000), (SERVER, 80), 1, 0));
        capture.time += waits;
        capture.frame(Way::Out, "wan0", &segment((ROUTER, 4000), (SERVER, 80), 1, 0));
        assert_eq!(sightings(&capture.take())[1], expected, "{waits}");
    }
}

#[test]
fn of_equal_contents_those_with_most_ends_alike_pair() {
    let (one, other) = (segment((CLIENT, 4000), (SERVER, 80), 1, 0), ("10.0.0.3", 4001));
    let other = segment(other, (SERVER, 80), 1, 0);
    for arrivals in [[&one, &other], [&other, &one]] {
        let mut capture = Capture::new();
        for arrival in arrivals {
            capture.frame(Way::In, "lan0", arrival);
        }
        capture.frame(Way::Out, "wan0", &Craft { ttl: 63, ..one.clone() });
        let own = 1 + u64::from(std::ptr::eq(arrivals[1], &one));
        assert_eq!(sightings(&capture.take())[2], second(own));
    }
    // Likewise where what left is shown first.
    for left in [[&one, &other], [&other, &one]] {
        let mut capture = Capture::new();
        for left in left {
            capture.frame(Way::Out, "wan0", left);
        }
        capture.frame(Way::In, "lan0", &one);
        let own = usize::from(std::ptr::eq(left[1], &one));
        let seen = sightings(&capture.take());
        assert_eq!((seen[own], seen[1 - own]), (second(3), Sighting::Own));
    }
}

/// RFC 4291 section 2.5.6: a router forwards nothing from or to a link-local address, and translates none.
#[test]
fn what_is_of_its_link_does_not_leave_translated() {
    let echo = |kind: u8| Message::Icmp { kind, code: 0, id: 7, sequence: 1 };
    let left = |came: &str, left: &str| {
        let mut capture = Capture::new();
        capture.frame(Way::In, "lan0", &craft(came, "2001:db8::9", echo(128)));
        let left = Craft { ttl: 63, ..craft(left, "2001:db8::9", echo(128)) };
        capture.frame(Way::Out, "wan0", &left);
        sightings(&capture.take())[1]
    };
    assert_eq!(left("2001:db8:1::2", "2001:db8::1"), second(1));
    assert_eq!(left("fe80::2", "2001:db8::1"), Sighting::Own);
    assert_eq!(left("2001:db8:1::2", "fe80::1"), Sighting::Own);
}

/// RFC 3022 section 4.1: of a query the identifier is translated, and the sequence number stays.
#[test]
fn a_masqueraded_ping_leaves_with_another_identifier() {
    let echo = |kind, id, sequence| Message::Icmp { kind, code: 0, id, sequence };
    for (kind, [client, router, server]) in
        [(8, [CLIENT, ROUTER, SERVER]), (128, ["2001:db8:1::2", "2001:db8::1", "2001:db8::9"])]
    {
        for (sequence, expected) in [(1, second(1)), (2, Sighting::Own)] {
            let mut capture = Capture::new();
            capture.frame(Way::In, "lan0", &craft(client, server, echo(kind, 7, 1)));
            let left = Craft { ttl: 63, ..craft(router, server, echo(kind, 9, sequence)) };
            capture.frame(Way::Out, "wan0", &left);
            assert_eq!(sightings(&capture.take())[1], expected, "{kind}");
        }
    }
}

#[test]
fn a_frame_for_another_host_is_no_arrival_unless_a_bridge_passes_it_on() {
    for (device, expected) in [("wan0", Sighting::OtherHost), ("port0", Sighting::Arrival)] {
        let mut capture = Capture::new();
        capture.frame(Way::OtherHost, device, &craft(CLIENT, SERVER, Message::udp(5000, 53)));
        assert_eq!(sightings(&capture.take()), [expected], "{device}");
    }
}

#[test]
fn devices_stand_on_each_other_as_the_links_say() {
    let mut devices = host();
    let [lan, wan, bridge, port, vlan] =
        ["lan0", "wan0", "br0", "port0", "lan0.7"].map(|name| devices.named(name));
    let stands = |devices: &Devices, below: u32, vlan, above: u32| {
        let upper = devices.upper(below, vlan);
        let ways = [devices.may_feed(below, upper, above), devices.is_below(below, upper, above)];
        assert_eq!(ways[0], ways[1]);
        ways[0]
    };
    assert!(stands(&devices, port, None, bridge) && !stands(&devices, bridge, None, port));
    assert!(!stands(&devices, lan, None, bridge) && !stands(&devices, lan, None, wan));
    assert!(stands(&devices, lan, Some(7), vlan));
    assert!(stands(&devices, lan, None, vlan), "a card may have taken the tag off");
    assert!(!stands(&devices, wan, None, vlan));
    assert_eq!((devices.at(3), devices.len()), (wan, 7), "by its index");
    assert_eq!((devices.at(99), devices.len()), (8, 8), "a new one");

    // Where nobody says how they stand, any two may, and none surely does.
    let mut unknown = Devices::default();
    assert!(unknown.is_empty());
    let [one, other] = ["a", "b"].map(|name| unknown.named(name));
    assert!(!unknown.is_empty());
    assert!(unknown.may_feed(one, None, other) && !unknown.may_feed(one, None, one));
    assert!(!unknown.is_below(one, None, other));
}

/// Queries of its own (IGMP snooping, STP) a bridge sends by its ports, below all hooks.
#[test]
fn what_a_bridge_sends_by_itself_is_told_where_the_capture_shows_what_it_sends() {
    let query = craft("0.0.0.0", "224.0.0.1", Message::Other { protocol: 2, header: vec![17; 8] });
    for (is_shown, expected) in [(false, Sighting::Own), (true, Sighting::Lower { of: None })] {
        let mut capture = Capture::new();
        if is_shown {
            capture.frame(Way::Out, "br0", &craft(ROUTER, CLIENT, Message::udp(53, 5000)));
        }
        capture.frame(Way::Out, "port0", &query);
        assert_eq!(capture.take().last().map(|seen| seen.sighting), Some(expected));
    }
}

#[test]
fn a_superframe_leaves_in_segments() {
    let mut capture = Capture::new();
    capture.frame(Way::In, "wan0", &segment((SERVER, 80), (CLIENT, 4000), 1000, 4000));
    let part = |sequence, len| segment((SERVER, 80), (CLIENT, 4000), sequence, len);
    for (sequence, len) in [(1000, 1448), (2448, 1448), (3896, 1104)] {
        capture.frame(Way::Out, "lan0", &part(sequence, len));
    }
    // The byte after it is another packet's.
    capture.frame(Way::Out, "lan0", &part(5000, 10));
    let seen = capture.take();
    assert_eq!(sightings(&seen[1..4]), [second(1); 3]);
    assert_eq!(seen[4].sighting, Sighting::Own);
    assert_eq!(seen[0].left.unwrap().number, 2);
}

#[test]
fn a_datagram_leaves_in_fragments_and_all_that_came_of_it_know() {
    // The UDP header of the first one tells the length of all.
    let part = |source, (offset, payload_len, more)| {
        let fragment = Some(Fragment { offset, more });
        let message = Message::udp(5000, 53);
        let craft = Craft { payload_len, fragment, id: 9, ..craft(source, SERVER, message) };
        let mut frame = craft.frame();
        if offset == 0 {
            frame[24..26].copy_from_slice(&2960_u16.to_be_bytes());
        }
        frame
    };
    let mut capture = Capture::new();
    for cut in [(0, 1472, true), (1480, 1480, false)] {
        capture.bytes(Way::In, "lan0", &part(CLIENT, cut), LinkType::Raw);
    }
    for cut in [(0, 1000, true), (1008, 1000, true), (2008, 952, false)] {
        capture.bytes(Way::Out, "wan0", &part(ROUTER, cut), LinkType::Raw);
    }
    let seen = capture.take();
    assert_eq!(sightings(&seen[..2]), [Sighting::Arrival; 2]);
    assert_eq!(sightings(&seen[2..]), [second(1); 3]);
    assert_eq!(seen[0].left.unwrap().number, 3);
    assert_eq!(seen[1].left, seen[0].left);
}

#[test]
fn without_reassembly_each_fragment_leaves_by_itself() {
    let part = |offset, payload_len, more| {
        let fragment = Some(Fragment { offset, more });
        let craft = craft(CLIENT, SERVER, Message::udp(5000, 53));
        Craft { payload_len, fragment, id: 9, ..craft }
    };
    let mut capture = Capture::new();
    let plain = Reassembly { v4: false, v6: true };
    capture.sightings = capture.sightings.with_reassembly(plain);
    for (offset, len, more) in [(0, 688, true), (696, 696, true), (1392, 100, false)] {
        capture.frame(Way::In, "lan0", &part(offset, len, more));
    }
    // The second one was dropped.
    capture.frame(Way::Out, "wan0", &part(0, 688, true));
    capture.frame(Way::Out, "wan0", &part(1392, 100, false));
    let seen = capture.take();
    let left: Vec<_> = seen[..3].iter().map(|seen| seen.left.map(|left| left.number)).collect();
    assert_eq!(left, [Some(4), None, Some(5)]);
    assert_eq!(sightings(&seen[3..]), [second(1), second(3)]);
}

#[test]
fn what_must_stay_whole_does_not_leave_in_fragments() {
    let whole = |dont_fragment| Craft {
        payload_len: 1400,
        id: 9,
        ..Craft { dont_fragment, ..craft(CLIENT, SERVER, Message::udp(5000, 53)) }
    };
    let part = Craft { fragment: Some(Fragment { offset: 0, more: true }), ..whole(false) };
    let mut first = part.frame();
    first.truncate(20 + 8 + 1000);
    first[2..4].copy_from_slice(&1028_u16.to_be_bytes());
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &whole(true));
    capture.frame(Way::In, "lan0", &whole(false));
    capture.bytes(Way::Out, "wan0", &first, LinkType::Raw);
    let seen = capture.take();
    assert_eq!((seen[0].left, seen[2].sighting), (None, second(2)));
}

#[test]
fn an_answer_that_left_just_before_is_not_what_came() {
    let mut capture = Capture::new();
    capture.frame(Way::Out, "wan0", &segment((ROUTER, 80), (SERVER, 4000), 0, 0));
    capture.frame(Way::In, "wan0", &segment((SERVER, 4000), (CLIENT, 80), 0, 0));
    let seen = capture.take();
    assert_eq!((seen[0].sighting, seen[1].left), (Sighting::Own, None));
}

#[test]
fn among_many_equal_packets_the_one_with_the_same_ends_is_found() {
    let mut capture = Capture::new();
    let many = 200;
    for port in 0..many {
        capture.frame(Way::In, "lan0", &segment((CLIENT, port), (SERVER, 80), 1, 0));
    }
    capture.frame(Way::Out, "wan0", &segment((CLIENT, many - 5), (SERVER, 80), 1, 0));
    let seen = capture.take();
    let left: Vec<_> = (1..).zip(&seen).filter(|(_, seen)| seen.left.is_some()).collect();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].0, seen[usize::from(many)].sighting), (196, second(196)));
}

#[test]
fn equal_packets_pair_in_order_and_a_tie_teaches_nothing() {
    // A scan: one sequence number, several clients, each given a port of its own.
    let mut capture = Capture::new();
    for port in [4000, 4001] {
        capture.frame(Way::In, "lan0", &segment((CLIENT, port), (SERVER, 80), 1, 0));
    }
    for port in [50_001, 50_000] {
        capture.frame(Way::Out, "wan0", &segment((ROUTER, port), (SERVER, 80), 1, 0));
    }
    let seen = capture.take();
    assert_eq!(sightings(&seen[2..]), [second(1), second(2)]);
    assert_eq!(seen[0].left, None, "either may be meant");

    // Where only one fits in all its ends, there is none.
    let mut capture = Capture::new();
    for port in [4000, 4001] {
        capture.frame(Way::In, "lan0", &segment((CLIENT, port), (SERVER, 80), 1, 0));
    }
    capture.frame(Way::Out, "wan0", &segment((CLIENT, 4001), (SERVER, 80), 1, 0));
    let seen = capture.take();
    assert_eq!((seen[0].left, seen[1].left.map(|left| left.number)), (None, Some(3)));
    assert_eq!(seen[2].sighting, second(2));
}

#[test]
fn a_capture_may_show_what_left_a_little_before_what_came() {
    let mut capture = Capture::new();
    capture.frame(Way::Out, "wan0", &segment((ROUTER, 4000), (SERVER, 80), 1, 0));
    capture.time += JITTER / 2;
    capture.frame(Way::In, "lan0", &segment((CLIENT, 4000), (SERVER, 80), 1, 0));
    let seen = capture.take();
    assert_eq!(sightings(&seen), [second(2), Sighting::Arrival]);

    let mut capture = Capture::new();
    capture.frame(Way::Out, "wan0", &segment((ROUTER, 4000), (SERVER, 80), 1, 0));
    capture.time += JITTER * 2;
    capture.frame(Way::In, "lan0", &segment((CLIENT, 4000), (SERVER, 80), 1, 0));
    assert_eq!(sightings(&capture.take()), [Sighting::Own, Sighting::Arrival]);
}

#[test]
fn a_bridge_and_its_ports_show_one_packet() {
    // To the bridge and on by the WAN; the answer comes back.
    let mut capture = Capture::new();
    capture.frame(Way::OtherHost, "port0", &craft(CLIENT, SERVER, Message::udp(5000, 53)));
    capture.frame(Way::In, "br0", &craft(CLIENT, SERVER, Message::udp(5000, 53)));
    capture.frame(Way::Out, "wan0", &craft(ROUTER, SERVER, Message::udp(5000, 53)));
    let answer = Craft { payload_len: 30, ..craft(SERVER, CLIENT, Message::udp(53, 5000)) };
    let there = Craft { payload_len: 30, ..craft(SERVER, ROUTER, Message::udp(53, 5000)) };
    capture.frame(Way::In, "wan0", &there);
    capture.frame(Way::Out, "br0", &answer);
    capture.frame(Way::Out, "port0", &answer);
    let seen = capture.take();
    let lower = |of| Sighting::Lower { of: Some(of) };
    let wanted = [lower(2), Sighting::Arrival, second(2), Sighting::Arrival, second(4), lower(5)];
    assert_eq!(sightings(&seen), wanted);
}

#[test]
fn what_a_bridge_passes_on_came_in_by_the_bridge() {
    let mut capture = Capture::new();
    let craft = craft(CLIENT, "10.0.0.3", Message::udp(5000, 53));
    capture.frame(Way::OtherHost, "port0", &craft);
    capture.frame(Way::Out, "port1", &craft);
    // A bridge that listens to everything shows it, too.
    capture.frame(Way::OtherHost, "br0", &craft);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Arrival, second(1), Sighting::OtherHost]);
    assert_eq!((seen[0].device, seen[0].left.unwrap().device), (4, 4));
    assert!(seen[0].left.unwrap().bridged);
}

/// The same from a bridge of three ports.
fn three_ports() -> Capture {
    let links = ["port0", "port1", "port2"].iter().zip(2..);
    let ports = links.map(|(name, index)| link(index, name, Some("br0")));
    let devices = Devices::of(std::iter::once(link(1, "br0", None)).chain(ports));
    Capture { sightings: Sightings::new(devices), number: 0, time: 0, is_told: false }
}

/// Ports by number: 1 is the bridge.
fn numbers(seen: &Seen) -> (u32, Vec<u32>, u8, bool) {
    let Bridged { port, ports, more, is_passed_on } = seen.bridged;
    (port, ports.iter().collect(), more, is_passed_on)
}

#[test]
fn a_bridge_that_shows_what_its_ports_pass_on_does_not_come_between_them() {
    let craft = craft(CLIENT, "10.0.0.3", Message::udp(5000, 53));
    let mut capture = three_ports();
    capture.frame(Way::OtherHost, "port0", &craft);
    capture.frame(Way::OtherHost, "br0", &craft);
    capture.frame(Way::OtherHost, "port1", &craft);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Arrival, Sighting::OtherHost, second(1)]);
    assert_eq!(numbers(&seen[0]), (2, vec![3], 0, true));
}

#[test]
fn ports_of_one_time_do_not_tell_which_came_first() {
    let craft = craft(CLIENT, "10.0.0.3", Message::udp(5000, 53));
    let mut capture = three_ports();
    capture.frame(Way::OtherHost, "port0", &craft);
    capture.time -= 10_000;
    capture.frame(Way::OtherHost, "port1", &craft);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Arrival, second(1)]);
    assert_eq!(numbers(&seen[0]), (0, vec![0], 0, true));
}

#[test]
fn what_goes_to_a_group_may_leave_by_every_other_port() {
    let mut frame = craft(CLIENT, "10.0.0.255", Message::udp(137, 137)).frame();
    let mut ethernet = vec![0xff; 6];
    ethernet.extend([2, 0, 0, 0, 0, 9, 8, 0]);
    ethernet.append(&mut frame);
    let comes = |capture: &mut Capture| {
        capture.bytes(Way::In, "port0", &ethernet, LinkType::Ethernet);
        capture.bytes(Way::In, "br0", &ethernet, LinkType::Ethernet);
    };
    let mut capture = three_ports();
    comes(&mut capture);
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Lower { of: Some(2) }, Sighting::Arrival]);
    assert_eq!(numbers(&seen[1]), (2, vec![], 2, false));

    let mut capture = three_ports();
    comes(&mut capture);
    capture.bytes(Way::Out, "port2", &ethernet, LinkType::Ethernet);
    let seen = capture.take();
    assert_eq!(
        numbers(&seen[1]),
        (2, vec![4], 1, false),
        "one was seen, the other may have been dropped"
    );
}

#[test]
fn what_goes_to_a_station_that_was_heard_leaves_by_one_port() {
    let (there, back) = ((CLIENT, "10.0.0.3"), ("10.0.0.3", CLIENT));
    let udp = |(source, destination), id| Craft {
        id,
        ..craft(source, destination, Message::udp(5000, 5000))
    };
    let mut capture = three_ports();
    capture.frame(Way::OtherHost, "port0", &udp(there, 1));
    capture.frame(Way::OtherHost, "port1", &udp(back, 2));
    capture.frame(Way::OtherHost, "port0", &udp(there, 3));
    capture.time += bridged::AGEING;
    capture.frame(Way::OtherHost, "port0", &udp(there, 4));
    let seen = capture.take();
    let found: Vec<_> = seen.iter().map(numbers).map(|(_, ports, more, _)| (ports, more)).collect();
    let known = |port| (vec![port], 0);
    let flooded = (vec![], 1);
    assert_eq!(found, [flooded.clone(), known(2), known(3), flooded]);
}

#[test]
fn a_reset_for_a_bridged_packet_is_the_hosts() {
    let station = ("10.0.0.3", 80);
    let there = segment((CLIENT, 4000), station, 1, 0);
    let mut reset = segment(station, (CLIENT, 4000), 0, 0);
    if let Message::Tcp { flags, .. } = &mut reset.message {
        *flags = Flags::RST;
    }
    let mut capture = three_ports();
    capture.frame(Way::OtherHost, "port1", &segment(station, (CLIENT, 4000), 7, 0));
    capture.frame(Way::OtherHost, "port0", &there);
    capture.frame(Way::OtherHost, "port0", &reset);
    // One that the station sends comes in by its own port first.
    let real = Craft { id: 9, ..reset };
    capture.frame(Way::OtherHost, "port1", &real);
    capture.frame(Way::OtherHost, "port0", &real);
    // Anything else of a station that has moved is what it sends.
    capture.frame(Way::OtherHost, "port0", &segment(station, (CLIENT, 4000), 8, 0));
    let seen = sightings(&capture.take());
    let lower = Sighting::Lower { of: None };
    assert_eq!(seen[2..], [lower, Sighting::Arrival, second(4), Sighting::Arrival]);
}

#[test]
fn fragments_at_a_port_are_lower_where_the_bridge_shows_them_put_together() {
    let fragment = |offset, payload_len, more| Craft {
        payload_len,
        fragment: Some(Fragment { offset, more }),
        id: 9,
        ..craft(CLIENT, SERVER, Message::udp(5000, 53))
    };
    let mut capture = Capture::new();
    capture.frame(Way::OtherHost, "port0", &fragment(0, 1472, true));
    capture.frame(Way::OtherHost, "port0", &fragment(1480, 528, false));
    // Put together, its UDP length is that of the first fragment's header: it says the same.
    let mut whole = fragment(0, 1472, true).frame();
    whole[6..8].fill(0);
    whole.truncate(20 + 8 + 1472);
    capture.bytes(Way::In, "br0", &whole, LinkType::Raw);
    let seen = capture.take();
    assert_eq!(sightings(&seen[..2]), [Sighting::Lower { of: Some(3) }; 2]);
    assert_eq!(seen[2].sighting, Sighting::Arrival);
}

#[test]
fn neighbour_discovery_is_passed_on_by_no_router() {
    let solicit = |source| {
        craft(source, "ff02::16", Message::Icmp { kind: 143, code: 0, id: 0, sequence: 1 })
    };
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &solicit("fe80::2"));
    capture.frame(Way::Out, "lan0", &solicit("fe80::1"));
    assert_eq!(sightings(&capture.take()), [Sighting::Arrival, Sighting::Own]);
}

#[test]
fn a_dhcp_client_without_an_address_sends_below_all_hooks() {
    let request = |source| craft(source, "255.255.255.255", Message::udp(68, 67));
    let mut capture = Capture::new();
    capture.frame(Way::Out, "wan0", &request("0.0.0.0"));
    capture.frame(Way::Out, "wan0", &request(ROUTER));
    capture.frame(Way::In, "lan0", &Craft { id: 3, ..request("0.0.0.0") });
    let seen = capture.take();
    assert_eq!(sightings(&seen), [Sighting::Lower { of: None }, Sighting::Own, Sighting::Arrival]);
}

#[test]
fn loopback_is_one_packet_of_the_hosts_own() {
    let craft = craft("127.0.0.1", "127.0.0.1", Message::udp(5000, 53));
    let mut capture = Capture::new();
    capture.frame(Way::Out, "lo", &craft);
    capture.frame(Way::In, "lo", &craft);
    assert_eq!(sightings(&capture.take()), [Sighting::Own, second(1)]);
    // A capture on all interfaces leaves out what goes out by `lo`.
    let mut capture = Capture::new();
    capture.frame(Way::In, "lo", &craft);
    assert_eq!(sightings(&capture.take()), [Sighting::Own]);
}

#[test]
fn a_flow_that_goes_through_is_known_by_its_ends_where_a_helper_writes_to_it() {
    let mut capture = Capture::new();
    capture.frame(Way::In, "lan0", &segment((CLIENT, 4000), (SERVER, 21), 1, 20));
    capture.frame(Way::Out, "wan0", &segment((ROUTER, 4000), (SERVER, 21), 1, 20));
    capture.frame(Way::In, "lan0", &segment((CLIENT, 4000), (SERVER, 21), 21, 25));
    capture.frame(Way::Out, "wan0", &segment((ROUTER, 4000), (SERVER, 21), 900, 27));
    let seen = capture.take();
    assert_eq!(seen[3].sighting, Sighting::Second { of: None });
    assert_eq!((seen[2].sighting, seen[2].left), (Sighting::Arrival, None));
}

proptest! {
    /// Whatever comes, and however hashes are keyed: no panic, the same answers, one for each frame, and a second
    /// sighting is one of an arrival.
    #[test]
    fn answers_do_not_depend_on_the_key(
        frames in proptest::collection::vec((0..4_u8, 0..4_usize, 0..3_u8, 0..3_u16, 0..3_u32), 0..60)
    ) {
        let run = || {
            let mut capture = Capture::new();
            for (way, device, host, port, sequence) in &frames {
                let way = [Way::In, Way::Out, Way::OtherHost, Way::Unknown][usize::from(*way)];
                let device = ["lan0", "wan0", "br0", "port0"][*device];
                let source = format!("10.0.0.{host}");
                let craft = segment((&source, 4000 + port), (SERVER, 80), sequence * 10, 10);
                capture.frame(way, device, &craft);
            }
            capture.take()
        };
        let seen = run();
        prop_assert_eq!(seen.len(), frames.len());
        prop_assert_eq!(&seen, &run());
        for one in &seen {
            if let Sighting::Second { of: Some(of) } = one.sighting {
                let arrival = &seen[of as usize - 1];
                let came = matches!(arrival.sighting, Sighting::Arrival | Sighting::Lower { .. });
                prop_assert!(came);
            }
        }
    }
}

/// The numbers that a proxy of SYNs gives the client (900) and has from the server (5,000) pair, once both are seen.
#[test]
fn what_a_proxy_of_syns_renumbers_is_one_packet() {
    let message = |ports: (u16, u16), flags, sequence, acknowledgement| Message::Tcp {
        source_port: ports.0,
        destination_port: ports.1,
        flags,
        sequence,
        acknowledgement,
        window: 1000,
    };
    let to = |flags, sequence, acknowledgement| {
        craft(CLIENT, SERVER, message((4000, 80), flags, sequence, acknowledgement))
    };
    let from = |flags, sequence, acknowledgement| {
        craft(SERVER, CLIENT, message((80, 4000), flags, sequence, acknowledgement))
    };
    let (syn, answer) = (Flags::SYN, Flags::SYN.union(Flags::ACK));
    let play = |proxies| {
        let mut capture = Capture::new();
        capture.sightings = capture.sightings.with_proxy(proxies);
        capture.frame(Way::In, "wan0", &to(syn, 100, 0));
        capture.frame(Way::Out, "wan0", &from(answer, 900, 101));
        capture.frame(Way::In, "wan0", &to(Flags::ACK, 101, 901));
        capture.frame(Way::Out, "lan0", &to(syn, 100, 900));
        capture.frame(Way::In, "lan0", &from(answer, 5000, 101));
        capture.frame(Way::In, "wan0", &to(Flags::ACK, 101, 901));
        capture.frame(Way::Out, "lan0", &to(Flags::ACK, 101, 5001));
        capture.frame(Way::In, "lan0", &from(Flags::ACK, 5001, 121));
        capture.frame(Way::Out, "wan0", &from(Flags::ACK, 901, 121));
        sightings(&capture.take())
    };
    let (came, own) = (Sighting::Arrival, Sighting::Own);
    assert_eq!(play(true), [came, own, came, own, came, came, second(6), came, second(8)]);
    assert_eq!(play(false)[6..], [own, came, own], "numbers that nobody moves tell packets apart");
}
