//! [`Outpost`]: a relay on a host of its own, which carries out what the directory orders.
//!
//! Contract: no sockets and no clock. What was carried out is said until the directory knows it. While the directory is not
//! there, all paths stay as they are. After a restart of the directory, paths that it does not name end once it has named all of
//! its own: so nothing that is in use is interrupted. It has no key of traffic, as [`Relay`].

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tunnel::{Entropy, NoEntropy, PublicKey};

use crate::forwarding::{Forwarding, Sources};
use crate::limits;
use crate::message::{Body, Message};
use crate::orders::{End, Join, Relaying, Series};
use crate::paths::Pair;
use crate::queue::Followed;
use crate::relay::{PathCounts, Relay};

/// A relay, and what it was ordered.
#[derive(Debug)]
pub struct Outpost {
    relay: Relay,
    ports: RangeInclusive<u16>,
    started: u64,
    /// Words that it has said.
    said: u64,
    say_at: u64,
    heard: u64,
    followed: Followed,
    /// The slots of paths that this series has named, until it has named all.
    named: Option<HashSet<u32>>,
    places: HashMap<PublicKey, Place>,
    /// Where nodes of paths sent from before this start.
    before: HashMap<Pair, Sources>,
    parted: Vec<Pair>,
}

/// Where a node's session with the directory comes from, and how many paths it has.
#[derive(Debug, Default)]
struct Place {
    at: Option<SocketAddr>,
    paths: usize,
}

impl Outpost {
    /// A relay with these ports, and with the sources that the one before it had.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn new(
        ports: RangeInclusive<u16>,
        before: Vec<(Pair, Sources)>,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, NoEntropy> {
        let mut started = [0; 8];
        entropy.fill(&mut started)?;
        Ok(Self {
            relay: Relay::default(),
            ports,
            started: u64::from_le_bytes(started),
            said: 0,
            say_at: 0,
            heard: 0,
            followed: Followed::default(),
            named: Some(HashSet::new()),
            places: HashMap::new(),
            before: before.into_iter().collect(),
            parted: Vec::new(),
        })
    }

    /// What is to be said to the directory, if it is time.
    pub fn take(&mut self, now: u64) -> Option<Vec<u8>> {
        if now < self.say_at {
            return None;
        }
        self.say_at = now.saturating_add(limits::SERVER_SAYS);
        self.said += 1;
        let relaying = Relaying {
            started: self.started,
            series: self.followed.series,
            done: self.followed.done,
            ports: (*self.ports.start(), *self.ports.end()),
            counts: self.relay.counts(),
        };
        Some(Message { transaction: self.said, body: Body::Relays(relaying) }.to_bytes())
    }

    /// Whether the directory has said nothing for so long that the session with it may be worth nothing; then not again for a
    /// while.
    pub fn is_deserted(&mut self, now: u64) -> bool {
        let is_silent = now >= self.heard.saturating_add(limits::SERVER_PATIENCE);
        if is_silent {
            (self.heard, self.say_at) = (now, now);
        }
        is_silent
    }

    /// Takes a message of the directory.
    pub fn receive(&mut self, bytes: &[u8], now: u64) {
        let Ok(Message { transaction, body }) = Message::parse(bytes) else { return };
        self.heard = now;
        match body {
            Body::Relayed { series, whole } => {
                self.follow(series);
                if series == self.followed.series && self.followed.done >= whole {
                    self.complete();
                }
            }
            Body::Join(join) => {
                self.carry_out((join.series, transaction), now, |relay| relay.join(&join));
            }
            Body::Part { series, pair } => {
                self.carry_out((series, transaction), now, |relay| relay.part(&pair));
            }
            _ => {}
        }
    }

    /// Follows orders for this start; others name all paths again.
    fn follow(&mut self, series: Series) {
        if self.followed.follow(series, self.started) {
            self.named = Some(HashSet::new());
        }
    }

    /// Carries an order of this number out if it is the next one. Each is acknowledged, also a second time.
    fn carry_out(
        &mut self,
        (series, number): (Series, u64),
        now: u64,
        order: impl FnOnce(&mut Self),
    ) {
        self.follow(series);
        if series != self.followed.series {
            return;
        }
        self.say_at = now;
        if self.followed.is_next(series, number) {
            order(self);
        }
    }

    fn join(&mut self, join: &Join) {
        let pair = join.pair();
        let keys = join.ends.each_ref().map(|end| end.key);
        if self.relay.keys(&pair) != Some(keys) {
            self.leave(&pair);
            keys.iter().for_each(|key| self.places.entry(*key).or_default().paths += 1);
        }
        for End { key, at, .. } in &join.ends {
            if let (Some(place), Some(at)) = (self.places.get_mut(key), at) {
                place.at = Some(*at);
            }
        }
        self.relay.join(&pair, keys, join.port);
        if let Some(bound) = self.before.remove(&pair) {
            // Another node of that name would send from elsewhere.
            let is_its = |at: Option<SocketAddr>, source: SocketAddr| {
                at.is_none_or(|at| at.ip().to_canonical() == source.ip().to_canonical())
            };
            let kept = |side: usize| bound[side].filter(|it| is_its(join.ends[side].at, *it));
            self.relay.restore(&pair, [kept(0), kept(1)]);
        }
        if let (Some(named), Some(slot)) = (&mut self.named, self.relay.slot(&pair)) {
            named.insert(slot);
        }
    }

    fn part(&mut self, pair: &Pair) {
        self.leave(pair);
        self.before.remove(pair);
        self.parted.push(pair.clone());
    }

    fn leave(&mut self, pair: &Pair) {
        let keys = self.relay.keys(pair);
        if let (Some(named), Some(slot)) = (&mut self.named, self.relay.slot(pair)) {
            named.remove(&slot);
        }
        self.relay.part(pair);
        for key in keys.into_iter().flatten() {
            let Some(place) = self.places.get_mut(&key) else { continue };
            place.paths -= 1;
            if place.paths == 0 {
                self.places.remove(&key);
            }
        }
    }

    /// All paths have been named: the others end.
    fn complete(&mut self) {
        let Some(named) = self.named.take() else { return };
        let is_named =
            |pair: &Pair| self.relay.slot(pair).is_some_and(|slot| named.contains(&slot));
        let all = self.pairs().chain(self.before.keys().cloned());
        let gone: Vec<Pair> = all.filter(|pair| !is_named(pair)).collect();
        gone.iter().for_each(|pair| self.part(pair));
        self.before.shrink_to_fit();
    }

    /// What workers forward by.
    #[must_use]
    pub fn forwarding(&self) -> Arc<Forwarding> {
        self.relay.forwarding()
    }

    /// Where a datagram goes that came to a port.
    pub fn forward(
        &mut self,
        port: u16,
        from: SocketAddr,
        datagram: &[u8],
        now: u64,
    ) -> Option<SocketAddr> {
        let places = &self.places;
        let at = |key: &PublicKey| places.get(key).and_then(|place| place.at);
        self.relay.forward(port, from, datagram, now, at)
    }

    /// Looks for the path of an unknown source, which may be looked for.
    pub fn look_for(&mut self, port: u16, from: SocketAddr, datagram: &[u8]) {
        let places = &self.places;
        let at = |key: &PublicKey| places.get(key).and_then(|place| place.at);
        self.relay.look_for(port, from, datagram, at);
    }

    /// The paths whose sources have changed since the last call, and the sources.
    pub fn take_changed(&mut self) -> Vec<(Pair, Sources)> {
        self.relay.take_changed()
    }

    /// The paths that have ended since the last call.
    pub fn take_parted(&mut self) -> Vec<Pair> {
        std::mem::take(&mut self.parted)
    }

    /// The paths that there are, in no order, and what they have forwarded.
    pub fn paths(&self) -> impl Iterator<Item = PathCounts> {
        self.relay.paths()
    }

    /// The pairs of nodes that have a path, in no order.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.paths().map(|path| path.pair)
    }
}

#[cfg(test)]
mod tests;
