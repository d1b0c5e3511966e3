//! Frames of both kinds in one burst.

use super::*;
use crate::FrameMeta;
use crate::pool::Pool;
use std::ops::Range;

fn numbered(number: u64) -> FrameMeta {
    FrameMeta { number, ..FrameMeta::default() }
}

fn burst_of(frames: &[&[u8]]) -> Burst {
    let mut burst = Burst::with_capacity(4);
    for (frame, number) in frames.iter().zip(1..) {
        burst.push(frame, numbered(number));
    }
    burst
}

#[test]
fn frames_are_lent_in_order_and_rewritten_in_place() {
    let mut burst = burst_of(&[b"one", b"", b"three"]);
    for frame in burst.iter_mut() {
        frame.bytes.make_ascii_uppercase();
    }
    let frames: Vec<_> = burst.iter().map(|f| (f.meta.number, f.bytes)).collect();
    assert_eq!(frames, [(1, &b"ONE"[..]), (2, b""), (3, b"THREE")]);
    assert_eq!(burst.get_mut(2).map(|f| f.meta.number), Some(3));
    assert!(burst.get_mut(3).is_none());
}

#[test]
fn a_range_of_frames_is_lent() {
    let mut burst = burst_of(&[b"one", b"", b"three", b"four"]);
    let mut numbers = |range: Range<usize>| {
        let read: Vec<_> = burst.range(range.clone()).map(|f| f.meta.number).collect();
        let lent: Vec<_> = burst.range_mut(range).map(|f| f.meta.number).collect();
        assert_eq!(read, lent);
        read
    };
    assert_eq!(numbers(1..3), [2, 3]);
    assert_eq!(numbers(3..9), [4]);
    assert_eq!(numbers(7..9), [0; 0]);
}

#[test]
fn retained_frames_keep_their_bytes() {
    let mut burst = burst_of(&[b"one", b"two", b"three"]);
    burst.retain(|frame| frame.meta.number != 2);
    let lent: Vec<_> = burst.iter_mut().map(|f| f.bytes.to_vec()).collect();
    assert_eq!(lent, [b"one".to_vec(), b"three".to_vec()]);
}

#[test]
fn a_cleared_burst_keeps_its_memory() {
    let mut burst = burst_of(&[b"a long enough frame"]);
    let capacity = burst.capacity();
    burst.clear();
    assert!(burst.is_empty());
    assert_eq!(burst.capacity(), capacity);
}

#[test]
fn frames_of_both_kinds_stand_in_order() {
    let pool = Pool::new(2, 64, 8);
    let mut burst = burst_of(&[b"one"]);
    for (bytes, number) in [(b"two", 2), (b"six", 3)] {
        let mut frame = pool.take().unwrap();
        assert!(frame.extend(bytes));
        frame.meta.number = number;
        frame.live_mut().queue = number as u16;
        burst.push_frame(frame);
    }
    burst.push(b"four", numbered(4));
    burst.iter_mut().for_each(|frame| frame.bytes.make_ascii_uppercase());
    let bytes = |burst: &Burst| burst.iter().map(|f| f.bytes.to_vec()).collect::<Vec<_>>();
    assert_eq!(
        bytes(&burst),
        [b"ONE".to_vec(), b"TWO".to_vec(), b"SIX".to_vec(), b"FOUR".to_vec()]
    );
    assert_eq!(burst.range_mut(2..3).map(|f| f.meta.number).collect::<Vec<_>>(), [3]);
    burst.retain(|frame| frame.meta.number != 2);
    assert_eq!(pool.free(), 1);
    assert_eq!(bytes(&burst), [b"ONE".to_vec(), b"SIX".to_vec(), b"FOUR".to_vec()]);
    assert_eq!([0, 1].map(|at| burst.live(at).map(|live| live.queue)), [None, Some(3)]);
    assert_eq!(burst.drain(1).count(), 1);
    assert_eq!(burst.live_mut(0).map(|live| live.queue), Some(3));
    assert_eq!(burst.get_mut(0).map(|f| f.bytes.to_vec()), Some(b"SIX".to_vec()));
    burst.clear();
    assert_eq!(pool.free(), 2);
}

#[test]
fn a_frame_grows_into_its_room_and_no_further() {
    let pool = Pool::new(1, 16, 4);
    let mut frame = pool.take().unwrap();
    assert!(frame.extend(b"frame"));
    assert!(!frame.extend(&[0; 8]));
    frame.meta.wire_length = 5;
    let mut burst = Burst::with_capacity(0);
    burst.push_frame(frame);
    assert_eq!((burst.headroom(0), burst.tailroom(0)), (4, 7));
    assert!(burst.grow_front(0, 5).is_none());
    assert!(burst.grow_back(0, 8).is_none());
    burst.grow_front(0, 4).unwrap().bytes[..4].copy_from_slice(b"tag ");
    let grown = burst.grow_back(0, 7).unwrap();
    assert_eq!((&grown.bytes[..9], grown.meta.wire_length), (&b"tag frame"[..], 16));
    burst.trim_front(0, 4);
    burst.trim_back(0, 7);
    let frame = burst.get(0).unwrap();
    assert_eq!((frame.bytes, frame.meta.wire_length), (&b"frame"[..], 5));
}

#[test]
fn a_frame_in_the_buffer_grows_up_to_its_neighbours() {
    let mut burst = Burst::with_capacity(20);
    burst.buffer_mut().copy_from_slice(b"..one....two.......z");
    burst.push_in_place(2, 3, numbered(1));
    burst.push_in_place(9, 3, numbered(2));
    assert_eq!([burst.headroom(0), burst.tailroom(0)], [2, 4]);
    assert_eq!([burst.headroom(1), burst.tailroom(1)], [4, 8]);
    assert!(burst.grow_back(0, 5).is_none());
    assert_eq!(burst.grow_back(0, 4).unwrap().bytes, b"one....");
    assert!(burst.grow_front(1, 1).is_none());
    let lent: Vec<_> = burst.iter_mut().map(|f| f.bytes.to_vec()).collect();
    assert_eq!(lent, [b"one....".to_vec(), b"two".to_vec()]);
    assert_eq!((burst.headroom(2), burst.tailroom(2)), (0, 0));
}
