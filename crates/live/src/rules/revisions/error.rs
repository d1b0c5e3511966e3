//! [`ChangeError`]: why a change of the rules is refused, or a revision is not there.

use std::fmt;

use dataplane::publish::PublishError;

use crate::rules::journal::JournalError;
use crate::rules::load::BadText;

/// Why a change of the rules is refused, or a revision is not there. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangeError {
    /// The run has no configuration, and so no revisions.
    NoConfiguration,
    /// No rules are tried.
    NoShadow,
    /// A text cannot be read: its name, line and column, and why.
    Text(String),
    /// Rules that this run cannot do.
    Unfit(String),
    /// Changes to the rules of several families.
    Families,
    /// Another revision is in force than the revision that the change was made for.
    Stale { expected: u64, current: u64 },
    /// A revision waits for its confirmation.
    Waits { revision: u64, seconds: u64 },
    /// The revision to go back to waits itself.
    IsWaiting(u64),
    /// No revision waits for its confirmation.
    NothingWaits,
    /// The revision is not kept.
    NotKept { oldest: u64, last: u64 },
    /// The journal does not take the change.
    Journal(JournalError),
    /// Workers do not take the program.
    Publish(PublishError),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoConfiguration => f.write_str("this run has no configuration"),
            Self::NoShadow => f.write_str("expected rules that are tried: tamis ctl shadow FILE"),
            Self::Text(what) | Self::Unfit(what) => f.write_str(what),
            Self::Families => f.write_str("expected changes to the rules of one family (--family)"),
            Self::Stale { expected, current } => {
                write!(f, "expected revision {expected} to be in force, found {current}")
            }
            Self::Waits { revision, seconds } => write!(
                f,
                "revision {revision} waits for tamis ctl confirm, for {seconds} s more: confirm it, or go back \
                 (tamis ctl rollback)"
            ),
            Self::IsWaiting(revision) => {
                write!(f, "revision {revision} waits to be confirmed: tamis ctl confirm keeps it")
            }
            Self::NothingWaits => f.write_str("no revision waits for a confirmation"),
            Self::NotKept { oldest, last } => {
                write!(f, "expected a revision that is kept, from {oldest} to {last}")
            }
            Self::Journal(error) => error.fmt(f),
            Self::Publish(error) => error.fmt(f),
        }
    }
}

impl ChangeError {
    /// The refusal of a program that was made of a text of this name.
    pub(super) fn of_program(error: PublishError, name: &str) -> Self {
        match error {
            PublishError::Load(error) => Self::Text(format!("{name}:{error}")),
            PublishError::Refused(refused) => Self::Unfit(format!("{name}: {refused}")),
            error => Self::Publish(error),
        }
    }
}

impl From<BadText> for ChangeError {
    fn from(bad: BadText) -> Self {
        match bad {
            BadText::Text(what) => Self::Text(what),
            BadText::Unfit(what) => Self::Unfit(what),
        }
    }
}

impl From<JournalError> for ChangeError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}
