//! [`Redb`]: the store of one cloud, a database in a file.
//!
//! Contract: that of [`Store`]; what it took is on disk.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow, bail};
use overlay::{Identity, Pair, Record, Sources};
use pktio::file::create_anew;
use redb::{
    Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition,
    WriteTransaction,
};

use super::{Changes, KeptPolicy, LINES, Place, Store, VERSIONS, texts};

const META: TableDefinition<'_, &str, &str> = TableDefinition::new("meta");
const DEVICES: TableDefinition<'_, &str, &str> = TableDefinition::new("devices");
const INVITATIONS: TableDefinition<'_, &str, &str> = TableDefinition::new("invitations");
/// Identities by names, as messages have them.
const IDENTITIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("identities");
const POLICIES: TableDefinition<'_, u64, &str> = TableDefinition::new("policies");
const PLACES: TableDefinition<'_, &str, &str> = TableDefinition::new("places");
/// The ports of paths, by their pairs.
const PATHS: TableDefinition<'_, (&str, &str), u16> = TableDefinition::new("paths");
/// Where the two nodes of a path send from; empty where it has not sent.
const SOURCES: TableDefinition<'_, (&str, &str), (&str, &str)> = TableDefinition::new("sources");
const LOG: TableDefinition<'_, u64, &str> = TableDefinition::new("log");

/// What this release writes; any other is refused.
const FORMAT: &str = "tamis.cloud/1";

/// A database in a file, and a thread that waits for the disk where nobody else does.
pub(crate) struct Redb {
    database: Arc<Database>,
    /// To the thread. What it cannot keep ends it.
    soon: Option<(SyncSender<Changes>, JoinHandle<Result<()>>)>,
}

/// Changes that wait for the thread; with more the caller waits for the disk, too.
const WAITING: usize = 16;

impl Redb {
    /// Opens the database of a file, which is made if there is none.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if !path.exists() {
            // Its owner's alone from the beginning.
            drop(create_anew(path, 0o600)?);
        }
        let database = Database::create(path)?;
        let writing = database.begin_write()?;
        {
            let mut meta = writing.open_table(META)?;
            let format = meta.get("format")?.map(|format| format.value().to_owned());
            match format.as_deref() {
                Some(FORMAT) => {}
                Some(other) => bail!("expected {FORMAT}, found {other}"),
                None => drop(meta.insert("format", FORMAT)?),
            }
            writing.open_table(DEVICES)?;
            writing.open_table(INVITATIONS)?;
            writing.open_table(IDENTITIES)?;
            writing.open_table(POLICIES)?;
            writing.open_table(PLACES)?;
            writing.open_table(PATHS)?;
            writing.open_table(SOURCES)?;
            writing.open_table(LOG)?;
        }
        writing.commit()?;
        Ok(Self { database: Arc::new(database), soon: None })
    }

    /// The thread, which is there once it is needed.
    fn soon(&mut self) -> Result<&SyncSender<Changes>> {
        if self.soon.is_none() {
            let (to, changes) = sync_channel(WAITING);
            let database = Arc::clone(&self.database);
            let keep = move || changes.iter().try_for_each(|changes| keep(&database, &changes));
            let thread = thread::Builder::new().name("soon".to_owned()).spawn(keep)?;
            self.soon = Some((to, thread));
        }
        self.soon.as_ref().map(|(to, _)| to).context("no thread")
    }
}

impl Drop for Redb {
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            eprintln!("tamis-cloud: the database: {error:#}");
        }
    }
}

impl Store for Redb {
    fn records(&self) -> Result<Vec<Record>> {
        let reading = self.database.begin_read()?;
        let mut records = Vec::new();
        for row in reading.open_table(DEVICES)?.iter()? {
            let (name, kept) = row?;
            records.push(Record::Device(texts::device(name.value(), kept.value())?));
        }
        for row in reading.open_table(INVITATIONS)?.iter()? {
            let (key, kept) = row?;
            records.push(Record::Invitation(texts::invitation(key.value(), kept.value())?));
        }
        for row in reading.open_table(IDENTITIES)?.iter()? {
            let (name, kept) = row?;
            let identity = Identity::from_bytes(kept.value());
            let identity = identity.with_context(|| name.value().to_owned())?;
            records.push(Record::Identity(Box::new(identity)));
        }
        for row in reading.open_table(PATHS)?.iter()? {
            let (ends, port) = row?;
            records.push(Record::Path(pair(ends.value())?, port.value()));
        }
        Ok(records)
    }

    fn policy(&self) -> Result<Option<KeptPolicy>> {
        let policies = self.database.begin_read()?.open_table(POLICIES)?;
        let last = policies.last()?.map(|(_, kept)| serde_json::from_str(kept.value()));
        last.transpose().context("the policy")
    }

    fn places(&self) -> Result<Vec<Place>> {
        let places = self.database.begin_read()?.open_table(PLACES)?;
        let places = places.iter()?.map(|row| {
            let (key, place) = row?;
            Ok((key.value().parse()?, place.value().parse()?))
        });
        places.collect()
    }

    fn sources(&self) -> Result<Vec<(Pair, Sources)>> {
        let sources = self.database.begin_read()?.open_table(SOURCES)?;
        let sources = sources.iter()?.map(|row| {
            let (ends, bound) = row?;
            let at = |text: &str| match text {
                "" => Ok(None),
                text => text.parse().map(Some),
            };
            let (first, second) = bound.value();
            Ok((pair(ends.value())?, [at(first)?, at(second)?]))
        });
        sources.collect()
    }

    fn commit(&mut self, changes: &Changes) -> Result<()> {
        keep(&self.database, changes)
    }

    fn commit_soon(&mut self, changes: Changes) -> Result<()> {
        match self.soon()?.send(changes) {
            Ok(()) => Ok(()),
            // The thread has ended, and says why.
            Err(_) => self.flush().and_then(|()| bail!("the thread that keeps changes has ended")),
        }
    }

    fn flush(&mut self) -> Result<()> {
        let Some((to, thread)) = self.soon.take() else { return Ok(()) };
        drop(to);
        thread.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")))
    }

    fn lines(&self, most: usize) -> Result<Vec<String>> {
        let log = self.database.begin_read()?.open_table(LOG)?;
        let lines = log.iter()?.rev().take(most).map(|row| Ok(row?.1.value().to_owned()));
        let mut lines = lines.collect::<Result<Vec<_>>>()?;
        lines.reverse();
        Ok(lines)
    }
}

/// Keeps changes, all of them or nothing.
fn keep(database: &Database, changes: &Changes) -> Result<()> {
    let writing = database.begin_write()?;
    changes.records.iter().try_for_each(|record| write(&writing, record))?;
    if let Some(policy) = &changes.policy {
        let mut policies = writing.open_table(POLICIES)?;
        policies.insert(policy.version, &*serde_json::to_string(policy)?)?;
        while policies.len()? > VERSIONS {
            policies.pop_first()?;
        }
    }
    {
        let mut places = writing.open_table(PLACES)?;
        for (key, place) in &changes.places {
            places.insert(&*key.to_string(), &*place.to_string())?;
        }
        for key in &changes.displaced {
            places.remove(&*key.to_string())?;
        }
        let mut sources = writing.open_table(SOURCES)?;
        for (pair, bound) in &changes.sources {
            let text = |at: &Option<SocketAddr>| at.map_or_else(String::new, |at| at.to_string());
            let [first, second] = bound.each_ref().map(text);
            sources.insert(ends(pair), (&*first, &*second))?;
        }
        let mut log = writing.open_table(LOG)?;
        let next = log.last()?.map_or(0, |(number, _)| number.value() + 1);
        for (number, line) in (next..).zip(&changes.lines) {
            log.insert(number, &**line)?;
        }
        while log.len()? > LINES {
            log.pop_first()?;
        }
    }
    Ok(writing.commit()?)
}

/// The names of a pair.
fn ends(pair: &Pair) -> (&str, &str) {
    (pair.0.as_str(), pair.1.as_str())
}

fn pair((first, second): (&str, &str)) -> Result<Pair> {
    Ok(Pair::of(&first.parse()?, &second.parse()?))
}

fn write(writing: &WriteTransaction, record: &Record) -> Result<()> {
    let mut devices = writing.open_table(DEVICES)?;
    let mut invitations = writing.open_table(INVITATIONS)?;
    match record {
        Record::Device(device) => {
            devices.insert(device.name.as_str(), &*texts::of_device(device)?)?;
        }
        Record::Invitation(invitation) => {
            let key = invitation.key.to_string();
            invitations.insert(&*key, &*texts::of_invitation(invitation)?)?;
        }
        Record::Identity(identity) => {
            let name = identity.claims.name.as_str();
            writing.open_table(IDENTITIES)?.insert(name, &*identity.to_bytes())?;
        }
        Record::Expired(key) => drop(invitations.remove(&*key.to_string())?),
        Record::Path(pair, port) => drop(writing.open_table(PATHS)?.insert(ends(pair), port)?),
        Record::Parted(pair) => {
            writing.open_table(PATHS)?.remove(ends(pair))?;
            writing.open_table(SOURCES)?.remove(ends(pair))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use overlay::{Claims, Device, Invitation, Signer};
    use tunnel::PublicKey;

    use super::*;

    #[test]
    fn what_was_kept_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cloud.redb");
        let (key, at) = (PublicKey::new([1; 32]), "192.0.2.7:9".parse().unwrap());
        let name: overlay::Name = "nas".parse().unwrap();
        let device = Device { name: name.clone(), key, number: 2, revoked: false };
        let one = Invitation { key: PublicKey::new([2; 32]), name, expires: 7, used: Some(key) };
        let (v4, v6) = ([10, 99, 0, 2].into(), "fd00::2".parse().unwrap());
        let claims = Claims { key, name: one.name.clone(), v4, v6, expires: 9 };
        let identity = Signer::of_seed(&[1; 32]).unwrap().sign(claims);
        let [near, far] = ["tv", "web"].map(|it| Pair::of(&it.parse().unwrap(), &one.name));
        let version =
            |version| KeptPolicy { version, text: format!("# {version}"), configured: false };
        let gone = Invitation { key: PublicKey::new([3; 32]), used: None, ..one.clone() };
        {
            let mut store = Redb::open(&path).unwrap();
            let records = vec![
                Record::Device(device.clone()),
                Record::Invitation(one.clone()),
                Record::Invitation(gone.clone()),
                Record::Identity(Box::new(identity.clone())),
                Record::Path(near.clone(), 52_000),
                Record::Path(far.clone(), 52_001),
            ];
            let places = vec![(key, at), (gone.key, at)];
            let sources = [&near, &far].map(|pair| (pair.clone(), [Some(at), None])).to_vec();
            let lines = vec!["one".to_owned()];
            let changes = Changes { records, places, sources, lines, ..Changes::default() };
            store.commit(&changes).unwrap();
            let records = vec![Record::Expired(gone.key), Record::Parted(far)];
            let (lines, displaced) = (vec!["two".to_owned()], vec![gone.key]);
            let policy = Some(version(1));
            let changes = Changes { records, displaced, lines, policy, ..Changes::default() };
            store.commit(&changes).unwrap();
            for number in 2..VERSIONS + 9 {
                let policy = Some(version(number));
                store.commit(&Changes { policy, ..Changes::default() }).unwrap();
            }
            assert!(Redb::open(&path).is_err(), "one cloud has it at a time");
        }
        let store = Redb::open(&path).unwrap();
        assert_eq!(store.policy().unwrap(), Some(version(VERSIONS + 8)));
        let path = Record::Path(near.clone(), 52_000);
        let identity = Record::Identity(Box::new(identity));
        let expected = [Record::Device(device), Record::Invitation(one), identity, path];
        assert_eq!(store.records().unwrap(), expected);
        assert_eq!(store.sources().unwrap(), [(near, [Some(at), None])]);
        assert_eq!(store.places().unwrap(), [(key, at)]);
        assert_eq!(store.lines(9).unwrap(), ["one", "two"]);
        assert_eq!(store.lines(1).unwrap(), ["two"]);
    }

    #[test]
    fn what_is_kept_soon_is_kept_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cloud.redb");
        let pair =
            |number: u16| Pair::of(&"a".parse().unwrap(), &format!("b{number}").parse().unwrap());
        let soon = |records| Changes { records, ..Changes::default() };
        let mut store = Redb::open(&path).unwrap();
        for number in 0..40 {
            let paths = vec![Record::Path(pair(number), number)];
            store.commit_soon(soon(paths)).unwrap();
            if number % 2 == 0 {
                store.commit_soon(soon(vec![Record::Parted(pair(number))])).unwrap();
            }
        }
        store.flush().unwrap();
        assert_eq!(store.records().unwrap().len(), 20);
        store.commit_soon(soon(vec![Record::Parted(pair(1))])).unwrap();
        drop(store);
        assert_eq!(Redb::open(&path).unwrap().records().unwrap().len(), 19);
    }
}
