//! The answers about the access list, the sets, and the connections.

#![expect(missing_docs, reason = "docs/control.md says what the keys mean")]

use serde::{Deserialize, Serialize};

/// The answer to `bans`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.bans/1", default)]
pub struct BansChanged {
    pub changes: usize,
    /// The number of ranges of sources that are banned now.
    pub banned_ranges: usize,
}

/// The answer to `bans_list`: the access list, or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.bans_list/1", default)]
pub struct BansList {
    /// The number of ranges of sources that are banned.
    pub banned_ranges: usize,
    pub count: usize,
    pub changes: Vec<String>,
    /// The change that the next request begins with, if there are more.
    pub next: Option<usize>,
}

/// The answer to `sets_restore`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.sets_restore/1", default)]
pub struct SetsRestored {
    pub added: usize,
    pub deleted: usize,
    pub flushed: usize,
    pub swapped: usize,
}

/// The answer to `sets_list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.sets/1", default)]
pub struct Sets {
    pub sets: Vec<Set>,
}

/// A set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Set {
    pub name: String,
    /// The set's type, such as `hash:ip`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The set's type and options, as `ipset save` prints them.
    pub create: String,
    pub entries: usize,
    /// Elements, as many as were asked for.
    pub members: Vec<String>,
}

/// The answer to `conntrack_list`: connections, or a part of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.conntrack/1", default)]
pub struct Conntrack {
    pub count: usize,
    pub flows: Vec<Flow>,
    /// Where the next request goes on, if there may be more.
    pub next: Option<Place>,
}

/// How far a look at the connections of all workers has got: before this slot of this table of this worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    pub worker: usize,
    pub table: usize,
    pub slot: usize,
}

/// A connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Flow {
    pub protocol: u8,
    /// The state of the protocol, if it has any.
    pub state: Option<String>,
    /// Seconds until the connection ends without packets.
    pub timeout: u64,
    pub replied: bool,
    pub assured: bool,
    pub mark: u32,
    pub zone: u16,
    pub original: FlowSide,
    pub reply: FlowSide,
    /// The connection, as `conntrack -L` prints it.
    pub text: String,
}

/// One direction of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowSide {
    pub src: String,
    pub dst: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sport: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dport: Option<u16>,
    /// Packets, where they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// The answer to `conntrack_delete` and `conntrack_flush`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.conntrack_ended/1", default)]
pub struct ConntrackEnded {
    pub ended: usize,
    /// Where the next request goes on, if there may be more.
    pub next: Option<Place>,
}
