//! Crafted frames are what they say they are: parsed again, their headers and checksums are right.

use packet::craft::{Addresses, Craft, Ethernet, Fragment, Message, arp_frame};
use packet::tcp::Flags;
use packet::{Checksums, Headers, L3, L4, Link, arp, checksum, ipv4, ipv6, parse, udp};

const V4: Addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
const V6: Addresses = Addresses::V6 { source: [0x20; 16], destination: [0x21; 16] };

fn headers(frame: &[u8]) -> Headers {
    parse(Link::Ethernet, frame, frame.len(), Checksums::Verify)
}

/// Sum of a whole upper-layer packet and its pseudo header: 0xffff if its checksum is right.
fn upper_sum(frame: &[u8], protocol: u8) -> u16 {
    let headers = headers(frame);
    let L4::Upper(upper) = headers.l4 else { panic!("no upper layer: {headers:?}") };
    let bytes = &frame[upper.offset..headers.end];
    let ip = &frame[headers.network..];
    let pseudo = if let Some(ip) = ipv4::Header::new_checked(ip) {
        let (source, destination) = (ip.source().octets(), ip.destination().octets());
        checksum::pseudo_v4(source, destination, protocol, bytes.len() as u16)
    } else {
        let [source, destination] =
            [ipv6::SOURCE, ipv6::DESTINATION].map(|at| ip[at].try_into().expect("IPv4 or IPv6"));
        checksum::pseudo_v6(source, destination, protocol, bytes.len() as u32)
    };
    let pseudo = if protocol == 1 { 0 } else { pseudo };
    checksum::add(checksum::sum(bytes), pseudo)
}

#[test]
fn checksums_are_right_for_even_and_odd_payloads() {
    let echo = Message::Icmp { kind: 8, code: 0, id: 1, sequence: 2 };
    let tcp = Message::tcp(1, 2, Flags::SYN);
    for (addresses, icmp) in [(V4, 1), (V6, 58)] {
        for (message, protocol) in [(&tcp, 6), (&Message::udp(3, 4), 17), (&echo, icmp)] {
            for payload_len in [0, 1, 2, 99] {
                let craft = Craft { payload_len, ..Craft::new(addresses, message.clone()) };
                let frame = craft.frame();
                assert_eq!(frame.len(), 14 + craft.header_len() + payload_len);
                assert_eq!(upper_sum(&frame, protocol), 0xffff, "{craft:?}");
            }
        }
    }
}

/// RFC 768: a computed checksum of 0 is sent as all ones. Ports that make it 0 are found by trying.
#[test]
fn a_udp_checksum_is_never_stored_as_zero() {
    let stored = |port| {
        let frame = Craft::new(V4, Message::udp(port, 4)).frame();
        udp::Header::new_checked(&frame[34..]).unwrap().checksum()
    };
    let all: Vec<u16> = (0..=u16::MAX).map(stored).collect();
    assert!(all.contains(&0xffff) && !all.contains(&0));
}

#[test]
fn fields_are_written_where_they_are_read() {
    let mut craft = Craft::new(V4, Message::udp(1, 2));
    (craft.ttl, craft.tos, craft.id, craft.dont_fragment) = (7, 0xb8, 0x1234, true);
    let frame = craft.frame();
    let ip = ipv4::Header::new_checked(&frame[14..]).unwrap();
    assert_eq!(
        (ip.ttl(), frame[14..][ipv4::TOS][0], ip.id(), ip.dont_fragment()),
        (7, 0xb8, 0x1234, true)
    );
    craft.addresses = V6;
    let frame = craft.frame();
    assert_eq!(frame[14..18], [0x6b, 0x80, 0, 0], "version, class and label");
    assert_eq!(frame[14..][ipv6::HOP_LIMIT], [7]);
}

#[test]
fn a_tag_stands_before_the_type_and_raw_frames_have_no_link_header() {
    let mut craft = Craft::new(V4, Message::udp(1, 2));
    craft.ethernet = Some(Ethernet { vlan: Some(0x2005), ..Ethernet::default() });
    let found = headers(&craft.frame());
    assert_eq!((found.link.vlan, found.network), (Some(0x2005), 18));
    assert_eq!(found.l3, L3::Ipv4 { header_len: 20 });
    craft.ethernet = None;
    let frame = craft.frame();
    let found = parse(Link::Raw, &frame, frame.len(), Checksums::Verify);
    assert_eq!((found.network, found.end), (0, 28));
}

#[test]
fn only_the_first_fragment_carries_the_header() {
    for (addresses, unit) in [(V4, 8), (V6, 1)] {
        let mut craft = Craft::new(addresses, Message::udp(1, 2));
        craft.payload_len = 24;
        craft.fragment = Some(Fragment { offset: 0, more: true });
        assert!(matches!(headers(&craft.frame()).l4, L4::Upper(upper) if upper.protocol == 17));
        craft.fragment = Some(Fragment { offset: 800, more: false });
        let later = headers(&craft.frame());
        assert_eq!(later.l4, L4::Fragment { protocol: 17, offset: 800 / unit });
    }
}

#[test]
fn an_arp_request_does_not_know_its_target() {
    let ethernet = Ethernet { destination: [0xff; 6], ..Ethernet::default() };
    let frame = arp_frame(ethernet, arp::REQUEST, [10, 0, 0, 2], [10, 0, 0, 1]);
    assert_eq!(headers(&frame).l3, L3::Arp);
    let header = arp::Header::new_checked(&frame[14..]).unwrap();
    assert_eq!(frame[14..18], [0, 1, 8, 0]);
    assert_eq!(header.sender_hardware(), [2, 0, 0, 0, 0, 1]);
    assert_eq!(frame[14..][arp::TARGET_HARDWARE], [0; 6]);
}

#[test]
fn addresses_of_two_families_are_no_pair() {
    let (v4, v6) = ("10.0.0.1".parse().unwrap(), "::1".parse().unwrap());
    assert_eq!(Addresses::new(v4, v6), None);
    assert_eq!(Addresses::new(v4, v4).map(|pair| matches!(pair, Addresses::V4 { .. })), Some(true));
}
