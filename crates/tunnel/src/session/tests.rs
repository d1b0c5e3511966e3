//! Ends of sessions by count and by time, nonces after a seal that failed, and which of three sessions is which.

use std::collections::HashSet;
use std::ops::Range;

use super::*;
use crate::aead::Sealed;
use crate::job::{SealError, Sealing};
use crate::limits::SECOND;
use crate::peer::PeerId;

/// A cipher that refuses.
struct Broken;

impl Aead for Broken {
    fn seal(&self, _: u64, _: &[u8], _: &mut [u8]) -> Sealed {
        None
    }

    fn open(&self, _: u64, _: &[u8], _: &mut [u8]) -> Option<usize> {
        None
    }
}

fn session(local: u32, suite: Suite, initiator: bool, born: u64) -> Session {
    let keys = Keys { seal: Box::new(Broken), open: Box::new(Broken), suite };
    Session::new((local, 100 + local), keys, initiator, born)
}

fn sealing(session: &mut Session) -> Option<Sealing> {
    let counter = session.take_counter(0)?;
    let peer = PeerId { slot: 0, generation: 0 };
    let to = "192.0.2.1:1".parse().unwrap();
    let keys = session.keys.clone();
    Some(Sealing { keys, receiver: session.remote, counter, mtu: 1_420, peer, to })
}

#[test]
fn a_counter_is_spent_whether_or_not_its_seal_succeeds() {
    let mut session = session(1, Suite::ChaCha20Poly1305, true, 0);
    let mut spent = HashSet::new();
    let mut buffer = [0; 200];
    for (inner, error) in [
        (16..100, SealError::Cipher),
        (15..100, SealError::Headroom),
        (16..190, SealError::Tailroom { needed: 18 }),
        (Range { start: 50, end: 40 }, SealError::Headroom),
        (16..usize::MAX, SealError::Tailroom { needed: 16 }),
    ] {
        let sealing = sealing(&mut session).unwrap();
        assert!(spent.insert(sealing.counter()));
        assert_eq!(sealing.seal(&mut buffer, inner), Err(error));
    }
    assert_eq!(session.next, 5);
}

/// Finding: Reject-After-Messages was missing.
#[test]
fn a_session_ends_by_count() {
    for (suite, rekey, reject) in [
        (Suite::ChaCha20Poly1305, 1 << 60, u64::MAX - (1 << 13) - 1),
        (Suite::Aes256Gcm, 1 << 32, 1 << 33),
    ] {
        let mut session = session(1, suite, true, 0);
        assert!(!session.is_due(0));
        session.next = rekey - 1;
        assert_eq!(session.take_counter(0), Some(rekey - 1));
        assert!(session.is_due(0));
        session.next = reject - 1;
        assert_eq!(session.take_counter(0), Some(reject - 1));
        assert_eq!((session.take_counter(0), session.next), (None, reject));
        assert!(!session.allows(reject, 0) && session.allows(reject - 1, 0));
    }
}

#[test]
fn a_session_ends_by_time() {
    let mut ours = session(1, Suite::Aes256Gcm, true, 50 * SECOND);
    let theirs = session(2, Suite::Aes256Gcm, false, 50 * SECOND);
    assert!(!ours.is_due(170 * SECOND - 1) && ours.is_due(170 * SECOND));
    assert!(!theirs.is_due(185 * SECOND - 1) && theirs.is_due(185 * SECOND));
    assert!(ours.take_counter(230 * SECOND - 1).is_some());
    assert_eq!(ours.take_counter(230 * SECOND), None);
    assert_eq!(ours.ends(), 590 * SECOND);
}

/// Finding: a clock that seems to go back made a subtraction panic.
#[test]
fn time_that_goes_back_ends_nothing() {
    let mut ours = session(1, Suite::Aes256Gcm, true, 50 * SECOND);
    assert!(!ours.is_due(0) && ours.allows(0, 0) && ours.take_counter(0).is_some());
    assert_eq!(session(1, Suite::Aes256Gcm, true, u64::MAX).ends(), u64::MAX);
}

#[test]
fn three_sessions_take_their_turns() {
    const LATER: u64 = DISPLACED_TIME + 4;
    let mut sessions = Sessions::default();
    let new = |local, initiator| session(local, Suite::Aes256Gcm, initiator, u64::from(local));
    let places = |sessions: &Sessions| {
        [&sessions.previous, &sessions.current, &sessions.next]
            .map(|place| place.as_ref().map_or(0, |session| session.local))
    };
    assert_eq!(sessions.established(new(1, true), LATER), None);
    assert_eq!(sessions.answered(new(2, false)), None);
    assert_eq!(places(&sessions), [0, 1, 2]);
    assert_eq!(
        sessions.confirm(1, LATER),
        (false, None),
        "what comes by the old one confirms nothing"
    );
    assert_eq!(sessions.answered(new(3, false)), Some(2), "the first answer was lost");
    assert_eq!(sessions.confirm(3, LATER), (true, None));
    assert_eq!(places(&sessions), [1, 3, 0]);
    assert_eq!(sessions.established(new(4, true), LATER), None);
    assert_eq!(places(&sessions), [3, 4, 0]);
    assert!([3, 4].iter().all(|local| sessions.find(*local).is_some()));
    assert!(sessions.find(1).is_some(), "what its peer sent may be on its way");
    assert_eq!(sessions.erase_one(LATER + DISPLACED_TIME), Some(1));
    assert_eq!(sessions.first_end(), Some(3 + ERASE_AFTER_TIME));
    assert_eq!(sessions.erase_one(3 + ERASE_AFTER_TIME), Some(3));
    assert_eq!(sessions.erase_one(3 + ERASE_AFTER_TIME), None);
}

/// Found where both ends had made a session at once, and made another one at once later: each sent with its own until then,
/// and what was on its way by the other's previous one was lost.
#[test]
fn a_session_that_is_displaced_is_kept_for_a_moment() {
    let new = |local| session(local, Suite::Aes256Gcm, true, 100 * SECOND);
    let (mut sessions, now) = (Sessions::default(), 200 * SECOND);
    for local in [1, 2, 3] {
        assert_eq!(sessions.established(new(local), now), None);
    }
    assert!([1, 2, 3].iter().all(|local| sessions.find(*local).is_some()));
    let end = now + DISPLACED_TIME;
    assert_eq!((sessions.first_end(), sessions.erase_one(end - 1)), (Some(end), None));
    assert_eq!((sessions.erase_one(end), sessions.find(1).is_none()), (Some(1), true));
    // One is kept at most.
    assert_eq!(sessions.established(new(4), end), None);
    assert_eq!(sessions.established(new(5), end), Some(2));
}
