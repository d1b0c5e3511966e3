//! Peers of a tunnel while it runs: added, removed, and told of.

use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;
use tunnel::{AddPeerError, PeerConfig, PeerId, PublicKey, Suite};

use super::path_mtu::PathMtu;
use super::site::{Peer, Site, State};
use super::waiting::Waiting;
use crate::run::config::tunnel::PeerSettings;

/// A second, in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// A peer, as the control socket tells of it. Ages are in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::run) struct PeerTold {
    pub(in crate::run) tunnel: String,
    pub(in crate::run) name: String,
    pub(in crate::run) key: String,
    /// Where it was heard last, or is said to be.
    pub(in crate::run) endpoint: Option<String>,
    pub(in crate::run) allowed: Vec<String>,
    /// How long ago the session was made that is sent by.
    pub(in crate::run) handshake_s: Option<f64>,
    pub(in crate::run) suite: Option<&'static str>,
    /// How long ago anything genuine came.
    pub(in crate::run) heard_s: Option<f64>,
    pub(in crate::run) sent_packets: u64,
    pub(in crate::run) sent_bytes: u64,
    pub(in crate::run) received_packets: u64,
    pub(in crate::run) received_bytes: u64,
    /// Datagrams that it sent and that did not come.
    pub(in crate::run) lost: u64,
    /// How many came in between at most, of datagrams that came late.
    pub(in crate::run) reorder_depth: u64,
    pub(in crate::run) path_mtu: u16,
    pub(in crate::run) waiting: usize,
}

impl Site {
    /// Adds a peer.
    ///
    /// # Errors
    /// It is one already, or ourselves.
    pub(in crate::run) fn add_peer(&self, settings: &PeerSettings) -> Result<(), String> {
        let PeerSettings { name, key, preshared, endpoint, allowed, keepalive, .. } = settings;
        let config = PeerConfig {
            preshared: preshared.clone(),
            endpoint: endpoint.as_ref().and_then(|endpoint| endpoint.address()),
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
        };
        // A prefix that it takes is no other's any more.
        state
            .peers
            .values_mut()
            .for_each(|other| other.allowed.retain(|one| !allowed.contains(one)));
        state.peers.insert(id, peer);
        Ok(())
    }

    /// Removes a peer, by its name or its key; false if there is none.
    pub(in crate::run) fn remove_peer(&self, which: &str) -> bool {
        let mut state = self.lock();
        let Some(id) = state.find(which) else { return false };
        state.peers.remove(&id);
        state.peers.shrink_to_fit();
        state.tunnel.remove_peer(id)
    }

    /// The name of the peer that has an address inside.
    pub(in crate::run) fn peer_of(&self, address: IpAddr) -> Option<Arc<str>> {
        let state = self.lock();
        let peer = state.tunnel.peer_of(address)?;
        state.peers.get(&peer).map(|peer| Arc::clone(&peer.name))
    }

    /// All peers, by name.
    pub(in crate::run) fn told(&self) -> Vec<PeerTold> {
        let (state, now) = (self.lock(), self.now());
        let mut told: Vec<PeerTold> = state
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

    /// A probe of the path to a peer arrived there.
    pub(super) fn probed(&mut self, peer: PeerId, number: u32, now: u64) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.path.answered(number, now);
        }
    }
}

fn tell(tunnel: &str, state: &State, id: PeerId, peer: &Peer, now: u64) -> Option<PeerTold> {
    let status = state.tunnel.status(id)?;
    let ago = |then: u64| now.saturating_sub(then) as f64 / SECOND as f64;
    let endpoint = status.endpoint.map(|endpoint| endpoint.to_string());
    Some(PeerTold {
        tunnel: tunnel.to_owned(),
        name: peer.name.to_string(),
        key: status.key.to_string(),
        endpoint: endpoint.or_else(|| peer.endpoint.as_ref().map(ToString::to_string)),
        allowed: peer.allowed.iter().map(ToString::to_string).collect(),
        handshake_s: status.session.map(ago),
        suite: status.suite.map(|suite| match suite {
            Suite::Aes256Gcm => "aes-256-gcm",
            Suite::ChaCha20Poly1305 => "chacha20-poly1305",
        }),
        heard_s: status.heard.map(ago),
        sent_packets: status.sent.0,
        sent_bytes: status.sent.1,
        received_packets: status.received.0,
        received_bytes: status.received.1,
        lost: status.lost,
        reorder_depth: status.reorder_depth,
        path_mtu: peer.path.usable(),
        waiting: peer.waiting.len(),
    })
}
