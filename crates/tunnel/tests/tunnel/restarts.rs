//! An end that restarted has no sessions, and the other one does not know: how long it takes until packets pass again.

use tunnel::limits::{LOOK_GAP, REKEY_ATTEMPT_TIME, REKEY_TIMEOUT, SECOND, SILENCE_TIMEOUT};
use tunnel::message::SHORTEST_DATA;
use tunnel::{Dropped, Due, Outgoing, PeerConfig, Tunnel};

use crate::ends::*;

/// Time goes on so far at once: as often as deadlines are looked at.
const TICK: u64 = SECOND / 20;

/// The second end of a pair, as it is after a restart.
fn restarted(peer: PeerConfig) -> Tunnel {
    let mut config = config(2, tunnel::Offer::BOTH);
    config.started_unix += 200 * SECOND;
    let mut end = end(config, 23);
    end.add_peer(&peer).unwrap();
    end
}

/// The end that has a packet to send in each tick.
#[derive(Clone, Copy, PartialEq)]
enum Sends {
    Other,
    Restarted,
    Nobody,
}

/// Returns the time until a packet, or a keepalive, arrives on a new session. The wire takes no time.
fn back(peer: PeerConfig, who: Sends) -> u64 {
    let Pair { mut a, now: start, .. } = Pair::established();
    let mut b = restarted(peer);
    let mut now = start + 10 * SECOND;
    let since = now;
    loop {
        let mut wire = Vec::new();
        let (sender, name) = match who {
            Sends::Restarted => (&mut b, 2),
            _ => (&mut a, 1),
        };
        if who != Sends::Nobody
            && let Ok((_, datagram)) = send(sender, &Pair::packet(name, 0), now)
        {
            wire.push((3 - name, datagram));
        }
        for (name, end) in [(1, &mut a), (2, &mut b)] {
            wire.extend(due(end, now).into_iter().map(|own| (3 - name, own.bytes().to_vec())));
        }
        while let Some((to, datagram)) = wire.pop() {
            let end = if to == 1 { &mut a } else { &mut b };
            match take(end, &datagram, place(3 - to), now) {
                Came::Answered(reply) | Came::Established(reply) => {
                    wire.push((3 - to, reply.bytes().to_vec()));
                }
                Came::Data { .. } => return now - since,
                _ => {}
            }
        }
        now += TICK;
        assert!(now - since < 60 * SECOND, "it does not come back");
    }
}

fn nowhere() -> PeerConfig {
    PeerConfig { endpoint: None, ..peer(1) }
}

#[test]
fn an_end_that_restarted_is_back_within_three_seconds_if_it_knows_where_the_other_is() {
    for who in [Sends::Other, Sends::Restarted] {
        let time = back(peer(1), who);
        println!("{} ms", time / 1_000_000);
        assert!(time <= TICK);
    }
    let keeps = PeerConfig { keepalive: Some(25 * SECOND), ..peer(1) };
    assert!(back(keeps, Sends::Nobody) <= TICK);
}

/// In this case only the other end can begin.
#[test]
fn an_end_that_does_not_know_where_the_other_is_is_back_after_silence() {
    let time = back(nowhere(), Sends::Other);
    assert!((SILENCE_TIMEOUT..=SILENCE_TIMEOUT + TICK).contains(&time), "{time}");
}

/// Datagrams of a session that was, as anybody may repeat or make them up.
fn stray() -> Vec<u8> {
    let mut before = Pair::established();
    send(&mut before.a, &Pair::packet(1, 0), before.now).unwrap().1
}

/// Counts the datagrams that a flood of strays from a source makes an end send in `time`.
fn answers(end: &mut Tunnel, from: u8, time: u64) -> usize {
    let (stray, mut sent) = (stray(), 0);
    for tick in 0..time / TICK {
        let now = START + tick * TICK;
        for _ in 0..10 {
            let came = take(end, &stray, place(from), now);
            assert_eq!(came, Came::Dropped(Dropped::UnknownIndex));
        }
        while let Some(due) = end.due(now) {
            sent += usize::from(matches!(due, Due::Send(_)));
        }
    }
    sent
}

#[test]
fn strays_have_no_more_sent_than_packets_for_a_peer_that_is_silent() {
    assert_eq!(answers(&mut restarted(peer(1)), 9, 20 * SECOND), 0, "nobody is there");
    assert_eq!(answers(&mut restarted(nowhere()), 1, 20 * SECOND), 0, "nobody is said to be there");
    let most = (2 * REKEY_ATTEMPT_TIME / REKEY_TIMEOUT + 1) as usize;
    let sent = answers(&mut restarted(peer(1)), 1, 2 * REKEY_ATTEMPT_TIME);
    assert!((2..=most).contains(&sent), "{sent}");
    let mut pair = Pair::established();
    let (strange, now) = (stray(), pair.now);
    let mut strange = strange;
    strange[4] ^= 1;
    assert_eq!(take(&mut pair.b, &strange, place(1), now), Came::Dropped(Dropped::UnknownIndex));
    assert!(due(&mut pair.b, now + LOOK_GAP).is_empty(), "there is a session");
}

/// Finding: an initiation that was recorded before a restart and is replayed after it moved the peer's endpoint, and
/// held back the handshakes of both.
#[test]
fn an_initiation_from_before_a_restart_changes_nothing() {
    let mut pair = Pair::new();
    let mut recorded = Vec::new();
    for _ in 0..3 {
        let initiation = pair.initiation();
        recorded.push(initiation.bytes().to_vec());
        pair.now += REKEY_ATTEMPT_TIME + REKEY_TIMEOUT;
        while !matches!(pair.a.due(pair.now), Some(Due::GaveUp(_))) {}
    }
    for known in [peer(1), nowhere()] {
        let mut pair = Pair { b: restarted(known.clone()), ..Pair::new() };
        pair.now += 20 * SECOND;
        let (of_b, thief) = (pair.peer_of_b(), "203.0.113.9:9".parse().unwrap());
        let before = pair.b.status(of_b).unwrap();
        let replay = |b: &mut Tunnel, which: usize, now: u64| {
            let came = take(b, &recorded[which], thief, now);
            let is_answer = matches!(came, Came::Answered(_) | Came::Reply(_));
            assert!(is_answer, "{came:?}");
        };
        replay(&mut pair.b, 0, pair.now);
        assert_eq!(pair.b.status(of_b).unwrap(), before);
        // Its own handshake goes where the peer is said to be, at once.
        assert!(send(&mut pair.b, &Pair::packet(2, 0), pair.now).is_err());
        let own = due(&mut pair.b, pair.now);
        assert!(own.iter().map(Outgoing::to).eq(known.endpoint), "{own:?}");
        // That of the peer is answered, whatever came right before it, and after.
        replay(&mut pair.b, 1, pair.now);
        let mut a = end(later(), 31);
        a.add_peer(&peer(2)).unwrap();
        pair.a = a;
        let initiation = pair.initiation();
        let response = pair.answer(&initiation);
        replay(&mut pair.b, 2, pair.now);
        pair.confirm(&response);
        assert_eq!(pair.b.status(of_b).unwrap().endpoint, Some(place(1)));
        replay(&mut pair.b, 2, pair.now);
        assert_eq!(pair.b.status(of_b).unwrap().endpoint, Some(place(1)));
        pair.passes(1);
        pair.passes_back(1);
    }
}

/// The first end, started after all that was recorded.
fn later() -> tunnel::Config {
    let mut config = config(1, tunnel::Offer::BOTH);
    config.started_unix += 1_000 * SECOND;
    config
}

/// A replay does not stand in for the keepalive that is owed, either.
#[test]
fn a_replay_does_not_silence_a_keepalive() {
    let mut pair = Pair::established();
    let mut twin = end(later(), 32);
    twin.add_peer(&peer(2)).unwrap();
    assert!(send(&mut twin, &Pair::packet(1, 0), pair.now).is_err());
    let [unseen] = due(&mut twin, pair.now).try_into().unwrap();
    pair.passes(1);
    pair.now += SECOND;
    let came = take(&mut pair.b, unseen.bytes(), place(9), pair.now);
    assert!(matches!(came, Came::Answered(_)), "{came:?}");
    pair.now += tunnel::limits::KEEPALIVE_TIMEOUT - SECOND;
    let [keepalive] = due(&mut pair.b, pair.now).try_into().unwrap();
    assert_eq!((keepalive.bytes().len(), keepalive.to()), (SHORTEST_DATA, place(1)));
}
