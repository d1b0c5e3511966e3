//! The journal: what a run has acknowledged, for the run after it. An embedded database (redb) in a folder of its own.
//!
//! Contract: what [`Journal::record`] has taken without an error is on disk, whole, and what it refused is not; records
//! of callers that wait at the same time share one transaction, and one `fsync`. Opening reads all of it into a
//! [`State`], checks every page, and refuses a journal that is damaged: half of one is never used. After an error of
//! the disk it is opened anew before the next record, so a full disk costs what was refused and nothing else. What
//! it holds is bounded by its only writer, `rules::revisions`: records replace one another by key, and a file that has come to be mostly empty
//! is compacted when it is opened.
//!
//! Source: redb 4.6, its design (`docs/design.md` there): copy on write, checksums of pages, commits in two phases.

mod error;
mod folder;
mod group;
mod record;
mod store;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use redb::StorageBackend;

pub use error::JournalError;
pub use record::{Kept, Record, State};

use group::Group;
use store::Store;

/// The database in the journal's folder.
const FILE: &str = "tamis.redb";

/// The files in a journal's folder.
pub(crate) fn files(folder: &Path) -> [PathBuf; 2] {
    let file = folder.join(FILE);
    [file.with_extension(store::UNFINISHED), file]
}

/// What was acknowledged.
#[derive(Debug)]
pub struct Journal {
    /// For messages.
    name: PathBuf,
    group: Group,
    store: Mutex<Store>,
}

impl Journal {
    /// Opens the journal in a folder, which is made where it is missing; and what is in it.
    ///
    /// # Errors
    /// The folder is another user's, or others may look into it; the journal is damaged, of another tamis, or in use.
    pub fn open(folder: &Path) -> Result<(Self, State), JournalError> {
        folder::make(folder)?;
        let file = folder.join(FILE);
        let name = file.clone();
        let store = Store::open(name.clone(), Box::new(move || store::open_file(&file)))?;
        Self::of(name, store)
    }

    /// The same on storage of another kind, which `open` opens, also again after an error. `name` is for messages.
    ///
    /// # Errors
    /// Likewise.
    pub fn on<B: StorageBackend>(
        name: PathBuf,
        open: impl Fn() -> io::Result<B> + Send + 'static,
    ) -> Result<(Self, State), JournalError> {
        let open = move || store::open_backend(open()?);
        let store = Store::open(name.clone(), Box::new(open))?;
        Self::of(name, store)
    }

    /// Says whether a journal can be in this folder, without touching it.
    ///
    /// # Errors
    /// It cannot: why.
    pub fn check(folder: &Path) -> Result<(), JournalError> {
        folder::check(folder)
    }

    /// Says that it holds what its user never writes.
    pub(crate) fn damaged(&self, what: String) -> JournalError {
        JournalError::damaged(&self.name, what)
    }

    fn of(name: PathBuf, store: Store) -> Result<(Self, State), JournalError> {
        let state = store.state()?;
        Ok((Self { name, group: Group::default(), store: Mutex::new(store) }, state))
    }

    /// Writes records, all or none of them: they are on disk when this returns.
    ///
    /// # Errors
    /// They are not, and neither are those that others gave at the same time.
    pub fn record(&self, records: Vec<Record>) -> Result<(), JournalError> {
        self.group.record(records, &self.store)
    }
}
