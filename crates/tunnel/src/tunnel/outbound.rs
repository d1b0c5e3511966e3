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
    /// The packet is to be sealed and sent.
    Seal(Sealing),
    /// The peer has no session yet. Stage the packet again once one is established, or drop it if the peer is given up;
    /// [`Tunnel::due`] has the handshake, at once.
    Wait(PeerId),
    /// The packet is dropped.
    Dropped(Dropped),
}

/// Why pieces have no places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstaged {
    /// The peer has no session yet: see [`Staged::Wait`].
    Wait(PeerId),
    /// The pieces are dropped.
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

    /// Begins a handshake with a peer that there is no session with; [`Tunnel::due`] has it, at once. Returns whether there
    /// is such a peer.
    pub fn call(&mut self, id: PeerId, now: u64) -> bool {
        let Some(peer) = self.peer_mut(id) else { return false };
        if peer.sessions.current.is_none() {
            peer.want_session(now);
        }
        true
    }

    /// The peer that has an address.
    #[must_use]
    pub fn peer_of(&self, destination: IpAddr) -> Option<PeerId> {
        self.allowed.find(destination)
    }

    /// Gives the pieces of one packet for a peer, which are `count` and have `bytes` together, their places in a row.
    ///
    /// # Errors
    /// The pieces wait or are dropped, as by [`Tunnel::stage`].
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
        let to = self.peer_mut(id)?.endpoint?;
        self.seal_to(id, &[], to, now)
    }

    /// A short text of our own for a peer, sealed, that goes there.
    pub(super) fn seal_to(
        &mut self,
        id: PeerId,
        text: &[u8],
        to: SocketAddr,
        now: u64,
    ) -> Option<Outgoing> {
        let mtu = self.mtu;
        let peer = self.peer_mut(id)?;
        let sealing = peer.place(id, mtu, now)?;
        if sealing.to() == to {
            peer.timers.anything_sent(now);
        }
        let end = HEADROOM + text.len();
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
    /// Takes the next place in the current session, if there is one. A session that is due starts a handshake.
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

    /// Takes the next `count` places in a row in the current session.
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

    /// Wants another session, as soon as one may be.
    pub(super) fn want_session_anew(&mut self, now: u64) {
        match &mut self.pending {
            Some(pending) => pending.hurry(now),
            None => self.timers.want_handshake(now),
        }
    }

    /// Wants a session, as there is something to send and none to send it with.
    pub(super) fn want_session(&mut self, now: u64) {
        // That we answered an initiation holds back nothing: it may be a replay.
        if self.pending.is_none() {
            self.timers.want_handshake(now);
        }
    }
}
