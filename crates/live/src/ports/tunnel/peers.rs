//! The peers of a tunnel while it runs, one set for all that write it: the configuration, the control socket, and a network's
//! directory by way of [`Peers`].
//!
//! Contract: names and keys are unique. Any thread may call; each call takes the tunnel's lock once.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use overlay::{Ports, Reached, Router, Strangers};
use pktio::datagram::Refusal;
use tunnel::{AddPeerError, Path, PeerConfig, PeerId, PublicKey, Suite, Tried};

use super::path_mtu::PathMtu;
use super::site::{Peer, Site, State};
use super::waiting::Waiting;
use crate::answers;
use crate::config::tunnel::PeerSettings;
use tunnel::limits::SECOND;

/// The peers of a running tunnel, for who learns of peers elsewhere than in the configuration.
#[derive(Clone, Debug)]
pub struct Peers(pub(crate) Arc<Site>);

impl Peers {
    /// Makes the tunnel have a peer, in place of the peers that had its name or its key.
    ///
    /// # Errors
    /// The peer is this end, or there are too many.
    pub fn set(&self, peer: &PeerSettings) -> Result<(), String> {
        self.0.remove_peer(&peer.name);
        self.0.remove_peer(&peer.key.to_string());
        self.0.add_peer(peer)
    }

    /// Removes a peer, by its name; false if there is none.
    pub fn remove(&self, name: &str) -> bool {
        self.0.remove_peer(name)
    }

    /// Tries to reach a peer at some places rather than through its relay, `after` nanoseconds from now; `routers` are this host's
    /// and the peer's, as far as its directory has said.
    pub fn attempt(
        &self,
        name: &str,
        candidates: &[SocketAddr],
        after: u64,
        routers: Option<[Router; 2]>,
    ) {
        let (mut state, now) = (self.0.lock(), self.0.now());
        let Some(peer) = state.find(name) else { return };
        state.tunnel.attempt(peer, candidates, now.saturating_add(after));
        if let Some(peer) = state.peers.get_mut(&peer) {
            peer.routers = routers;
        }
    }

    /// Sends a peer a keepalive after that many nanoseconds of silence, from now on.
    pub fn keep(&self, name: &str, after: u64) {
        let (mut state, now) = (self.0.lock(), self.0.now());
        if let Some(peer) = state.find(name) {
            state.tunnel.set_keepalive(peer, after, now);
        }
    }

    /// Sends a probe to each of these other places of a peer, in this order.
    pub fn probe_aside(&self, name: &str, places: &[SocketAddr]) {
        let mut state = self.0.lock();
        if let Some(peer) = state.find(name) {
            state.tunnel.probe_aside(peer, places);
        }
    }

    /// How nodes of a domain are reached that have a session: by the relay, or directly, and how long a round trip takes.
    #[must_use]
    pub fn reached(&self, domain: &str) -> Vec<Reached> {
        let state = self.0.lock();
        let reached = state.peers.iter().filter_map(|(id, peer)| {
            let name = peer.name.strip_suffix(domain)?.parse().ok()?;
            let status = state.tunnel.status(*id).filter(|status| status.session.is_some())?;
            let micros = status.round_trip.and_then(|nanos| u32::try_from(nanos / 1_000).ok());
            Some(Reached { name, is_direct: status.path? == Path::Direct, micros })
        });
        let mut reached: Vec<Reached> = reached.collect();
        reached.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        reached
    }

    /// The tunnel's UDP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.socket.port()
    }
}

impl Site {
    /// Adds a peer.
    ///
    /// # Errors
    /// The tunnel has the peer already, or it is this end.
    pub(crate) fn add_peer(&self, settings: &PeerSettings) -> Result<(), String> {
        let PeerSettings { name, key, preshared, endpoint, relays, allowed, keepalive, .. } =
            settings;
        let config = PeerConfig {
            preshared: preshared.clone(),
            endpoint: endpoint.as_ref().and_then(|endpoint| endpoint.address()),
            relays: relays.clone(),
            keepalive: keepalive.map(|seconds| u64::from(seconds) * SECOND),
            allowed: allowed.clone(),
            ..PeerConfig::new(*key)
        };
        let mut state = self.lock();
        if state.peers.values().any(|peer| *peer.name == **name) {
            return Err(format!("there is a peer {name} already"));
        }
        let id = state.tunnel.add_peer(&config).map_err(|error| match error {
            AddPeerError::Known(_) => format!("the key of {name} is another peer's"),
            AddPeerError::Ourselves => format!("the key of {name} is our own"),
            AddPeerError::Full => "no more peers can be added".to_owned(),
        })?;
        let peer = Peer {
            name: name.as_str().into(),
            endpoint: endpoint.clone(),
            allowed: allowed.clone(),
            own: None,
            waiting: Waiting::default(),
            reached: 0,
            path: PathMtu::new(self.mtu),
            routers: None,
            unsent: Default::default(),
        };
        // A prefix that the peer takes no longer belongs to another peer.
        state
            .peers
            .values_mut()
            .for_each(|other| other.allowed.retain(|one| !allowed.contains(one)));
        state.peers.insert(id, peer);
        Ok(())
    }

    /// Removes a peer, by its name or its key; false if there is none.
    pub(crate) fn remove_peer(&self, which: &str) -> bool {
        let mut state = self.lock();
        let Some(id) = state.find(which) else { return false };
        state.peers.remove(&id);
        state.peers.shrink_to_fit();
        state.tunnel.remove_peer(id)
    }

    /// The name of the peer that has an address inside.
    pub(crate) fn peer_of(&self, address: IpAddr) -> Option<Arc<str>> {
        let state = self.lock();
        let peer = state.tunnel.peer_of(address)?;
        state.peers.get(&peer).map(|peer| Arc::clone(&peer.name))
    }

    /// All peers, by name.
    pub(crate) fn told(&self) -> Vec<answers::Peer> {
        let (state, now) = (self.lock(), self.now());
        let mut told: Vec<answers::Peer> = state
            .peers
            .iter()
            .filter_map(|(id, peer)| tell(&self.name, &state, *id, peer, now))
            .collect();
        told.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        told
    }
}

impl State {
    /// The peer of that name or key.
    fn find(&self, which: &str) -> Option<PeerId> {
        let by_name = self.peers.iter().find(|(_, peer)| *peer.name == *which).map(|(id, _)| *id);
        by_name.or_else(|| self.tunnel.find(&which.parse::<PublicKey>().ok()?))
    }

    /// Bytes of the longest packet that the path to a peer takes.
    pub(super) fn usable(&self, peer: PeerId) -> u16 {
        self.peers.get(&peer).map_or(u16::MAX, |peer| peer.path.usable())
    }

    /// Notes that a probe of the path to a peer arrived there.
    pub(super) fn probed(&mut self, peer: PeerId, number: u32, now: u64) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.path.answered(number, now);
        }
    }
}

fn tell(tunnel: &str, state: &State, id: PeerId, peer: &Peer, now: u64) -> Option<answers::Peer> {
    let status = state.tunnel.status(id)?;
    let ago = |then: u64| now.saturating_sub(then) as f64 / SECOND as f64;
    let endpoint = status.endpoint.map(|endpoint| endpoint.to_string());
    Some(answers::Peer {
        tunnel: tunnel.to_owned(),
        name: peer.name.to_string(),
        key: status.key.to_string(),
        endpoint: endpoint.or_else(|| peer.endpoint.as_ref().map(ToString::to_string)),
        path: status.path.map(|path| path_name(path).to_owned()),
        direct: status.tried.map(|tried| direct(tried, peer.routers)),
        allowed: peer.allowed.iter().map(ToString::to_string).collect(),
        handshake_s: status.session.map(ago),
        suite: status.suite.map(|suite| suite_name(suite).to_owned()),
        heard_s: status.heard.map(ago),
        round_trip_s: status.round_trip.map(|nanos| nanos as f64 / SECOND as f64),
        sent_packets: status.sent.0,
        sent_bytes: status.sent.1,
        received_packets: status.received.0,
        received_bytes: status.received.1,
        lost: status.lost,
        reorder_depth: status.reorder_depth,
        unsent: Refusal::ALL
            .iter()
            .zip(peer.unsent)
            .filter(|(_, count)| *count > 0)
            .map(|(why, count)| (why.name().to_owned(), count))
            .collect(),
        path_mtu: peer.path.usable(),
        waiting: peer.waiting.len(),
    })
}

fn path_name(path: Path) -> &'static str {
    match path {
        Path::Relay => "relay",
        Path::Direct => "direct",
    }
}

fn direct(tried: Tried, routers: Option<[Router; 2]>) -> answers::Direct {
    let Tried { attempts, is_trying: trying, places, lost: given_up } = tried;
    let [own, peer] = routers.map_or([None; 2], |both| both.map(Some));
    let [own, peer] = [own, peer].map(|router| router.map(router_told));
    answers::Direct { attempts, trying, places, given_up, own, peer }
}

fn router_told(router: Router) -> answers::Router {
    let (ports, step) = match router.ports {
        Ports::Unknown => ("unknown", None),
        Ports::One => ("one", None),
        Ports::Step(step) => ("step", Some(step)),
        Ports::Each => ("each", None),
    };
    let strangers = match router.strangers {
        Strangers::Unknown => "unknown",
        Strangers::Pass => "pass",
        Strangers::Taken => "taken",
    };
    answers::Router { ports: ports.to_owned(), step, strangers: strangers.to_owned() }
}

fn suite_name(suite: Suite) -> &'static str {
    match suite {
        Suite::Aes256Gcm => "aes-256-gcm",
        Suite::ChaCha20Poly1305 => "chacha20-poly1305",
    }
}
