//! The answer to `shadow`, `shadow_start` and `shadow_stop`.

#![expect(missing_docs, reason = "docs/control.md says what the keys mean")]

use serde::{Deserialize, Serialize};

/// The answer to `shadow`: the differing verdicts of rules that are tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.shadow/1", default)]
pub struct Shadow {
    pub active: bool,
    /// What was found, where rules are tried.
    #[serde(flatten)]
    pub found: Option<ShadowFindings>,
}

/// The differing verdicts so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShadowFindings {
    /// When the trial began, in seconds since 1970.
    pub since: u64,
    pub packets: u64,
    pub left_out: u64,
    pub differ: u64,
    pub pairs: Vec<Differing>,
    pub others: u64,
}

/// A pair of differing verdicts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Differing {
    pub packets: u64,
    pub in_force: ShadowSide,
    pub shadow: ShadowSide,
    pub example: Example,
}

/// A verdict, and what decided it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShadowSide {
    /// `accept`, `drop`, `reject`, `unknown` or `skip`.
    pub verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// Number of the rule in its chain, from 1; `None` for a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The source and the destination with which the packet leaves, where that is the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaves_as: Option<String>,
}

/// The first packet of a pair.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Example {
    /// Time of arrival, in nanoseconds since 1970.
    pub time_ns: u64,
    #[serde(rename = "in")]
    pub input: String,
    #[serde(rename = "out")]
    pub output: String,
    /// The first bytes of the frame, in hexadecimal.
    pub frame: String,
}
