//! [`Relay`]: decides which two nodes a relay forwards between, and which sources are theirs. It has no key, and changes no byte.
//!
//! A datagram's path is found by the relay's port and the source, so nothing is added to it. A source belongs to a node if
//! the node's session with the directory comes from the very same address and port, which is so behind every router that
//! maps endpoint-independently (RFC 4787); or, from another port of the same address, once it sends the first message of a
//! handshake for the other node: only who was shown the way knows that node's key.
//!
//! Nothing goes to a node that has not used the path itself: a datagram that comes too early would make many a router give
//! the node's own another port (facts of Linux: an entry of conntrack for it is in the way).
//!
//! Contract: no sockets and no clock. What workers forward by is [`Forwarding`], which this alone changes. What comes from
//! elsewhere is dropped, and finding out that it does is bounded by [`LOOKS`](crate::limits::LOOKS). An idle path takes less than
//! 320 bytes, names and sources with it: so a name is kept once, however many paths its node has.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use tunnel::{Addressee, PublicKey};

use crate::forwarding::{Forwarded, Forwarding, Sources};
use crate::name::Name;
use crate::paths::Pair;

/// Paths, and the sources that belong to them.
#[derive(Default)]
pub struct Relay {
    forwarding: Arc<Forwarding>,
    /// Paths by their slots, and the slots that are free.
    paths: Vec<Path>,
    free: Vec<u32>,
    names: Names,
    /// The slots of paths by their two nodes.
    pairs: HashMap<[u32; 2], u32>,
    /// The slots of each port's paths.
    ports: HashMap<u16, Vec<u32>>,
    /// Slots whose sources have changed since they were last taken.
    changed: HashSet<u32>,
}

#[derive(Clone, Copy)]
struct Path {
    keys: [PublicKey; 2],
    nodes: [u32; 2],
    port: u16,
    /// Where it is in the list of its port.
    place: u32,
}

/// A path, and what it has forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathCounts {
    /// The two nodes.
    pub pair: Pair,
    /// The relay's port.
    pub port: u16,
    /// Where the two nodes send from.
    pub sources: Sources,
    /// Datagrams that were forwarded, and their bytes.
    pub datagrams: u64,
    /// See [`Self::datagrams`].
    pub bytes: u64,
}

/// The names of nodes, each with a number while a path has it.
#[derive(Default)]
struct Names {
    numbers: HashMap<Name, u32>,
    /// The names, and how many paths have them.
    names: Vec<(Option<Name>, u32)>,
    free: Vec<u32>,
}

impl Names {
    fn of(&self, pair: &Pair) -> Option<[u32; 2]> {
        Some([*self.numbers.get(&pair.0)?, *self.numbers.get(&pair.1)?])
    }

    fn pair(&self, nodes: [u32; 2]) -> Option<Pair> {
        let name = |node: u32| self.names.get(node as usize)?.0.clone();
        Some(Pair(name(nodes[0])?, name(nodes[1])?))
    }

    fn take(&mut self, name: &Name) -> u32 {
        let known = self.numbers.get(name).copied();
        let number = known.unwrap_or_else(|| {
            let number = self.free.pop().unwrap_or(self.names.len() as u32);
            if number as usize == self.names.len() {
                self.names.push((None, 0));
            }
            self.names[number as usize].0 = Some(name.clone());
            self.numbers.insert(name.clone(), number);
            number
        });
        self.names[number as usize].1 += 1;
        number
    }

    fn release(&mut self, number: u32) {
        let Some((name, uses)) = self.names.get_mut(number as usize) else { return };
        *uses = uses.saturating_sub(1);
        if *uses == 0
            && let Some(name) = name.take()
        {
            self.numbers.remove(&name);
            self.free.push(number);
        }
    }
}

impl Relay {
    /// What workers forward by.
    #[must_use]
    pub fn forwarding(&self) -> Arc<Forwarding> {
        Arc::clone(&self.forwarding)
    }

    /// Forwards between two nodes by this port from now on.
    pub fn join(&mut self, pair: &Pair, keys: [PublicKey; 2], port: u16) {
        let known = self.slot(pair).and_then(|slot| self.paths.get(slot as usize));
        if known.is_some_and(|path| path.keys == keys && path.port == port) {
            return;
        }
        self.part(pair);
        let nodes = [self.names.take(&pair.0), self.names.take(&pair.1)];
        let slots = self.ports.entry(port).or_default();
        let path = Path { keys, nodes, port, place: slots.len() as u32 };
        let slot = self.free.pop().unwrap_or(self.paths.len() as u32);
        match self.paths.get_mut(slot as usize) {
            Some(free) => *free = path,
            None => self.paths.push(path),
        }
        slots.push(slot);
        self.pairs.insert(nodes, slot);
        self.forwarding.join(slot, port);
    }

    /// No longer forwards between two nodes.
    pub fn part(&mut self, pair: &Pair) {
        let Some(nodes) = self.names.of(pair) else { return };
        let Some(slot) = self.pairs.remove(&nodes) else { return };
        self.forwarding.part(slot);
        let Some(Path { port, place, .. }) = self.paths.get(slot as usize).copied() else { return };
        if let Some(slots) = self.ports.get_mut(&port) {
            slots.swap_remove(place as usize);
            if let Some(moved) = slots.get(place as usize) {
                self.paths[*moved as usize].place = place;
            }
        }
        nodes.iter().for_each(|node| self.names.release(*node));
        self.changed.remove(&slot);
        self.free.push(slot);
    }

    /// The number of a path, which no other path has while there is this one.
    pub(crate) fn slot(&self, pair: &Pair) -> Option<u32> {
        self.pairs.get(&self.names.of(pair)?).copied()
    }

    /// The keys of the two nodes of a path.
    pub(crate) fn keys(&self, pair: &Pair) -> Option<[PublicKey; 2]> {
        Some(self.paths.get(self.slot(pair)? as usize)?.keys)
    }

    /// The paths that there are, in no order, and what they have forwarded.
    pub fn paths(&self) -> impl Iterator<Item = PathCounts> {
        self.pairs.iter().filter_map(|(nodes, slot)| {
            let (sources, datagrams, bytes) = self.forwarding.path(*slot);
            let port = self.paths.get(*slot as usize)?.port;
            Some(PathCounts { pair: self.names.pair(*nodes)?, port, sources, datagrams, bytes })
        })
    }

    /// The paths whose sources have changed since the last call, and the sources.
    pub fn take_changed(&mut self) -> Vec<(Pair, Sources)> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        let known = changed.filter_map(|slot| {
            let path = self.paths.get(slot as usize)?;
            Some((self.names.pair(path.nodes)?, self.forwarding.path(slot).0))
        });
        known.collect()
    }

    /// Takes up the sources that a path had before a restart: what its nodes send goes on at once.
    pub fn restore(&mut self, pair: &Pair, bound: Sources) {
        let Some(slot) = self.slot(pair) else { return };
        for (side, source) in bound.into_iter().enumerate() {
            source.into_iter().for_each(|source| self.forwarding.bind(slot, side, source));
        }
    }

    /// Where a datagram goes that came to a port from this source, which is looked for if it is unknown. `endpoint` knows where
    /// a node's session with the directory comes from.
    pub fn forward(
        &mut self,
        port: u16,
        from: SocketAddr,
        datagram: &[u8],
        now: u64,
        endpoint: impl Fn(&PublicKey) -> Option<SocketAddr>,
    ) -> Option<SocketAddr> {
        match self.forwarded(port, from, datagram, now) {
            Forwarded::Unknown => {
                if self.forwarding.may_look(from.ip(), now) {
                    self.look_for(port, from, datagram, endpoint);
                }
                let forwarded = self.forwarded(port, from, datagram, now);
                if forwarded == Forwarded::Unknown {
                    self.forwarding.count_dropped(1);
                }
                forwarded.to()
            }
            known => known.to(),
        }
    }

    /// Datagrams that were forwarded, and datagrams that were dropped.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        self.forwarding.counts()
    }

    fn forwarded(&self, port: u16, from: SocketAddr, datagram: &[u8], now: u64) -> Forwarded {
        self.forwarding.read().forward(port, from, (1, datagram.len() as u64), now)
    }

    /// Looks for the node that an unknown source belongs to, which may be looked for ([`Forwarding::may_look`]).
    pub fn look_for(
        &mut self,
        port: u16,
        from: SocketAddr,
        datagram: &[u8],
        endpoint: impl Fn(&PublicKey) -> Option<SocketAddr>,
    ) {
        let Some(slots) = self.ports.get(&port) else { return };
        let sides = slots.iter().flat_map(|slot| [(*slot, 0), (*slot, 1)]);
        let found = sides
            .filter_map(|(slot, side)| {
                let keys = &self.paths.get(slot as usize)?.keys;
                let is_near = |at: &SocketAddr| at.ip().to_canonical() == from.ip().to_canonical();
                let at = endpoint(&keys[side]).filter(is_near)?;
                let is_its =
                    at.port() == from.port() || Addressee::new(&keys[1 - side]).is_of(datagram);
                is_its.then_some((at.port() != from.port(), slot, side))
            })
            // The very same port goes before another one.
            .min_by_key(|(is_other, ..)| *is_other);
        let Some((_, slot, side)) = found else { return };
        self.forwarding.bind(slot, side, from);
        self.changed.insert(slot);
    }
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Relay({} paths, {:?})", self.pairs.len(), self.forwarding)
    }
}

#[cfg(test)]
mod tests;
