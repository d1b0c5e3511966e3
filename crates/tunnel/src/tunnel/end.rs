//! [`Tunnel`]: one end, with its peers.

use std::collections::HashMap;
use std::net::SocketAddr;

use crate::admission::Sources;
use crate::aead::Offer;
use crate::allowed::{Allowed, Prefix};
use crate::cookie::Cookies;
use crate::entropy::{Entropy, NoEntropy, draw};
use crate::keys::{PresharedKey, PrivateKey, PublicKey};
use crate::mac::Mac1;
use crate::message::INITIATION;
use crate::peer::{Peer, PeerConfig, PeerId, PeerStatus};

/// What one end is.
#[derive(Clone, Debug)]
pub struct Config {
    /// The private key of this end.
    pub key: PrivateKey,
    /// The suites that this end offers and takes.
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
    pub(super) fn new(to: SocketAddr, message: &[u8]) -> Self {
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

/// A peer, or the place of a removed one.
pub(super) struct Place {
    generation: u32,
    pub(super) peer: Option<Box<Peer>>,
}

/// One end of the overlay.
pub struct Tunnel {
    pub(super) key: PrivateKey,
    public: PublicKey,
    pub(super) offer: Offer,
    pub(super) started: u64,
    pub(super) started_unix: u64,
    pub(super) mtu: usize,
    pub(super) entropy: Box<dyn Entropy>,
    pub(super) mac1: Mac1,
    pub(super) cookies: Cookies,
    pub(super) sources: Sources,
    pub(super) places: Vec<Place>,
    pub(super) by_key: HashMap<PublicKey, PeerId>,
    /// Whose handshake or session has an index of ours. Indexes are random, so they tell nobody how many there are.
    pub(super) indexes: HashMap<u32, PeerId>,
    pub(super) allowed: Allowed<PeerId>,
    /// The place that is asked next for what is due.
    pub(super) turn: usize,
    /// When it is looked again for whose a datagram may be that names no session of ours.
    pub(super) next_look: u64,
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

    /// Returns the public key of this end.
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

    /// Gives back what removed peers had; of a place, 16 bytes stay.
    fn give_back(&mut self) {
        self.indexes.shrink_to(4 * self.by_key.len());
        self.by_key.shrink_to(2 * self.by_key.len());
    }

    /// Gives a peer the addresses of `prefix`, and takes them from their owner; returns whether there is such a peer.
    pub fn allow(&mut self, id: PeerId, prefix: Prefix) -> bool {
        let known = self.peer(id).is_some();
        if known {
            self.allowed.insert(prefix, id);
        }
        known
    }

    /// Sets the secret that is mixed into handshakes with a peer from now on, including a handshake under way; returns
    /// whether there is such a peer.
    pub fn set_preshared_key(&mut self, id: PeerId, key: PresharedKey) -> bool {
        let Some(peer) = self.peer_mut(id) else { return false };
        if let Some(pending) = &mut peer.pending {
            pending.noise.set_preshared_key(&key);
        }
        peer.preshared = key;
        true
    }

    /// Sets where a peer is said to be, until it is heard elsewhere; returns whether there is such a peer.
    pub fn set_endpoint(&mut self, id: PeerId, endpoint: SocketAddr) -> bool {
        let peer = self.peer_mut(id);
        peer.map(|peer| peer.endpoint = Some(endpoint)).is_some()
    }

    /// Sets the nanoseconds of silence after which a peer gets a keepalive; returns whether there is such a peer.
    pub fn set_keepalive(&mut self, id: PeerId, interval: u64, now: u64) -> bool {
        let peer = self.peer_mut(id);
        peer.map(|peer| peer.timers.set_interval(interval, now)).is_some()
    }

    /// Tries to reach a peer at these places rather than through its relay, from then on; returns whether there is such a
    /// peer. The relay stays its endpoint until one of them answers.
    pub fn attempt(&mut self, id: PeerId, candidates: &[SocketAddr], at: u64) -> bool {
        let peer = self.peer_mut(id);
        let by_relay = peer.and_then(|peer| peer.direct.as_mut().zip(peer.endpoint));
        by_relay.map(|(direct, endpoint)| direct.attempt(candidates, endpoint, at)).is_some()
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

    pub(super) fn peer_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        let place = self.places.get_mut(id.slot as usize)?;
        place.peer.as_deref_mut().filter(|_| place.generation == id.generation)
    }

    /// An index that nothing has, for `id`. Peers have four at most, so one is free among very few draws.
    pub(super) fn draw_index(&mut self, id: PeerId) -> Result<u32, NoEntropy> {
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
