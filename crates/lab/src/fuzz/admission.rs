//! Handshake messages of anybody to an end of an overlay, over time: a peer's own, forged ones, replays, and restarts.
//!
//! What becomes of each is what a slow reading says: no more is worked on than the limits say, a cookie is asked for under
//! load alone, and whoever shows one is refused for nothing but its own rate. No initiation changes what is known of the
//! peer. And whatever came before, it has a session with its third initiation at the latest.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::LazyLock;

use tunnel::limits::{SECOND, SOURCE_RATE, UNPROVEN_RATE, UNPROVEN_RESERVE};
use tunnel::message::{COOKIE, INITIATION};
use tunnel::{Due, Outgoing, PeerStatus, Received, Staged};

use super::overlay::{Ends, PACKETS, end, place};

/// An initiation of somebody whom end 1 does not know, and who has its public key.
static FORGED: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut stranger = end(6, 1, 6);
    let Staged::Wait(_) = stranger.stage(&PACKETS[0], 1) else { panic!("it has a session") };
    let Some(Due::Send(initiation)) = stranger.due(1) else { panic!("nothing is due") };
    initiation.bytes().to_vec()
});

/// A rate as text books have it: so many in a bucket, which fills with time.
#[derive(Default)]
struct Bucket {
    /// In billionths of one.
    missing: u64,
    since: u64,
}

impl Bucket {
    /// Whether there is one more, of a bucket that has room for so many.
    fn has(&mut self, (rate, room): (u64, u64), now: u64) -> bool {
        self.missing = self.missing.saturating_sub((now - self.since).saturating_mul(rate));
        self.since = now;
        self.missing + SECOND <= room * SECOND
    }
}

/// The slow reading.
#[derive(Default)]
struct Slow {
    /// Of the peer, where it shows cookies.
    proven: Bucket,
    /// Of all that show nothing.
    shared: Bucket,
}

#[derive(Debug, PartialEq)]
enum Fate {
    WorkedOn,
    Asked,
    Refused,
}

impl Slow {
    /// Whether a message can have this fate; it has.
    fn allows(&mut self, fate: &Fate, is_proven: bool, now: u64) -> bool {
        let (rate, room) = if is_proven { SOURCE_RATE } else { UNPROVEN_RATE };
        let bucket = if is_proven { &mut self.proven } else { &mut self.shared };
        match fate {
            Fate::WorkedOn => {
                let allows = bucket.has((rate, room), now);
                bucket.missing += SECOND;
                allows
            }
            Fate::Refused => is_proven && !bucket.has((rate, room), now),
            // Under load alone: whoever sends slowly is asked even later.
            Fate::Asked => !is_proven && !bucket.has((rate, room - UNPROVEN_RESERVE), now),
        }
    }
}

/// All of it.
struct Scene {
    ends: Ends,
    slow: Slow,
    /// Initiations of the peer that were on the wire.
    recorded: Vec<Vec<u8>>,
    forged: u32,
    /// Times that the end was started, and by then when it gave the peer a cookie.
    starts: u32,
    cookie_of: Option<u32>,
}

/// Records of two bytes: the lowest three bits of the first say what comes, the others from which of 32 places, and the
/// second how long after the last.
pub(super) fn admission(data: &[u8]) {
    let mut scene = Scene {
        ends: Ends::new(),
        slow: Slow::default(),
        recorded: Vec::new(),
        forged: 0,
        starts: 0,
        cookie_of: None,
    };
    for record in data.chunks_exact(2) {
        let (what, from, later) = (record[0] & 7, record[0] >> 3, u64::from(record[1]));
        scene.ends.now += later * later * 100_000;
        match what {
            0 | 1 => scene.forged(known(from)),
            2 => scene.flood(2 * u32::from(from)),
            3 => _ = scene.initiates(),
            4 | 5 => scene.replays(from),
            6 if from == 0 => scene.restarts(),
            _ => scene.ends.now += u64::from(from) * SECOND,
        }
    }
    // Whatever session there was is over, and whatever was begun.
    scene.ends.now += 600 * SECOND;
    while scene.ends.ends[0].due(scene.ends.now).is_some() {}
    scene.ends.now += 6 * SECOND;
    scene.flood(300);
    let tries = scene.initiates();
    assert!(tries.is_some_and(|tries| tries <= 3), "{tries:?}");
}

/// One of few places: each second one shares its network with the next one.
fn known(number: u8) -> SocketAddr {
    let network = u128::from(number / 2);
    match number % 4 {
        0 | 1 => (Ipv4Addr::new(198, 51, 100, number), 7).into(),
        _ => (Ipv6Addr::from_bits((0x2001_0db8 << 96) + (network << 64) + u128::from(number)), 7)
            .into(),
    }
}

impl Scene {
    /// Has the end take a handshake message; its answer.
    fn takes(&mut self, message: &[u8], from: SocketAddr) -> Option<Outgoing> {
        let shows = message[INITIATION - 16..] != [0; 16] && from == place(0);
        let is_proven = shows && self.cookie_of == Some(self.starts);
        let now = self.ends.now;
        let before = self.status();
        let (fate, answer) = match self.ends.ends[1].receive(message, from, now) {
            Received::Reply(reply) if reply.bytes().len() == COOKIE => (Fate::Asked, Some(reply)),
            Received::Reply(reply) | Received::Answered { reply, .. } => {
                (Fate::WorkedOn, Some(reply))
            }
            Received::Dropped(tunnel::Dropped::TooFast) => (Fate::Refused, None),
            Received::Dropped(_) => (Fate::WorkedOn, None),
            _ => panic!("it is no initiation"),
        };
        assert!(self.slow.allows(&fate, is_proven, now), "{from}: {fate:?}, {is_proven}");
        assert_eq!(self.status(), before, "an initiation proves nothing of where its sender is");
        answer
    }

    fn status(&self) -> PeerStatus {
        let end = &self.ends.ends[1];
        let peer = end.peers().next().expect("a peer");
        end.status(peer).expect("a peer")
    }

    fn forged(&mut self, from: SocketAddr) {
        let answer = self.takes(&FORGED, from);
        assert!(answer.is_none_or(|answer| answer.bytes().len() == COOKIE));
    }

    /// From ever other places.
    fn flood(&mut self, count: u32) {
        for _ in 0..count {
            self.forged += 1;
            self.forged((Ipv4Addr::from_bits(0x2d00_0000 + self.forged), 9).into());
        }
    }

    /// Has the peer begin a handshake, and show a cookie if it is asked for one: with how many initiations there is a session.
    fn initiates(&mut self) -> Option<usize> {
        let _ = self.ends.ends[0].stage(&PACKETS[0], self.ends.now);
        let before = self.recorded.len();
        loop {
            let now = self.ends.now;
            let Due::Send(sent) = self.ends.ends[0].due(now)? else { continue };
            if sent.bytes().len() != INITIATION {
                let _ = self.ends.take(1, &mut sent.bytes().to_vec());
                continue;
            }
            self.recorded.push(sent.bytes().to_vec());
            let answer = self.takes(sent.bytes(), place(0))?;
            match self.ends.ends[0].receive(answer.bytes(), place(1), now) {
                Received::Established { reply, .. } => {
                    let _ = self.ends.take(1, &mut reply.bytes().to_vec());
                    let status = self.status();
                    assert_eq!((status.session, status.endpoint), (Some(now), Some(place(0))));
                    return Some(self.recorded.len() - before);
                }
                Received::Told(_) if answer.bytes().len() == COOKIE => {
                    self.cookie_of = Some(self.starts);
                }
                _ => return None,
            }
        }
    }

    fn replays(&mut self, from: u8) {
        let len = self.recorded.len();
        let Some(message) = self.recorded.get(usize::from(from) % len.max(1)) else { return };
        let _ = self.takes(&message.clone(), known(from));
    }

    fn restarts(&mut self) {
        self.starts += 1;
        self.ends.ends[1] = end(1, 0, 100 + u64::from(self.starts));
        self.slow = Slow::default();
    }
}
