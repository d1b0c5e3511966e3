//! What time brings: retries, keepalives, handshakes that are due, sessions that end. The caller sleeps until
//! [`Tunnel::next_due`], and asks again after it received or staged anything, for that may make something due at
//! once.

use crate::direct::{ASIDE, Step};
use crate::inner::Probe;
use crate::job::Dropped;
use crate::limits::REKEY_ATTEMPT_TIME;
use crate::peer::PeerId;
use crate::timers::comes;
use crate::tunnel::{Outgoing, Tunnel};

/// What is to be done now.
#[derive(Debug)]
pub enum Due {
    /// Send it.
    Send(Outgoing),
    /// The peer does not answer: drop what waits for it. The next packet for it begins again.
    GaveUp(PeerId),
    /// A handshake could not begin: there is no randomness, or the peer's key is none.
    Failed(PeerId, Dropped),
}

impl Tunnel {
    /// The next thing that is due, until there is none.
    pub fn due(&mut self, now: u64) -> Option<Due> {
        for _ in 0..self.places.len() {
            self.turn = if self.turn < self.places.len() { self.turn } else { 0 };
            if let Some(due) = self.due_at(self.turn, now) {
                return Some(due);
            }
            self.turn += 1;
        }
        None
    }

    /// When something is due, unless more is received or staged; looks at all peers.
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        let peers = self.places.iter().filter_map(|place| place.peer.as_deref());
        peers.filter_map(|peer| peer.first_deadline()).min()
    }

    fn due_at(&mut self, place: usize, now: u64) -> Option<Due> {
        let Tunnel { places, indexes, .. } = self;
        let place = &mut places[place];
        let peer = place.peer.as_deref_mut()?;
        if peer.first_deadline().is_none_or(|at| at > now) {
            return None;
        }
        let id = *self.by_key.get(&peer.key)?;
        while let Some(index) = peer.sessions.erase_one(now) {
            indexes.remove(&index);
        }
        if comes(&mut peer.timers.silence, now) {
            peer.timers.want_handshake(now);
        }
        let copy = self.peer_mut(id).and_then(|peer| peer.copies.pop());
        let copy = copy.map(|(relay, initiation)| Outgoing::new(relay, &initiation));
        let own = copy.or_else(|| self.aside_due(id, now)).or_else(|| self.direct_due(id, now));
        let own = own.or_else(|| self.keepalive_due(id, now));
        own.map(Due::Send).or_else(|| self.handshake_due(id, now))
    }

    /// The next probe to another place of a peer. Without a session there is none.
    fn aside_due(&mut self, id: PeerId, now: u64) -> Option<Outgoing> {
        let place = self.peer_mut(id)?.asides.pop()?;
        self.seal_to(id, &Probe::Sent(ASIDE).bytes(), place, now)
    }

    /// What is due of the way to a peer without its relay.
    fn direct_due(&mut self, id: PeerId, now: u64) -> Option<Outgoing> {
        let peer = self.peer_mut(id)?;
        let (endpoint, is_up) = (peer.endpoint?, peer.sessions.current.is_some());
        match peer.direct.as_mut()?.step((endpoint, peer.timers.silence), is_up, now)? {
            Step::Probe(to, number) => self.seal_to(id, &Probe::Sent(number).bytes(), to, now),
            Step::Keep(relay) => self.seal_to(id, &[], relay, now),
            Step::FallBack(relay) => {
                peer.endpoint = Some(relay);
                // Whatever is wrong, both ends and the relay learn where the other one is.
                peer.want_session_anew(now);
                self.keepalive(id, now)
            }
            Step::Move(relay) => {
                peer.endpoint = Some(relay);
                self.keepalive(id, now)
            }
        }
    }

    fn keepalive_due(&mut self, id: PeerId, now: u64) -> Option<Outgoing> {
        let peer = self.peer_mut(id)?;
        let persistent = comes(&mut peer.timers.persistent, now);
        if !comes(&mut peer.timers.keepalive, now) && !persistent {
            return None;
        }
        let keepalive = self.keepalive(id, now);
        if keepalive.is_none() && persistent {
            let peer = self.peer_mut(id)?;
            peer.timers.anything_sent(now);
            peer.want_session(now);
            // A router that forgets in seconds has to let the peer's initiation in, whenever that comes.
            let (endpoint, pending) = (peer.endpoint?, peer.pending.as_ref()?);
            return Some(Outgoing::new(endpoint, &*pending.message));
        }
        keepalive
    }

    fn handshake_due(&mut self, id: PeerId, now: u64) -> Option<Due> {
        let peer = self.peer_mut(id)?;
        let wanted = comes(&mut peer.timers.handshake, now);
        if let Some(pending) = &peer.pending {
            if pending.retry_at > now {
                return None;
            }
            if now.saturating_sub(pending.started) >= REKEY_ATTEMPT_TIME {
                let index = pending.index;
                peer.pending = None;
                peer.timers.rest(now);
                self.indexes.remove(&index);
                return Some(Due::GaveUp(id));
            }
        } else if !wanted || peer.endpoint.is_none() {
            return None;
        }
        Some(match self.initiate(id, now) {
            Ok(initiation) => Due::Send(initiation),
            Err(why) => Due::Failed(id, why),
        })
    }
}
