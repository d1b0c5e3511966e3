//! [`Relay`]: forwards sealed datagrams between the two nodes of a path. It has no key, and changes no byte.
//!
//! A datagram's path is found by the relay's port and the source, so nothing is added to it. A source belongs to a node if
//! the node's session with the directory comes from the very same address and port, which is so behind every router that
//! maps endpoint-independently (RFC 4787); or, from another port of the same address, once it sends the first message of a
//! handshake for the other node: only who was shown the way knows that node's key.
//!
//! Nothing goes to a node that has not used the path itself: a datagram that comes too early would make many a router give
//! the node's own another port (facts of Linux: an entry of conntrack for it is in the way).
//!
//! Contract: no sockets and no clock. What comes from elsewhere is dropped, and finding out that it does is bounded by
//! [`limits::LOOKS`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

use tunnel::{Addressee, PublicKey};

use crate::limits::{LOOK_SHARES, LOOKS, SECOND};
use crate::paths::Pair;

/// Paths, and the sources that belong to them.
#[derive(Default)]
pub struct Relay {
    ports: BTreeMap<u16, HashMap<Pair, Path>>,
    /// The path and the side that a source at a port belongs to.
    sources: HashMap<(u16, SocketAddr), (Pair, usize)>,
    /// Paths whose sources have changed since they were last taken.
    changed: HashSet<Pair>,
    /// The looks of the present second for the sources of each share, by a secret hash of an address: a flood from one
    /// address keeps few others out.
    looks: HashMap<u64, u64>,
    looked: u64,
    shares: RandomState,
    /// Datagrams that were forwarded, and dropped.
    counts: (u64, u64),
}

struct Path {
    keys: [PublicKey; 2],
    addressees: [Addressee; 2],
    bound: Sources,
}

/// Where the two nodes of a path send from.
pub type Sources = [Option<SocketAddr>; 2];

impl Relay {
    /// Forwards between two nodes by this port from now on.
    pub fn join(&mut self, pair: &Pair, keys: [PublicKey; 2], port: u16) {
        let known = self.ports.get(&port).and_then(|paths| paths.get(pair));
        if known.is_some_and(|path| path.keys == keys) {
            return;
        }
        self.part(pair);
        let path =
            Path { keys, addressees: keys.map(|key| Addressee::new(&key)), bound: [None; 2] };
        self.ports.entry(port).or_default().insert(pair.clone(), path);
    }

    /// No longer forwards between two nodes.
    pub fn part(&mut self, pair: &Pair) {
        for (port, paths) in &mut self.ports {
            let Some(path) = paths.remove(pair) else { continue };
            for source in path.bound.into_iter().flatten() {
                self.sources.remove(&(*port, source));
            }
        }
    }

    /// The paths whose sources have changed since the last call, and the sources.
    pub fn take_changed(&mut self) -> Vec<(Pair, Sources)> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        let known = changed.filter_map(|pair| {
            let path = self.ports.values().find_map(|paths| paths.get(&pair))?;
            Some((pair, path.bound))
        });
        known.collect()
    }

    /// Takes up the sources that a path had before a restart: what its nodes send goes on at once.
    pub fn restore(&mut self, pair: &Pair, bound: Sources) {
        for (port, paths) in &mut self.ports {
            let Some(path) = paths.get_mut(pair) else { continue };
            path.bound = bound;
            for (side, source) in bound.into_iter().enumerate() {
                let source = source.map(|source| (*port, source));
                self.sources.extend(source.map(|source| (source, (pair.clone(), side))));
            }
        }
    }

    /// Where a datagram goes that came to a port from this source. `endpoint` knows where a node's session with the
    /// directory comes from.
    pub fn forward(
        &mut self,
        port: u16,
        from: SocketAddr,
        datagram: &[u8],
        now: u64,
        endpoint: impl Fn(&PublicKey) -> Option<SocketAddr>,
    ) -> Option<SocketAddr> {
        let is_known = self.sources.contains_key(&(port, from));
        if !is_known && self.may_look(from.ip(), now) {
            self.bind(port, from, datagram, &endpoint);
        }
        let to = self.sources.get(&(port, from)).and_then(|(pair, side)| {
            let path = self.ports.get(&port)?.get(pair)?;
            path.bound[1 - side]
        });
        let count = if to.is_some() { &mut self.counts.0 } else { &mut self.counts.1 };
        *count += 1;
        to
    }

    /// Datagrams that were forwarded, and datagrams that were dropped.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        self.counts
    }

    fn may_look(&mut self, from: IpAddr, now: u64) -> bool {
        if now.saturating_sub(self.looked) >= SECOND {
            self.looked = now;
            self.looks.clear();
        }
        let looks = self.looks.entry(self.shares.hash_one(from) % LOOK_SHARES).or_default();
        *looks += 1;
        *looks <= LOOKS / LOOK_SHARES
    }

    /// Finds the node that a new source belongs to.
    fn bind(
        &mut self,
        port: u16,
        from: SocketAddr,
        datagram: &[u8],
        endpoint: &impl Fn(&PublicKey) -> Option<SocketAddr>,
    ) {
        let Some(paths) = self.ports.get_mut(&port) else { return };
        let sides = paths.iter().flat_map(|(pair, path)| [(pair, path, 0), (pair, path, 1)]);
        let found = sides
            .filter_map(|(pair, path, side)| {
                let is_near = |at: &SocketAddr| at.ip().to_canonical() == from.ip().to_canonical();
                let at = endpoint(&path.keys[side]).filter(is_near)?;
                let is_its = at == from || path.addressees[1 - side].is_of(datagram);
                is_its.then(|| (at != from, pair.clone(), side))
            })
            // The very same port goes before another one.
            .min_by_key(|(is_other, ..)| *is_other);
        let Some((_, pair, side)) = found else { return };
        if let Some(path) = paths.get_mut(&pair)
            && let Some(before) = path.bound[side].replace(from)
        {
            self.sources.remove(&(port, before));
        }
        self.changed.insert(pair.clone());
        self.sources.insert((port, from), (pair, side));
    }
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paths: usize = self.ports.values().map(HashMap::len).sum();
        write!(f, "Relay({paths} paths, {} sources)", self.sources.len())
    }
}
