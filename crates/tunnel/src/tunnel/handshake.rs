//! Handshakes: our initiations and what answers them, initiations of others and our answers, cookies.
//!
//! An initiation is answered once: it has to be later than the peer's latest. It may be a replay all the same, as
//! nothing is remembered over a restart: so an answer goes where the initiation came from, and changes nothing else.
//! The peer's endpoint, that it was heard, and which handshakes we want only change when a datagram opens under the
//! session's keys. An initiator whose initiation came too late, because its clock was reset, learns the latest time and
//! continues from there: only the maker of that initiation can read this answer, and only the peer can have written it.
//! Initiations of both ends that cross are both answered; either session opens what was sealed with it, and both ends
//! send with the session that was confirmed last.

use std::net::SocketAddr;

use crate::admission::{Admission, Rate};
use crate::aead::{Offer, Suite};
use crate::entropy::draw;
use crate::job::Dropped;
use crate::limits::{REKEY_TIMEOUT, SOURCE_RATE};
use crate::message::{
    COOKIE, INITIATION, INITIATION_NOISE, INITIATION_PAYLOAD, MAC, RESPONSE, RESPONSE_NOISE,
    RESPONSE_PAYLOAD, Type, at, index,
};
use crate::noise::{self, Accepted, Ephemeral, Split, prologue};
use crate::peer::{Peer, PeerId, Pending};
use crate::session::{Keys, Session};
use crate::timestamp::Timestamp;
use crate::tunnel::{Outgoing, Received, Tunnel};

/// The byte of a response that stands for no suite: the initiation came too late.
const TOO_LATE: u8 = 0;

impl Tunnel {
    /// Begins a handshake, or begins it again.
    pub(super) fn initiate(&mut self, id: PeerId, now: u64) -> Result<Outgoing, Dropped> {
        let clock = self.started_unix.saturating_add(now.saturating_sub(self.started));
        let before = self.leave_pending(id, now);
        let (index, retry_at) = (self.draw_index(id)?, self.retry_at(now));
        let made = self.write_initiation(id, index, Timestamp::at(clock), now);
        let (noise, to, initiation) = made.inspect_err(|_| self.forget(Some(index)))?;
        let (started, hurried) = before.map_or((now, false), |(started, sent)| {
            (started, now.saturating_sub(sent) < REKEY_TIMEOUT)
        });
        if let Some(peer) = self.peer_mut(id) {
            let (responses, message) = (Rate::default(), Box::new(initiation));
            let sent = now;
            let pending =
                Pending { noise, message, index, started, sent, retry_at, hurried, responses };
            peer.pending = Some(pending);
            // By each relay: one may be away, and each learns where we are.
            let direct = peer.direct.as_ref().zip(peer.endpoint);
            let others = direct.map(|(direct, endpoint)| direct.other_relays(endpoint));
            let copies = others.into_iter().flatten().map(|relay| (relay, initiation));
            peer.copies = copies.collect();
        }
        Ok(Outgoing::new(to, &initiation))
    }

    /// Gives the initiation up that waits for an answer. Returns when the first of them was sent, and when it was.
    fn leave_pending(&mut self, id: PeerId, now: u64) -> Option<(u64, u64)> {
        let peer = self.peer_mut(id)?;
        peer.timers.initiation_sent(now);
        let pending = peer.pending.take()?;
        self.indexes.remove(&pending.index);
        Some((pending.started, pending.sent))
    }

    fn write_initiation(
        &mut self,
        id: PeerId,
        index: u32,
        clock: Timestamp,
        now: u64,
    ) -> Result<(noise::Initiated, SocketAddr, [u8; INITIATION]), Dropped> {
        let ephemeral = Ephemeral::new(draw(&mut *self.entropy)?);
        let (key, offer) = (self.key.clone(), self.offer);
        let peer = self.peer_mut(id).ok_or(Dropped::SessionGone(id))?;
        let to = peer.endpoint.ok_or(Dropped::NoEndpoint(id))?;
        let mut payload = [0; INITIATION_PAYLOAD];
        payload[..12].copy_from_slice(&peer.next_timestamp(clock).to_wire());
        payload[12] = offer.to_wire();
        let mut message = [0; INITIATION];
        message[..4].copy_from_slice(&Type::Initiation.first());
        message[4..8].copy_from_slice(&index.to_le_bytes());
        let noise = noise::initiate(
            (&key, &peer.key),
            &peer.preshared,
            &prologue(head(&message)),
            ephemeral,
            &payload,
            &mut message[INITIATION_NOISE..INITIATION - 2 * MAC],
        );
        let noise = noise.map_err(|_| Dropped::BadHandshake)?;
        peer.sign(&mut message, now);
        Ok((noise, to, message))
    }

    /// Whether the sender of a handshake message knows our public key.
    fn knows_us(&self, message: &[u8]) -> Result<(), Dropped> {
        self.mac1.verifies(message).then_some(()).ok_or(Dropped::BadMac)
    }

    /// Whether a handshake message is worked on; if its source has to show a cookie, that.
    fn admit(
        &mut self,
        message: &[u8],
        from: SocketAddr,
        now: u64,
    ) -> Result<Option<Outgoing>, Dropped> {
        self.cookies.refresh(&mut *self.entropy, now)?;
        let proven = self.cookies.shown(message, from);
        match self.sources.admit(from, proven, now) {
            Admission::Accept => Ok(None),
            Admission::Refuse => Err(Dropped::TooFast),
            Admission::AskCookie => {
                let cookie = self.cookies.give(message, from, &mut *self.entropy)?;
                Ok(Some(Outgoing::new(from, &cookie)))
            }
        }
    }

    /// An initiation came.
    pub(super) fn initiation(
        &mut self,
        message: &[u8; INITIATION],
        from: SocketAddr,
        now: u64,
    ) -> Result<Received, Dropped> {
        self.knows_us(message)?;
        if let Some(cookie) = self.admit(message, from, now)? {
            return Ok(Received::Reply(cookie));
        }
        let ephemeral = Ephemeral::new(draw(&mut *self.entropy)?);
        let noise = &message[INITIATION_NOISE..INITIATION - 2 * MAC];
        let mut payload = [0; INITIATION_PAYLOAD];
        let prologue = prologue(head(message));
        let accepted = noise::accept(&self.key, &prologue, ephemeral, noise, &mut payload)
            .map_err(|_| Dropped::BadHandshake)?;
        let id = *self.by_key.get(&accepted.remote).ok_or(Dropped::UnknownPeer)?;
        let peer = self.peer_mut(id).ok_or(Dropped::UnknownPeer)?;
        let timestamp = Timestamp::from_wire(at(&payload, 0).unwrap_or_default());
        let asked = (index::<4, _>(message), from);
        match peer.latest.filter(|latest| timestamp <= *latest) {
            Some(latest) => self.tell_too_late(id, accepted, asked, latest, now),
            None => self.answer(id, accepted, asked, (timestamp, payload[12]), now),
        }
    }

    /// Answers an initiation, which makes a session.
    fn answer(
        &mut self,
        id: PeerId,
        accepted: Accepted,
        (remote, from): (u32, SocketAddr),
        (timestamp, offer): (Timestamp, u8),
        now: u64,
    ) -> Result<Received, Dropped> {
        let chosen = self.offer.choose(Offer::from_wire(offer));
        let suite = chosen.map_err(|_| Dropped::NoSuite(id))?;
        let local = self.draw_index(id)?;
        let mut payload = [0; RESPONSE_PAYLOAD];
        payload[0] = suite as u8;
        let (split, reply) = self
            .respond(id, accepted, (local, remote), (from, &mut payload), now)
            .inspect_err(|_| self.forget(Some(local)))?;
        let peer = self.peer_mut(id).ok_or(Dropped::UnknownPeer)?;
        peer.latest = Some(timestamp);
        let keys = Keys::new(&split, suite, false);
        let gone = peer.sessions.answered(Session::new((local, remote), keys, false, now));
        self.forget(gone);
        Ok(Received::Answered { peer: id, reply })
    }

    /// Tells the maker of an initiation that we have answered a later one, and which.
    fn tell_too_late(
        &mut self,
        id: PeerId,
        accepted: Accepted,
        (remote, from): (u32, SocketAddr),
        latest: Timestamp,
        now: u64,
    ) -> Result<Received, Dropped> {
        let mut payload = [0; RESPONSE_PAYLOAD];
        payload[0] = TOO_LATE;
        payload[8..20].copy_from_slice(&latest.to_wire());
        let (_, reply) = self.respond(id, accepted, (0, remote), (from, &mut payload), now)?;
        Ok(Received::Reply(reply))
    }

    fn respond(
        &mut self,
        id: PeerId,
        accepted: Accepted,
        (local, remote): (u32, u32),
        (to, payload): (SocketAddr, &mut [u8; RESPONSE_PAYLOAD]),
        now: u64,
    ) -> Result<(Split, Outgoing), Dropped> {
        let peer = self.peer_mut(id).ok_or(Dropped::UnknownPeer)?;
        payload[4..8].copy_from_slice(&local.to_le_bytes());
        let mut message = [0; RESPONSE];
        message[..4].copy_from_slice(&Type::Response.first());
        message[4..8].copy_from_slice(&local.to_le_bytes());
        message[8..12].copy_from_slice(&remote.to_le_bytes());
        let noise = &mut message[RESPONSE_NOISE..RESPONSE - 2 * MAC];
        let split = accepted.answer(&peer.preshared, payload, noise);
        let split = split.map_err(|_| Dropped::BadHandshake)?;
        peer.sign(&mut message, now);
        Ok((split, Outgoing::new(to, &message)))
    }

    /// A response came.
    pub(super) fn response(
        &mut self,
        message: &[u8; RESPONSE],
        from: SocketAddr,
        now: u64,
    ) -> Result<Received, Dropped> {
        let local = index::<8, _>(message);
        let id = *self.indexes.get(&local).ok_or(Dropped::UnknownIndex)?;
        self.knows_us(message)?;
        let peer = self.peer_mut(id).ok_or(Dropped::UnknownIndex)?;
        let pending = peer.pending.as_mut().filter(|pending| pending.index == local);
        let pending = pending.ok_or(Dropped::UnknownIndex)?;
        // Who names it has read our initiation: no flood of others' stands in its way.
        if !pending.responses.take(SOURCE_RATE, now)
            && let Some(cookie) = self.admit(message, from, now)?
        {
            return Ok(Received::Reply(cookie));
        }
        let offer = self.offer;
        let peer = self.peer_mut(id).ok_or(Dropped::UnknownIndex)?;
        let pending = peer.pending.as_mut().ok_or(Dropped::UnknownIndex)?;
        let mut payload = [0; RESPONSE_PAYLOAD];
        let noise = &message[RESPONSE_NOISE..RESPONSE - 2 * MAC];
        let split = pending.noise.finish(noise, &mut payload).map_err(|_| Dropped::BadHandshake)?;
        peer.heard_at(from, now);
        if payload[0] == TOO_LATE {
            return Ok(peer.go_on_from(
                Timestamp::from_wire(at(&payload, 8).unwrap_or_default()),
                id,
                now,
            ));
        }
        let sent = peer.pending.take().map(|pending| pending.sent);
        peer.round_trip = sent.map(|sent| (from, now.saturating_sub(sent)));
        let suite = Suite::from_wire(payload[0]).filter(|suite| offer.has(*suite));
        let Some(suite) = suite else {
            self.forget(Some(local));
            return Err(Dropped::NoSuite(id));
        };
        // That of the head, by which a cookie would find its way, is not authenticated.
        let remote = u32::from_le_bytes(at(&payload, 4).unwrap_or_default());
        let keys = Keys::new(&split, suite, true);
        let gone = peer.sessions.established(Session::new((local, remote), keys, true, now), now);
        self.forget(gone);
        // The peer sends with this session once it has seen that we have its keys.
        let reply = self.keepalive(id, now).ok_or(Dropped::SessionGone(id))?;
        Ok(Received::Established { peer: id, reply })
    }

    /// A cookie came.
    pub(super) fn cookie(&mut self, message: &[u8; COOKIE], now: u64) -> Result<Received, Dropped> {
        let local = index::<4, _>(message);
        let id = *self.indexes.get(&local).ok_or(Dropped::UnknownIndex)?;
        let peer = self.peer_mut(id).ok_or(Dropped::UnknownIndex)?;
        let pending = peer.pending.as_mut().filter(|pending| pending.index == local);
        if !peer.jar.take(message, pending.is_some(), now) {
            return Err(Dropped::BadCookie(id));
        }
        if let Some(pending) = pending {
            pending.hurry(now);
        }
        Ok(Received::Told(id))
    }

    /// The session of that index has no place any more.
    pub(super) fn forget(&mut self, index: Option<u32>) {
        if let Some(index) = index {
            self.indexes.remove(&index);
        }
    }
}

impl Peer {
    /// Writes both MACs into a handshake message to this peer.
    fn sign(&mut self, message: &mut [u8], now: u64) {
        let mac1 = self.mac1.sign(message);
        self.jar.sign(message, mac1, now);
    }

    /// The peer has answered a later initiation than ours: the next one is later still.
    fn go_on_from(&mut self, seen: Timestamp, id: PeerId, now: u64) -> Received {
        self.floor = self.floor.max(Some(seen));
        if let Some(pending) = &mut self.pending {
            pending.hurry(now);
        }
        Received::Told(id)
    }
}

/// The first eight bytes of an initiation.
fn head(message: &[u8; INITIATION]) -> [u8; 8] {
    at(message, 0).unwrap_or_default()
}
