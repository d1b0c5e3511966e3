//! Punches: once two nodes expect each other, either learns where the other one may be, and when to send there.
//!
//! Their routers let in what comes from where their own node has sent. So both send at once: over a path of some length the
//! datagrams cross before either arrives. Where they do not, the second one's router may have taken what came for its own: a
//! router of Linux whose INPUT accepts it then gives the node's session another port, as long as datagrams come. So there
//! is a pause before the next attempt, in which one node sends first, and another before that in which the other one does. Where
//! one router alone is known to do so, its node is first in the first attempt. Of a router that counts its ports on, the other
//! node tries the next ones.

use std::net::SocketAddr;

use tunnel::PublicKey;

use super::probes::Latest;
use super::state::Directory;
use crate::effect::Now;
use crate::limits;
use crate::message::Body;
use crate::name::Name;
use crate::paths::Pair;
use crate::router::{Ports, Router, Strangers};

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
        if before.is_some() {
            presence.recall = Default::default();
        }
        let name = name.clone();
        self.order_all(&name);
        self.sound(&name, now);
        if before.is_none() && self.has_both() {
            self.remind(&name);
        }
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
        let waiting = (pair, pause);
        if self.awaits_sounding(&pair.0, waiting, now)
            || self.awaits_sounding(&pair.1, waiting, now)
        {
            return;
        }
        let routers = [&pair.0, &pair.1].map(|name| self.router(name));
        let mut latest = [None; 2];
        for (side, name) in [&pair.0, &pair.1].into_iter().enumerate() {
            // The other node guesses, whose own port has to be known.
            let is_of_use = !matches!(routers[1 - side].ports, Ports::Step(_) | Ports::Each);
            if matches!(routers[side].ports, Ports::Step(_)) && is_of_use {
                match self.latest(name, waiting, now) {
                    Latest::At(at) => latest[side] = Some(at),
                    Latest::Asked => return,
                    Latest::Unknown => {}
                }
            }
        }
        let Some(attempt) = self.paths.attempt(pair, pause, now.nanos) else {
            // The attempt under way tries a socket that a node had before: another one begins once it has ended.
            return if self.paths.is_fresh(pair) {
                self.wait_with(waiting)
            };
        };
        let second = second(routers, attempt);
        for (side, node, other) in [(0, &pair.0, &pair.1), (1, &pair.1, &pair.0)] {
            let Some(presence) = self.present.get(other) else { return };
            let seen = [latest[1 - side].or(presence.at), presence.sounding.displaced()];
            let candidates = places(seen, &presence.locals);
            let is_second = second == Some(side);
            let after = limits::PUNCH_LEAD + if is_second { limits::PUNCH_SECOND } else { 0 };
            let (name, routers) = (other.clone(), Some([routers[side], routers[1 - side]]));
            self.send(node, 0, Body::Punch { name, after, candidates, routers });
        }
    }

    /// Begins the attempts again of which a node was to hear since then, as its router had forgotten it.
    pub(super) fn punch_lost(&mut self, name: &Name, since: u64, now: Now) {
        for pair in self.paths.of(name) {
            if self.paths.lost(&pair, since) {
                self.punch(&pair, limits::PUNCH_PAUSE, now);
            }
        }
    }

    pub(super) fn router(&self, name: &Name) -> Router {
        self.present.get(name).map(|presence| presence.sounding.router).unwrap_or_default()
    }
}

/// The side that begins later in an attempt of two nodes, if they do not begin at once: a router that takes what comes too early
/// for its own is in no danger where its node has sent first.
fn second(routers: [Router; 2], attempt: u32) -> Option<usize> {
    let takes = routers.map(|router| router.strangers == Strangers::Taken);
    match (attempt % 3, takes) {
        (_, [true, false]) => Some(1),
        (_, [false, true]) => Some(0),
        (1, _) => Some(1),
        (2, _) => Some(0),
        _ => None,
    }
}

/// Where a node may be, IPv6 first: where the directory has seen it, and its own addresses.
fn places(seen: [Option<SocketAddr>; 2], locals: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut places: Vec<SocketAddr> = Vec::new();
    for place in seen.into_iter().flatten().chain(locals.iter().copied()) {
        if !places.contains(&place) && places.len() < limits::CANDIDATES {
            places.push(place);
        }
    }
    places.sort_by_key(SocketAddr::is_ipv4);
    places
}
