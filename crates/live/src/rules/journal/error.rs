//! [`JournalError`]: why the journal was not opened, or did not take a record.

use std::fmt;
use std::path::Path;

use packet::visible;
use redb::{DatabaseError, StorageError};

/// Why the journal was not opened, or did not take a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalError {
    /// The folder or file, as it was named.
    file: String,
    what: String,
    is_damage: bool,
}

impl JournalError {
    pub(crate) fn new(file: &Path, what: impl fmt::Display) -> Self {
        let file = visible::word(&file.to_string_lossy()).into_owned();
        Self { file, what: what.to_string(), is_damage: false }
    }

    /// What was found in the file is not what was written to it, or not by this tamis.
    pub(super) fn damaged(file: &Path, what: impl fmt::Display) -> Self {
        Self { is_damage: true, ..Self::new(file, what) }
    }

    pub(super) fn of(file: &Path, error: impl Into<redb::Error>) -> Self {
        match error.into() {
            redb::Error::Corrupted(what) => Self::damaged(file, what),
            redb::Error::DatabaseAlreadyOpen => Self::new(file, "another tamis has it"),
            // redb says so of a file that does not begin as its own do.
            redb::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                Self::damaged(file, error)
            }
            redb::Error::Io(error) => Self::new(file, error),
            error @ (redb::Error::UpgradeRequired(_)
            | redb::Error::RepairAborted
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TypeDefinitionChanged { .. }) => Self::damaged(file, error),
            error => Self::new(file, error),
        }
    }

    pub(super) fn opening(file: &Path, error: DatabaseError) -> Self {
        match error {
            DatabaseError::Storage(StorageError::Corrupted(what)) => Self::damaged(file, what),
            error => Self::of(file, error),
        }
    }

    /// Whether the journal is damaged, and not the disk full, or someone else's.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.is_damage
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, what, is_damage } = self;
        match is_damage {
            false => write!(f, "{file}: {what}"),
            true => write!(
                f,
                "{file}: this journal is damaged, and nothing of it is used: {what}. Move it away (mv {file} \
                 {file}.damaged) and start again: then the files of the configuration are in force, and changes that \
                 were made since by tamis ctl are lost"
            ),
        }
    }
}

impl std::error::Error for JournalError {}
