//! What two directories that share etcd keep is what one keeps on its disk. Needs etcd; without, it says so and skips.

use std::net::SocketAddr;

use overlay::{Claims, Device, Invitation, Name, Signer};
use tunnel::PublicKey;

use super::*;
use crate::etcd::Taken;
use crate::etcd::process::Server;
use crate::etcd::tests::compact;
use crate::store::Redb;

/// Names, keys and pairs that things are of: few, so that they change.
const FEW: u8 = 12;
const ROUNDS: u64 = 300;

fn key(number: u8) -> PublicKey {
    PublicKey::new([number; 32])
}

fn name(number: u8) -> Name {
    format!("n{number}").parse().unwrap()
}

/// Anything that a cloud keeps.
fn any_record(random: &mut fastrand::Rng) -> Record {
    let (one, other) = (random.u8(0..FEW), random.u8(0..FEW));
    let pair = Pair::of(&name(one), &name(FEW + other));
    match random.u8(0..6) {
        0 => Record::Device(Device {
            name: name(one),
            key: key(other),
            number: other.into(),
            revoked: random.bool(),
        }),
        1 => {
            let used = random.bool().then(|| key(other));
            Record::Invitation(Invitation { key: key(one), name: name(other), expires: 7, used })
        }
        2 => {
            let (v4, v6) = ([10, 99, 0, other].into(), u128::from(other).into());
            let claims = Claims { key: key(one), name: name(one), v4, v6, expires: other.into() };
            Record::Identity(Box::new(Signer::of_seed(&[1; 32]).unwrap().sign(claims)))
        }
        3 => Record::Expired(key(one)),
        4 => Record::Path(pair, other.into()),
        _ => Record::Parted(pair),
    }
}

fn any_changes(random: &mut fastrand::Rng, version: &mut u64, round: u64) -> Changes {
    let at = |number: u8| SocketAddr::from(([192, 0, 2, number], 9));
    let (record, mut records) = (any_record(random), Vec::new());
    // As authority and directory both keep what was enrolled; the last word counts.
    for number in 0..random.u8(0..3) {
        let (name, key) = (name(random.u8(0..FEW)), key(random.u8(0..FEW)));
        records.push(record.clone());
        records.push(Record::Device(Device { name, key, number: number.into(), revoked: false }));
    }
    records.push(record);
    let mut changes = Changes { records, ..Changes::default() };
    let (one, other) = (random.u8(0..FEW), random.u8(0..FEW));
    match random.u8(0..5) {
        0 => changes.places.push((key(one), at(other))),
        1 => changes.displaced.push(key(one)),
        2 => {
            let pair = Pair::of(&name(one), &name(2 * FEW + other));
            changes.sources.push((pair, [random.bool().then(|| at(one)), Some(at(other))]));
        }
        3 => {
            *version += 1;
            let (version, text) = (*version, format!("# {round}"));
            changes.policy = Some(KeptPolicy { version, text, configured: random.bool() });
        }
        _ => changes.lines = (0..random.u64(1..40)).map(|it| format!("{round}.{it}")).collect(),
    }
    changes
}

/// All that a store has, in an order of its own making.
fn all(store: &impl Store) -> (Vec<String>, Option<KeptPolicy>, Vec<String>) {
    let mut rows: Vec<String> =
        store.records().unwrap().iter().map(|it| format!("{it:?}")).collect();
    rows.extend(store.places().unwrap().iter().map(|it| format!("{it:?}")));
    rows.extend(store.sources().unwrap().iter().map(|it| format!("{it:?}")));
    rows.sort();
    (rows, store.policy().unwrap(), store.lines(usize::MAX).unwrap())
}

/// The store of the directory that is in charge next.
fn taken(etcd: &Arc<Etcd>) -> Shared {
    loop {
        if let Ok(Taken::Ours(charge)) = etcd.take_charge("192.0.2.1:9") {
            return Shared::open(Arc::clone(etcd), charge).unwrap();
        }
        thread::sleep(SOON);
    }
}

/// Keeps changes, however long etcd is away, as a service does.
fn keep_at_last(store: &mut Shared, changes: &mut Changes) {
    while store.commit(changes).is_err() {
        changes.lines.clear();
        assert!(store.stand().unwrap().is_some() || !store.common.lock().is_over);
        thread::sleep(SOON);
    }
}

#[test]
fn what_two_directories_keep_is_what_one_would() {
    let Some(mut server) = Server::here() else { return };
    server.wait();
    let mut random = fastrand::Rng::new();
    println!("seed {}", random.get_seed());
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Redb::open(&folder.path().join("cloud.redb")).unwrap();
    let etcd = Arc::new(Etcd::new(vec![server.at().to_owned()], "home.internal"));
    let mut store = taken(&etcd);
    let mut version = 0;
    for round in 0..ROUNDS {
        let mut changes = any_changes(&mut random, &mut version, round);
        disk.commit(&changes).unwrap();
        match random.u8(0..40) {
            0 => {
                server.kill();
                let _ = store.commit(&changes);
                changes.lines.clear();
                server.start();
                server.wait();
            }
            1 => compact(&etcd),
            2 => {
                drop(store);
                store = taken(&etcd);
            }
            _ => {}
        }
        keep_at_last(&mut store, &mut changes);
        if round % 10 == 9 || round + 1 == ROUNDS {
            while !store.common.lock().waiting.is_empty() {
                store.flush().unwrap();
            }
            assert_eq!(all(&store), all(&disk), "round {round}");
        }
    }
}

#[test]
fn who_is_no_longer_in_charge_writes_nothing_and_says_so() {
    let Some(server) = Server::here() else { return };
    server.wait();
    let etcd = Arc::new(Etcd::new(vec![server.at().to_owned()], "home.internal"));
    let mut first = taken(&etcd);
    let record = |number: u8| {
        Record::Device(Device { name: name(0), key: key(number), number: 2, revoked: false })
    };
    let device = |number| Changes { records: vec![record(number)], ..Changes::default() };
    first.commit(&device(1)).unwrap();
    // Its lease ends without its knowing, as where it slept.
    etcd.give_back(&first.charge).unwrap();
    let mut second = taken(&etcd);
    second.commit(&device(2)).unwrap();
    let error = first.commit(&device(3)).unwrap_err().to_string();
    assert!(error.starts_with("another directory is in charge"), "{error}");
    assert!(first.stand().is_err() && first.flush().is_err());
    drop(first);
    assert_eq!(second.records().unwrap(), [record(2)]);
    assert_eq!(second.stand().unwrap(), None, "and it takes nothing with it");
}

/// A cloud that had its own disk goes on with etcd, also where it was killed in the midst of that.
#[test]
fn a_store_that_is_new_begins_with_what_a_disk_has() {
    let Some(server) = Server::here() else { return };
    server.wait();
    let mut random = fastrand::Rng::new();
    println!("seed {}", random.get_seed());
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Redb::open(&folder.path().join("cloud.redb")).unwrap();
    for round in 0..ROUNDS {
        disk.commit(&any_changes(&mut random, &mut round.clone(), round)).unwrap();
    }
    let etcd = Arc::new(Etcd::new(vec![server.at().to_owned()], "home.internal"));
    let mut store = taken(&etcd);
    assert!(store.is_new());
    let half = Changes { records: disk.records().unwrap(), ..Changes::default() };
    store.commit(&half).unwrap();
    drop(store);
    let mut store = taken(&etcd);
    assert!(store.is_new());
    store.begin(Some(&disk)).unwrap();
    assert_eq!(all(&store), all(&disk));
    drop(store);
    assert!(!taken(&etcd).is_new());
}

#[test]
fn lines_that_wait_are_as_many_as_are_kept() {
    let Some(mut server) = Server::here() else { return };
    server.wait();
    let etcd = Arc::new(Etcd::new(vec![server.at().to_owned()], "home.internal"));
    let mut store = taken(&etcd);
    server.kill();
    for part in 0..3 {
        let lines = (0..LINES / 2).map(|number| format!("{part}.{number}")).collect();
        store.commit_soon(Changes { lines, ..Changes::default() }).unwrap();
    }
    assert!(store.common.lock().waiting.len() as u64 <= LINES + ROWS as u64);
    while store.stand().unwrap().is_none() {
        thread::sleep(SOON);
    }
    let lines = store.lines(usize::MAX).unwrap();
    assert!(
        lines[0].starts_with("what was before is not here: etcd does not answer"),
        "{}",
        lines[0]
    );
    assert_eq!(lines.last().unwrap(), "2.4999");
    server.start();
    server.wait();
    while !store.common.lock().waiting.is_empty() {
        store.flush().unwrap();
        thread::sleep(SOON);
    }
    let lines = store.lines(usize::MAX).unwrap();
    assert_eq!((lines.len() as u64, &*lines[0]), (LINES, "1.0"));
}

#[test]
fn a_device_and_its_one_time_key_are_of_one_transaction() {
    let row = |key: &str| (key.to_owned(), Some("x".to_owned()));
    let pair = [row("device/a"), row("invitation/b")];
    for before in [0, 1, ROWS - 2, ROWS - 1, ROWS] {
        let mut rows: Rows = (0..before).map(|it| row(&format!("invitation/{it}"))).collect();
        rows.extend(pair.iter().cloned());
        rows.extend(pair.iter().cloned());
        let parts = parts(rows.clone());
        assert!(parts.iter().all(|part| part.len() <= ROWS + 1), "{before}");
        assert!(parts.iter().all(|part| part.last().unwrap().0 != "device/a"), "{before}");
        assert_eq!(parts.concat(), rows);
    }
    let long = |key: &str| (key.to_owned(), Some("x".repeat(BYTES)));
    assert_eq!(parts(vec![long("a"), long("b"), row("c")]).len(), 3);
}
