//! Sessions: what passes, keepalives, replacement, ends, roaming, addresses.

use tunnel::limits::{
    ERASE_AFTER_TIME, KEEPALIVE_TIMEOUT, REJECT_AFTER_TIME, REKEY_AFTER_TIME,
    REKEY_ON_RECEIVE_TIME, REKEY_TIMEOUT, RESPONDER_REKEY_AFTER_TIME, SECOND, SILENCE_TIMEOUT,
};
use tunnel::message::SHORTEST_DATA;
use tunnel::{Dropped, HEADROOM, Offer, PeerConfig, Received, Staged, TAILROOM};

use crate::ends::*;

#[test]
fn packets_pass_padded_and_come_out_as_they_were() {
    let mut pair = Pair::established();
    for len in [28, 31, 32, 33, 1_408, 1_419, 1_420] {
        let sent = packet(address(1), address(2), 7, len);
        let (_, datagram) = send(&mut pair.a, &sent, pair.now).unwrap();
        let inner = datagram.len() - SHORTEST_DATA;
        assert!(inner.is_multiple_of(16) || inner == 1_420, "{len}: {inner}");
        assert!(inner >= len && inner < len + 16);
        let came = take(&mut pair.b, &datagram, place(1), pair.now);
        assert_eq!(came, Came::Data { established: false, packet: Some(sent) });
    }
}

/// What lay in the buffer before does not leave with the packet.
#[test]
fn padding_is_zeros() {
    let mut pair = Pair::established();
    let sent = packet(address(1), address(2), 7, 33);
    let Staged::Seal(sealing) = pair.a.stage(&sent, pair.now) else { panic!("not staged") };
    let mut buffer = [vec![0xff; HEADROOM], sent.clone(), vec![0xff; TAILROOM]].concat();
    let sealed = sealing.seal(&mut buffer, HEADROOM..HEADROOM + sent.len()).unwrap();
    let datagram = &mut buffer[sealed];
    let Received::Opening(opening) = pair.b.receive(datagram, place(1), pair.now) else {
        panic!("not staged")
    };
    let _ = opening.open(datagram).unwrap();
    assert_eq!(datagram[16..16 + 33], sent);
    assert_eq!(datagram[16 + 33..16 + 48], [0; 15]);
}

#[test]
fn a_responder_waits_until_its_session_is_confirmed() {
    let mut pair = Pair::new();
    let initiation = pair.initiation();
    let response = pair.answer(&initiation);
    let waits = send(&mut pair.b, &Pair::packet(2, 1), pair.now);
    assert_eq!(waits, Err(Refused::Wait(pair.peer_of_b())));
    // The confirmation is on its way, or the initiation was a replay: nobody knows.
    let [own] = due(&mut pair.b, pair.now).try_into().unwrap();
    pair.confirm(&response);
    pair.passes_back(1);
    let came = take(&mut pair.a, own.bytes(), place(2), pair.now);
    assert!(matches!(came, Came::Answered(_)), "{came:?}");
    pair.passes(2);
}

#[test]
fn a_lost_confirmation_is_made_up_for() {
    let mut pair = Pair::new();
    let initiation = pair.initiation();
    let response = pair.answer(&initiation);
    let _ = take(&mut pair.a, response.bytes(), place(2), pair.now);
    pair.now += REKEY_TIMEOUT;
    assert!(send(&mut pair.b, &Pair::packet(2, 1), pair.now).is_err());
    assert_eq!(due(&mut pair.b, pair.now).len(), 1, "an initiation of its own");
    // And any packet by the session confirms it as well.
    let sent = Pair::packet(1, 2);
    let (_, datagram) = send(&mut pair.a, &sent, pair.now).unwrap();
    let came = take(&mut pair.b, &datagram, place(1), pair.now);
    assert_eq!(came, Came::Data { established: true, packet: Some(sent) });
    pair.passes_back(3);
}

#[test]
fn who_hears_and_says_nothing_sends_one_keepalive_and_gets_none() {
    let mut pair = Pair::established();
    pair.passes(1);
    pair.now += KEEPALIVE_TIMEOUT - 1;
    assert!(due(&mut pair.b, pair.now).is_empty());
    pair.now += 1;
    let [keepalive] = due(&mut pair.b, pair.now).try_into().unwrap();
    assert_eq!(keepalive.bytes().len(), SHORTEST_DATA);
    let came = take(&mut pair.a, keepalive.bytes(), place(2), pair.now);
    assert_eq!(came, Came::Data { established: false, packet: None });
    // Finding: keepalives answered each other without an end.
    for _ in 0..100 {
        pair.now += SECOND;
        assert!(due(&mut pair.a, pair.now).is_empty() && due(&mut pair.b, pair.now).is_empty());
    }
}

#[test]
fn who_sends_what_is_dropped_there_is_told_that_the_session_lives() {
    let mut pair = Pair::established();
    let foreign = packet([192, 168, 0, 1].into(), address(2), 1, 60);
    let (_, datagram) = send(&mut pair.a, &foreign, pair.now).unwrap();
    let came = take(&mut pair.b, &datagram, place(1), pair.now);
    assert!(matches!(came, Came::Dropped(Dropped::SourceNotAllowed(..))), "{came:?}");
    pair.now += KEEPALIVE_TIMEOUT;
    assert_eq!(due(&mut pair.b, pair.now).len(), 1);
}

#[test]
fn who_sends_and_hears_nothing_begins_a_handshake() {
    let mut pair = Pair::established();
    pair.now += 30 * SECOND;
    let _ = send(&mut pair.a, &Pair::packet(1, 1), pair.now).unwrap();
    pair.now += SILENCE_TIMEOUT - 1;
    assert!(due(&mut pair.a, pair.now).is_empty());
    pair.now += 1;
    let [initiation] = due(&mut pair.a, pair.now).try_into().unwrap();
    let response = pair.answer(&initiation);
    pair.confirm(&response);
    pair.passes(2);
}

#[test]
fn persistent_keepalives_begin_a_handshake_and_go_on() {
    let mut pair = Pair::new();
    let mut a = end(config(1, Offer::BOTH), 5);
    let often = PeerConfig { keepalive: Some(25 * SECOND), ..peer(2) };
    a.add_peer(&often).unwrap();
    pair.a = a;
    let [initiation] = due(&mut pair.a, pair.now).try_into().unwrap();
    let response = pair.answer(&initiation);
    pair.confirm(&response);
    for _ in 0..4 {
        pair.now += 25 * SECOND;
        let [keepalive] = due(&mut pair.a, pair.now).try_into().unwrap();
        let came = take(&mut pair.b, keepalive.bytes(), place(1), pair.now);
        assert_eq!(came, Came::Data { established: false, packet: None });
        assert!(due(&mut pair.b, pair.now).is_empty());
    }
}

#[test]
fn an_initiator_replaces_its_session_and_what_was_sealed_by_the_old_one_opens() {
    let mut pair = Pair::established();
    pair.now += REKEY_AFTER_TIME - 1;
    pair.passes(1);
    pair.passes_back(1);
    assert!(due(&mut pair.a, pair.now).is_empty());
    pair.now += 1;
    pair.passes(2);
    let late = send(&mut pair.b, &Pair::packet(2, 3), pair.now).unwrap();
    let [initiation] = due(&mut pair.a, pair.now).try_into().unwrap();
    let response = pair.answer(&initiation);
    let early = send(&mut pair.a, &Pair::packet(1, 4), pair.now).unwrap();
    pair.confirm(&response);
    let came = take(&mut pair.a, &late.1, place(2), pair.now);
    assert!(matches!(came, Came::Data { packet: Some(_), .. }), "{came:?}");
    let came = take(&mut pair.b, &early.1, place(1), pair.now);
    assert!(matches!(came, Came::Data { packet: Some(_), .. }), "{came:?}");
    pair.passes(5);
    pair.passes_back(5);
    assert!(due(&mut pair.a, pair.now).is_empty() && due(&mut pair.b, pair.now).is_empty());
}

#[test]
fn a_responder_replaces_a_session_that_its_initiator_does_not() {
    let mut pair = Pair::established();
    pair.now += RESPONDER_REKEY_AFTER_TIME - 1;
    pair.passes_back(1);
    assert!(due(&mut pair.b, pair.now).is_empty());
    pair.now += 1;
    pair.passes_back(2);
    assert_eq!(due(&mut pair.b, pair.now).len(), 1);
}

#[test]
fn an_initiator_that_only_receives_replaces_its_session_in_time() {
    let mut pair = Pair::established();
    pair.now += REKEY_ON_RECEIVE_TIME - 1;
    pair.passes_back(1);
    pair.now += 1;
    assert!(due(&mut pair.a, pair.now).is_empty());
    pair.passes_back(2);
    assert_eq!(due(&mut pair.a, pair.now).len(), 1);
}

#[test]
fn a_session_that_is_too_old_neither_seals_nor_opens_and_is_erased() {
    let mut pair = Pair::established();
    pair.now = START + REJECT_AFTER_TIME - 1;
    let late = send(&mut pair.a, &Pair::packet(1, 1), pair.now).unwrap();
    pair.now += 1;
    let waits = send(&mut pair.a, &Pair::packet(1, 2), pair.now);
    assert_eq!(waits, Err(Refused::Wait(pair.peer_of_a())));
    let expired = Dropped::Expired(pair.peer_of_b());
    assert_eq!(take(&mut pair.b, &late.1, place(1), pair.now), Came::Dropped(expired));
    pair.now = START + ERASE_AFTER_TIME;
    assert_eq!(pair.b.next_due(), Some(pair.now));
    assert!(due(&mut pair.b, pair.now).is_empty());
    assert_eq!(pair.b.status(pair.peer_of_b()).unwrap().session, None);
    let came = take(&mut pair.b, &late.1, place(1), pair.now);
    assert_eq!(came, Came::Dropped(Dropped::UnknownIndex));
}

#[test]
fn a_replayed_datagram_is_dropped_before_and_after_it_is_opened() {
    let mut pair = Pair::established();
    let (_, datagram) = send(&mut pair.a, &Pair::packet(1, 1), pair.now).unwrap();
    // Two copies are staged before either is released.
    let stage = |pair: &mut Pair| match pair.b.receive(&datagram, place(1), pair.now) {
        Received::Opening(opening) => opening,
        _ => panic!("not staged"),
    };
    let jobs = [stage(&mut pair), stage(&mut pair)];
    let mut released = Vec::new();
    for job in jobs {
        let mut bytes = datagram.clone();
        let opened = job.open(&mut bytes).unwrap();
        released.push(pair.b.release(opened, &bytes, pair.now).map(|it| it.content.is_ok()));
    }
    let replayed = Dropped::Replayed(pair.peer_of_b());
    assert_eq!(released, [Ok(true), Err(replayed)]);
    let again = pair.b.receive(&datagram, place(1), pair.now);
    assert!(
        matches!(again, Received::Dropped(why) if why == replayed),
        "it was staged to be opened"
    );
}

/// Finding: a peer that moved stayed where it was, as data did not say where it is.
#[test]
fn a_peer_is_where_its_last_genuine_datagram_came_from() {
    let mut pair = Pair::established();
    let (old, new) = (place(1), "203.0.113.7:4444".parse().unwrap());
    let of_b = pair.peer_of_b();
    let endpoint = |pair: &Pair| pair.b.status(of_b).unwrap().endpoint.unwrap();
    let (_, datagram) = send(&mut pair.a, &Pair::packet(1, 1), pair.now).unwrap();
    let mut forged = datagram.clone();
    forged[40] ^= 1;
    assert_eq!(take(&mut pair.b, &forged, new, pair.now), Came::Dropped(Dropped::Forged));
    assert_eq!(endpoint(&pair), old);
    let came = take(&mut pair.b, &datagram, new, pair.now);
    assert!(matches!(came, Came::Data { .. }));
    assert_eq!(endpoint(&pair), new);
    let replayed = Came::Dropped(Dropped::Replayed(of_b));
    assert_eq!(take(&mut pair.b, &datagram, old, pair.now), replayed);
    assert_eq!(endpoint(&pair), new, "a replay says nothing");
    assert_eq!(send(&mut pair.b, &Pair::packet(2, 1), pair.now).unwrap().0, new);
}

/// Finding: an address in one peer's range was accepted from another, whose range contains that one.
#[test]
fn a_peer_sends_by_its_own_addresses_alone() {
    let mut b = end(config(2, Offer::BOTH), 22);
    let wide = PeerConfig { allowed: vec![prefix("10.0.0.0/8")], ..peer(1) };
    let one = b.add_peer(&wide).unwrap();
    b.add_peer(&PeerConfig { allowed: vec![prefix("10.9.0.0/16")], ..peer(3) }).unwrap();
    let mut pair = Pair { b, ..Pair::new() };
    pair.shake();
    for (source, allowed) in [
        ([10, 0, 0, 1], true),
        ([10, 200, 0, 1], true),
        ([10, 9, 0, 1], false),
        ([11, 0, 0, 1], false),
    ] {
        let sent = packet(source.into(), address(2), 1, 60);
        let (_, datagram) = send(&mut pair.a, &sent, pair.now).unwrap();
        let expected = match allowed {
            true => Came::Data { established: false, packet: Some(sent) },
            false => Came::Dropped(Dropped::SourceNotAllowed(one, source.into())),
        };
        assert_eq!(take(&mut pair.b, &datagram, place(1), pair.now), expected);
    }
}

#[test]
fn a_packet_goes_to_the_peer_that_has_its_destination() {
    let mut pair = Pair::established();
    let nowhere = packet(address(1), [192, 168, 0, 1].into(), 1, 60);
    let refused = send(&mut pair.a, &nowhere, pair.now);
    assert_eq!(refused, Err(Refused::Dropped(Dropped::NoPeer([192, 168, 0, 1].into()))));
    let refused = send(&mut pair.a, b"no packet at all", pair.now);
    assert_eq!(refused, Err(Refused::Dropped(Dropped::NotIp)));
    let lost = pair.a.add_peer(&PeerConfig { endpoint: None, ..peer(3) }).unwrap();
    let to_3 = packet(address(1), address(3), 1, 60);
    let refused = send(&mut pair.a, &to_3, pair.now);
    assert_eq!(refused, Err(Refused::Dropped(Dropped::NoEndpoint(lost))));
    assert!(pair.a.allow(lost, prefix("10.0.0.2/32")), "taken from the other");
    let refused = send(&mut pair.a, &Pair::packet(1, 1), pair.now);
    assert_eq!(refused, Err(Refused::Dropped(Dropped::NoEndpoint(lost))));
}

#[test]
fn a_peer_that_was_removed_leaves_nothing() {
    let mut pair = Pair::established();
    let of_b = pair.peer_of_b();
    let (_, datagram) = send(&mut pair.a, &Pair::packet(1, 1), pair.now).unwrap();
    let Received::Opening(opening) = pair.b.receive(&datagram, place(1), pair.now) else {
        panic!("not staged")
    };
    assert!(pair.b.remove_peer(of_b) && !pair.b.remove_peer(of_b));
    let again = pair.b.add_peer(&peer(1)).unwrap();
    assert_ne!(again, of_b);
    let mut bytes = datagram.clone();
    let opened = opening.open(&mut bytes).unwrap();
    let released = pair.b.release(opened, &bytes, pair.now);
    assert_eq!(released, Err(Dropped::SessionGone(of_b)));
    assert!(pair.b.status(of_b).is_none() && pair.b.next_due().is_none());
    let came = take(&mut pair.b, &datagram, place(1), pair.now);
    assert_eq!(came, Came::Dropped(Dropped::UnknownIndex));
}

#[test]
fn packets_of_ipv6_pass_as_those_of_ipv4_do() {
    let mut pair = Pair::new();
    let (of_a, of_b) = (pair.peer_of_a(), pair.peer_of_b());
    assert!(pair.a.allow(of_a, prefix("2001:db8::2/128")));
    assert!(pair.b.allow(of_b, prefix("2001:db8::/64")));
    pair.shake();
    let mut sent = vec![0; 64];
    sent[0] = 0x60;
    sent[5] = 24;
    sent[8..24].copy_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    sent[24..40].copy_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    let (_, datagram) = send(&mut pair.a, &sent, pair.now).unwrap();
    let came = take(&mut pair.b, &datagram, place(1), pair.now);
    assert_eq!(came, Came::Data { established: false, packet: Some(sent) });
}

#[test]
fn a_seal_that_fails_spends_its_nonce() {
    let mut pair = Pair::established();
    let mut counters = Vec::new();
    for room in [HEADROOM - 1, HEADROOM, HEADROOM] {
        let sent = Pair::packet(1, 1);
        let Staged::Seal(sealing) = pair.a.stage(&sent, pair.now) else { panic!("not staged") };
        counters.push(sealing.counter());
        let mut buffer = [vec![0; room], sent.clone(), vec![0; TAILROOM]].concat();
        let sealed = sealing.seal(&mut buffer, room..room + sent.len());
        assert_eq!(sealed.is_ok(), room == HEADROOM);
    }
    assert_eq!(counters, [1, 2, 3], "the first was the keepalive's");
}

#[test]
fn a_probe_is_as_long_as_a_packet_of_that_length_and_is_answered() {
    let mut pair = Pair::established();
    let peer = pair.peer_of_a();
    let mut buffer = vec![0xff; 2_000];
    for (number, len) in [(7, 1_420), (8, 1_411), (9, 16)] {
        let (lies, to) = pair.a.probe(peer, number, (&mut buffer, len), pair.now).unwrap();
        assert_eq!((lies.len(), to), (SHORTEST_DATA + len, place(2)));
        let came = take(&mut pair.b, &buffer[lies], place(1), pair.now);
        let Came::Probe(answer) = came else { panic!("{came:?}") };
        assert_eq!(answer.bytes().len(), SHORTEST_DATA + 16);
        let came = take(&mut pair.a, answer.bytes(), place(2), pair.now);
        assert_eq!(came, Came::Probed(number));
    }
    for len in [0, 15, 1_990, usize::MAX] {
        assert_eq!(pair.a.probe(peer, 1, (&mut buffer, len), pair.now), None, "{len}");
    }
}

#[test]
fn a_probe_aside_shows_who_sent_it_once_and_moves_nothing() {
    let mut pair = Pair::established();
    let (peer, now) = (pair.peer_of_a(), pair.now);
    let beacons = [7, 8].map(|port| ([198, 51, 100, 1], port).into());
    assert!(pair.a.probe_aside(peer, &beacons));
    let probes = due(&mut pair.a, now);
    assert_eq!(probes.iter().map(|it| it.to()).collect::<Vec<_>>(), beacons);
    let from = ([203, 0, 113, 5], 4_000).into();
    let before = pair.b.status(pair.peer_of_b()).unwrap();
    for probe in &probes {
        let mut changed = probe.bytes().to_vec();
        changed[20] ^= 1;
        assert_eq!(pair.b.probed_aside(&changed, from, now), None, "not genuine");
        assert_eq!(pair.b.probed_aside(probe.bytes(), from, now), Some(pair.peer_of_b()));
        assert_eq!(pair.b.probed_aside(probe.bytes(), from, now), None, "a replay");
    }
    assert_eq!(pair.b.status(pair.peer_of_b()).unwrap(), before);
    assert!(due(&mut pair.b, now).is_empty(), "nothing answers");
    // What is no such probe is left for who may take it.
    let sent = Pair::packet(1, 2);
    let (_, datagram) = send(&mut pair.a, &sent, now).unwrap();
    assert_eq!(pair.b.probed_aside(&datagram, from, now), None);
    let came = take(&mut pair.b, &datagram, place(1), now);
    assert_eq!(came, Came::Data { established: false, packet: Some(sent) });
}
