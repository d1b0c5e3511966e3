//! The answer to `talkers`.

#![expect(missing_docs, reason = "docs/control.md says what the keys mean")]

use serde::{Deserialize, Serialize};

/// The answer to `talkers`: the busiest sources and services of a window of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.talkers/1", default)]
pub struct Talkers {
    /// The length of the window; 0 before the first one has ended.
    pub seconds: f64,
    pub every: u32,
    /// The frames of the window, estimated.
    pub frames: u64,
    pub sources: Vec<Source>,
    pub services: Vec<Service>,
}

/// The traffic of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    pub address: String,
    /// Frames, estimated.
    pub frames: u64,
    pub bytes: u64,
}

/// The traffic of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Service {
    /// The protocol, by name where it has one.
    pub protocol: String,
    pub port: Option<u16>,
    /// Frames, estimated.
    pub frames: u64,
    pub bytes: u64,
}
