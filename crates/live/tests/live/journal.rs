//! The journal on a disk that fails, tears what was not synchronised, and is full: held to a plain model.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use live::journal::{Journal, JournalError, Kept, Record, State};
use redb::StorageBackend;
use rules::model::Family;

use crate::disk::{Disk, Draw};

fn open(disk: &Disk) -> (Journal, State) {
    try_open(disk).unwrap_or_else(|error| panic!("{error}"))
}

fn try_open(disk: &Disk) -> Result<(Journal, State), JournalError> {
    let disk = disk.clone();
    Journal::on(PathBuf::from("disk"), move || Ok::<_, io::Error>(disk.clone()))
}

/// The records that a run would write at its step `number`: a revision, and what goes with it.
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
    drop(open(&disk));
    disk.lock().cached.clone()
}

const STEPS: u64 = 8;

#[test]
fn a_crash_at_any_point_loses_nothing_acknowledged_and_leaves_no_half() {
    let fresh = fresh();
    let disk = Disk::of(&fresh);
    let (journal, _) = open(&disk);
    (1..=STEPS).for_each(|step| journal.record(batch(step)).unwrap());
    let changes = disk.lock().changes;
    drop(journal);
    let mut in_flight = 0;
    for left in 0..changes {
        let disk = Disk::of(&fresh);
        disk.lock().left = Some(left);
        let mut acknowledged = State::default();
        let mut given = State::default();
        if let Ok((journal, _)) = try_open(&disk) {
            for step in 1..=STEPS {
                given = taken(acknowledged.clone(), &batch(step));
                if journal.record(batch(step)).is_err() {
                    break;
                }
                acknowledged = given.clone();
            }
        }
        assert!(disk.is_dead() && disk.lock().failures > 0, "it fails in each round");
        for seed in 1..4 {
            let (_, found) = open(&disk.after_crash(Draw(left as u64 * 7 + seed)));
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
        let (journal, mut acknowledged) = open(&disk);
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
        let (_, found) = open(&disk.after_crash(draw));
        assert_eq!(found, acknowledged, "run {run}");
    }
    assert!(refused > 50, "{refused}");
}

/// A journal of the previous release: without changes.
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
    let (journal, found) = open(&disk);
    assert_eq!(found, state);
    journal.record(batch(4)).unwrap();
    drop(journal);
    let (_, found) = open(&disk.after_crash(Draw(1)));
    assert_eq!(found, taken(state, &batch(4)));
}

/// A changed byte of the journal is reported, or did not matter.
#[test]
fn damage_is_told() {
    let disk = Disk::of(&fresh());
    let (journal, _) = open(&disk);
    (1..=STEPS).for_each(|step| journal.record(batch(step)).unwrap());
    drop(journal);
    let (_, expected) = open(&disk);
    let bytes = disk.lock().cached.clone();
    let (mut draw, mut told) = (Draw(1), 0);
    for _ in 0..300 {
        let mut bytes = bytes.clone();
        let at = draw.below(bytes.len());
        bytes[at] ^= 1 << draw.below(8);
        match try_open(&Disk::of(&bytes)) {
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
    let opener = move || Ok::<_, io::Error>(storage.clone());
    let (journal, _) = Journal::on(PathBuf::from("disk"), opener).unwrap();
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
    assert_eq!(open(&slow.0).1.bans.len(), CLIENTS * EACH);
}
