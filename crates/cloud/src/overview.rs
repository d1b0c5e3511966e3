//! [`Overview`]: what a directory knows at one moment, as far as its page shows it.
//!
//! Contract: its size is bounded, whatever the network's; what is left out is counted.

use serde::{Deserialize, Serialize};

/// Nodes, and paths, that an overview has at most.
pub(crate) const MOST: usize = 1_000;
/// Lines of the log that it has at most.
pub(crate) const LINES: usize = 100;

/// What a directory knows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Overview {
    pub(crate) domain: String,
    /// When that was, as RFC 3339 writes it.
    pub(crate) time: String,
    /// Nodes by name; how many there are in all, and how many of them are there.
    pub(crate) nodes: Vec<Node>,
    pub(crate) node_count: usize,
    pub(crate) present_count: usize,
    /// Paths by their nodes, those with the most bytes through the relay; how many there are in all, and by which way, where it
    /// was said.
    pub(crate) paths: Vec<Path>,
    pub(crate) path_count: usize,
    pub(crate) direct_count: usize,
    pub(crate) relay_count: usize,
    pub(crate) policy_version: u64,
    pub(crate) policy: String,
    /// Lines of the log, the last one last.
    pub(crate) log: Vec<String>,
    /// Datagrams that the relays forwarded and dropped.
    pub(crate) relayed: (u64, u64),
    /// The servers on hosts of their own, and whether each is there.
    pub(crate) servers: Vec<(String, bool)>,
}

/// A node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) v4: String,
    pub(crate) v6: String,
    pub(crate) state: State,
    /// Where it is, outside the tunnel.
    pub(crate) at: Option<String>,
    /// What the router in front of it does, in words.
    pub(crate) router: String,
}

/// Whether a node is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    Present,
    #[default]
    Absent,
    Revoked,
}

/// A path between two nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Path {
    pub(crate) nodes: [String; 2],
    /// Whether each of them reaches the other one without the relay, and the round trip in microseconds, by its own word of the
    /// last minute.
    pub(crate) said: [Option<(bool, Option<u32>)>; 2],
    /// Datagrams and bytes that the relay forwarded, where it is of this process.
    pub(crate) relayed: Option<(u64, u64)>,
    /// Seconds since somebody asked for it.
    pub(crate) asked: Option<u64>,
}
