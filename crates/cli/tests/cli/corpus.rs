//! The captures of tcpdump's own tests against rules of every kind: no panic, no hang, each within 64 MiB
//! of anonymous memory (RLIMIT_DATA), and verdicts that add up.
//!
//! Needs the shared data next to the checkout, and tar with xz.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::ran::{Ran, Scratch, confined, rules, skipped};

const ARCHIVE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/data/captures/tcpdump-tests-pcaps.tar.xz"
);
const KILOBYTES: u64 = 64 * 1024;
/// Captures in one stream, in the passes with other rules.
const BATCH: usize = 64;

pub(crate) fn captures(scratch: &Scratch) -> Option<Vec<String>> {
    if !Path::new(ARCHIVE).exists() {
        skipped(&format!("no {ARCHIVE}"));
        return None;
    }
    let unpacked =
        Command::new("tar").arg("-xJf").arg(ARCHIVE).arg("-C").arg(scratch.path()).status();
    if !unpacked.is_ok_and(|status| status.success()) {
        skipped(&format!("tar cannot unpack {ARCHIVE}"));
        return None;
    }
    let folder = fs::read_dir(scratch.path().join("tests")).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    let mut files: Vec<String> = paths.map(|path| path.to_str().unwrap().to_owned()).collect();
    files.sort();
    Some(files)
}

fn replay(rules: &str, captures: &[String]) -> Ran {
    let mut args = vec!["replay", "--json", rules];
    args.extend(captures.iter().map(String::as_str));
    confined(KILOBYTES, &args)
}

/// What is wrong with a document, if anything.
fn adds_up(document: &Value) -> Result<u64, String> {
    let packets = document["packets"].as_u64().ok_or("no packets")?;
    let verdicts = document["verdicts"].as_object().ok_or("no verdicts")?;
    let sum: u64 = verdicts.values().filter_map(|count| count["packets"].as_u64()).sum();
    let dropped = verdicts["drop"]["packets"].as_u64();
    let reasons = [
        "rule",
        "policy",
        "hotdrop",
        "stack",
        "route",
        "ttl",
        "too_big",
        "conntrack",
        "reassembly",
        "denied",
        "either",
    ];
    let because = reasons.iter().filter_map(|why| document["drop_reasons"][why].as_u64()).sum();
    if sum != packets || dropped != Some(because) {
        return Err(format!("{packets} packets, {verdicts:?}, {}", document["drop_reasons"]));
    }
    Ok(packets)
}

/// Packets of a run that went well; `None` when the capture was refused in one line.
fn outcome(ran: &Ran) -> Result<Option<u64>, String> {
    match ran.code {
        Some(0) => {
            let document = serde_json::from_str(&ran.out).map_err(|error| error.to_string())?;
            adds_up(&document).map(Some)
        }
        Some(2) if ran.err.lines().count() == 1 && ran.out.is_empty() => Ok(None),
        _ => Err(format!("{:?}: {}", ran.code, ran.err)),
    }
}

/// Runs each set of captures on one of two threads, and gives what came of each.
fn on_two_threads(sets: &[&[String]], rules: &str) -> Vec<Result<Option<u64>, String>> {
    let half = sets.len().div_ceil(2).max(1);
    std::thread::scope(|scope| {
        let work = |sets: &[&[String]]| -> Vec<_> {
            sets.iter().map(|captures| outcome(&replay(rules, captures))).collect()
        };
        let threads: Vec<_> =
            sets.chunks(half).map(|sets| scope.spawn(move || work(sets))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn every_capture_replays_within_64_mib() {
    let scratch = Scratch::new("corpus");
    let Some(files) = captures(&scratch) else { return };
    let each: Vec<&[String]> = files.chunks(1).collect();
    let outcomes = on_two_threads(&each, &rules("stateless.v4"));
    let (mut taken, mut packets, mut wrong) = (Vec::new(), 0, Vec::new());
    for (file, outcome) in files.iter().zip(outcomes) {
        match outcome {
            Ok(Some(count)) => {
                packets += count;
                taken.push(file.clone());
            }
            Ok(None) => {}
            Err(error) => wrong.push(format!("{file}: {error}")),
        }
    }
    println!("{} of {} captures, {packets} packets", taken.len(), files.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(files.len(), 830);
    assert!(taken.len() > 800, "only {} captures are taken", taken.len());
    other_rules(&taken, packets);
}

/// Replays the same packets against rules of every other kind, many captures in one stream.
fn other_rules(captures: &[String], packets: u64) {
    let batches: Vec<&[String]> = captures.chunks(BATCH).collect();
    for name in ["stateful.v4", "nat.v4", "plain.v6"] {
        let outcomes = on_two_threads(&batches, &rules(name));
        let counts: Result<Vec<_>, _> = outcomes.into_iter().collect();
        let sum: u64 =
            counts.unwrap_or_else(|error| panic!("{name}: {error}")).iter().flatten().sum();
        assert_eq!(sum, packets, "{name}");
    }
}
