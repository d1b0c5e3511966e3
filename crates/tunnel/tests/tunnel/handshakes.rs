//! Handshakes: what is negotiated and cannot be altered, cookies, clocks that were reset, initiations that cross,
//! retries.

use tunnel::limits::{
    COOKIE_SECRET_TIME, COOKIE_TIME, REKEY_ATTEMPT_TIME, REKEY_JITTER, REKEY_TIMEOUT, SECOND,
    UNPROVEN_RATE,
};
use tunnel::message::{COOKIE, INITIATION, Malformed, RESPONSE};
use tunnel::{AddPeerError, Dropped, Due, Offer, Outgoing, PresharedKey, Suite};

use crate::ends::*;

#[test]
fn a_handshake_makes_a_session_of_the_suite_that_both_have() {
    for (a, b, suite) in [
        (Offer::BOTH, Offer::BOTH, Suite::Aes256Gcm),
        (Offer::BOTH, Offer::CHACHA, Suite::ChaCha20Poly1305),
        (Offer::CHACHA, Offer::BOTH, Suite::ChaCha20Poly1305),
        (Offer::CHACHA, Offer::CHACHA, Suite::ChaCha20Poly1305),
    ] {
        let mut pair = Pair::offering(a, b);
        pair.shake();
        pair.passes(1);
        pair.passes_back(1);
        let (of_a, of_b) = (pair.peer_of_a(), pair.peer_of_b());
        assert_eq!(pair.a.status(of_a).unwrap().suite, Some(suite));
        assert_eq!(pair.b.status(of_b).unwrap().suite, Some(suite));
    }
}

#[test]
fn messages_are_as_long_as_they_say_and_answers_no_longer_than_questions() {
    let mut pair = Pair::new();
    let initiation = pair.initiation();
    let response = pair.answer(&initiation);
    assert_eq!((initiation.bytes().len(), response.bytes().len()), (INITIATION, RESPONSE));
    const { assert!(RESPONSE <= INITIATION && COOKIE <= RESPONSE) };
}

/// Whatever is changed on the way, the offer and the choice of a suite included, fails the handshake: what mac1 does
/// not cover is authenticated inside.
#[test]
fn an_altered_or_stripped_handshake_fails() {
    let mut pair = Pair::new();
    let initiation = pair.initiation();
    for at in 0..INITIATION - 16 {
        let forged = resigned(initiation.bytes(), at, 2);
        // Each byte comes from a place of its own, so that rates do not decide.
        let from = ([198, 51, 100, at as u8], 1).into();
        pair.now += SECOND;
        let came = take(&mut pair.b, &forged, from, pair.now);
        let expected = if at < 4 {
            Dropped::Malformed(Malformed::Type)
        } else if (INITIATION - 32..).contains(&at) {
            Dropped::BadMac
        } else {
            Dropped::BadHandshake
        };
        assert_eq!(came, Came::Dropped(expected), "byte {at}");
    }
    let response = pair.answer(&initiation);
    for at in 8..RESPONSE - 16 {
        let forged = resigned(response.bytes(), at, 1);
        pair.now += SECOND;
        let came = take(&mut pair.a, &forged, ([198, 51, 100, at as u8], 1).into(), pair.now);
        let expected = match at {
            8..12 => Dropped::UnknownIndex,
            12..92 => Dropped::BadHandshake,
            _ => Dropped::BadMac,
        };
        assert_eq!(came, Came::Dropped(expected), "byte {at}");
    }
    // The sender's index is authenticated inside; that of the head is for cookies.
    let forged = resigned(response.bytes(), 5, 1);
    let came = take(&mut pair.a, &forged, place(2), pair.now);
    let Came::Established(first) = came else { panic!("{came:?}") };
    let confirmed = take(&mut pair.b, first.bytes(), place(1), pair.now);
    assert_eq!(confirmed, Came::Data { established: true, packet: None });
    pair.passes(1);
}

/// Returns `message` with a bit turned, and a mac1 that anybody with the receiver's public key can make.
pub(crate) fn resigned(message: &[u8], at: usize, receiver: u8) -> Vec<u8> {
    use blake2::digest::typenum::U16;
    use blake2::digest::{FixedOutput, KeyInit, Update};
    use blake2::{Blake2s256, Blake2sMac, Digest};

    let mut message = message.to_vec();
    message[at] ^= 1;
    let start = message.len() - 32;
    if at < start {
        let key = Blake2s256::new()
            .chain_update(b"tamis mac1 of ")
            .chain_update(public_key(receiver).as_bytes())
            .finalize();
        let mut mac = Blake2sMac::<U16>::new(&key);
        Update::update(&mut mac, &message[..start]);
        message[start..start + 16].copy_from_slice(&mac.finalize_fixed());
    }
    message
}

#[test]
fn a_preshared_key_is_part_of_it_and_reaches_a_handshake_under_way() {
    let mut pair = Pair::new();
    let (of_a, of_b) = (pair.peer_of_a(), pair.peer_of_b());
    assert!(pair.b.set_preshared_key(of_b, PresharedKey::new([7; 32])));
    let initiation = pair.initiation();
    let response = pair.answer(&initiation);
    let came = take(&mut pair.a, response.bytes(), place(2), pair.now);
    assert_eq!(came, Came::Dropped(Dropped::BadHandshake));
    // Finding: a new preshared key did not reach the state of a handshake that had begun.
    assert!(pair.a.set_preshared_key(of_a, PresharedKey::new([7; 32])));
    pair.confirm(&response);
    pair.passes(1);
}

#[test]
fn a_replayed_initiation_makes_no_session() {
    let mut pair = Pair::new();
    let initiation = pair.initiation();
    let response = pair.answer(&initiation);
    pair.confirm(&response);
    pair.passes(1);
    let before = pair.b.status(pair.peer_of_b()).unwrap();
    pair.now += SECOND;
    let elsewhere = "203.0.113.9:9".parse().unwrap();
    let came = take(&mut pair.b, initiation.bytes(), elsewhere, pair.now);
    let Came::Reply(told) = came else { panic!("{came:?}") };
    assert_eq!(pair.b.status(pair.peer_of_b()).unwrap(), before, "neither session nor endpoint");
    // The answer is of no use to anybody but the maker of the initiation, who has left it.
    let came = take(&mut pair.a, told.bytes(), place(2), pair.now);
    assert_eq!(came, Came::Dropped(Dropped::UnknownIndex));
    pair.passes(2);
    pair.passes_back(2);
}

#[test]
fn a_peer_whose_clock_was_reset_is_back_at_once() {
    let mut pair = Pair::established();
    pair.now += 10 * SECOND;
    // A starts again, thirty years ago.
    let mut config = config(1, Offer::BOTH);
    (config.started, config.started_unix) = (pair.now, SECOND);
    pair.a = end(config, 99);
    pair.a.add_peer(&peer(2)).unwrap();
    let initiation = pair.initiation();
    let came = take(&mut pair.b, initiation.bytes(), place(1), pair.now);
    let Came::Reply(told) = came else { panic!("{came:?}") };
    assert_eq!(take(&mut pair.a, told.bytes(), place(2), pair.now), Came::Told);
    let [again] = due(&mut pair.a, pair.now).try_into().unwrap();
    let response = pair.answer(&again);
    pair.confirm(&response);
    pair.passes(1);
    pair.passes_back(1);
}

#[test]
fn a_peer_that_started_anew_is_back_at_once() {
    let mut pair = Pair::established();
    pair.now += 10 * SECOND;
    let mut b = end(config(2, Offer::BOTH), 77);
    b.add_peer(&peer(1)).unwrap();
    pair.b = b;
    let (_, lost) = send(&mut pair.a, &Pair::packet(1, 1), pair.now).unwrap();
    assert_eq!(take(&mut pair.b, &lost, place(1), pair.now), Came::Dropped(Dropped::UnknownIndex));
    // B has something to say, and begins; what it made before is no replay for A.
    assert!(send(&mut pair.b, &Pair::packet(2, 1), pair.now).is_err());
    let [initiation] = due(&mut pair.b, pair.now).try_into().unwrap();
    let came = take(&mut pair.a, initiation.bytes(), place(2), pair.now);
    let Came::Answered(response) = came else { panic!("{came:?}") };
    let came = take(&mut pair.b, response.bytes(), place(1), pair.now);
    let Came::Established(first) = came else { panic!("{came:?}") };
    take(&mut pair.a, first.bytes(), place(2), pair.now);
    pair.passes(2);
    pair.passes_back(2);
}

#[test]
fn initiations_that_cross_leave_sessions_that_pass_both_ways() {
    let mut pair = Pair::new();
    let of_a = pair.initiation();
    assert!(send(&mut pair.b, &Pair::packet(2, 0), pair.now).is_err());
    let [of_b] = due(&mut pair.b, pair.now).try_into().unwrap();
    let answer_of_b = pair.answer(&of_a);
    let came = take(&mut pair.a, of_b.bytes(), place(2), pair.now);
    let Came::Answered(answer_of_a) = came else { panic!("{came:?}") };
    let came = take(&mut pair.b, answer_of_a.bytes(), place(1), pair.now);
    let Came::Established(first_of_b) = came else { panic!("{came:?}") };
    let came = take(&mut pair.a, answer_of_b.bytes(), place(2), pair.now);
    let Came::Established(first_of_a) = came else { panic!("{came:?}") };
    take(&mut pair.a, first_of_b.bytes(), place(2), pair.now);
    take(&mut pair.b, first_of_a.bytes(), place(1), pair.now);
    for number in 1..10 {
        pair.passes(number);
        pair.passes_back(number);
    }
    assert!(due(&mut pair.a, pair.now).is_empty() && due(&mut pair.b, pair.now).is_empty());
}

#[test]
fn an_initiation_is_repeated_with_jitter_and_given_up() {
    let mut pair = Pair::new();
    let first = pair.initiation();
    let (mut sent, mut last, mut jitters) = (vec![first], pair.now, Vec::new());
    let started = pair.now;
    loop {
        let next = pair.a.next_due().unwrap();
        assert!(pair.a.due(next - 1).is_none(), "nothing is due before its time");
        match pair.a.due(next) {
            Some(Due::Send(again)) => sent.push(again),
            Some(Due::GaveUp(peer)) => {
                assert_eq!(peer, pair.peer_of_a());
                assert!(next - started >= REKEY_ATTEMPT_TIME);
                break;
            }
            other => panic!("{other:?}"),
        }
        let gap = next - last;
        assert!((REKEY_TIMEOUT..REKEY_TIMEOUT + REKEY_JITTER).contains(&gap), "{gap}");
        jitters.push(gap);
        last = next;
        pair.now = next;
    }
    jitters.sort_unstable();
    jitters.dedup();
    assert!(jitters.len() > 10, "jitter: {jitters:?}");
    assert!((17..=19).contains(&sent.len()), "{}", sent.len());
    assert_eq!(pair.a.next_due(), None);
    // The next packet begins again, and B takes it: it is later than all that were lost.
    pair.now += 10 * SECOND;
    pair.shake();
    pair.passes(1);
}

/// B asks for cookies because others, who forge their sources, flood it.
fn flooded() -> Pair {
    let mut pair = Pair::new();
    let mut other = Pair::new();
    let noise = other.initiation();
    for source in 0..UNPROVEN_RATE.1 + 10 {
        let from = ([198, 51, (source / 250) as u8, (source % 250) as u8], 1).into();
        let _ = pair.b.receive(&resigned(noise.bytes(), 50, 2), from, pair.now);
    }
    pair
}

fn cookie_for(pair: &mut Pair, initiation: &Outgoing) -> Outgoing {
    match take(&mut pair.b, initiation.bytes(), place(1), pair.now) {
        Came::Reply(cookie) => cookie,
        other => panic!("{other:?}"),
    }
}

#[test]
fn under_load_who_shows_a_cookie_is_answered() {
    let mut pair = flooded();
    let initiation = pair.initiation();
    let cookie = cookie_for(&mut pair, &initiation);
    assert_eq!((cookie.bytes().len(), cookie.to()), (COOKIE, place(1)));
    let elsewhere = "203.0.113.9:9".parse().unwrap();
    assert_eq!(take(&mut pair.a, cookie.bytes(), elsewhere, pair.now), Came::Told);
    let endpoint = pair.a.status(pair.peer_of_a()).unwrap().endpoint;
    assert_eq!(endpoint, Some(place(2)), "a cookie says nothing about where a peer is");
    let [again] = due(&mut pair.a, pair.now).try_into().unwrap();
    assert_ne!(again.bytes()[INITIATION - 16..], [0; 16]);
    // Finding: cookies did not cover the source's port.
    let other_port = (place(1).ip(), 1).into();
    let came = take(&mut pair.b, again.bytes(), other_port, pair.now);
    assert!(matches!(came, Came::Reply(_)), "{came:?}");
    let response = pair.answer(&again);
    pair.confirm(&response);
    pair.passes(1);
}

#[test]
fn a_cookie_answers_one_message_and_hurries_once() {
    let mut pair = flooded();
    let initiation = pair.initiation();
    let cookie = cookie_for(&mut pair, &initiation);
    let mut forged = cookie.bytes().to_vec();
    forged[COOKIE - 1] ^= 1;
    let bad = Came::Dropped(Dropped::BadCookie(pair.peer_of_a()));
    assert_eq!(take(&mut pair.a, &forged, place(2), pair.now), bad);
    assert_eq!(take(&mut pair.a, cookie.bytes(), place(2), pair.now), Came::Told);
    assert_eq!(take(&mut pair.a, cookie.bytes(), place(2), pair.now), bad);
    let [again] = due(&mut pair.a, pair.now).try_into().unwrap();
    // An attacker who can make cookies makes A send no faster than this.
    let from = (place(1).ip(), 99).into();
    let came = take(&mut pair.b, again.bytes(), from, pair.now);
    let Came::Reply(other) = came else { panic!("{came:?}") };
    assert_eq!(take(&mut pair.a, other.bytes(), place(2), pair.now), Came::Told);
    assert!(due(&mut pair.a, pair.now).is_empty());
    assert!(pair.a.next_due().unwrap() >= pair.now + REKEY_TIMEOUT);
}

#[test]
fn who_replays_initiations_keeps_no_cookie_from_its_place() {
    let mut pair = flooded();
    // B made a session once, and somebody recorded how.
    assert!(send(&mut pair.b, &Pair::packet(2, 0), pair.now).is_err());
    let [of_b] = due(&mut pair.b, pair.now).try_into().unwrap();
    let came = take(&mut pair.a, of_b.bytes(), place(2), pair.now);
    assert!(matches!(came, Came::Answered(_)), "{came:?}");
    pair.now += 20 * SECOND;
    let mut pair = Pair { b: flooded().b, ..pair };
    let initiation = pair.initiation();
    pair.now = START;
    let cookie = cookie_for(&mut pair, &initiation);
    pair.now = START + 20 * SECOND;
    let told = take(&mut pair.a, of_b.bytes(), place(9), pair.now);
    assert!(matches!(told, Came::Reply(_)), "{told:?}");
    assert_eq!(take(&mut pair.a, cookie.bytes(), place(2), pair.now), Came::Told);
}

#[test]
fn cookies_end() {
    let mut pair = flooded();
    let initiation = pair.initiation();
    let cookie = cookie_for(&mut pair, &initiation);
    take(&mut pair.a, cookie.bytes(), place(2), pair.now);
    let shown = |pair: &mut Pair, at: u64| {
        pair.now = at;
        let [again] = due(&mut pair.a, at).try_into().unwrap();
        again.bytes()[INITIATION - 16..] != [0; 16]
    };
    assert!(shown(&mut pair, START));
    assert!(shown(&mut pair, START + COOKIE_TIME / 2));
    // The attempts end before the cookie does; another begins.
    let end = START + COOKIE_TIME;
    assert!(matches!(pair.a.due(end - 1), Some(Due::GaveUp(_))));
    pair.now = end - 1;
    assert_ne!(pair.initiation().bytes()[INITIATION - 16..], [0; 16]);
    assert!(!shown(&mut pair, end + REKEY_TIMEOUT + REKEY_JITTER));
    const { assert!(COOKIE_TIME < COOKIE_SECRET_TIME) };
}

#[test]
fn peers_are_themselves_and_once() {
    let mut pair = Pair::new();
    let known = pair.peer_of_a();
    assert_eq!(pair.a.add_peer(&peer(2)), Err(AddPeerError::Known(known)));
    assert_eq!(pair.a.add_peer(&peer(1)), Err(AddPeerError::Ourselves));
    // An initiation of somebody whom B does not know.
    let mut other = end(config(3, Offer::BOTH), 3);
    other.add_peer(&peer(2)).unwrap();
    let waits = send(&mut other, &packet(address(3), address(2), 0, 100), pair.now);
    assert!(matches!(waits, Err(Refused::Wait(_))));
    let [initiation] = due(&mut other, pair.now).try_into().unwrap();
    let came = take(&mut pair.b, initiation.bytes(), place(3), pair.now);
    assert_eq!(came, Came::Dropped(Dropped::UnknownPeer));
}
