//! The answers about the peers of tunnels.

#![expect(missing_docs, reason = "docs/control.md says what the keys mean")]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The answer to `peers`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.peers/1", default)]
pub struct Peers {
    pub peers: Vec<Peer>,
}

/// A peer of a tunnel. Ages are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Peer {
    pub tunnel: String,
    pub name: String,
    /// The peer's public key, in base64.
    pub key: String,
    /// Where the peer was heard last, or is configured.
    pub endpoint: Option<String>,
    /// Whether that is the `relay` of a network, or `direct`; of a peer by a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What was tried to reach it without the relay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<Direct>,
    pub allowed: Vec<String>,
    pub handshake_s: Option<f64>,
    pub suite: Option<String>,
    /// How long ago anything genuine came.
    pub heard_s: Option<f64>,
    /// The round trip of the last handshake, or of the last probe of a direct path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_s: Option<f64>,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub received_packets: u64,
    pub received_bytes: u64,
    pub lost: u64,
    pub reorder_depth: u64,
    pub unsent: BTreeMap<String, u64>,
    pub path_mtu: u16,
    pub waiting: usize,
}

/// What was tried to reach a peer without the relay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Direct {
    /// Attempts so far, and whether one is under way.
    pub attempts: u32,
    pub trying: bool,
    /// Places that the last one tried.
    pub places: usize,
    /// Direct paths that were there and were given up.
    pub given_up: u32,
    /// This host's router as the directory saw it, and the peer's; once it has begun an attempt.
    pub own: Option<Router>,
    pub peer: Option<Router>,
}

/// What a router does with UDP ports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Router {
    /// Whether it gives `one` for all destinations, the next by a `step`, `each` another one, or that is `unknown`.
    pub ports: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<i16>,
    /// Whether what nobody asked for leaves no trace in it (`pass`), or is `taken` for its own, or that is `unknown`.
    pub strangers: String,
}

/// The answer to `add_peer` and `remove_peer`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.peer/1", default)]
pub struct PeerChanged {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<String>,
}
