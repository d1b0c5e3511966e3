//! What descriptors say, and what is made of returned ones: nothing but what the frame has room for.

use std::sync::{Arc, Mutex};

use live::{Descriptor, Reason, Verdict};
use packet::craft::{Addresses, Craft, Fragment, Message};
use proptest::prelude::*;

use super::super::{filter, inside, syn};
use super::{Job, Left, Ports};

/// The returned fields of a frame: its verdict, how far its address moves, and its length.
type Back = (u8, u64, u32);

/// The result of frames for which this comes back, and their descriptors.
fn through(job: &Job, back: Vec<Back>) -> (Left, Vec<Descriptor>) {
    let shown = Arc::<Mutex<Vec<Descriptor>>>::default();
    let (all, mut back) = (Arc::clone(&shown), back.into_iter());
    let left = job.hosted(256, move |shown: &mut [Descriptor]| {
        all.lock().unwrap().extend_from_slice(shown);
        for (descriptor, (verdict, by, length)) in shown.iter_mut().zip(&mut back) {
            descriptor.verdict = verdict;
            descriptor.address = descriptor.address.wrapping_add(by);
            descriptor.length = length;
        }
    });
    let shown = std::mem::take(&mut *shown.lock().unwrap());
    (left, shown)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    /// A descriptor that points elsewhere is an error, and no frame is touched by it: neither its own nor another.
    #[test]
    fn a_descriptor_is_believed_nothing_that_its_frame_has_no_room_for(
        back in prop::collection::vec((
            prop_oneof![9 => Just(0_u8), 1 => any::<u8>()],
            prop_oneof![4 => Just(0_i64), 3 => -80..80_i64, 1 => any::<i64>()],
            prop_oneof![4 => Just(54_u32), 3 => 0..2200_u32, 1 => any::<u32>()],
        ), 20),
        ports in prop::sample::select(vec![Ports::Recorded, Ports::OpenWire]),
    ) {
        let frames: Vec<_> = (0..20).map(syn).collect();
        prop_assert_eq!(frames[0].len(), 54);
        let job = Job { ports, ..Job::new(&filter("ACCEPT", ""), frames.clone()) };
        let back: Vec<_> = back.iter().map(|(v, by, len)| (*v, by.cast_unsigned(), *len)).collect();
        let (left, shown) = through(&job, back.clone());
        prop_assert_eq!(shown.len(), 20);
        let (mut goes, mut dropped, mut errors) = (Vec::new(), 0, 0);
        for ((frame, shown), (verdict, by, length)) in frames.iter().zip(&shown).zip(&back) {
            let start = i128::from(by.cast_signed());
            let end = start + i128::from(*length);
            let room = -i128::from(shown.headroom)..=54 + i128::from(shown.tailroom);
            let is_sound = room.contains(&start) && room.contains(&end) && start <= 54 && *length >= 14;
            match verdict {
                1 => dropped += 1,
                2 if is_sound => goes.push((2, frame, start, end)),
                0 if is_sound => goes.push((0, frame, start, end)),
                _ => errors += 1,
            }
        }
        prop_assert_eq!(left.counted(0).of(Reason::Middlebox), dropped);
        prop_assert_eq!(left.counted(0).of(Reason::Handler), errors);
        for (verdict, side) in [(0, 1), (2, 0)] {
            let expected: Vec<_> = goes.iter().filter(|one| one.0 == verdict).collect();
            prop_assert_eq!(left.frames[side].len(), expected.len());
            for (found, (_, frame, start, end)) in left.frames[side].iter().zip(expected) {
                prop_assert_eq!(found.len() as i128, end - start);
                // The bytes that it had, where it still has them.
                let kept = (*start).max(0)..(*end).min(54);
                if kept.start < kept.end {
                    let own = &frame[kept.start as usize..kept.end as usize];
                    let at = (kept.start - start) as usize;
                    prop_assert_eq!(&found[at..at + own.len()], own);
                }
            }
        }
    }
}

/// Where a frame's bytes and its room begin and end.
pub(super) fn room(one: &Descriptor) -> (u64, u64) {
    let end = one.address + u64::from(one.length) + u64::from(one.tailroom);
    (one.address - u64::from(one.headroom), end)
}

/// The room of two frames is never the same: what one may write is not another's.
#[test]
fn no_two_frames_share_room() {
    for ports in [Ports::Recorded, Ports::OpenWire] {
        let frames: Vec<_> = (0..100).map(syn).collect();
        let job = Job { ports, ..Job::new(&filter("ACCEPT", ""), frames) };
        let (_, shown) = through(&job, Vec::new());
        // Of one burst: memory comes again.
        let mut ranges: Vec<_> = shown[..32].iter().map(room).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|two| two[0].1 <= two[1].0), "{ports:?}: {ranges:?}");
    }
}

/// The fields of a frame's descriptor, except for its place and time.
fn said(frame: Vec<u8>) -> (u16, u16, u16, u8, u8) {
    let job = Job::new(&filter("ACCEPT", ""), vec![frame]);
    let (_, shown) = through(&job, Vec::new());
    let [one] = shown[..] else { panic!("{shown:?}") };
    assert_eq!((one.wire, one.from, one.verdict), (0, 0, Verdict::Pass as u8));
    (one.network, one.transport, one.ethertype, one.protocol, one.flags)
}

#[test]
fn headers_are_where_descriptors_say() {
    const NONE: u16 = Descriptor::NONE;
    assert_eq!(said(syn(80)), (14, 34, 0x800, 6, 0));
    assert_eq!(said(inside(&syn(80), &[0x81, 0, 0, 5, 8, 0])), (18, 38, 0x800, 6, 0));
    let v4 = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
    let v6 =
        Addresses::new("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()).unwrap();
    let udp = |addresses| Craft { payload_len: 24, ..Craft::new(addresses, Message::udp(1, 2)) };
    let piece = |addresses, offset, more| {
        Craft { fragment: Some(Fragment { offset, more }), ..udp(addresses) }.frame()
    };
    assert_eq!(said(udp(v6).frame()), (14, 54, 0x86dd, 17, 0));
    let (fragment, first) = (Descriptor::FRAGMENT, Descriptor::FIRST_FRAGMENT);
    assert_eq!(said(piece(v4, 0, true)), (14, 34, 0x800, 17, fragment | first));
    assert_eq!(said(piece(v4, 32, false)), (14, NONE, 0x800, 17, fragment));
    assert_eq!(said(piece(v6, 0, true)), (14, 62, 0x86dd, 17, fragment | first));
    assert_eq!(said(piece(v6, 32, false)), (14, NONE, 0x86dd, 17, fragment));
    let other = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5][..], &[0; 46]].concat();
    assert_eq!(said(other), (NONE, NONE, 0x88b5, Descriptor::NO_PROTOCOL, 0));
}
