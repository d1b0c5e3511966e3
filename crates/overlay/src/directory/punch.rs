//! Punches: once two nodes expect each other, either learns where the other one may be, and when to send there.
//!
//! Their routers let in what comes from where their own node has sent. So both send at once: over a path of some length the
//! datagrams cross before either arrives. Where they do not, the second one's router may have taken what came for its own: a
//! router of Linux whose INPUT accepts it then gives the node's session another port, as long as datagrams come. So there
//! is a pause before the next attempt, in which one node sends first, and another before that in which the other one does.

use std::net::SocketAddr;

use tunnel::PublicKey;

use super::state::Directory;
use crate::effect::Now;
use crate::limits;
use crate::message::Body;
use crate::name::Name;
use crate::paths::Pair;

impl Directory {
    /// The latest message of this key came from there, outside the tunnel. A node that has moved is reached elsewhere.
    pub fn heard(&mut self, from: &PublicKey, at: SocketAddr, now: Now) {
        let Some(name) = self.by_key.get(from) else { return };
        let Some(presence) = self.present.get_mut(name) else { return };
        let at = SocketAddr::new(at.ip().to_canonical(), at.port());
        let (before, since) = (presence.at, presence.at_since);
        let is_steady = now.nanos >= since.saturating_add(limits::REGISTER);
        if before == Some(at) || (before.is_some() && !is_steady) {
            return;
        }
        (presence.at, presence.at_since) = (Some(at), now.nanos);
        let name = name.clone();
        self.order_all(&name);
        if before.is_some() {
            for pair in self.paths.of(&name) {
                self.punch(&pair, limits::REGISTER, now);
            }
        }
    }

    /// Begins an attempt of two nodes to reach each other, if both expect it and the last one is that long ago.
    pub(super) fn punch(&mut self, pair: &Pair, pause: u64, now: Now) {
        let expects = |node: &Name, other: &Name| {
            let presence = self.present.get(node).filter(|it| it.until > now.nanos);
            presence.is_some_and(|it| !it.unknown.contains(other) && it.at.is_some())
        };
        if !expects(&pair.0, &pair.1) || !expects(&pair.1, &pair.0) {
            return;
        }
        let Some(attempt) = self.paths.attempt(pair, pause, now.nanos) else { return };
        for (node, other, is_second) in
            [(&pair.0, &pair.1, attempt % 3 == 2), (&pair.1, &pair.0, attempt % 3 == 1)]
        {
            let Some(presence) = self.present.get(other) else { return };
            let mut candidates: Vec<SocketAddr> = presence.at.into_iter().collect();
            candidates.extend(presence.locals.iter().filter(|it| presence.at != Some(**it)));
            let after = limits::PUNCH_LEAD + if is_second { limits::PUNCH_SECOND } else { 0 };
            let name = other.clone();
            self.send(node, 0, Body::Punch { name, after, candidates });
        }
    }
}
