//! No panic, and no offset beyond the packet, whatever the bytes: random ones, and well-formed packets
//! cut or changed.

use packet::craft::{Addresses, Craft, Ethernet, Fragment, Message, arp_frame};
use packet::tcp::Flags;
use packet::{
    Checksums, FlowKey, Headers, L3, L3Fault, L4, Link, Packet, Read, ah, arp, esp, ethernet, ipv4,
    ipv6_ext, parse, plain_ethertype, tcp, udp,
};
use proptest::collection::vec;
use proptest::prelude::*;

const LINKS: [Link; 9] = [
    Link::Ethernet,
    Link::Raw,
    Link::Ipv4,
    Link::Ipv6,
    Link::Sll,
    Link::Sll2,
    Link::Null,
    Link::Loop,
    Link::Nflog,
];

/// Well-formed frames of every kind that the builder knows, and some with other chains.
fn well_formed() -> Vec<Vec<u8>> {
    let v4 = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
    let v6 = Addresses::V6 { source: [0x20; 16], destination: [0x21; 16] };
    let chain = [
        [60, 0, 1, 4, 0, 0, 0, 0].as_slice(),
        &[43, 0, 1, 4, 0, 0, 0, 0],
        &[51, 0, 0, 0, 0, 0, 0, 0],
        &[44, 1, 0, 0, 0, 0, 0, 0],
        &[6, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 2],
    ]
    .concat();
    let messages = [
        Message::tcp(1, 2, Flags::SYN),
        Message::udp(1, 2),
        Message::Icmp { kind: 8, code: 0, id: 1, sequence: 1 },
        Message::Other { protocol: 0, header: chain },
        Message::Other { protocol: 60, header: vec![17, 0, 1, 4, 0, 0, 0, 0, 0, 1, 0, 2] },
        Message::Other {
            protocol: 132,
            header: vec![0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 4],
        },
        Message::Other {
            protocol: 33,
            header: vec![0, 1, 0, 2, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        },
    ];
    let mut frames = vec![arp_frame(Ethernet::default(), 1, [10, 0, 0, 1], [10, 0, 0, 2])];
    for addresses in [v4, v6] {
        for message in &messages {
            let whole = Craft { payload_len: 9, ..Craft::new(addresses, message.clone()) };
            let tagged = Ethernet { vlan: Some(5), ..Ethernet::default() };
            frames.push(Craft { ethernet: Some(tagged), ..whole.clone() }.frame());
            let fragment = Some(Fragment { offset: 16, more: true });
            frames.push(Craft { fragment, ..whole.clone() }.frame());
            frames.push(whole.frame());
        }
    }
    frames
}

/// Every offset lies in the packet, and the order of the layers holds.
fn assert_in_bounds(headers: &Headers, wire_len: usize) {
    assert!(headers.network <= headers.end && headers.end <= wire_len, "{headers:?}");
    match headers.l3 {
        L3::Ipv4 { header_len } => assert!(headers.network + header_len <= headers.end),
        L3::Ipv6 => assert!(headers.network + 40 <= headers.end),
        L3::Arp => assert!(headers.network + 28 <= headers.end),
        L3::Other | L3::Fault(_) | L3::Unknown => assert_eq!(headers.l4, L4::None),
    }
    if let L4::Upper(upper) = headers.l4 {
        assert!(headers.network < upper.offset && upper.offset <= headers.end, "{headers:?}");
    }
}

/// Calls every accessor of every view, whatever the bytes are.
fn read_views(bytes: &[u8]) {
    let _ = ethernet::Header::new_checked(bytes).map(|h| (h.source(), h.destination()));
    let _ = arp::Header::new_checked(bytes).map(|h| (h.sender(), h.target(), h.operation()));
    let _ = ipv4::Header::new_checked(bytes)
        .map(|h| (h.id(), h.fragment_offset(), h.source(), h.destination()));
    if let Some(h) = tcp::Header::new_checked(bytes) {
        let _ = (h.sequence(), h.acknowledgement(), h.window(), h.flags().to_string());
        assert!(h.options().count() <= 41);
    }
    let _ = udp::Header::new_checked(bytes).map(|h| (h.length(), h.checksum()));
    let _ = esp::Header::new_checked(bytes).map(|h| h.spi());
    let _ = ah::Header::new_checked(bytes).map(|h| h.spi());
}

/// Everything that reads a packet, and everything that writes one.
fn exercise(frame: &[u8], wire_len: usize, link: Link, checksums: Checksums, at: usize) {
    let mut bytes = frame.to_vec();
    let mut packet = Packet::parse(&mut bytes, wire_len, link, checksums);
    let headers = *packet.headers();
    assert_in_bounds(&headers, wire_len);
    assert_eq!(headers, parse(link, frame, wire_len, checksums));
    for _ in 0..2 {
        let _ = (packet.to_string(), FlowKey::of(&packet).map(FlowKey::canonical));
        let _ = (packet.read::<4>(at), packet.net::<16>(at), packet.read_slice(at, at));
        if let L4::Upper(upper) = headers.l4 {
            let _ = packet.upper::<20>(&upper, at);
        }
        for target in [0, 6, 43, 44, 51, 59, 60] {
            let _ = ipv6_ext::find(&packet, packet.network_offset(), Some(target));
        }
        assert!(ipv6_ext::headers(&packet, packet.network_offset()).count() <= wire_len / 8 + 1);
        for start in [at, at / 2, at + 9, 3, 40] {
            packet.forget(start..start.saturating_add(2));
        }
        let _ = (packet.set_ttl(1), packet.set_tos(2), packet.write_net(at, &[1, 2, 3]));
    }
    for start in [0, headers.network, at.min(frame.len())] {
        read_views(frame.get(start..).unwrap_or_default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_on_any_link(
        frame in vec(any::<u8>(), 0..160),
        more in 0usize..2000,
        link in prop::sample::select(LINKS.to_vec()),
        verify in any::<bool>(),
        at in 0usize..200,
    ) {
        let checksums = if verify { Checksums::Verify } else { Checksums::Ignore };
        exercise(&frame, frame.len() + more, link, checksums, at);
    }

    #[test]
    fn changed_packets(
        mut frame in prop::sample::select(well_formed()),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        kept in any::<prop::sample::Index>(),
        at in 0usize..200,
    ) {
        for (index, value) in changes {
            let index = index.index(frame.len());
            frame[index] = value;
        }
        let captured = kept.index(frame.len() + 1);
        exercise(&frame[..captured], frame.len(), Link::Ethernet, Checksums::Ignore, at);
        exercise(&frame[..captured], captured, Link::Ethernet, Checksums::Ignore, at);
    }

    /// A read agrees with a byte-by-byte account of what is captured, forgotten and absent.
    #[test]
    fn reads_agree_with_a_byte_wise_model(
        captured in 14usize..64,
        more in 0usize..8,
        forgotten in vec((0usize..64, 0usize..6), 0..5),
        offset in 0usize..80,
        len in 1usize..10,
    ) {
        let mut bytes = vec![2; captured];
        let end = captured + more;
        let mut packet = Packet::parse(&mut bytes, end, Link::Ethernet, Checksums::Ignore);
        for (start, count) in &forgotten {
            packet.forget(*start..start + count);
        }
        let is_known = |at: usize| {
            at < captured && !forgotten.iter().any(|(start, count)| (*start..start + count).contains(&at))
        };
        match packet.read_slice(offset, len) {
            Read::Absent => prop_assert!(offset + len > end),
            Read::Known(_) => prop_assert!((offset..offset + len).all(is_known)),
            Read::Unknown => {
                prop_assert!(offset + len <= end);
                // Up to four ranges are kept as they are; more may forget bytes between them.
                prop_assert!(forgotten.len() > 4 || !(offset..offset + len).all(is_known));
            }
        }
    }
}

/// An EtherType field that a frame may begin with, and what may follow it: anything, SNAP, tags, a session.
fn type_field() -> impl Strategy<Value = Vec<u8>> {
    let known: [&[u8]; 11] = [
        &[8, 0],
        &[8, 6],
        &[0x86, 0xdd],
        &[0x81, 0, 0, 5, 8, 0],
        &[0x88, 0xa8, 0, 5, 8, 6],
        &[0x91, 0, 0, 5, 8, 0],
        &[0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0, 0x21],
        &[0, 40, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
        &[0, 40, 0xaa, 0xaa, 3, 0, 0, 0x0c, 8, 0],
        &[0, 40, 0x42, 0x42, 3],
        &[0, 0],
    ];
    prop_oneof![
        3 => proptest::sample::select(known.map(<[u8]>::to_vec).to_vec()),
        1 => vec(any::<u8>(), 2..6),
    ]
}

proptest! {
    /// The EtherType read alone equals the EtherType found with all headers.
    #[test]
    fn a_plain_ethertype_is_that_of_the_headers(
        kind in type_field(),
        after in vec(any::<u8>(), 0..30),
        cut in 0..60_usize,
    ) {
        let mut frame = [&[2; 12], &*kind, &*after].concat();
        frame.truncate(cut.max(kind.len()));
        let found = parse(Link::Wire, &frame, frame.len(), Checksums::Verify).link.ethertype;
        if let Some(plain) = plain_ethertype(&frame) {
            prop_assert_eq!(plain, found);
        }
    }
}

#[test]
fn a_frame_with_nothing_before_its_type_tells_it() {
    let of = |rest: &[u8]| plain_ethertype(&[&[2; 12], rest, &[0; 4]].concat());
    assert_eq!((of(&[8, 0]), of(&[0x88, 0xcc]), of(&[0, 0])), (Some(0x800), Some(0x88cc), Some(4)));
    assert_eq!([of(&[0x81, 0]), of(&[0x88, 0x64]), of(&[0, 9, 0xaa, 0xaa, 3])], [None; 3]);
}

#[test]
fn every_cut_of_a_well_formed_packet() {
    for frame in well_formed() {
        for len in 0..=frame.len() {
            exercise(&frame[..len], frame.len(), Link::Ethernet, Checksums::Verify, len);
            exercise(&frame[..len], len, Link::Ethernet, Checksums::Verify, len);
        }
    }
}

/// A capture that was cut never makes a fault or a short header of what was whole on the wire.
#[test]
fn a_short_capture_never_looks_like_a_fault() {
    for frame in well_formed() {
        let whole = parse(Link::Ethernet, &frame, frame.len(), Checksums::Verify);
        assert!(!matches!(whole.l3, L3::Fault(fault) if fault != L3Fault::HopByHop), "{whole:?}");
        for len in 0..frame.len() {
            let cut = parse(Link::Ethernet, &frame[..len], frame.len(), Checksums::Verify);
            assert!(cut.l3 == whole.l3 || cut.l3 == L3::Unknown, "{len}: {cut:?} of {whole:?}");
            assert!([whole.l4, L4::Unknown, L4::None].contains(&cut.l4), "{len}: {cut:?}");
        }
    }
}
