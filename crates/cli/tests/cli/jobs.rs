//! `-j N`: whatever comes out of a replay is the same for every N, over real captures under rules of every
//! class; and standard error says when one worker has to evaluate all packets.
//!
//! The captures, and rulesets from the wild, are in the shared data next to the checkout.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pktio::CaptureReader;
use serde_json::Value;

use crate::corpus::captures;
use crate::ran::{CAPTURE, Ran, Scratch, rules, skipped, tamis};

const WILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/rulesets");

/// Every output of a replay with this number of threads, by name.
fn outputs(scratch: &Scratch, args: &[&str], jobs: &str) -> BTreeMap<String, Vec<u8>> {
    let out = scratch.path().join("out");
    fs::create_dir_all(&out).unwrap();
    let file = |name: &str| out.join(name).to_str().unwrap().to_owned();
    let files = ["verdicts", "packets", "annotate", "save-counters", "split"];
    fs::create_dir_all(file("save-counters")).unwrap();
    let named: Vec<_> = files.iter().map(|name| [format!("--{name}"), file(name)]).collect();
    let ran = tamis(
        &[&["replay", "-j", jobs, "--json"], args]
            .concat()
            .into_iter()
            .chain(named.iter().flatten().map(String::as_str))
            .collect::<Vec<_>>(),
    );
    let mut document = ran.json();
    for timed in ["elapsed_s", "packets_per_s"] {
        document.as_object_mut().unwrap().remove(timed);
    }
    let mut found = BTreeMap::from([("report".to_owned(), document.to_string().into_bytes())]);
    read_all(&out, &mut found);
    fs::remove_dir_all(&out).unwrap();
    found
}

fn read_all(folder: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, into);
        } else {
            into.insert(path.to_str().unwrap().to_owned(), fs::read(&path).unwrap());
        }
    }
}

fn same_for_every_n(scratch: &Scratch, args: &[&str]) {
    let alone = outputs(scratch, args, "1");
    for jobs in ["2", "5"] {
        let several = outputs(scratch, args, jobs);
        assert!(alone.keys().eq(several.keys()), "-j {jobs}: {:?}", several.keys());
        for (name, bytes) in &alone {
            assert!(several[name] == *bytes, "-j {jobs} {args:?}: {name}");
        }
    }
}

#[test]
fn real_captures_give_the_same_for_every_n() {
    let scratch = Scratch::new("jobs");
    let Some(files) = captures(&scratch) else { return };
    let read = files.iter().filter(|file| CaptureReader::open(file).is_ok());
    let captures: Vec<&str> = read.map(String::as_str).collect();
    let with = |first: &[&str]| same_for_every_n(&scratch, &[first, &captures].concat());
    let ours = ["stateless.v4", "stateful.v4", "nat.v4", "plain.v6"].map(rules);
    for rules in &ours {
        with(&[rules]);
    }
    with(&[&ours[0], "--vs", &ours[1]]);
    with(&[&ours[1], "--ct-max", "100", "--count", "9000"]);
    // Captures without fragments and copies, so that the packets of tracked connections are shared out.
    let plain: Vec<&str> = captures.iter().filter(|name| name.contains("tcp")).copied().collect();
    same_for_every_n(&scratch, &[&[&*ours[1]], &plain[..]].concat());
    let Ok(wild) = fs::read_dir(WILD) else { return skipped(&format!("no {WILD}")) };
    let mut wild: Vec<_> = wild.map(|entry| entry.unwrap().path()).collect();
    wild.sort();
    let loads = |rules: &&str| tamis(&["replay", rules, CAPTURE]).code == Some(0);
    let wild: Vec<&str> = wild.iter().filter_map(|path| path.to_str()).filter(loads).collect();
    assert!(wild.len() > 10, "{wild:?}");
    for rules in wild {
        same_for_every_n(&scratch, &[&[rules], &plain[..]].concat());
    }
}

/// Routers, docker hosts and others, with what is known of the host.
#[test]
fn recordings_that_were_kept_give_the_same_for_every_n() {
    let scratch = Scratch::new("jobs-kept");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/fixtures/programs");
    let mut compared = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let dir = entry.unwrap().path();
        let [host, capture] = ["host", "any.pcap.gz"].map(|name| dir.join(name));
        if !host.is_dir() || !capture.is_file() {
            continue;
        }
        let args = [host.to_str().unwrap(), capture.to_str().unwrap()];
        same_for_every_n(&scratch, &args);
        same_for_every_n(&scratch, &[&args[..], &["--ct", "kernel"]].concat());
        compared += 1;
    }
    assert!(compared > 5, "{compared}");
}

/// The class in the report, and standard error.
fn class(ran: &Ran) -> (Value, &str) {
    (ran.json()["parallel"].clone(), ran.err.trim_end())
}

#[test]
fn one_worker_is_told_with_its_reason() {
    let scratch = Scratch::new("one-worker");
    let write = |name, rule: &str| {
        scratch.write(name, format!("*filter\n:FORWARD ACCEPT [0:0]\n{rule}\nCOMMIT\n"))
    };
    let nth = write("nth.v4", "-A FORWARD -m statistic --mode nth --every 2 --packet 0 -j DROP");
    let state = write("state.v4", "-A FORWARD -m conntrack --ctstate NEW -j ACCEPT");
    let run = |rules: &str, jobs: &str| tamis(&["replay", rules, CAPTURE, "--json", "-j", jobs]);
    let because = format!("{nth}:3: -m statistic");
    let ran = run(&nth, "2");
    let (class_of, message) = class(&ran);
    let global = serde_json::json!({ "class": "global", "because": because, "key": null });
    assert_eq!(class_of, global);
    assert_eq!(message, format!("tamis: -j 2: one worker evaluates: {because}"));
    let ran = run(&nth, "1");
    assert_eq!(class(&ran), (class_of, ""));
    let ran = run(&state, "2");
    assert_eq!(class(&ran).0["class"], "per_flow");
    assert_eq!(class(&ran).0["key"], "addresses");
    let nat = |rule: &str| {
        scratch.write("nat.v4", format!("*nat\n:POSTROUTING ACCEPT [0:0]\n{rule}\nCOMMIT\n"))
    };
    let ran = run(&nat("-A POSTROUTING -j SNAT --to-source 192.0.2.1"), "2");
    assert_eq!(
        (&class(&ran).0["class"], &class(&ran).0["key"]),
        (&"per_flow".into(), &"ports".into())
    );
    let ran = run(&nat("-A POSTROUTING -j MASQUERADE --random"), "2");
    let because = "nat.v4:3: -j MASQUERADE gives connections what others leave";
    assert!(class(&ran).1.ends_with(because), "{}", ran.err);
    assert_eq!(tamis(&["replay", &nth, CAPTURE, "-j", "0"]).code, Some(2));
}

#[test]
fn an_access_list_that_changes_in_time_has_one_worker() {
    let scratch = Scratch::new("bans-jobs");
    let bans = scratch.write("bans", "+1 ban 10.20.0.0/24\n+2 unban 10.20.0.0/24\n");
    let args = [&*rules("stateless.v4"), CAPTURE, "--bans", &*bans];
    same_for_every_n(&scratch, &args);
    let ran = tamis(&[&["replay", "--json", "-j", "2"], &args[..]].concat());
    assert!(ran.json()["drop_reasons"]["denied"].as_u64() > Some(0));
    assert!(ran.err.contains("--bans changes in time"), "{}", ran.err);
}
