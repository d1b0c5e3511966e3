//! An end that restarted has no sessions, and the other one does not know: how long it takes until packets pass again.

use tunnel::limits::{LOOK_GAP, REKEY_ATTEMPT_TIME, REKEY_TIMEOUT, SECOND, SILENCE_TIMEOUT};
use tunnel::{Dropped, Due, PeerConfig, Tunnel};

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

/// Who has a packet to send in each tick.
#[derive(Clone, Copy, PartialEq)]
enum Sends {
    Other,
    Restarted,
    Nobody,
}

/// How long it takes until a packet, or a keepalive, comes by a new session. The wire takes no time.
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

/// Then nobody but the other end can begin.
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

/// What a flood of them from a source has an end send in so much time.
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
