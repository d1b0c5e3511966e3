//! Inbound, stage by stage: a datagram's session, or what a handshake message comes to (sequential);
//! [`Opening::open`] by any worker (parallel); replays, the peer's addresses and place (sequential, in the order of
//! staging).

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use crate::direct::Direct;
use crate::inner::{Inner, Probe};
use crate::job::{Dropped, Opened, Opening};
use crate::limits::{LOOK_GAP, REKEY_ON_RECEIVE_TIME};
use crate::message::Message;
use crate::peer::{Peer, PeerId, count};
use crate::tunnel::{Outgoing, Tunnel};

/// What is to be done with a datagram.
#[must_use]
pub enum Received {
    /// The datagram is to be opened, and then released.
    Opening(Opening),
    /// The sender gets an answer: it has to show a cookie, or its initiation came too late.
    Reply(Outgoing),
    /// The peer made a session with us, and this is to be sent for it to have it, too.
    Answered {
        /// Whose initiation it was.
        peer: PeerId,
        /// The response.
        reply: Outgoing,
    },
    /// A session to send with is there: once `reply` is sent, stage what waits.
    Established {
        /// Whose response it was.
        peer: PeerId,
        /// A keepalive, which shows the peer that the session is there.
        reply: Outgoing,
    },
    /// The peer told us something, and [`Tunnel::due`] may have the next initiation.
    Told(PeerId),
    /// The datagram is dropped.
    Dropped(Dropped),
}

/// A genuine datagram that was not seen before.
#[derive(Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Whose it is.
    pub peer: PeerId,
    /// Whether it is the first datagram of a session that we answered: stage what waits.
    pub established: bool,
    /// What is in it, or why that is dropped.
    pub content: Result<Content, Dropped>,
}

/// What a genuine datagram holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Keepalive,
    /// An inner packet, which lies there in the datagram.
    Packet(Range<usize>),
    /// A probe of the path, and the answer to send.
    Probe(Outgoing),
    /// A probe of ours arrived there, by its number.
    Probed(u32),
}

impl Tunnel {
    /// Takes a datagram that came from `from`.
    pub fn receive(&mut self, datagram: &[u8], from: SocketAddr, now: u64) -> Received {
        let received = match Message::parse(datagram) {
            Ok(Message::Data { receiver, counter }) => self.data(receiver, counter, from, now),
            Ok(Message::Initiation(message)) => self.initiation(message, from, now),
            Ok(Message::Response(message)) => self.response(message, from, now),
            Ok(Message::Cookie(message)) => self.cookie(message, now),
            Err(malformed) => Err(Dropped::Malformed(malformed)),
        };
        received.unwrap_or_else(Received::Dropped)
    }

    fn data(
        &mut self,
        index: u32,
        counter: u64,
        from: SocketAddr,
        now: u64,
    ) -> Result<Received, Dropped> {
        let Some(peer) = self.indexes.get(&index).copied() else {
            self.speak_up(from, now);
            return Err(Dropped::UnknownIndex);
        };
        let known = self.peer_mut(peer).and_then(|peer| peer.sessions.find(index));
        let session = known.ok_or(Dropped::UnknownIndex)?;
        if !session.allows(counter, now) {
            return Err(Dropped::Expired(peer));
        }
        if !session.window.is_new(counter) {
            return Err(Dropped::Replayed(peer));
        }
        let keys = session.keys.clone();
        Ok(Received::Opening(Opening { keys, session: index, counter, peer, from }))
    }

    /// Takes a datagram from `from` that names no session of ours. If a peer without a session is configured there, we
    /// have restarted, and the peer still uses an old session: a handshake tells it at once, and proves who it is.
    /// Anybody can make us begin one with such a source, but no more often than a packet for that peer does.
    fn speak_up(&mut self, from: SocketAddr, now: u64) {
        if now < self.next_look {
            return;
        }
        self.next_look = now.saturating_add(LOOK_GAP);
        let peers = self.places.iter_mut().filter_map(|place| place.peer.as_deref_mut());
        let mut lost =
            peers.filter(|peer| peer.endpoint == Some(from) && peer.sessions.current.is_none());
        if let Some(peer) = lost.next() {
            peer.want_session(now);
        }
    }

    /// Takes what was opened, in the order of staging. `datagram` is what was opened.
    ///
    /// # Errors
    /// If it is a replay, or its session has been erased.
    pub fn release(
        &mut self,
        opened: Opened,
        datagram: &[u8],
        now: u64,
    ) -> Result<Delivered, Dropped> {
        let Opened { opening, plain } = opened;
        let id = opening.peer;
        let peer = self.peer_mut(id).ok_or(Dropped::SessionGone(id))?;
        let session =
            peer.sessions.find(opening.session).filter(|it| Arc::ptr_eq(&it.keys, &opening.keys));
        let session = session.ok_or(Dropped::SessionGone(id))?;
        if !session.window.accept(opening.counter) {
            return Err(Dropped::Replayed(id));
        }
        let (missing, behind) = session.came(opening.counter);
        peer.lost = peer.lost.saturating_add_signed(missing);
        peer.reorder_depth = peer.reorder_depth.max(behind);
        let (established, gone) = peer.sessions.confirm(opening.session, now);
        peer.heard_at(opening.from, now);
        peer.rekey_on_receive(now);
        self.forget(gone);
        let content = self.content((id, opening.from), plain, datagram, now);
        Ok(Delivered { peer: id, established, content })
    }

    /// Returns what a plain text is, if the peer may send it.
    fn content(
        &mut self,
        (id, from): (PeerId, SocketAddr),
        plain: Range<usize>,
        datagram: &[u8],
        now: u64,
    ) -> Result<Content, Dropped> {
        let (start, text) = (plain.start, datagram.get(plain).ok_or(Dropped::NotIp)?);
        if text.is_empty() {
            return Ok(Content::Keepalive);
        }
        if let Some(probe) = Probe::parse(text) {
            return self.probed((id, from), probe, now);
        }
        let peer = self.peer_mut(id).ok_or(Dropped::SessionGone(id))?;
        peer.timers.data_received(now);
        let inner = Inner::parse(text).ok_or(Dropped::NotIp)?;
        if self.allowed.find(inner.source) != Some(id) {
            return Err(Dropped::SourceNotAllowed(id, inner.source));
        }
        let peer = self.peer_mut(id).ok_or(Dropped::SessionGone(id))?;
        count(&mut peer.received, inner.len);
        Ok(Content::Packet(start..start + inner.len))
    }

    fn probed(
        &mut self,
        (id, from): (PeerId, SocketAddr),
        probe: Probe,
        now: u64,
    ) -> Result<Content, Dropped> {
        match probe {
            Probe::Came(number) if Direct::is_its(number) => {
                let peer = self.peer_mut(id).ok_or(Dropped::SessionGone(id))?;
                if let Some((direct, endpoint)) = peer.direct.as_mut().zip(peer.endpoint) {
                    let round_trip = direct.round_trip(number, (from, endpoint), now);
                    peer.round_trip = round_trip.map(|it| (from, it)).or(peer.round_trip);
                    if let Some(moved) = direct.answered(number, (from, endpoint), now) {
                        peer.endpoint = Some(moved);
                    }
                }
                Ok(Content::Keepalive)
            }
            Probe::Came(number) => Ok(Content::Probed(number)),
            Probe::Sent(number) => {
                // It is asked whether one arrives from there, and whether the answer does.
                let answer = self.seal_to(id, &Probe::Came(number).bytes(), from, now);
                answer.map(Content::Probe).ok_or(Dropped::SessionGone(id))
            }
        }
    }
}

impl Peer {
    /// Begins a handshake if needed: an end that only receives would notice the end of its session too late.
    fn rekey_on_receive(&mut self, now: u64) {
        let is_late = self.sessions.current.as_ref().is_some_and(|session| {
            session.initiator && now.saturating_sub(session.born) >= REKEY_ON_RECEIVE_TIME
        });
        if is_late {
            self.timers.want_handshake(now);
        }
    }
}
