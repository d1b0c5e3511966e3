//! Sessions of a peer: the current one, which we send with; the previous one, whose datagrams are still
//! on their way; and the next, which we answered and whose initiator has not yet shown that it has its keys (WireGuard,
//! section 6). Where both ends made a session at once, each sends with its own, which is the other's previous one; so the session
//! that a new one displaces is kept for a moment more, too (WireGuard loses what is on its way then).

use std::sync::Arc;

use crate::aead::{Aead, RingKey, Suite};
use crate::limits::{
    DISPLACED_TIME, ERASE_AFTER_TIME, REJECT_AFTER_TIME, REKEY_AFTER_TIME,
    RESPONDER_REKEY_AFTER_TIME,
};
use crate::noise::Split;
use crate::window::Window;

/// Keys of both directions. Wiped when the last job that holds them ends.
pub(crate) struct Keys {
    pub(crate) seal: Box<dyn Aead>,
    pub(crate) open: Box<dyn Aead>,
    pub(crate) suite: Suite,
}

impl Keys {
    pub(crate) fn new(split: &Split, suite: Suite, initiator: bool) -> Self {
        let [ours, theirs] = match initiator {
            true => [&split.initiator, &split.responder],
            false => [&split.responder, &split.initiator],
        };
        let key = |bytes: &[u8; 32]| Box::new(RingKey::new(suite, bytes)) as _;
        Self { seal: key(ours), open: key(theirs), suite }
    }
}

/// One session.
pub(crate) struct Session {
    /// What the peer calls it by in datagrams to us.
    pub(crate) local: u32,
    /// What we call it by.
    pub(crate) remote: u32,
    pub(crate) keys: Arc<Keys>,
    pub(crate) window: Window,
    /// The counter of the next datagram.
    pub(crate) next: u64,
    pub(crate) born: u64,
    pub(crate) initiator: bool,
    /// One more than the highest counter that came.
    reached: u64,
}

impl Session {
    pub(crate) fn new((local, remote): (u32, u32), keys: Keys, initiator: bool, born: u64) -> Self {
        let keys = Arc::new(keys);
        Self {
            local,
            remote,
            keys,
            window: Window::default(),
            next: 0,
            born,
            initiator,
            reached: 0,
        }
    }

    fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.born)
    }

    /// Whether a datagram with that counter may still be sealed or opened.
    pub(crate) fn allows(&self, counter: u64, now: u64) -> bool {
        self.age(now) < REJECT_AFTER_TIME && counter < self.keys.suite.reject_after()
    }

    /// Takes a counter to seal with, which nobody else has or gets.
    pub(crate) fn take_counter(&mut self, now: u64) -> Option<u64> {
        let counter = self.next;
        let allowed = self.allows(counter, now);
        self.next += u64::from(allowed);
        allowed.then_some(counter)
    }

    /// Takes `count` counters in a row, and returns the first; all or none.
    pub(crate) fn take_counters(&mut self, count: u64, now: u64) -> Option<u64> {
        let (first, last) = (self.next, self.next.checked_add(count.checked_sub(1)?)?);
        let allowed = self.allows(last, now);
        self.next += if allowed { count } else { 0 };
        allowed.then_some(first)
    }

    /// A datagram with that counter came: how many more are missing now than before, and how many with higher ones came
    /// before it.
    pub(crate) fn came(&mut self, counter: u64) -> (i64, u64) {
        let behind = self.reached.saturating_sub(counter);
        let skipped = (counter + 1).saturating_sub(self.reached);
        self.reached += skipped;
        (skipped as i64 - 1, behind)
    }

    /// Whether the sending end ought to make another session.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        let most = if self.initiator { REKEY_AFTER_TIME } else { RESPONDER_REKEY_AFTER_TIME };
        self.age(now) >= most || self.next >= self.keys.suite.rekey_after()
    }

    /// When the session is erased.
    pub(crate) fn ends(&self) -> u64 {
        self.born.saturating_add(ERASE_AFTER_TIME)
    }
}

/// The sessions of one peer.
#[derive(Default)]
pub(crate) struct Sessions {
    pub(crate) current: Option<Session>,
    pub(crate) previous: Option<Session>,
    pub(crate) next: Option<Session>,
    /// The session before the previous one, and when it is erased: the peer may have sent with it until now.
    displaced: Option<Box<(Session, u64)>>,
}

impl Sessions {
    fn all(&mut self) -> [&mut Option<Session>; 3] {
        [&mut self.current, &mut self.previous, &mut self.next]
    }

    pub(crate) fn find(&mut self, local: u32) -> Option<&mut Session> {
        if self.displaced.as_ref().is_some_and(|it| it.0.local == local) {
            return self.displaced.as_mut().map(|it| &mut it.0);
        }
        self.all().into_iter().flatten().find(|session| session.local == local)
    }

    /// Makes a session current that we initiated and the peer has answered: it has the keys, so we send with it from
    /// now on. Returns the index of the session that has no place any more.
    pub(crate) fn established(&mut self, session: Session, now: u64) -> Option<u32> {
        let before = self.current.replace(session);
        let displaced = std::mem::replace(&mut self.previous, before)?;
        let kept = Box::new((displaced, now.saturating_add(DISPLACED_TIME)));
        self.displaced.replace(kept).map(|before| before.0.local)
    }

    /// Stores a session that we answered: the peer may not have our answer. Returns the index that it displaces.
    pub(crate) fn answered(&mut self, session: Session) -> Option<u32> {
        self.next.replace(session).map(|session| session.local)
    }

    /// Notes that the session of that index opened a datagram: if it is the next one, it becomes current. Returns
    /// whether it does, and the index of the session that has no place any more.
    pub(crate) fn confirm(&mut self, local: u32, now: u64) -> (bool, Option<u32>) {
        match self.next.take_if(|next| next.local == local) {
            Some(session) => (true, self.established(session, now)),
            None => (false, None),
        }
    }

    /// When the first of the sessions is to be erased.
    pub(crate) fn first_end(&self) -> Option<u64> {
        let all = [&self.current, &self.previous, &self.next].into_iter().flatten();
        all.map(Session::ends).chain(self.displaced.as_ref().map(|it| it.1)).min()
    }

    /// Erases a session that is too old, and returns its index.
    pub(crate) fn erase_one(&mut self, now: u64) -> Option<u32> {
        if let Some(displaced) = self.displaced.take_if(|it| it.1 <= now) {
            return Some(displaced.0.local);
        }
        let is_over = |session: &mut Session| session.ends() <= now;
        self.all().into_iter().find_map(|slot| slot.take_if(is_over)).map(|session| session.local)
    }
}

#[cfg(test)]
mod tests;
