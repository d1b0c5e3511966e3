//! Replies against the kernel's text, and what gets none. `lab`'s tests compare them with a kernel's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::answer::Refused;
use super::*;
use crate::craft::{Addresses, Craft, Fragment, Message};
use crate::tcp::Flags;
use crate::{Checksums, FlowKey, Link, Packet, ipv4, ipv6};

const BRIDGE: Terms = Terms { replier: Replier::Bridge, hop_limit: 64, id: 0, verify: true };
const UNREACHABLE: Reply = Reply::Error { kind: 3, code: 13, rest: 0 };
const V4: [&str; 2] = ["10.0.0.1", "192.0.2.7"];
const V6: [&str; 2] = ["fd00::1", "2001:db8::7"];

fn crafted(ends: [&str; 2], message: Message, payload_len: usize) -> Vec<u8> {
    let [from, to] = ends.map(|text| text.parse().expect("an address"));
    let addresses = Addresses::new(from, to).expect("one family");
    Craft { ethernet: None, payload_len, ..Craft::new(addresses, message) }.frame()
}

fn segment(flags: Flags) -> Message {
    Message::Tcp {
        source_port: 40000,
        destination_port: 80,
        flags,
        sequence: 1000,
        acknowledgement: 7000,
        window: 512,
    }
}

fn query() -> Message {
    Message::Udp { source_port: 5000, destination_port: 53 }
}

fn replied(bytes: &[u8], what: Reply, terms: &Terms) -> Result<Vec<u8>, NoReply> {
    let (mut bytes, len) = (bytes.to_vec(), bytes.len());
    let packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Verify);
    let mut to = b"left over".to_vec();
    reply(&packet, what, terms, &mut to).map(|()| to)
}

/// The flow of a packet whose lengths and checksums are right.
fn checked(bytes: &[u8]) -> FlowKey {
    let (mut bytes, len) = (bytes.to_vec(), bytes.len());
    let packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Verify);
    assert_eq!(packet.len(), len);
    let read = Refused::read(&packet).expect("a packet");
    assert_eq!(read.verify(), Ok(()));
    FlowKey::of(&packet).known().expect("a flow")
}

#[test]
fn a_syn_is_acknowledged_and_an_acknowledgement_taken_at_its_word() {
    for (ends, upper) in [(V4, ipv4::MIN_HEADER_LEN), (V6, ipv6::HEADER_LEN)] {
        let syn = crafted(ends, segment(Flags::SYN), 4);
        let bytes = replied(&syn, Reply::Reset, &BRIDGE).expect("a reset");
        let ports = [0, 80, 0x9c, 0x40];
        let acknowledged = 1005u32.to_be_bytes();
        let expected = [&ports[..], &[0; 4], &acknowledged, &[0x50, 0x14, 0, 0]].concat();
        assert_eq!(bytes[upper..upper + 16], expected);
        assert_eq!(checked(&bytes), checked(&syn).reversed());

        let ack = crafted(ends, segment(Flags::ACK), 4);
        let bytes = replied(&ack, Reply::Reset, &BRIDGE).expect("a reset");
        let sequence = 7000u32.to_be_bytes();
        let expected = [&ports[..], &sequence, &[0; 4], &[0x50, 0x04, 0, 0]].concat();
        assert_eq!(bytes[upper..upper + 16], expected);
        checked(&bytes);
    }
}

#[test]
fn an_error_quotes_as_much_as_its_sender_does() {
    let own = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 254));
    let host = Terms { replier: Replier::Host(own), id: 9, ..BRIDGE };
    for (payload, by_bridge, by_host) in [(4, 32, 32), (1000, 536, 548)] {
        let packet = crafted(V4, query(), payload);
        let bytes = replied(&packet, UNREACHABLE, &BRIDGE).expect("an error");
        assert_eq!(bytes[28..], packet[..by_bridge]);
        assert_eq!(
            (bytes[1], &bytes[4..8], &bytes[12..16]),
            (0, &[0, 0, 0x40, 0][..], &[192, 0, 2, 7][..])
        );
        assert_eq!(bytes[20..22], [3, 13]);
        checked(&bytes);

        let bytes = replied(&packet, UNREACHABLE, &host).expect("an error");
        assert_eq!(bytes[28..], packet[..by_host]);
        assert_eq!(
            (bytes[1], &bytes[4..8], &bytes[12..16]),
            (0xc0, &[0, 9, 0, 0][..], &[10, 0, 0, 254][..])
        );
        checked(&bytes);
    }
    let packet = crafted(V6, query(), 1400);
    let too_big = Reply::Error { kind: 2, code: 0, rest: 1280 };
    let bytes = replied(&packet, too_big, &BRIDGE).expect("an error");
    assert_eq!(bytes[40..42], [2, 0]);
    assert_eq!(bytes[44..48], 1280u32.to_be_bytes());
    assert_eq!(bytes[48..], packet[..1220]);
    checked(&bytes);
}

#[test]
fn what_is_not_answered_has_a_reason() {
    let query = crafted(V4, query(), 20);
    let no_reply = |bytes: &[u8], what, terms: &Terms| replied(bytes, what, terms).err();
    assert_eq!(no_reply(&query, Reply::Reset, &BRIDGE), Some(NoReply::NotTcp));
    let reset = crafted(V4, segment(Flags::RST), 0);
    assert_eq!(no_reply(&reset, Reply::Reset, &BRIDGE), Some(NoReply::IsReply));
    let error = replied(&query, UNREACHABLE, &BRIDGE).expect("an error");
    assert_eq!(no_reply(&error, UNREACHABLE, &BRIDGE), Some(NoReply::IsReply));
    let other_family = Terms { replier: Replier::Host(Ipv6Addr::LOCALHOST.into()), ..BRIDGE };
    assert_eq!(no_reply(&query, UNREACHABLE, &other_family), Some(NoReply::Address));
    assert_eq!(no_reply(&query[..40], UNREACHABLE, &BRIDGE), Some(NoReply::Unknown));
    for ends in
        [["0.0.0.0", V4[1]], ["224.0.0.1", V4[1]], [V4[0], "255.255.255.255"], [V4[0], "239.0.0.9"]]
    {
        let packet = crafted(ends, segment(Flags::SYN), 0);
        assert_eq!(no_reply(&packet, Reply::Reset, &BRIDGE), Some(NoReply::Address), "{ends:?}");
    }
    let [from, to] = V4.map(|text| text.parse().expect("an address"));
    let addresses = Addresses::new(from, to).expect("one family");
    let later = Craft {
        ethernet: None,
        fragment: Some(Fragment { offset: 64, more: false }),
        payload_len: 40,
        ..Craft::new(addresses, segment(Flags::SYN))
    };
    assert_eq!(no_reply(&later.frame(), Reply::Reset, &BRIDGE), Some(NoReply::Fragment));
}

#[test]
fn a_wrong_checksum_is_not_answered_unless_its_sender_left_it_to_hardware() {
    let trusted = Terms { verify: false, ..BRIDGE };
    for (ends, message, place) in [
        (V4, query(), 30),
        (V4, segment(Flags::SYN), 36),
        (V6, query(), 50),
        (V6, segment(Flags::SYN), 56),
    ] {
        let mut packet = crafted(ends, message, 20);
        packet[place] ^= 1;
        assert_eq!(replied(&packet, UNREACHABLE, &BRIDGE), Err(NoReply::Checksum));
        assert!(replied(&packet, UNREACHABLE, &trusted).is_ok());
    }
    let mut without = crafted(V4, query(), 20);
    without[26..28].fill(0);
    assert!(replied(&without, UNREACHABLE, &BRIDGE).is_ok(), "UDP over IPv4 need not have one");
}
