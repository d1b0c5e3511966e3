//! A path that takes less than what is configured.

use std::sync::atomic::Ordering;

use packet::craft::Craft;
use pktio::{LiveMeta, Lost, Pool, SegmentKind, Segments};
use proptest::prelude::*;

use super::super::Site;
use super::super::outer::OUTER;
use super::ends::{End, MTU, Pair, assert_whole, cut};
use super::packets::{Memory, burst, datagram, ping, segment, superframe};

/// A time at which a probe is due.
const NOW: u64 = 10_000_000_000;
/// Bytes that sealing adds to a packet that needs no padding.
const SEALED: usize = 32;

/// Makes an end find that its path takes less; returns the number of bytes, which is no multiple of 16.
pub(super) fn narrow(end: &End) -> u16 {
    narrow_site(&end.site)
}

pub(super) fn narrow_site(site: &Site) -> u16 {
    let mut state = site.lock();
    let path = &mut state.peers.values_mut().next().unwrap().path;
    // What is configured is lost three times, and the next one is answered.
    let probes = (0..4).map(|second| path.due(NOW + second * 1_000_000_000, true).unwrap());
    let (number, _) = probes.last().unwrap();
    path.answered(number, NOW);
    site.is_narrow.store(true, Ordering::Relaxed);
    let usable = path.usable();
    assert!(usable < MTU && !usable.is_multiple_of(16), "{usable}");
    usable
}

/// A pair whose first end has a path that takes this much.
fn narrowed() -> (Pair, u16) {
    let pair = Pair::established(false);
    let most = narrow(&pair.a);
    (pair, most)
}

fn tcp_segments(craft: &Craft, is_v6: bool, size: u16) -> Vec<Vec<u8>> {
    let kind = if is_v6 { SegmentKind::TcpV6 } else { SegmentKind::TcpV4 };
    let segments = Some(Segments { size, kind });
    cut(&craft.frame(), Some(&LiveMeta { segments, ..LiveMeta::default() }))
}

#[test]
fn what_just_fits_is_not_made_longer_by_padding() {
    let (mut pair, most) = narrowed();
    for less in 0..40 {
        let len = usize::from(most) - less;
        let packet = Craft { dont_fragment: true, ..datagram(1, 2, false, len - 28) }.frame();
        let mut sealed = pktio::Burst::new();
        sealed.push(&packet, super::ends::raw(len));
        assert_eq!(pair.a.seal(&mut sealed).lost, []);
        let sealed = sealed.bytes() as usize - OUTER;
        assert!(sealed <= usize::from(most) + SEALED, "{len} bytes are {sealed}");
    }
}

#[test]
fn streams_are_cut_anew() {
    let (mut pair, most) = narrowed();
    for is_v6 in [false, true] {
        let fits = most - if is_v6 { 60 } else { 40 };
        let one = Craft { dont_fragment: true, ..segment(1, 2, is_v6, 1_360) };
        assert_eq!(pair.a.send_packets(&[one.frame()]).lost, []);
        let expected = tcp_segments(&one, is_v6, fits);
        assert_eq!(expected.len(), 2);
        assert_eq!(pair.b.receive_packets(2).packets(), expected);

        let many = Craft { dont_fragment: true, ..segment(1, 2, is_v6, 30_000) };
        let pools = [Pool::new(1, 70_000, 0), Pool::new(1, 70_000, 0)];
        let (bytes, live) = superframe(&many, 1_360);
        let offered = pair.a.send(burst([(&bytes[..], Memory::Tight, live)], &pools[0], &pools[1]));
        assert_eq!(offered.lost, []);
        let expected = tcp_segments(&many, is_v6, fits);
        assert_eq!(pair.b.receive_packets(expected.len()).packets(), expected);
    }
}

/// The payload of fragments in their order, which say so, of packets of one identification.
fn assembled(fragments: &[Vec<u8>], most: u16) -> Vec<u8> {
    let mut whole = Vec::new();
    for (at, fragment) in fragments.iter().enumerate() {
        assert!(fragment.len() <= usize::from(most));
        assert_eq!(packet::checksum::sum(&fragment[..20]), 0xffff);
        assert_eq!(fragment[4..6], fragments[0][4..6]);
        let field = u16::from_be_bytes([fragment[6], fragment[7]]);
        assert_eq!(usize::from(field & 0x1fff) * 8, whole.len());
        assert_eq!(field & 0x2000 != 0, at + 1 < fragments.len(), "more follow");
        whole.extend_from_slice(&fragment[20..]);
    }
    whole
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Among packets that fit, in their order.
    #[test]
    fn packets_that_may_be_fragmented_are(lens in prop::collection::vec(0..1_390_usize, 1..12)) {
        let (mut pair, most) = narrowed();
        let crafts: Vec<_> =
            (1..).zip(&lens).map(|(id, len)| Craft { id, ..datagram(1, 2, false, *len) }).collect();
        let packets: Vec<_> = crafts.iter().map(Craft::frame).collect();
        let is_long = |packet: &&Vec<u8>| packet.len() > usize::from(most);
        let count = packets.len() + packets.iter().filter(is_long).count();
        prop_assert_eq!(pair.a.send_packets(&packets).lost, vec![]);
        let came = pair.b.receive_packets(count).packets();
        let mut came = &came[..];
        for packet in &packets {
            let pieces = if is_long(&packet) { 2 } else { 1 };
            let (these, rest) = came.split_at(pieces);
            came = rest;
            if pieces == 1 {
                prop_assert_eq!(&these[0], packet);
            } else {
                prop_assert_eq!(assembled(these, most), packet[20..].to_vec());
            }
        }
        assert_whole(&pair.a.worker.pool, 0);
    }
}

#[test]
fn what_may_not_be_fragmented_is_too_long() {
    let (mut pair, most) = narrowed();
    let too_long = [
        Craft { dont_fragment: true, ..datagram(1, 2, false, 1_390) }.frame(),
        datagram(1, 2, true, 1_372).frame(),
        superframe(&datagram(1, 2, true, 1_372), 1_400).0,
    ];
    for packet in too_long {
        let offered = pair.a.send_packets(&[packet, ping(1, 2, 3)]);
        assert_eq!((offered.sent, offered.lost), (1, vec![Lost::TooLong { most }]));
        assert_eq!(pair.b.receive_packets(1).packets(), [ping(1, 2, 3)]);
    }
}

/// The superframe is long, but none of its datagrams is.
#[test]
fn a_superframe_of_datagrams_that_fit_is_no_long_packet() {
    let (mut pair, most) = narrowed();
    let pools = [Pool::new(1, 70_000, 0), Pool::new(1, 70_000, 0)];
    for (size, fits) in [(1_000, true), (most - 28, true), (most - 27, false)] {
        for is_v6 in [false, true] {
            let size = if is_v6 { size - 20 } else { size };
            let (bytes, live) = superframe(&datagram(1, 2, is_v6, 20_000), size);
            let pieces = cut(&bytes, Some(&live));
            let burst = burst([(&bytes[..], Memory::Tight, live)], &pools[0], &pools[1]);
            let offered = pair.a.send(burst);
            if fits {
                assert_eq!(offered.lost, []);
                assert_eq!(pair.b.receive_packets(pieces.len()).packets(), pieces);
            } else {
                assert_eq!(offered.lost, [Lost::TooLong { most }]);
            }
        }
    }
}

#[test]
fn a_fragment_that_there_is_no_memory_for_is_told() {
    let (mut pair, _) = narrowed();
    let mut held = Vec::new();
    let pool = pair.a.worker.pool.clone();
    pool.fill(&mut held, pool.chunks() - 1);
    let packet = datagram(1, 2, false, 1_390).frame();
    let mut sealed = pktio::Burst::new();
    sealed.push(&packet, super::ends::raw(packet.len()));
    let offered = pair.a.seal(&mut sealed);
    assert_eq!((sealed.len(), &offered.lost[..]), (0, &[Lost::NoRoom][..]));
}
