//! Outbound, stage by stage: an inner packet's peer, by its destination (sequential); its place in a session
//! (sequential); [`Sealing::seal`] by any worker (parallel). The caller sends in the order of staging.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use crate::entropy::draw;
use crate::inner::{Inner, PROBE, Probe};
use crate::job::{Dropped, HEADROOM, Sealing, SealingRun, TAILROOM};
use crate::limits::{REKEY_JITTER, REKEY_TIMEOUT};
use crate::peer::{Peer, PeerId, count};
use crate::tunnel::{Outgoing, Tunnel};

/// What is to be done with an inner packet.
#[must_use]
pub enum Staged {
    /// It is to be sealed and sent.
    Seal(Sealing),
    /// Its peer has no session yet. Stage it again once one is established, or drop it if the peer is given up;
    /// [`Tunnel::due`] has the handshake, at once.
    Wait(PeerId),
    /// It is dropped.
    Dropped(Dropped),
}

/// Why pieces have no places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstaged {
    /// As [`Staged::Wait`].
    Wait(PeerId),
    /// They are dropped.
    Dropped(Dropped),
}

impl Tunnel {
    /// Gives an inner packet its place. `packet` may be as much of it as has its header, if `len` says how long it
    /// is.
    pub fn stage(&mut self, packet: &[u8], now: u64) -> Staged {
        let Some(inner) = Inner::parse(packet) else { return Staged::Dropped(Dropped::NotIp) };
        match self.allowed.find(inner.destination) {
            Some(id) => self.stage_for(id, inner.len, now),
            None => Staged::Dropped(Dropped::NoPeer(inner.destination)),
        }
    }

    /// The peer that has an address.
    #[must_use]
    pub fn peer_of(&self, destination: IpAddr) -> Option<PeerId> {
        self.allowed.find(destination)
    }

    /// Gives the pieces of one packet for a peer, which are `count` and have `bytes` together, their places in a row.
    ///
    /// # Errors
    /// They wait or are dropped, as by [`Tunnel::stage`].
    pub fn stage_run(
        &mut self,
        id: PeerId,
        (count, bytes): (usize, usize),
        now: u64,
    ) -> Result<SealingRun, Unstaged> {
        let mtu = self.mtu;
        let Some(peer) = self.peer_mut(id).filter(|peer| peer.endpoint.is_some()) else {
            return Err(Unstaged::Dropped(Dropped::NoEndpoint(id)));
        };
        let Some(run) = peer.places(id, count as u64, mtu, now) else {
            peer.want_session(now);
            return Err(Unstaged::Wait(id));
        };
        peer.sent =
            (peer.sent.0.wrapping_add(count as u64), peer.sent.1.wrapping_add(bytes as u64));
        peer.timers.data_sent(now);
        Ok(run)
    }

    fn stage_for(&mut self, id: PeerId, len: usize, now: u64) -> Staged {
        let mtu = self.mtu;
        let Some(peer) = self.peer_mut(id).filter(|peer| peer.endpoint.is_some()) else {
            return Staged::Dropped(Dropped::NoEndpoint(id));
        };
        match peer.place(id, mtu, now) {
            Some(sealing) => {
                count(&mut peer.sent, len);
                peer.timers.data_sent(now);
                Staged::Seal(sealing)
            }
            None => {
                peer.want_session(now);
                Staged::Wait(id)
            }
        }
    }

    /// Seals a probe of the path into `buffer`, whose number the answer names: a datagram that is as long as one
    /// with an inner packet of `len` bytes, without padding. Returns where it lies and where it goes; nothing if
    /// there is no session or no room.
    pub fn probe(
        &mut self,
        id: PeerId,
        number: u32,
        (buffer, len): (&mut [u8], usize),
        now: u64,
    ) -> Option<(Range<usize>, SocketAddr)> {
        let text = HEADROOM..HEADROOM.checked_add(len)?;
        let head = Probe::Sent(number).bytes();
        buffer.get_mut(text.clone())?.fill(0);
        buffer.get_mut(text.start..text.end)?.get_mut(..PROBE)?.copy_from_slice(&head);
        let peer = self.peer_mut(id)?;
        let sealing = peer.place(id, len, now)?;
        peer.timers.anything_sent(now);
        let to = sealing.to();
        Some((sealing.seal(buffer, text).ok()?, to))
    }

    /// A keepalive, if there is a session to send one by.
    pub(super) fn keepalive(&mut self, id: PeerId, now: u64) -> Option<Outgoing> {
        self.seal_own(id, &[], now)
    }

    /// A short text of our own, sealed.
    pub(super) fn seal_own(&mut self, id: PeerId, text: &[u8], now: u64) -> Option<Outgoing> {
        let mtu = self.mtu;
        let peer = self.peer_mut(id)?;
        let sealing = peer.place(id, mtu, now)?;
        peer.timers.anything_sent(now);
        let (to, end) = (sealing.to(), HEADROOM + text.len());
        let mut bytes = [0; HEADROOM + PROBE + TAILROOM];
        bytes.get_mut(HEADROOM..end)?.copy_from_slice(text);
        let sealed = sealing.seal(&mut bytes, HEADROOM..end).ok()?;
        Some(Outgoing::new(to, &bytes[sealed]))
    }

    /// When the next initiation is sent if nobody answers this one.
    pub(super) fn retry_at(&mut self, now: u64) -> u64 {
        // Without randomness there is no jitter, and no handshake either.
        let drawn = u64::from_le_bytes(draw(&mut *self.entropy).unwrap_or_default());
        now.saturating_add(REKEY_TIMEOUT + drawn % REKEY_JITTER)
    }
}

impl Peer {
    /// The next place in the session to send by, if there is one. A session that is due has a handshake begin.
    fn place(&mut self, id: PeerId, mtu: usize, now: u64) -> Option<Sealing> {
        let to = self.endpoint?;
        let session = self.sessions.current.as_mut()?;
        let counter = session.take_counter(now)?;
        if session.is_due(now) {
            self.timers.want_handshake(now);
        }
        let keys = session.keys.clone();
        Some(Sealing { keys, receiver: session.remote, counter, mtu, peer: id, to })
    }

    /// The next places in the session to send by, so many in a row.
    fn places(&mut self, id: PeerId, count: u64, mtu: usize, now: u64) -> Option<SealingRun> {
        let to = self.endpoint?;
        let session = self.sessions.current.as_mut()?;
        let counter = session.take_counters(count, now)?;
        if session.is_due(now) {
            self.timers.want_handshake(now);
        }
        let keys = session.keys.clone();
        let receiver = session.remote;
        Some(SealingRun { keys, receiver, counter, left: count, mtu, peer: id, to })
    }

    /// There is something to send and no session to send it by.
    pub(super) fn want_session(&mut self, now: u64) {
        // Whoever made the one that we answered shows at once that it has its keys.
        let answered = self.sessions.next.as_ref();
        let is_coming = answered.is_some_and(|it| now.saturating_sub(it.born) < REKEY_TIMEOUT);
        if !is_coming && self.pending.is_none() {
            self.timers.want_handshake(now);
        }
    }
}
