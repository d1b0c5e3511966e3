//! The answers to requests, as types: a run serializes them, and `tamis ctl`, `tamis top` and `tamis tunnel` read them back.
//!
//! Contract: an answer is an object of JSON whose `schema` names it (docs/control.md). A reader ignores keys that it does
//! not know, and takes a key that is missing for an empty one, so a run and its client may be of different releases.

mod frames;
mod lists;
mod peers;
mod refusal;
mod rules;
mod shadow;
mod status;
mod talkers;

use std::collections::BTreeMap;
use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use frames::{Decider, Drops, Frame, WatchEnd, WatchLine, Watching};
pub use lists::{
    BansChanged, BansList, Conntrack, ConntrackEnded, Flow, FlowSide, Place, Set, Sets,
    SetsRestored,
};
pub use peers::{Direct, Peer, PeerChanged, Peers, Router};
pub use refusal::{Refusal, RefusalKind};
pub use rules::{
    Applied, Confirmed, Counters, Log, LoggedRevision, PolicyCounters, RevisionText, RuleCounters,
    SavedCounters,
};
pub use shadow::{Differing, Example, Shadow, ShadowFindings, ShadowSide};
pub use status::{
    DroppedPrivileges, Port, PortState, Queue, Resumed, Ring, Status, UnknownCause, Wire, Worker,
    WorkerState,
};
pub(crate) use status::{one_worker, panicked};
pub use talkers::{Service, Source, Talkers};

/// The answer to `stop`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.stop/1", default)]
pub struct Stopping {
    /// Whether the run stops.
    pub stopping: bool,
}

/// The answer to `snapshot`: a host's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.snapshot/1", default)]
pub struct Snapshot {
    /// Number of the program in force.
    pub program: u64,
    /// The texts of the files, by their names.
    pub files: BTreeMap<String, String>,
    /// The files whose contents cannot be listed.
    pub left_out: Vec<String>,
}

/// Makes the document of an answer, whose keys stand in alphabetical order.
#[must_use]
pub fn json(answer: &impl Serialize) -> Value {
    // Every key is a string, so nothing fails.
    serde_json::to_value(answer).unwrap_or_default()
}

/// Reads an answer back from its document.
///
/// # Errors
/// A key holds something else than in any release.
pub fn read<A: DeserializeOwned>(document: Value) -> io::Result<A> {
    let wrong = |error| io::Error::other(format!("the answer cannot be read: {error}"));
    serde_json::from_value(document).map_err(wrong)
}

/// Writes bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from_digit(four.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests;
