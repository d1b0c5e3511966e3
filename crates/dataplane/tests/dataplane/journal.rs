//! The journal on a disk that fails, tears what was not synchronised, and is full: held to a plain model.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use dataplane::run::journal::{Journal, Kept, Record, State};
use redb::StorageBackend;
use rules::model::Family;

/// A disk with a cache that a crash loses, or writes in part.
#[derive(Debug, Clone, Default)]
struct Disk(Arc<Mutex<Platter>>);

#[derive(Debug, Default)]
struct Platter {
    cached: Vec<u8>,
    durable: Vec<u8>,
    /// What was done since the last synchronisation.
    unsynced: Vec<Done>,
    /// Changes until it fails for good.
    left: Option<usize>,
    /// Bytes that it may come to have.
    room: Option<u64>,
    changes: usize,
    syncs: usize,
}

#[derive(Debug, Clone)]
enum Done {
    Length(u64),
    Written(u64, Vec<u8>),
}

impl Disk {
    fn lock(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap()
    }

    fn of(bytes: &[u8]) -> Self {
        let platter =
            Platter { cached: bytes.to_vec(), durable: bytes.to_vec(), ..Platter::default() };
        Self(Arc::new(Mutex::new(platter)))
    }

    /// What is found after the power was off: some of what was not synchronised, by `draw`, and of one write a part.
    fn after_crash(&self, mut draw: Draw) -> Self {
        let platter = self.lock();
        let mut bytes = platter.durable.clone();
        for done in &platter.unsynced {
            match (done, draw.below(3)) {
                (_, 0) => {}
                (Done::Length(length), _) => bytes.resize(*length as usize, 0),
                (Done::Written(at, written), whole) => {
                    let length = match whole {
                        1 => written.len(),
                        _ => draw.below(written.len() + 1),
                    };
                    let at = *at as usize;
                    bytes.resize(bytes.len().max(at + length), 0);
                    bytes[at..at + length].copy_from_slice(&written[..length]);
                }
            }
        }
        Self::of(&bytes)
    }

    fn open(&self) -> (Journal, State) {
        self.try_open().unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_open(&self) -> Result<(Journal, State), dataplane::run::journal::JournalError> {
        let disk = self.clone();
        Journal::on(PathBuf::from("disk"), move || Ok::<_, io::Error>(disk.clone()))
    }
}

impl Platter {
    fn change(&mut self) -> Result<(), io::Error> {
        self.changes += 1;
        match &mut self.left {
            Some(0) => Err(io::Error::other("the power is off")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn grow(&self, to: u64) -> Result<(), io::Error> {
        match self.room {
            Some(room) if to > room => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64, io::Error> {
        Ok(self.lock().cached.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        let platter = self.lock();
        let from = platter.cached.get(offset as usize..offset as usize + out.len());
        let none = || io::Error::from(io::ErrorKind::UnexpectedEof);
        out.copy_from_slice(from.ok_or_else(none)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        let mut platter = self.lock();
        platter.change()?;
        platter.grow(len)?;
        platter.cached.resize(len as usize, 0);
        platter.unsynced.push(Done::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        let mut platter = self.lock();
        platter.change()?;
        platter.syncs += 1;
        platter.durable = platter.cached.clone();
        platter.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        let mut platter = self.lock();
        platter.change()?;
        let end = offset as usize + data.len();
        platter.grow(end as u64)?;
        let length = platter.cached.len().max(end);
        platter.cached.resize(length, 0);
        platter.cached[offset as usize..end].copy_from_slice(data);
        platter.unsynced.push(Done::Written(offset, data.to_vec()));
        Ok(())
    }
}

/// Numbers by xorshift.
#[derive(Debug, Clone, Copy)]
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// What a run would write at its step `number`: a revision, and what goes with it.
fn batch(number: u64) -> Vec<Record> {
    let text: Arc<str> = format!("*filter\n# {number}\n{}", "-A FORWARD\n".repeat(200)).into();
    let kept = |key: u64, value: Option<u64>| Kept {
        key: format!("10.0.0.{key}"),
        value: value.map(|value| format!("ban {value}")),
    };
    let mut records = vec![
        Record::Revision {
            number,
            entry: format!("{{\"revision\": {number}}}"),
            texts: vec![(Family::Ipv4, Arc::clone(&text)), (Family::Ipv6, text)],
        },
        Record::Change {
            number,
            family: Family::Arp,
            of: number - 1,
            text: format!("*filter\n-A INPUT -j DROP\n# {number}\n").into(),
        },
        Record::Confirm(number.is_multiple_of(3).then(|| number.to_string())),
        Record::Bans(vec![kept(number % 5, Some(number)), kept((number + 1) % 5, None)]),
        Record::Sets(vec![kept(number, Some(number))]),
        Record::Files(vec![(Family::Ipv4, number.to_string())]),
    ];
    if let Some(gone) = number.checked_sub(4) {
        let texts = vec![(gone, Family::Ipv4), (gone, Family::Ipv6), (gone, Family::Arp)];
        records.push(Record::Forgotten { revisions: vec![gone], texts });
    }
    records
}

fn taken(mut state: State, records: &[Record]) -> State {
    records.iter().for_each(|record| state.take(record));
    state
}

/// A new journal on a disk.
fn fresh() -> Vec<u8> {
    let disk = Disk::default();
    drop(disk.open());
    disk.lock().cached.clone()
}

const STEPS: u64 = 8;

#[test]
fn a_crash_at_any_point_loses_nothing_acknowledged_and_leaves_no_half() {
    let fresh = fresh();
    let disk = Disk::of(&fresh);
    let (journal, _) = disk.open();
    (1..=STEPS).for_each(|step| journal.record(batch(step)).unwrap());
    let changes = disk.lock().changes;
    drop(journal);
    let mut in_flight = 0;
    for left in 0..changes {
        let disk = Disk::of(&fresh);
        disk.lock().left = Some(left);
        let mut acknowledged = State::default();
        let mut given = State::default();
        if let Ok((journal, _)) = disk.try_open() {
            for step in 1..=STEPS {
                given = taken(acknowledged.clone(), &batch(step));
                if journal.record(batch(step)).is_err() {
                    break;
                }
                acknowledged = given.clone();
            }
        }
        for seed in 1..4 {
            let (_, found) = disk.after_crash(Draw(left as u64 * 7 + seed)).open();
            assert!(found == acknowledged || found == given, "{left} {seed}: {found:?}");
            in_flight += usize::from(found != acknowledged);
        }
    }
    assert!(in_flight > 0, "no crash was late enough to leave what nobody was told");
}

#[test]
fn a_full_disk_refuses_and_takes_more_once_there_is_room() {
    let fresh = fresh();
    let mut refused = 0;
    for run in 0..100 {
        let disk = Disk::of(&fresh);
        let (journal, mut acknowledged) = disk.open();
        let mut draw = Draw(run + 1);
        for step in 1..=12 {
            let is_full = draw.below(3) == 0;
            let length = disk.lock().cached.len() as u64;
            // Not even what is there can be written again, now and then.
            disk.lock().room = is_full.then(|| [length, length / 2][draw.below(2)]);
            let large: Arc<str> = "-A FORWARD -j ACCEPT\n".repeat(draw.below(8_000)).into();
            let mut records = batch(step);
            records.push(Record::Revision {
                number: 1000 + step,
                entry: String::new(),
                texts: vec![(Family::Arp, large)],
            });
            match journal.record(records.clone()) {
                Ok(()) => acknowledged = taken(acknowledged, &records),
                Err(error) => {
                    refused += 1;
                    assert!(is_full, "{error}");
                    assert!(!error.is_damage(), "{error}");
                }
            }
        }
        disk.lock().room = None;
        let last = batch(99);
        journal.record(last.clone()).unwrap();
        let acknowledged = taken(acknowledged, &last);
        let (_, found) = disk.after_crash(draw).open();
        assert_eq!(found, acknowledged, "run {run}");
    }
    assert!(refused > 50, "{refused}");
}

/// What the release before wrote: without changes.
#[test]
fn a_journal_of_format_1_is_read_and_written_on() {
    let disk = Disk::default();
    let mut state = State::default();
    {
        let database = redb::Builder::new().create_with_backend(disk.clone()).unwrap();
        let write = database.begin_write().unwrap();
        type Words = redb::TableDefinition<'static, &'static str, &'static str>;
        let table = |name| Words::new(name);
        write.open_table(table("meta")).unwrap().insert("format", "tamis.journal/1").unwrap();
        let commits = redb::TableDefinition::<(), u64>::new("commits");
        write.open_table(commits).unwrap().insert((), 7).unwrap();
        let revisions = redb::TableDefinition::<u64, &str>::new("revisions");
        write.open_table(revisions).unwrap().insert(3, "{}").unwrap();
        let texts = redb::TableDefinition::<(u64, &str), &str>::new("texts");
        write.open_table(texts).unwrap().insert((3, "ip"), "*filter\nCOMMIT\n").unwrap();
        write.open_table(table("files")).unwrap().insert("ip", "hash").unwrap();
        write.open_table(table("bans")).unwrap().insert("1", "ban 192.0.2.1").unwrap();
        write.open_table(table("sets")).unwrap();
        write.commit().unwrap();
    }
    state.revisions.insert(3, "{}".to_owned());
    state.texts.insert((3, Family::Ipv4), "*filter\nCOMMIT\n".into());
    state.files.insert(Family::Ipv4, "hash".to_owned());
    state.bans.insert("1".to_owned(), "ban 192.0.2.1".to_owned());
    let (journal, found) = disk.open();
    assert_eq!(found, state);
    journal.record(batch(4)).unwrap();
    drop(journal);
    let (_, found) = disk.after_crash(Draw(1)).open();
    assert_eq!(found, taken(state, &batch(4)));
}

/// A byte of it that is another one is told, or was of no use.
#[test]
fn damage_is_told() {
    let disk = Disk::of(&fresh());
    let (journal, _) = disk.open();
    (1..=STEPS).for_each(|step| journal.record(batch(step)).unwrap());
    drop(journal);
    let (_, expected) = disk.open();
    let bytes = disk.lock().cached.clone();
    let (mut draw, mut told) = (Draw(1), 0);
    for _ in 0..300 {
        let mut bytes = bytes.clone();
        let at = draw.below(bytes.len());
        bytes[at] ^= 1 << draw.below(8);
        match Disk::of(&bytes).try_open() {
            Ok((_, found)) => assert_eq!(found, expected, "byte {at}"),
            Err(error) => {
                told += 1;
                assert!(error.to_string().contains("disk: "), "{error}");
            }
        }
    }
    assert!(told > 0);
}

/// Storage whose synchronisation takes its time.
#[derive(Debug, Clone)]
struct Slow(Disk, Arc<AtomicUsize>);

impl StorageBackend for Slow {
    fn len(&self) -> Result<u64, io::Error> {
        self.0.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.0.read(offset, out)
    }
    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.0.set_len(len)
    }
    fn sync_data(&self) -> Result<(), io::Error> {
        thread::sleep(Duration::from_millis(2));
        self.1.fetch_add(1, Relaxed);
        self.0.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.0.write(offset, data)
    }
}

#[test]
fn those_who_wait_together_share_a_synchronisation() {
    const CLIENTS: usize = 8;
    const EACH: usize = 25;
    let slow = Slow(Disk::default(), Arc::default());
    let storage = slow.clone();
    let open = move || Ok::<_, io::Error>(storage.clone());
    let (journal, _) = Journal::on(PathBuf::from("disk"), open).unwrap();
    let before = slow.1.load(Relaxed);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let journal = &journal;
            scope.spawn(move || {
                for number in 0..EACH {
                    let key = format!("{client} {number}");
                    let kept = Kept { key, value: Some(String::new()) };
                    journal.record(vec![Record::Bans(vec![kept])]).unwrap();
                }
            });
        }
    });
    let syncs = slow.1.load(Relaxed) - before;
    assert!(syncs < CLIENTS * EACH, "{syncs} for {} records", CLIENTS * EACH);
    drop(journal);
    assert_eq!(slow.0.open().1.bans.len(), CLIENTS * EACH);
}
