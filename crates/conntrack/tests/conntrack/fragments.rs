//! Fragments: in order, out of order, twice, overlapping, late, cut.

use crate::net::{SECOND, V4, V6};
use conntrack::defrag::{Defrag, Defragged, Limits, Refusal, Whole};
use packet::craft::{Addresses, Craft, Fragment, Message};
use packet::{Checksums, L3, Link, Packet};
use proptest::prelude::*;

/// A datagram of 4 kB with its checksum, and its fragments by their payload's offset and length.
struct Pieces {
    addresses: Addresses,
    whole: Vec<u8>,
}

impl Pieces {
    fn new(addresses: Addresses) -> Self {
        let whole = Craft {
            ethernet: None,
            payload_len: 4000,
            ..Craft::new(addresses, Message::udp(4000, 53))
        };
        Self { addresses, whole: whole.frame() }
    }

    fn network_len(&self) -> usize {
        if matches!(self.addresses, Addresses::V4 { .. }) { 20 } else { 40 }
    }

    fn payload(&self) -> &[u8] {
        &self.whole[self.network_len()..]
    }

    fn len(&self) -> usize {
        self.payload().len()
    }

    fn fragment(&self, start: usize, end: usize) -> Vec<u8> {
        self.with_tos(start, end, 0)
    }

    fn with_tos(&self, start: usize, end: usize, tos: u8) -> Vec<u8> {
        let bytes = &self.payload()[start..end];
        let craft = Craft {
            ethernet: None,
            id: 77,
            tos,
            fragment: Some(Fragment { offset: start as u16, more: end < self.len() }),
            payload_len: bytes.len(),
            ..Craft::new(self.addresses, Message::Other { protocol: 17, header: vec![] })
        };
        let mut frame = craft.frame();
        let at = frame.len() - bytes.len();
        frame[at..].copy_from_slice(bytes);
        frame
    }

    /// Cuts at these places.
    fn cut(&self, places: &[usize]) -> Vec<Vec<u8>> {
        let mut starts = vec![0];
        starts.extend_from_slice(places);
        let ends = starts.iter().copied().skip(1).chain([self.len()]);
        starts.iter().zip(ends).map(|(start, end)| self.fragment(*start, end)).collect()
    }
}

fn push(defrag: &mut Defrag, frame: &[u8], now: u64) -> Defragged {
    push_cut(defrag, frame, frame.len(), now)
}

fn push_cut(defrag: &mut Defrag, frame: &[u8], captured: usize, now: u64) -> Defragged {
    let mut bytes = frame[..captured].to_vec();
    let packet = Packet::parse(&mut bytes, frame.len(), Link::Raw, Checksums::Verify);
    defrag.push(&packet, now, 0)
}

/// Pushes all; the last one must complete the packet.
fn complete(frames: &[Vec<u8>]) -> Whole {
    let mut defrag = Defrag::new(Limits::default());
    let (last, first) = frames.split_last().unwrap();
    for frame in first {
        assert_eq!(push(&mut defrag, frame, 1), Defragged::Held);
    }
    let Defragged::Whole(whole) = push(&mut defrag, last, 1) else { panic!("not complete") };
    assert_eq!((defrag.memory(), defrag.waiting()), (0, 0));
    assert_eq!(whole.pieces.len(), frames.len());
    whole
}

/// The packet has the payload, a header that the stack takes, and no trace of fragments.
fn assert_same(pieces: &Pieces, whole: &Whole) {
    let mut bytes = whole.frame.clone();
    let len = bytes.len();
    assert_eq!(bytes[pieces.network_len()..], *pieces.payload());
    let packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Verify);
    assert!(matches!(packet.headers().l3, L3::Ipv4 { .. } | L3::Ipv6));
    assert_eq!(packet.headers().end, len);
    let mut defrag = Defrag::new(Limits::default());
    assert_eq!(defrag.push(&packet, 1, 0), Defragged::Pass);
}

#[test]
fn any_order_gives_the_packet() {
    for addresses in [V4, V6] {
        let pieces = Pieces::new(addresses);
        let mut frames = pieces.cut(&[1000, 2000, 3000]);
        assert_same(&pieces, &complete(&frames));
        frames.reverse();
        assert_same(&pieces, &complete(&frames));
        frames.swap(0, 2);
        let whole = complete(&frames);
        assert_same(&pieces, &whole);
        assert!(whole.unknown.is_empty());
    }
}

#[test]
fn whole_packets_pass_and_atomic_fragments_lose_their_header() {
    for addresses in [V4, V6] {
        let pieces = Pieces::new(addresses);
        let mut defrag = Defrag::new(Limits::default());
        assert_eq!(push(&mut defrag, &pieces.whole, 1), Defragged::Pass);
    }
    let pieces = Pieces::new(V6);
    assert_same(&pieces, &complete(&[pieces.fragment(0, pieces.len())]));
}

#[test]
fn duplicates_are_dropped_alone_and_overlaps_with_everything() {
    for addresses in [V4, V6] {
        let pieces = Pieces::new(addresses);
        let mut defrag = Defrag::new(Limits::default());
        let mut push = |start, end| push(&mut defrag, &pieces.fragment(start, end), 1);
        assert_eq!(push(0, 1000), Defragged::Held);
        assert_eq!(push(1000, 2000), Defragged::Held);
        assert_eq!(push(0, 1000), Defragged::Dropped(Refusal::Duplicate));
        assert_eq!(push(400, 1600), Defragged::Dropped(Refusal::Duplicate), "within one run");
        assert!(matches!(push(2000, pieces.len()), Defragged::Whole(_)));
        assert_eq!(push(0, 1000), Defragged::Held);
        assert_eq!(push(992, 2000), Defragged::Dropped(Refusal::Inconsistent));
        assert_eq!(push(1000, 2000), Defragged::Held, "of a new packet");
        assert_eq!(push(2000, pieces.len()), Defragged::Held, "the beginning is gone");
        assert!(matches!(push(0, 1000), Defragged::Whole(_)));
    }
}

#[test]
fn the_end_is_final() {
    let pieces = Pieces::new(V4);
    let mut defrag = Defrag::new(Limits::default());
    let end = pieces.len();
    assert_eq!(push(&mut defrag, &pieces.fragment(3000, end), 1), Defragged::Held);
    let mut beyond = pieces.fragment(3000, end);
    beyond[6] = 0x20 | ((4800u16 / 8) >> 8) as u8;
    beyond[7] = (4800u16 / 8) as u8;
    beyond[10..12].fill(0);
    let sum = !packet::checksum::sum(&beyond[..20]);
    beyond[10..12].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(push(&mut defrag, &beyond, 1), Defragged::Dropped(Refusal::Inconsistent));
    assert_eq!(defrag.waiting(), 0);
}

#[test]
fn fragments_wait_for_their_time_only() {
    for (addresses, seconds) in [(V4, 30), (V6, 60)] {
        let pieces = Pieces::new(addresses);
        let frames = pieces.cut(&[1000]);
        let mut defrag = Defrag::new(Limits::default());
        push(&mut defrag, &frames[0], 0);
        let late = push(&mut defrag, &frames[1], seconds * SECOND);
        assert_eq!(late, Defragged::Held, "the first one is gone");
        let in_time = push(&mut defrag, &frames[0], (seconds + 1) * SECOND);
        assert!(matches!(in_time, Defragged::Whole(_)));
    }
}

#[test]
fn packets_of_other_identifications_and_zones_are_others() {
    let pieces = Pieces::new(V4);
    let frames = pieces.cut(&[1000]);
    let mut defrag = Defrag::new(Limits::default());
    push(&mut defrag, &frames[0], 1);
    let mut bytes = frames[1].clone();
    let len = bytes.len();
    let packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Verify);
    assert_eq!(defrag.push(&packet, 1, 5), Defragged::Held);
    assert_eq!(defrag.waiting(), 2);
}

#[test]
fn what_is_held_is_bounded() {
    let mut defrag = Defrag::new(Limits::default());
    let pieces = Pieces::new(V4);
    let mut refused = 0;
    for id in 0..20_000u16 {
        let mut frame = pieces.fragment(0, 1000);
        frame[4..6].copy_from_slice(&id.to_be_bytes());
        frame[10..12].fill(0);
        let sum = !packet::checksum::sum(&frame[..20]);
        frame[10..12].copy_from_slice(&sum.to_be_bytes());
        let end = push(&mut defrag, &frame, 1);
        refused += u32::from(end == Defragged::Dropped(Refusal::Memory));
        assert!(defrag.memory() < (4 << 20) + 4096);
    }
    assert!(refused > 10_000, "{refused}");
}

#[test]
fn an_identification_used_again_after_many_others_begins_a_new_packet() {
    let pieces = Pieces::new(V4);
    let frames = pieces.cut(&[1000]);
    for (others, expected) in [(64, true), (65, false)] {
        let mut defrag = Defrag::new(Limits::default());
        push(&mut defrag, &frames[0], 1);
        for id in 0..others - 1 {
            let mut other = pieces.fragment(0, 8);
            other[4..6].copy_from_slice(&(1000 + id as u16).to_be_bytes());
            other[10..12].fill(0);
            let sum = !packet::checksum::sum(&other[..20]);
            other[10..12].copy_from_slice(&sum.to_be_bytes());
            push(&mut defrag, &other, 1);
        }
        let end = push(&mut defrag, &frames[1], 1);
        assert_eq!(matches!(end, Defragged::Whole(_)), expected, "{others}");
    }
}

#[test]
fn congestion_marks_are_joined() {
    for addresses in [V4, V6] {
        let pieces = Pieces::new(addresses);
        let end = pieces.len();
        let whole = complete(&[pieces.with_tos(0, 1000, 2), pieces.with_tos(1000, end, 3)]);
        let tos = if pieces.network_len() == 20 {
            whole.frame[1]
        } else {
            whole.frame[0] << 4 | whole.frame[1] >> 4
        };
        assert_eq!(tos & 3, 3);
        let mut defrag = Defrag::new(Limits::default());
        push(&mut defrag, &pieces.with_tos(0, 1000, 0), 1);
        let end = push(&mut defrag, &pieces.with_tos(1000, end, 3), 1);
        assert_eq!(end, Defragged::Dropped(Refusal::Impossible));
    }
}

#[test]
fn ipv6_leaves_alone_what_the_host_is_to_refuse() {
    let pieces = Pieces::new(V6);
    let mut defrag = Defrag::new(Limits::default());
    assert_eq!(push(&mut defrag, &pieces.fragment(0, 4), 1), Defragged::Pass, "half a header");
    assert_eq!(push(&mut defrag, &pieces.fragment(8, 30), 1), Defragged::Pass, "not whole units");
}

#[test]
fn bytes_that_were_not_captured_are_told() {
    for addresses in [V4, V6] {
        let pieces = Pieces::new(addresses);
        let frames = pieces.cut(&[1000, 2000]);
        let mut defrag = Defrag::new(Limits::default());
        push(&mut defrag, &frames[0], 1);
        push_cut(&mut defrag, &frames[2], frames[2].len() - 100, 1);
        let Defragged::Whole(whole) = push_cut(&mut defrag, &frames[1], 60, 1) else {
            panic!("not complete")
        };
        let header = frames[1].len() - 1000;
        let network = pieces.network_len();
        let unknown = [
            network + 1000 + 60 - header..network + 2000,
            network + pieces.len() - 100..network + pieces.len(),
        ];
        assert_eq!(whole.unknown, unknown);
        assert_eq!(whole.frame.len(), pieces.whole.len());
        let head = &whole.frame[network..network + 1000];
        assert_eq!(head, &pieces.payload()[..1000]);
    }
}

/// What a plain array of bytes makes of fragments: `None` once two overlap.
fn model(len: usize, spans: &[(usize, usize)]) -> Option<bool> {
    let mut seen = vec![false; len];
    for (start, end) in spans {
        if seen[*start..*end].iter().any(|seen| *seen) {
            return None;
        }
        seen[*start..*end].fill(true);
    }
    Some(seen.iter().all(|seen| *seen))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Fragments without overlaps, in any order and cut anywhere, give the packet with the last of them.
    #[test]
    fn equals_an_array(
        places in prop::collection::btree_set(1usize..501, 0..20),
        order in any::<u64>(),
        v6 in any::<bool>(),
    ) {
        let pieces = Pieces::new(if v6 { V6 } else { V4 });
        let places: Vec<usize> = places.into_iter().map(|unit| unit * 8).collect();
        prop_assume!(!v6 || places.first().is_none_or(|first| *first >= 8));
        let mut frames = pieces.cut(&places);
        let mut state = order | 1;
        for at in (1..frames.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            frames.swap(at, (state >> 33) as usize % (at + 1));
        }
        if frames.len() > 1 || v6 {
            assert_same(&pieces, &complete(&frames));
        }
    }

    /// Whatever the spans: a packet comes out only of what covers it without overlap.
    #[test]
    fn never_gives_what_overlaps(
        spans in prop::collection::vec((0usize..10, 1usize..5), 1..8),
        v6 in any::<bool>(),
    ) {
        let pieces = Pieces::new(if v6 { V6 } else { V4 });
        let unit = pieces.len() / 10 / 8 * 8;
        let spans: Vec<(usize, usize)> = spans
            .into_iter()
            .map(|(start, len)| {
                let end = (start + len).min(10);
                (start * unit, if end == 10 { pieces.len() } else { end * unit })
            })
            .collect();
        let mut defrag = Defrag::new(Limits::default());
        let mut since = Vec::new();
        for span in spans {
            match push(&mut defrag, &pieces.fragment(span.0, span.1), 1) {
                Defragged::Held => since.push(span),
                Defragged::Whole(whole) => {
                    since.push(span);
                    prop_assert_eq!(model(pieces.len(), &since), Some(true));
                    assert_same(&pieces, &whole);
                    since.clear();
                }
                Defragged::Dropped(Refusal::Duplicate) => {}
                Defragged::Dropped(_) => since.clear(),
                Defragged::Pass => prop_assert!(span == (0, pieces.len()) && !v6),
                Defragged::Unknown => prop_assert!(false),
            }
        }
    }
}

/// An IPv6 fragment that is the first of several, with this much of what follows its header.
fn first_of_v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let craft = Craft {
        ethernet: None,
        fragment: Some(Fragment { offset: 0, more: true }),
        payload_len: payload.len(),
        ..Craft::new(V6, Message::Other { protocol, header: vec![] })
    };
    let mut frame = craft.frame();
    let at = frame.len() - payload.len();
    frame[at..].copy_from_slice(payload);
    frame
}

/// RFC 7112; `ipv6frag_thdr_truncated`, which `nf_ct_frag6_gather` asks.
#[test]
fn a_first_fragment_of_ipv6_has_to_hold_the_upper_header() {
    let end = |protocol: u8, payload: &[u8]| {
        push(&mut Defrag::new(Limits::default()), &first_of_v6(protocol, payload), 1)
    };
    // One header of this kind and length field, then this much of TCP.
    let behind = |kind: u8, len: u8, header: usize, tcp: usize| {
        let mut payload = vec![0; header + tcp];
        payload[..2].copy_from_slice(&[6, len]);
        end(kind, &payload)
    };
    assert_eq!([end(6, &[0; 16]), end(6, &[0; 24])], [Defragged::Pass, Defragged::Held]);
    assert_eq!(end(17, &[0; 8]), Defragged::Held, "all of UDP's");
    assert_eq!(end(89, &[0; 8]), Defragged::Held, "one byte is enough");
    const DESTINATION: u8 = 60;
    const AUTH: u8 = 51;
    const FRAGMENT: u8 = 44;
    let ends = [16, 24].map(|tcp| behind(DESTINATION, 1, 16, tcp));
    assert_eq!(ends, [Defragged::Pass, Defragged::Held]);
    let ends = [16, 24].map(|tcp| behind(FRAGMENT, 0, 8, tcp));
    assert_eq!(ends, [Defragged::Pass, Defragged::Held], "a second fragment header");
    // In words of 4 bytes, less two.
    let ends = [16, 24].map(|tcp| behind(AUTH, 4, 24, tcp));
    assert_eq!(ends, [Defragged::Pass, Defragged::Held]);
}

/// `find_prev_fhdr` keeps the place of the byte that names the fragment header in 8 bits; measured on 6.18.
#[test]
fn behind_255_bytes_of_headers_the_protocol_is_written_elsewhere() {
    let whole = |options: u8| {
        let len = (usize::from(options) + 1) * 8;
        let mut frame = vec![0; 40];
        (frame[0], frame[6], frame[7]) = (0x60, 60, 64);
        frame[8..40].copy_from_slice(&[2; 32]);
        frame.extend([60, options]);
        frame.resize(40 + len, 0);
        frame.extend([44, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend([17, 0, 0, 0, 0, 0, 0, 9]);
        frame.extend([5; 16]);
        let payload_len = u16::try_from(frame.len() - 40).unwrap();
        frame[4..6].copy_from_slice(&payload_len.to_be_bytes());
        let at = 40 + len;
        let whole = complete(&[frame]);
        (whole.frame[40], whole.frame[at])
    };
    assert_eq!(whole(25), (60, 17), "248 bytes before it");
    assert_eq!(whole(31), (17, 44), "296 bytes, 40 more than 256");
}

/// RFC 8200 section 4.5; `inet_frag_queue_insert`: what was there already is dropped alone.
#[test]
fn the_last_fragment_may_come_twice() {
    for addresses in [V4, V6] {
        let pieces = Pieces::new(addresses);
        let frames = pieces.cut(&[1000]);
        let mut defrag = Defrag::new(Limits::default());
        assert_eq!(push(&mut defrag, &frames[1], 1), Defragged::Held);
        assert_eq!(push(&mut defrag, &frames[1], 1), Defragged::Dropped(Refusal::Duplicate));
        assert!(matches!(push(&mut defrag, &frames[0], 1), Defragged::Whole(_)));
    }
}

/// What is sent on is cut again no longer than what came (`frag_max_size`).
#[test]
fn the_longest_fragment_is_remembered() {
    for addresses in [V4, V6] {
        let pieces = Pieces::new(addresses);
        let frames = pieces.cut(&[1000, 2400, 2800]);
        let longest = frames.iter().map(Vec::len).max();
        assert_eq!(Some(complete(&frames).longest as usize), longest);
    }
}

/// `ip_frag_too_far`: fragments are counted for each source alone.
#[test]
fn fragments_of_other_sources_do_not_count() {
    let pieces = Pieces::new(V4);
    let end = |from: [u8; 4]| {
        let mut defrag = Defrag::new(Limits::default());
        let mut send = |source: [u8; 4], id: u16, fragment: &[u8]| {
            let mut frame = fragment.to_vec();
            frame[4..6].copy_from_slice(&id.to_be_bytes());
            frame[12..16].copy_from_slice(&source);
            frame[10..12].fill(0);
            let sum = !packet::checksum::sum(&frame[..20]);
            frame[10..12].copy_from_slice(&sum.to_be_bytes());
            push(&mut defrag, &frame, 1)
        };
        let own = [10, 0, 0, 1];
        let frames = pieces.cut(&[1000]);
        send(own, 77, &frames[0]);
        (0..100).for_each(|id| drop(send(from, 1000 + id, &frames[0])));
        // A source that sends for the first time changes nothing for the others.
        send([10, 0, 0, 99], 1, &frames[0]);
        send(own, 77, &frames[1])
    };
    assert!(matches!(end([10, 0, 0, 3]), Defragged::Whole(_)));
    assert_eq!(end([10, 0, 0, 1]), Defragged::Held, "too far behind the first");
}

/// The kernel charges a queue as well: fragments of several packets cost more than as many of one.
#[test]
fn packets_that_wait_cost_more_than_their_fragments() {
    let pieces = Pieces::new(V4);
    let held = |second_id: u8, start: usize| {
        let mut defrag = Defrag::new(Limits::default());
        push(&mut defrag, &pieces.fragment(0, 8), 1);
        let mut frame = pieces.fragment(start, start + 8);
        frame[5] = second_id;
        frame[10..12].fill(0);
        let sum = !packet::checksum::sum(&frame[..20]);
        frame[10..12].copy_from_slice(&sum.to_be_bytes());
        push(&mut defrag, &frame, 1);
        (defrag.waiting(), defrag.memory())
    };
    let (one, two) = (held(77, 8), held(78, 0));
    assert_eq!((one.0, two.0), (1, 2));
    assert!(two.1 > one.1, "{one:?} {two:?}");
}

/// `ip_frag_reasm`: what must not be fragmented stays so if the longest fragment said it.
#[test]
fn the_whole_must_not_be_fragmented_if_its_longest_fragment_must_not() {
    let pieces = Pieces::new(V4);
    let with_flag = |mut frame: Vec<u8>| {
        frame[6] |= 0x40;
        frame[10..12].fill(0);
        let sum = !packet::checksum::sum(&frame[..20]);
        frame[10..12].copy_from_slice(&sum.to_be_bytes());
        frame
    };
    let [short, long] = [pieces.fragment(0, 1000), pieces.fragment(1000, pieces.len())];
    let keeps = |frames: &[Vec<u8>]| {
        let whole = complete(frames);
        (whole.frame[6] & 0x40 != 0, whole.largest as usize)
    };
    assert_eq!(keeps(&[short.clone(), long.clone()]), (false, 0));
    assert_eq!(keeps(&[with_flag(short.clone()), long.clone()]), (false, 0));
    let len = long.len();
    assert_eq!(keeps(&[short, with_flag(long)]), (true, len));
}

/// `ip_frag_queue`, RFC 5722: nothing is no fragment.
#[test]
fn a_fragment_without_payload_is_dropped() {
    let pieces = Pieces::new(V4);
    let end = push(&mut Defrag::new(Limits::default()), &pieces.fragment(8, 12), 1);
    assert_eq!(end, Defragged::Dropped(Refusal::Inconsistent), "less than one unit");
}

/// `net.ipv4.ipfrag_max_dist=0`: the order of fragments does not matter.
#[test]
fn without_a_greatest_distance_fragments_wait_for_any_number_of_others() {
    let pieces = Pieces::new(V4);
    let frames = pieces.cut(&[1000]);
    let mut defrag = Defrag::new(Limits { max_distance: 0, ..Limits::default() });
    push(&mut defrag, &frames[0], 1);
    for id in 0..200_u8 {
        let mut other = pieces.fragment(0, 8);
        other[4..6].copy_from_slice(&[9, id]);
        other[10..12].fill(0);
        let sum = !packet::checksum::sum(&other[..20]);
        other[10..12].copy_from_slice(&sum.to_be_bytes());
        push(&mut defrag, &other, 1);
    }
    assert!(matches!(push(&mut defrag, &frames[1], 1), Defragged::Whole(_)));
}

#[test]
fn a_fragment_header_that_is_cut_off_is_malformed_unless_it_begins_a_first_fragment() {
    // Measured on Linux 6.18: with its offset there, and 0, it is as any first fragment that lacks headers.
    for len in 1..8_u16 {
        for offset in [0, 8] {
            let mut frame = first_of_v6(17, &[]);
            frame.truncate(40 + usize::from(len));
            frame[4..6].copy_from_slice(&len.to_be_bytes());
            if let Some(low) = frame.get_mut(43) {
                *low = offset | 1;
            }
            let end = push(&mut Defrag::new(Limits::default()), &frame, 1);
            let passes = len >= 4 && offset == 0;
            let malformed = Defragged::Dropped(Refusal::Malformed);
            assert_eq!(end, if passes { Defragged::Pass } else { malformed }, "{len} {offset}");
        }
    }
}
