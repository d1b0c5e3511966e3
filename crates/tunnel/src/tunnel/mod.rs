//! One end of the overlay: its key, its peers, and what each datagram, packet and deadline has to do with them.
//!
//! The owner calls one function at a time ([`crate`] has the table of them). Where what is said of a packet depends
//! on others before it, the order of calls is the order; workers change nothing here.

mod handshake;
mod inbound;
mod outbound;
mod schedule;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::SocketAddr;

use crate::aead::Offer;
use crate::allowed::{Allowed, Prefix};
use crate::cookie::Cookies;
use crate::entropy::{Entropy, NoEntropy, draw};
use crate::keys::{PresharedKey, PrivateKey, PublicKey};
use crate::mac::Mac1;
use crate::message::INITIATION;
use crate::peer::{Peer, PeerConfig, PeerId, PeerStatus};

use crate::admission::Sources;
pub use inbound::{Content, Delivered, Received};
pub use outbound::{Staged, Unstaged};
pub use schedule::Due;

/// What one end is.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its key.
    pub key: PrivateKey,
    /// The suites that it offers and takes.
    pub offer: Offer,
    /// A time in nanoseconds of the monotonic clock that is passed to every function …
    pub started: u64,
    /// … and how many nanoseconds after 1970 that was, as far as this end knows: the clock is not asked again.
    pub started_unix: u64,
    /// Bytes of the longest inner packet that the path takes: padding does not go beyond it.
    pub mtu: usize,
}

/// A datagram to send that the tunnel made itself: a handshake message, a cookie or a keepalive.
#[derive(Clone, PartialEq, Eq)]
pub struct Outgoing {
    to: SocketAddr,
    bytes: [u8; INITIATION],
    len: usize,
}

impl Outgoing {
    fn new(to: SocketAddr, message: &[u8]) -> Self {
        let mut bytes = [0; INITIATION];
        bytes[..message.len()].copy_from_slice(message);
        Self { to, bytes, len: message.len() }
    }

    /// Where it goes.
    #[must_use]
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// What is sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl std::fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Outgoing({} bytes of type {:#x} to {})", self.len, self.bytes[0], self.to)
    }
}

/// A peer that cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPeerError {
    /// There is one with that key.
    Known(PeerId),
    /// The key is our own.
    Ourselves,
    /// There are 2^32 already.
    Full,
}

/// A peer, or the place of one that was removed.
struct Place {
    generation: u32,
    peer: Option<Box<Peer>>,
}

/// One end of the overlay.
pub struct Tunnel {
    key: PrivateKey,
    public: PublicKey,
    offer: Offer,
    started: u64,
    started_unix: u64,
    mtu: usize,
    entropy: Box<dyn Entropy>,
    mac1: Mac1,
    cookies: Cookies,
    sources: Sources,
    places: Vec<Place>,
    by_key: HashMap<PublicKey, PeerId>,
    /// Whose handshake or session has an index of ours. Indexes are random, so they tell nobody how many there are.
    indexes: HashMap<u32, PeerId>,
    allowed: Allowed<PeerId>,
    /// The place that is asked next for what is due.
    turn: usize,
    /// When it is looked again for whose a datagram may be that names no session of ours.
    next_look: u64,
}

impl Tunnel {
    /// An end without peers.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn new(config: Config, mut entropy: Box<dyn Entropy>) -> Result<Self, NoEntropy> {
        let public = config.key.public();
        Ok(Self {
            key: config.key,
            public,
            offer: config.offer,
            started: config.started,
            started_unix: config.started_unix,
            mtu: config.mtu,
            mac1: Mac1::of(&public),
            cookies: Cookies::of(&public, &mut *entropy)?,
            entropy,
            sources: Sources::new(),
            places: Vec::new(),
            by_key: HashMap::new(),
            indexes: HashMap::new(),
            allowed: Allowed::default(),
            turn: 0,
            next_look: 0,
        })
    }

    /// Who this end is.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.public
    }

    /// Adds a peer.
    ///
    /// # Errors
    /// [`AddPeerError`], and nothing is changed.
    pub fn add_peer(&mut self, config: &PeerConfig) -> Result<PeerId, AddPeerError> {
        if config.key == self.public {
            return Err(AddPeerError::Ourselves);
        }
        if let Some(known) = self.by_key.get(&config.key) {
            return Err(AddPeerError::Known(*known));
        }
        let free = self.places.iter().position(|place| place.peer.is_none());
        let place = free.unwrap_or(self.places.len());
        let slot = u32::try_from(place).map_err(|_| AddPeerError::Full)?;
        if free.is_none() {
            self.places.push(Place { generation: 0, peer: None });
        }
        let id = PeerId { slot, generation: self.places[place].generation };
        self.places[place].peer = Some(Box::new(Peer::new(config)));
        self.by_key.insert(config.key, id);
        config.allowed.iter().for_each(|prefix| self.allowed.insert(*prefix, id));
        Ok(id)
    }

    /// Forgets a peer and all its keys; whether there was one.
    pub fn remove_peer(&mut self, id: PeerId) -> bool {
        if self.peer(id).is_none() {
            return false;
        }
        let place = &mut self.places[id.slot as usize];
        place.generation = place.generation.wrapping_add(1);
        if let Some(peer) = place.peer.take() {
            self.by_key.remove(&peer.key);
        }
        self.indexes.retain(|_, of| *of != id);
        self.allowed.remove(id);
        self.give_back();
        true
    }

    /// Gives back what peers had that left; of a place, 16 bytes stay.
    fn give_back(&mut self) {
        self.indexes.shrink_to(4 * self.by_key.len());
        self.by_key.shrink_to(2 * self.by_key.len());
    }

    /// Gives a peer the addresses of `prefix`, whoever had it; whether there is such a peer.
    pub fn allow(&mut self, id: PeerId, prefix: Prefix) -> bool {
        let known = self.peer(id).is_some();
        if known {
            self.allowed.insert(prefix, id);
        }
        known
    }

    /// The secret that is mixed into handshakes with a peer from now on, one that is under way included; whether
    /// there is such a peer.
    pub fn set_preshared_key(&mut self, id: PeerId, key: PresharedKey) -> bool {
        let Some(peer) = self.peer_mut(id) else { return false };
        if let Some(pending) = &mut peer.pending {
            pending.noise.set_preshared_key(&key);
        }
        peer.preshared = key;
        true
    }

    /// Where a peer is said to be, until it is heard elsewhere; whether there is such a peer.
    pub fn set_endpoint(&mut self, id: PeerId, endpoint: SocketAddr) -> bool {
        let peer = self.peer_mut(id);
        peer.map(|peer| peer.endpoint = Some(endpoint)).is_some()
    }

    /// The peer with that key.
    #[must_use]
    pub fn find(&self, key: &PublicKey) -> Option<PeerId> {
        self.by_key.get(key).copied()
    }

    /// All peers, in no order.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.by_key.values().copied()
    }

    /// How a peer is doing.
    #[must_use]
    pub fn status(&self, id: PeerId) -> Option<PeerStatus> {
        self.peer(id).map(Peer::status)
    }

    fn peer(&self, id: PeerId) -> Option<&Peer> {
        let place = self.places.get(id.slot as usize)?;
        place.peer.as_deref().filter(|_| place.generation == id.generation)
    }

    fn peer_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        let place = self.places.get_mut(id.slot as usize)?;
        place.peer.as_deref_mut().filter(|_| place.generation == id.generation)
    }

    /// An index that nothing has, for `id`. Peers have four at most, so one is free among very few draws.
    fn draw_index(&mut self, id: PeerId) -> Result<u32, NoEntropy> {
        for _ in 0..64 {
            let index = u32::from_le_bytes(draw(&mut *self.entropy)?);
            if let std::collections::hash_map::Entry::Vacant(free) = self.indexes.entry(index) {
                free.insert(id);
                return Ok(index);
            }
        }
        Err(NoEntropy)
    }
}
