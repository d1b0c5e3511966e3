//! A worker that panics ends the replay at once, with its own message.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;

use dataplane::Config;
use rules::save::LoadOptions;

use super::*;
use crate::lane::PLANTED;
use crate::rules_file::RulesFile;
use crate::run::{Wanted, replay};

/// Frames of a capture: as many as fill some hundred batches.
const FRAMES: usize = 400_000;
const SHARED: &str = "*filter\n-A FORWARD -p udp -j DROP\nCOMMIT\n";
const OF_CONNECTIONS: &str = "*filter\n-A FORWARD -m conntrack --ctstate NEW -j DROP\nCOMMIT\n";

/// A capture of bare IPv4 of which the frame of this number ends as planted.
fn capture(frames: usize, planted: usize) -> Vec<u8> {
    let header = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 101];
    let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    for number in 0..frames {
        let end: &[u8] = if number == planted { PLANTED } else { b"nothing else but a harmless" };
        let len = 20 + 8 + end.len() as u32;
        // A hundred in a second: what is read ahead is bounded by time, too.
        for word in [number as u32 / 100, 0, len, len] {
            bytes.extend(word.to_le_bytes());
        }
        let [high, low] = (number as u16).to_be_bytes();
        bytes.extend([0x45, 0, 0, len as u8, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([high, low, 0, 53, 0, len as u8 - 20, 0, 0]);
        bytes.extend(end);
    }
    bytes
}

/// The message with which the replay of a capture panics, and how many verdicts it wrote.
fn message(rules: &str, capture: &Path, threads: usize) -> (String, usize) {
    let rules = RulesFile::from_text("rules", rules.to_owned(), &LoadOptions::default());
    let (rules, captures) = ([rules.unwrap()], [capture.to_str().unwrap().to_owned()]);
    let mut verdicts = Vec::new();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut wanted = Wanted {
            verdicts: Some(&mut verdicts),
            stop: Some(Arc::default()),
            threads,
            ..Wanted::default()
        };
        replay(&rules, &captures, &Config::default().into(), &mut wanted).map(drop)
    }));
    let panic = ended.expect_err("a worker panicked");
    let message = panic.downcast_ref::<&str>().expect("a message without values");
    let lines = verdicts.iter().filter(|byte| **byte == b'\n').count();
    ((*message).to_owned(), lines)
}

#[test]
fn nothing_is_reported_of_what_comes_after_a_worker_panicked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("capture");
    fs::write(&path, capture(FRAMES, 1_000)).unwrap();
    for rules in [SHARED, OF_CONNECTIONS] {
        for threads in [2, 4] {
            let (message, lines) = message(rules, &path, threads);
            assert_eq!(message, "planted");
            assert!(lines < FRAMES / 4, "{lines} verdicts of {FRAMES}, {threads} workers");
        }
    }
}

#[test]
fn nobody_waits_for_a_silent_capture_when_a_worker_panicked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    thread::scope(|scope| {
        let told = scope.spawn(|| message(SHARED, &path, 2));
        let mut pipe = OpenOptions::new().write(true).open(&path).unwrap();
        // Near the end, so that the reader waits for more when the worker panics. The pipe stays open, as that of a capture
        // that goes on.
        let _ = pipe.write_all(&capture(50_000, 46_000));
        assert_eq!(told.join().unwrap().0, "planted");
        drop::<File>(pipe);
    });
}
