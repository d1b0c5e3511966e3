//! What audits and changelogs of others' tunnels found, as far as this layer can have it, each by name. Findings that
//! are tested where their subject is:
//!
//! - a counter of 32 bits: `aead::tests`; a missing end by count: `session::tests`; a clock that panics: there, too
//! - one limiter for all sources: `admission::tests`
//! - cookies without the source's port, a preshared key that is not taken over: `handshakes`
//! - a range within another peer's: `allowed::tests` and `sessions`
//! - keepalives without an end, an endpoint that data does not update: `sessions`
//! - a replay window that is too small: `window::tests`, and below

use std::collections::HashSet;

use tunnel::limits::SECOND;
use tunnel::message::Malformed;
use tunnel::{Dropped, Received, Window};

use crate::ends::*;

#[test]
fn indexes_tell_nobody_how_many_sessions_there_are() {
    let mut indexes = HashSet::new();
    let mut bits = 0_u32;
    let mut pair = Pair::new();
    for round in 0..64 {
        pair.now += 200 * SECOND;
        let initiation = pair.initiation();
        let index = u32::from_le_bytes(initiation.bytes()[4..8].try_into().unwrap());
        assert!(indexes.insert(index));
        bits += index.count_ones();
        let response = pair.answer(&initiation);
        pair.confirm(&response);
        assert_eq!(indexes.len(), round + 1);
    }
    assert!((900..1_150).contains(&bits), "{bits} bits of 2,048 are set");
}

#[test]
fn a_datagram_of_any_length_panics_nowhere() {
    let mut pair = Pair::established();
    let (_, genuine) = send(&mut pair.a, &Pair::packet(1, 1), pair.now).unwrap();
    for len in [0, 1, 15, 16, 31, 32, 1_500, 9_000, 65_535, 70_000] {
        let mut datagram = genuine.clone();
        datagram.resize(len, 0x84);
        let came = take(&mut pair.b, &datagram, place(1), pair.now);
        let expected = match len {
            0..32 => Dropped::Malformed(Malformed::Length),
            _ => Dropped::Forged,
        };
        assert_eq!(came, Came::Dropped(expected), "{len}");
    }
    pair.passes(2);
}

#[test]
fn a_datagram_that_is_not_the_one_that_was_staged_is_not_released() {
    let mut pair = Pair::established();
    let (_, datagram) = send(&mut pair.a, &Pair::packet(1, 1), pair.now).unwrap();
    let Received::Opening(opening) = pair.b.receive(&datagram, place(1), pair.now) else {
        panic!("not staged")
    };
    assert_eq!(opening.open(&mut datagram[..20].to_vec()).err(), Some(Dropped::Forged));
    let Received::Opening(opening) = pair.b.receive(&datagram, place(1), pair.now) else {
        panic!("not staged")
    };
    let mut bytes = datagram.clone();
    let opened = opening.open(&mut bytes).unwrap();
    let short = pair.b.release(opened, &bytes[..20], pair.now).unwrap();
    assert_eq!(short.content, Err(Dropped::NotIp));
}

#[test]
fn eight_thousand_datagrams_may_overtake_one() {
    let mut pair = Pair::established();
    let (_, slow) = send(&mut pair.a, &Pair::packet(1, 0), pair.now).unwrap();
    let (_, slower) = send(&mut pair.a, &Pair::packet(1, 1), pair.now).unwrap();
    for number in 3..=Window::SIZE {
        pair.passes(number);
    }
    let came = take(&mut pair.b, &slow, place(1), pair.now);
    assert!(matches!(came, Came::Data { packet: Some(_), .. }), "{came:?}");
    pair.passes(9_000);
    pair.passes(9_001);
    let replayed = Dropped::Replayed(pair.peer_of_b());
    assert_eq!(take(&mut pair.b, &slower, place(1), pair.now), Came::Dropped(replayed));
}

#[test]
fn cookies_are_asked_for_by_rate_and_never_by_count() {
    let mut pair = Pair::new();
    for _ in 0..300 {
        pair.now += 200 * SECOND;
        pair.shake();
    }
    pair.passes(1);
}

#[test]
fn nothing_of_a_packet_and_little_of_its_length_shows() {
    let mut pair = Pair::established();
    let mut lengths = HashSet::new();
    for len in 65..=80 {
        let sent = packet(address(1), address(2), 1, len);
        let (_, datagram) = send(&mut pair.a, &sent, pair.now).unwrap();
        lengths.insert(datagram.len());
        assert!(!datagram[16..].windows(8).any(|bytes| sent.windows(8).any(|of| of == bytes)));
    }
    assert_eq!(lengths.len(), 1, "{lengths:?}");
}
