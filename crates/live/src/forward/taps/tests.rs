//! A tap and its other end, without a run: what is written, what is lost, what is sampled.

use std::sync::Arc;
use std::time::Duration;

use packet::craft::{Addresses, Craft, Message};
use pktio::{Frame, FrameMeta, LinkType};

use super::{KEPT, Listening, Next, PER_SECOND, Tap, Taps, WAITING};
use crate::forward::account::Reason;
use conntrack::SECOND;

fn taps() -> (Arc<Taps>, Tap) {
    let taps = Arc::<Taps>::default();
    let tap = taps.tap(["left", "right"].map(Arc::from));
    (taps, tap)
}

/// A datagram to a port is dropped.
fn drop_one(tap: &mut Tap, port: u16, reason: Reason, pad: u16) {
    let ends = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
    let whole = Craft::new(Addresses::new(ends[0], ends[1]).unwrap(), Message::udp(4000, port));
    let bytes = Craft { payload_len: pad.into(), ..whole }.frame();
    let wire_length = bytes.len() as u32;
    let meta = FrameMeta { link_type: LinkType::ETHERNET, wire_length, ..FrameMeta::default() };
    tap.dropped(0, reason, Some(Frame { bytes: &bytes, meta: &meta }));
}

fn told(listening: &Listening) -> Vec<String> {
    let next = || match listening.next(Duration::ZERO) {
        Next::Frame(told) => Some(told.packet.clone()),
        Next::Nothing | Next::Ended => None,
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn while_nobody_watches_one_of_each_reason_is_kept_in_a_tenth_of_a_second() {
    let (taps, mut tap) = taps();
    for tenth in 0..3 {
        tap.begins(SECOND + tenth * SECOND / 10);
        for port in 0..50 {
            drop_one(&mut tap, port, Reason::TxFull, 0);
            drop_one(&mut tap, port, Reason::Device, 0);
        }
    }
    let drops = taps.drops();
    let reasons: Vec<_> = drops.iter().filter_map(|told| told.reason).collect();
    assert_eq!(reasons, [Reason::TxFull, Reason::Device].repeat(3));
    assert!(drops.iter().all(|told| told.packet == "udp 10.0.0.1:4000 > 10.0.0.2:0"), "{drops:?}");
    for second in 0..2 * KEPT as u64 {
        tap.begins((2 + second) * SECOND);
        drop_one(&mut tap, second as u16, Reason::TxFull, 0);
    }
    let drops = taps.drops();
    assert_eq!((drops.len(), &*drops[KEPT - 1].packet), (KEPT, "udp 10.0.0.1:4000 > 10.0.0.2:127"));
}

#[test]
fn who_watches_has_every_frame_or_a_count() {
    let (taps, mut tap) = taps();
    let listening = taps.listen("").unwrap();
    tap.begins(SECOND);
    for port in 0..PER_SECOND as u16 + 5 {
        drop_one(&mut tap, port, Reason::TxFull, 0);
    }
    tap.lose(2);
    taps.collect();
    let some = told(&listening);
    assert_eq!((some.len() as i64, listening.lost()), (PER_SECOND, 7));
    assert_eq!(some[999], "udp 10.0.0.1:4000 > 10.0.0.2:999");
    // What was written down for it is nobody else's sample.
    assert_eq!(taps.drops().len(), KEPT);
    drop(listening);
    tap.begins(SECOND + 1);
    drop_one(&mut tap, 9, Reason::TxFull, 0);
    let other = taps.listen("").unwrap();
    taps.collect();
    assert_eq!((told(&other).len(), other.lost()), (0, 0));
}

#[test]
fn full_rings_lose_and_go_on() {
    let (taps, mut tap) = taps();
    let listening = taps.listen("").unwrap();
    tap.begins(SECOND);
    // Frames of 9 kB fill the ring of bytes first.
    let sent = 400;
    for port in 0..sent {
        drop_one(&mut tap, port, Reason::TxFull, 9000);
    }
    taps.collect();
    let some = told(&listening);
    assert!((200..400).contains(&some.len()), "{}", some.len());
    assert_eq!(some.len() as u64 + listening.lost(), u64::from(sent));
    drop_one(&mut tap, 7777, Reason::TxFull, 9000);
    taps.collect();
    assert_eq!(told(&listening), ["udp 10.0.0.1:4000 > 10.0.0.2:7777"]);
}

#[test]
fn who_does_not_read_holds_up_nobody() {
    let (taps, mut tap) = taps();
    let [slow, quick] = [(); 2].map(|()| taps.listen("reason tx_full").unwrap());
    let mut read = 0;
    for _ in 0..3 {
        taps.switch.make_room(PER_SECOND);
        tap.begins(SECOND);
        (0..500).for_each(|port| drop_one(&mut tap, port, Reason::TxFull, 0));
        taps.collect();
        read += told(&quick).len();
    }
    assert_eq!((read, quick.lost()), (1500, 0));
    assert_eq!((told(&slow).len(), slow.lost()), (WAITING, 1500 - WAITING as u64));
    taps.end();
    assert_eq!(slow.next(Duration::ZERO), Next::Ended);
    assert_eq!(taps.listen("").unwrap().next(Duration::ZERO), Next::Ended);
}

#[test]
fn a_frame_that_is_gone_is_told_without_bytes() {
    let (taps, mut tap) = taps();
    let listening = taps.listen("reason fragment").unwrap();
    tap.begins(SECOND);
    tap.dropped(1, Reason::Fragment, None);
    taps.collect();
    let Next::Frame(one) = listening.next(Duration::ZERO) else { panic!("one frame") };
    assert_eq!([&*one.input, &*one.packet], ["right", "a frame that is gone"]);
}
