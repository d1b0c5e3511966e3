//! Probes to other places of a peer than its own: so a peer with several ports sees from where a router lets us send to each.

use std::net::SocketAddr;

use crate::direct::ASIDE;
use crate::inner::{PROBE, Probe};
use crate::job::{HEADROOM, TAILROOM};
use crate::limits::ASIDES;
use crate::message::Message;
use crate::peer::PeerId;
use crate::tunnel::{Received, Tunnel};

/// Bytes of a probe, sealed.
const SEALED: usize = HEADROOM + PROBE + TAILROOM;

impl Tunnel {
    /// Sends a probe to each of these other places of a peer, in this order, by the session that there is; returns whether there
    /// is such a peer. Of many places the first [`ASIDES`] count.
    pub fn probe_aside(&mut self, id: PeerId, places: &[SocketAddr]) -> bool {
        let peer = self.peer_mut(id);
        let asides = places.iter().take(ASIDES).rev().copied().collect();
        peer.map(|peer| peer.asides = asides).is_some()
    }

    /// The peer that probed us aside, by a datagram that came to another port than the tunnel's. Such a probe is genuine and comes
    /// once; it moves no endpoint, and nothing answers it. What else it may be is left as it is, and untouched.
    pub fn probed_aside(&mut self, datagram: &[u8], from: SocketAddr, now: u64) -> Option<PeerId> {
        let Ok(Message::Data { receiver, .. }) = Message::parse(datagram) else { return None };
        if datagram.len() > SEALED || !self.indexes.contains_key(&receiver) {
            return None;
        }
        let mut copy = datagram.to_vec();
        let Received::Opening(opening) = self.receive(&copy, from, now) else { return None };
        let opened = opening.open(&mut copy).ok()?;
        let (opening, plain) = (opened.opening, opened.plain);
        if Probe::parse(copy.get(plain)?) != Some(Probe::Sent(ASIDE)) {
            return None;
        }
        let peer = self.peer_mut(opening.peer)?;
        let session = peer.sessions.find(opening.session)?;
        if !session.window.accept(opening.counter) {
            return None;
        }
        let (missing, _) = session.came(opening.counter);
        peer.lost = peer.lost.saturating_add_signed(missing);
        Some(opening.peer)
    }
}
