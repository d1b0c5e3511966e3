//! Files and requests of earlier releases (`tests/compat`): configurations, journals, cases, baselines and control requests
//! are read as they were, and answers have what they had.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::ran::{Scratch, tamis};
use crate::started::started;

fn kept(name: &str) -> String {
    format!("{}/../../tests/compat/0.1/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The first line of the answer to a request.
fn asked(socket: &str, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    writeln!(stream, "{request}").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}

/// A copy of the run's folder, as only its owner may open a journal.
fn run_of(test: &str, with_journal: bool) -> Scratch {
    let scratch = Scratch::new(test);
    for name in ["live.toml", "rules.v4", "rules.v6", "sets.save"] {
        scratch.write(name, fs::read(kept(&format!("run/{name}"))).unwrap());
    }
    if with_journal {
        let folder = scratch.file("journal");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        fs::copy(kept("run/journal/tamis.redb"), Path::new(&folder).join("tamis.redb")).unwrap();
    }
    scratch
}

#[test]
fn cases_hold() {
    for (cases, passed) in [("cases.toml", 6), ("recorded.toml", 40), ("reach.toml", 10)] {
        let ran = tamis(&["test", &kept("rules.v4"), &kept(cases)]);
        assert!(ran.out.contains(&format!("{passed} passed, 0 failed")), "{cases}: {}", ran.out);
    }
}

#[test]
fn a_baseline_leaves_out_what_it_left_out() {
    let ran = tamis(&["lint", &kept("dead.v4"), "--baseline", &kept("lint-baseline")]);
    assert!(ran.out.contains("0 errors, 0 warnings, 0 notes; 3 left out"), "{}", ran.out);
}

#[test]
fn a_journal_is_read_and_what_nobody_confirmed_goes_back() {
    let folder = run_of("compat-journal", true);
    let run = started(&folder.file("live.toml"));
    let ctl = |args: &[&str]| tamis(&[&["ctl", "--socket", &folder.file("c")], args].concat()).out;
    let rules = ctl(&["get"]);
    for (source, is_there) in [("10.0.0.3", true), ("10.0.0.2", true), ("10.0.0.77", false)] {
        assert_eq!(rules.contains(&format!("-s {source}/32")), is_there, "{source}: {rules}");
    }
    assert_eq!(
        ctl(&["bans", "--all"]),
        "ban 198.51.100.4/32\ndeny 198.51.100.0/24 192.0.2.80/32\n"
    );
    assert!(ctl(&["sets", "list", "bad"]).contains("192.0.2.8"));
    ctl(&["stop"]);
    run.ended();
}

#[test]
fn requests_are_answered_with_what_their_answers_had() {
    let folder = run_of("compat-control", false);
    let run = started(&folder.file("live.toml"));
    for line in fs::read_to_string(kept("run/control.jsonl")).unwrap().lines() {
        let kept: Value = serde_json::from_str(line).unwrap();
        let answer = asked(&folder.file("c"), &kept["request"].to_string());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        has(&answer, &kept["answer"], &kept["request"].to_string());
    }
    run.ended();
}

/// Asserts that a document has each member of an earlier one, of its kind; of a list the first element stands for all.
fn has(now: &Value, then: &Value, place: &str) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (name, then) in then {
                let now = now.get(name).unwrap_or_else(|| panic!("{place}: {name} is not there"));
                has(now, then, &format!("{place}/{name}"));
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            let Some(then) = then.first() else { return };
            let now = now.first().unwrap_or_else(|| panic!("{place}: nothing is in the list"));
            has(now, then, &format!("{place}/0"));
        }
        // What there was nothing of then may be anything.
        (_, Value::Null) => {}
        _ => {
            let kind = |value: &Value| (value.is_string(), value.is_number(), value.is_boolean());
            assert_eq!(kind(now), kind(then), "{place}: {now} was {then}");
        }
    }
}
