//! Tests against the distribution's etcd. Without it they say so and skip.

use std::thread;
use std::time::{Duration, Instant};

use super::process::Server;
use super::*;

fn started() -> Option<Server> {
    let server = Server::here()?;
    server.wait();
    Some(server)
}

fn client(server: &Server) -> Etcd {
    Etcd::new(vec![server.at().to_owned()], "home.internal")
}

/// In charge, once nobody else is.
fn in_charge(etcd: &Etcd) -> Charge {
    loop {
        match etcd.take_charge("192.0.2.1:9") {
            Ok(Taken::Ours(charge)) => return charge,
            _ => thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn put(key: &str, value: &str) -> Rows {
    vec![(key.to_owned(), Some(value.to_owned()))]
}

/// Makes etcd forget what there was before this moment.
pub(crate) fn compact(etcd: &Etcd) {
    let now: Range = etcd.ask("/v3/kv/range", &json!({ "key": encoded("x") })).unwrap();
    let question = json!({ "revision": now.header.revision, "physical": true });
    let _: Result<Value, Trouble> = etcd.ask("/v3/kv/compaction", &question);
}

#[test]
fn one_is_in_charge_and_writes() {
    let Some(server) = started() else { return };
    let (one, other) = (client(&server), client(&server));
    let charge = in_charge(&one);
    assert!(matches!(other.take_charge("x"), Ok(Taken::Theirs(at)) if at == "192.0.2.1:9"));
    assert_eq!(one.write(&put("place/a", "1"), &charge), Ok(true));
    assert_eq!(one.renew(&charge), Ok(true));
    // It gives the charge back, and what it then writes late is not written.
    one.give_back(&charge).unwrap();
    assert_eq!(one.renew(&charge), Ok(false));
    let next = in_charge(&other);
    assert_eq!(one.write(&put("place/a", "2"), &charge), Ok(false));
    assert_eq!(other.all("place/").unwrap(), [("a".to_owned(), "1".to_owned())]);
    // Another network has rows of its own, and another charge.
    let elsewhere = Etcd::new(vec![server.at().to_owned()], "home.internal/x");
    assert!(elsewhere.all("place/").unwrap().is_empty());
    in_charge(&elsewhere);
    // One that is killed renews nothing.
    drop(next);
    let since = Instant::now();
    in_charge(&one);
    assert!(since.elapsed() > Duration::from_secs(1), "the lease held until it ended");
}

#[test]
fn all_rows_are_read_in_their_order() {
    let Some(server) = started() else { return };
    let etcd = client(&server);
    let charge = in_charge(&etcd);
    let rows: Vec<(String, String)> =
        (0..2 * PAGE + 7).map(|number| (format!("{number:05}"), format!("é{number}"))).collect();
    for part in rows.chunks(100) {
        let part = part.iter().map(|(key, value)| (format!("log/{key}"), Some(value.clone())));
        assert_eq!(etcd.write(&part.collect(), &charge), Ok(true));
    }
    // Rows whose keys are next to the table's.
    assert_eq!(etcd.write(&put("log", "x"), &charge), Ok(true));
    assert_eq!(etcd.write(&put("log0", "x"), &charge), Ok(true));
    assert_eq!(etcd.all("log/").unwrap(), rows);
    let last = etcd.last("log/", 2).unwrap();
    assert_eq!(last, rows.iter().rev().take(2).cloned().collect::<Vec<_>>());
    // What was at a revision is no longer there.
    compact(&etcd);
    let question = json!({ "key": encoded("x"), "revision": "1" });
    let read: Result<Range, Trouble> = etcd.ask("/v3/kv/range", &question);
    assert_eq!(read.map(drop), Err(Trouble::Compacted));
    assert_eq!(etcd.all("log/").unwrap(), rows);
    let too_many: Rows = (0..129).map(|number| (format!("a{number}"), None)).collect();
    assert!(matches!(etcd.write(&too_many, &charge), Err(Trouble::Refused(_))));
}

#[test]
fn servers_are_asked_in_turn_and_one_that_is_away_is_named() {
    let Some(mut server) = started() else { return };
    let nobody = "127.0.0.1:1".to_owned();
    let etcd = Etcd::new(vec![nobody.clone(), server.at().to_owned()], "home.internal");
    let charge = in_charge(&etcd);
    assert_eq!(etcd.write(&put("a", "1"), &charge), Ok(true));
    server.kill();
    let Err(Trouble::Away(why)) = etcd.write(&put("a", "2"), &charge) else { panic!() };
    assert!(why.contains(&nobody) && why.contains(server.at()), "{why}");
    server.start();
    server.wait();
    // What was written is there, and so is the charge.
    assert_eq!(etcd.all("a").unwrap(), [(String::new(), "1".to_owned())]);
    assert_eq!(etcd.write(&put("a", "2"), &charge), Ok(true));
}
