//! [`Request`]: what a client may ask, and how it stands on the line; [`Refusal`]: why it gets something else.
//!
//! docs/control.md has the protocol for who writes a client.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a client may ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// What has become of all frames.
    Status {},
    /// The counters of rules.
    Counters {
        /// As the save tool prints them with the rules, not by themselves.
        #[serde(default)]
        save: bool,
    },
    /// That it stops.
    Stop {},
    /// Who talked most in the last second. They are counted from the first time that somebody asks.
    Talkers {},
}

/// Why a request gets no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Of what kind that is: clients tell them apart by it.
    pub kind: RefusalKind,
    /// In words.
    pub what: String,
}

/// Of what kind a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// It is none of the requests that there are.
    Request,
    /// The run refuses it.
    Refused,
    /// Too many clients are served.
    Busy,
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    /// It is no request.
    pub(super) fn from_line(line: &str) -> Result<Self, Refusal> {
        serde_json::from_str(line)
            .map_err(|error| Refusal { kind: RefusalKind::Request, what: error.to_string() })
    }
}

impl Refusal {
    pub(super) fn refused(what: impl ToString) -> Self {
        Self { kind: RefusalKind::Refused, what: what.to_string() }
    }

    pub(super) fn json(&self) -> Value {
        json!({ "error": { "kind": self.kind, "what": self.what } })
    }

    /// What an answer says of a refusal, if it is one.
    pub(super) fn of(answer: &Value) -> Option<Self> {
        let error = answer.get("error")?;
        let kind = Deserialize::deserialize(&error["kind"]).unwrap_or(RefusalKind::Refused);
        let what = error["what"].as_str().unwrap_or_default().to_owned();
        Some(Self { kind, what })
    }
}
