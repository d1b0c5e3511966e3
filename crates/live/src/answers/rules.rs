//! The answers about rules: changes of them, their revisions, and their counters.

#![expect(missing_docs, reason = "docs/control.md says what the keys mean")]

use serde::{Deserialize, Serialize};

/// The answer to `apply`, `rollback` and `promote`: the effect of a change of rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.apply/1", default)]
pub struct Applied {
    pub revision: u64,
    pub program: u64,
    pub dry_run: bool,
    pub new: usize,
    pub gone: usize,
    pub kept: usize,
    /// Seconds until the change is reverted, unless it is confirmed.
    pub goes_back_in: Option<u64>,
    /// Whether the revision outlasts a restart.
    pub durable: bool,
    pub warnings: Vec<String>,
}

/// The answer to `confirm`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.confirm/1", default)]
pub struct Confirmed {
    pub revision: u64,
}

/// The answer to `get`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.get/1", default)]
pub struct RevisionText {
    pub revision: u64,
    pub text: String,
}

/// The answer to `log`: the revisions that are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.log/1", default)]
pub struct Log {
    pub revision: u64,
    /// Seconds until it is reverted, unless it is confirmed.
    pub goes_back_in: Option<u64>,
    pub journal: bool,
    pub revisions: Vec<LoggedRevision>,
}

/// A revision in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoggedRevision {
    pub revision: u64,
    /// When it was accepted (RFC 3339).
    pub at: String,
    pub what: String,
    /// The user of the process that asked for it; `None` if it was the run itself.
    pub uid: Option<u32>,
    pub pid: Option<u32>,
    pub families: Vec<String>,
    pub bytes: usize,
}

/// The answer to `counters`: the rules and policies that counted packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.counters/1", default)]
pub struct Counters {
    pub rules: Vec<RuleCounters>,
    pub policies: Vec<PolicyCounters>,
}

/// The answer to `counters` with `save`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.counters/1", default)]
pub struct SavedCounters {
    pub text: String,
}

/// The counters of a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleCounters {
    pub family: String,
    pub table: String,
    pub chain: String,
    /// Number of the rule in its chain, from 1.
    pub number: usize,
    pub line: u32,
    pub text: String,
    pub packets: u64,
    pub bytes: u64,
}

/// The counters of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyCounters {
    pub family: String,
    pub table: String,
    pub chain: String,
    /// The policy: `ACCEPT` or `DROP`.
    pub policy: String,
    pub packets: u64,
    pub bytes: u64,
}
