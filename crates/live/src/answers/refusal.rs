//! [`Refusal`]: why a request is refused, by a kind for programs and in words.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Why a request gets no answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refusal {
    /// The kind, by which clients tell refusals apart.
    pub kind: RefusalKind,
    /// The reason in words.
    pub what: String,
}

/// The kind of a refusal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// There is no such request.
    Request,
    /// Too many clients are served.
    Busy,
    /// The revision in force is not the revision that the change was made for.
    Stale,
    /// A text cannot be read: file, line and column.
    Text,
    /// The run refuses the request; also of a kind that this release does not know.
    #[default]
    #[serde(other)]
    Refused,
}

impl Refusal {
    pub(crate) fn refused(what: impl ToString) -> Self {
        Self { kind: RefusalKind::Refused, what: what.to_string() }
    }

    /// The refusal of a line that is no request, or of a request that lacks something.
    pub(crate) fn request(what: impl ToString) -> Self {
        Self { kind: RefusalKind::Request, what: what.to_string() }
    }

    /// The refusal of a word of a request that is not what was expected there.
    pub(crate) fn expected(what: &str, found: &str) -> Self {
        Self::request(format!("expected {what}, found \"{}\"", packet::visible::word(found)))
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "error": self })
    }

    /// The refusal that an answer holds, if it is one.
    pub(crate) fn of(answer: &Value) -> Option<Self> {
        answer.get("error").map(|error| Self::deserialize(error).unwrap_or_default())
    }
}
