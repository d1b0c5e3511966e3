//! Makes refusals of the errors of the parts of a run.

use crate::answers::{Refusal, RefusalKind};
use crate::rules::journal::JournalError;
use crate::rules::revisions::ChangeError;

impl From<ChangeError> for Refusal {
    fn from(error: ChangeError) -> Self {
        let kind = match error {
            ChangeError::Text(_) => RefusalKind::Text,
            ChangeError::Stale { .. } => RefusalKind::Stale,
            _ => RefusalKind::Refused,
        };
        Self { kind, what: error.to_string() }
    }
}

impl From<JournalError> for Refusal {
    fn from(error: JournalError) -> Self {
        Self::refused(error)
    }
}
