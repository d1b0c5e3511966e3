//! The folder of the journal: its owner's alone, who is the one that runs tamis.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use super::JournalError;

/// What others may do in it: nothing.
const OTHERS: u32 = 0o077;

/// Makes it if it is missing.
pub(super) fn make(folder: &Path) -> Result<(), JournalError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(JournalError::new(folder, error))
        }
        _ => check(folder),
    }
}

/// Refuses one of another owner's, or that others may look into. One that is missing will be made.
pub(super) fn check(folder: &Path) -> Result<(), JournalError> {
    let found = match fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|error| JournalError::new(folder, error))?,
    };
    let (own, owner) = (rustix::process::geteuid().as_raw(), found.uid());
    let mode = found.mode() & 0o777;
    let wrong = match () {
        () if !found.is_dir() => "expected a folder".to_owned(),
        () if owner != own => format!("expected a folder of user {own}, found one of user {owner}"),
        () if mode & OTHERS != 0 => {
            format!("expected a folder that nobody else may open (chmod 700), found mode {mode:o}")
        }
        () => return Ok(()),
    };
    Err(JournalError::new(folder, wrong))
}
