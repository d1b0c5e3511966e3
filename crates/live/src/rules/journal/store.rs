//! The tables of the journal, and one transaction for each batch of records.
//!
//! Contract: after an error nothing is known of what is on disk until it has been opened again, which is done at
//! once: a transaction that turns out to be there counts as written. A number that each transaction raises tells.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pktio::file::create_anew;
use redb::backends::FileBackend;
use redb::{
    Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable,
    StorageBackend, Table, TableDefinition, WriteTransaction,
};
use rules::model::Family;

use super::{JournalError, Kept, Record, State};

/// What this tamis writes.
const FORMAT: &str = "tamis.journal/2";

/// What those before it wrote, which is read: it has no changes. Any other one is refused.
const BEFORE: &str = "tamis.journal/1";

const META: TableDefinition<'_, &str, &str> = TableDefinition::new("meta");
const COMMITS: TableDefinition<'_, (), u64> = TableDefinition::new("commits");
const REVISIONS: TableDefinition<'_, u64, &str> = TableDefinition::new("revisions");
/// By the revision that brought it, and the name of the family.
const TEXTS: TableDefinition<'_, (u64, &str), &str> = TableDefinition::new("texts");
/// By the same: the revision that brought what is changed, and the text.
const CHANGES: TableDefinition<'_, (u64, &str), (u64, &str)> = TableDefinition::new("changes");
const FILES: TableDefinition<'_, &str, &str> = TableDefinition::new("files");
const BANS: TableDefinition<'_, &str, &str> = TableDefinition::new("bans");
const SETS: TableDefinition<'_, &str, &str> = TableDefinition::new("sets");

/// Memory for pages.
const CACHE: usize = 8 << 20;

/// A file of fewer bytes is not worth compacting.
const SMALL: u64 = 8 << 20;

/// How a journal ends that has no name yet.
pub(super) const UNFINISHED: &str = "unfinished";

type Open = Box<dyn Fn() -> Result<Database, DatabaseError> + Send>;

/// An open database, or how to open it again.
pub(super) struct Store {
    name: PathBuf,
    open: Open,
    /// `None` after an error.
    database: Option<Database>,
    commits: u64,
}

impl Store {
    pub(super) fn open(name: PathBuf, open: Open) -> Result<Self, JournalError> {
        let mut store = Self { name, open, database: None, commits: 0 };
        store.open_again()?;
        Ok(store)
    }

    fn open_again(&mut self) -> Result<&Database, JournalError> {
        let fail = |error| JournalError::opening(&self.name, error);
        let database = (self.open)().map_err(fail)?;
        let commits = begun(&database).map_err(|error| JournalError::of(&self.name, error))?;
        self.commits = commits.map_err(|found| {
            let what = format!("expected {FORMAT}, found {found}");
            JournalError::damaged(&self.name, what)
        })?;
        Ok(self.database.insert(database))
    }

    /// All that is in it.
    pub(super) fn state(&self) -> Result<State, JournalError> {
        let Some(database) = &self.database else { return Ok(State::default()) };
        let state = read(database).map_err(|error| JournalError::of(&self.name, error))?;
        state.map_err(|what| JournalError::damaged(&self.name, what))
    }

    /// Writes a batch.
    pub(super) fn commit(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let commit = self.commits + 1;
        let database = match self.database.take() {
            Some(database) => self.database.insert(database),
            None => self.open_again()?,
        };
        match write(database, commit, records) {
            Ok(()) => self.commits = commit,
            Err(error) => {
                let error = JournalError::of(&self.name, error);
                // The lock on it goes with it, so first.
                self.database = None;
                if self.open_again().is_err() || self.commits != commit {
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// Opens a file, compacted if it is mostly empty. A new one has its name once it is one.
pub(super) fn open_file(file: &Path) -> Result<Database, DatabaseError> {
    if !file.exists() {
        let unfinished = file.with_extension(UNFINISHED);
        drop(open_backend(FileBackend::new(create_anew(&unfinished, 0o600)?)?)?);
        fs::rename(&unfinished, file)?;
        File::open(file.parent().unwrap_or(Path::new(".")))?.sync_all()?;
    }
    let length = fs::metadata(file)?.len();
    if length == 0 {
        // It was not when it got its name, and redb would begin a new one in it.
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty").into());
    }
    let open = || open_backend(FileBackend::new(opened(file)?)?);
    let mut database = open()?;
    let stored = stored(&database);
    if length > SMALL && stored.is_ok_and(|stored| stored < length / 4) {
        // A disk that is full has no room for it: then it stays as it is.
        let is_done = database.compact().is_ok();
        if !is_done {
            drop(database);
            database = open()?;
        }
    }
    Ok(database)
}

fn opened(file: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(file)
}

/// Opens storage, all pages checked.
pub(super) fn open_backend(backend: impl StorageBackend) -> Result<Database, DatabaseError> {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE).set_check_integrity_on_open(true);
    builder.create_with_backend(backend)
}

fn stored(database: &Database) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let stats = transaction.stats()?;
    transaction.abort()?;
    Ok(stats.stored_bytes() + stats.metadata_bytes())
}

/// The number of transactions so far, of a database that has a format now; or what format it has instead.
fn begun(database: &Database) -> Result<Result<u64, String>, redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(true);
    let commits = {
        let mut meta = transaction.open_table(META)?;
        let format = meta.get("format")?.map(|found| found.value().to_owned());
        let commits = transaction.open_table(COMMITS)?;
        let number = commits.get(())?.map_or(0, |number| number.value());
        drop(commits);
        match format.as_deref() {
            Some(FORMAT) => {
                drop(meta);
                transaction.abort()?;
                return Ok(Ok(number));
            }
            None | Some(BEFORE) => drop(meta.insert("format", FORMAT)?),
            Some(other) => return Ok(Err(other.to_owned())),
        }
        number
    };
    all_tables(&transaction)?;
    transaction.commit()?;
    Ok(Ok(commits))
}

/// Makes those that are missing, so that readers find all of them.
fn all_tables(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.open_table(COMMITS)?;
    transaction.open_table(REVISIONS)?;
    transaction.open_table(TEXTS)?;
    transaction.open_table(CHANGES)?;
    for table in [FILES, BANS, SETS] {
        transaction.open_table(table)?;
    }
    Ok(())
}

fn write(database: &Database, commit: u64, records: &[Record]) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    // What is damaged later is then told from what was torn before it was acknowledged.
    transaction.set_two_phase_commit(true);
    transaction.open_table(COMMITS)?.insert((), commit)?;
    for record in records {
        put(&transaction, record)?;
    }
    transaction.commit()?;
    Ok(())
}

fn put(transaction: &WriteTransaction, record: &Record) -> Result<(), redb::Error> {
    match record {
        Record::Revision { number, entry, texts } => {
            transaction.open_table(REVISIONS)?.insert(number, &**entry)?;
            let mut table = transaction.open_table(TEXTS)?;
            for (family, text) in texts {
                table.insert((*number, family.name()), &**text)?;
            }
        }
        Record::Change { number, family, of, text } => {
            let mut table = transaction.open_table(CHANGES)?;
            table.insert((*number, family.name()), (*of, &**text))?;
        }
        Record::Forgotten { revisions, texts } => {
            let mut table = transaction.open_table(REVISIONS)?;
            for number in revisions {
                table.remove(number)?;
            }
            let mut of_texts = transaction.open_table(TEXTS)?;
            let mut of_changes = transaction.open_table(CHANGES)?;
            for (number, family) in texts {
                of_texts.remove((*number, family.name()))?;
                of_changes.remove((*number, family.name()))?;
            }
        }
        Record::Confirm(confirm) => {
            let mut meta = transaction.open_table(META)?;
            match confirm {
                Some(confirm) => drop(meta.insert("confirm", &**confirm)?),
                None => drop(meta.remove("confirm")?),
            }
        }
        Record::Files(files) => {
            let mut table = transaction.open_table(FILES)?;
            table.retain(|_, _| false)?;
            for (family, hash) in files {
                table.insert(family.name(), &**hash)?;
            }
        }
        Record::Bans(kept) => keep(transaction.open_table(BANS)?, kept)?,
        Record::Sets(kept) => keep(transaction.open_table(SETS)?, kept)?,
    }
    Ok(())
}

fn keep(mut table: Table<'_, &str, &str>, kept: &[Kept]) -> Result<(), redb::Error> {
    for Kept { key, value } in kept {
        match value {
            Some(value) => drop(table.insert(&**key, &**value)?),
            None => drop(table.remove(&**key)?),
        }
    }
    Ok(())
}

/// All that is in it, or what is in it that no tamis writes.
fn read(database: &Database) -> Result<Result<State, String>, redb::Error> {
    let transaction = database.begin_read()?;
    let mut state = State {
        bans: pairs(&transaction, BANS)?.collect(),
        sets: pairs(&transaction, SETS)?.collect(),
        ..State::default()
    };
    state.confirm =
        transaction.open_table(META)?.get("confirm")?.map(|found| found.value().to_owned());
    for row in transaction.open_table(REVISIONS)?.iter()? {
        let (number, entry) = row?;
        state.revisions.insert(number.value(), entry.value().to_owned());
    }
    for row in transaction.open_table(TEXTS)?.iter()? {
        let (key, text) = row?;
        let (number, family) = key.value();
        let Some(family) = family_of(family) else { return Ok(Err(no_family(family))) };
        state.texts.insert((number, family), Arc::from(text.value()));
    }
    for row in transaction.open_table(CHANGES)?.iter()? {
        let (key, change) = row?;
        let ((number, family), (of, text)) = (key.value(), change.value());
        let Some(family) = family_of(family) else { return Ok(Err(no_family(family))) };
        state.changes.insert((number, family), (of, Arc::from(text)));
    }
    for (family, hash) in pairs(&transaction, FILES)? {
        let Some(family) = family_of(&family) else { return Ok(Err(no_family(&family))) };
        state.files.insert(family, hash);
    }
    Ok(Ok(state))
}

fn pairs(
    transaction: &ReadTransaction,
    table: TableDefinition<'static, &'static str, &'static str>,
) -> Result<impl Iterator<Item = (String, String)>, redb::Error> {
    let table = transaction.open_table(table)?;
    let mut pairs = Vec::new();
    for row in table.iter()? {
        let (key, value) = row?;
        pairs.push((key.value().to_owned(), value.value().to_owned()));
    }
    Ok(pairs.into_iter())
}

fn family_of(name: &str) -> Option<Family> {
    Family::ALL.into_iter().find(|family| family.name() == name)
}

fn no_family(name: &str) -> String {
    format!("expected a family, found \"{name}\"")
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("name", &self.name).finish_non_exhaustive()
    }
}
