//! `tamis demo`: the report word for word, and the files it writes.

use std::fs;
use std::process::Command;

use crate::ran::{CAPTURE, RULES, Ran, Scratch, TAMIS, tamis};
use crate::snapshot::matches_snapshot;

/// A fresh demonstration in the current directory, so that no path of this machine is printed.
fn demo(scratch: &Scratch) -> Ran {
    run(scratch, &["demo"])
}

fn run(scratch: &Scratch, args: &[&str]) -> Ran {
    Command::new(TAMIS).args(args).current_dir(scratch.path()).output().unwrap().into()
}

#[test]
fn the_report_is_the_expected_one() {
    let scratch = Scratch::new("demo-report");
    let ran = demo(&scratch);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    matches_snapshot("demo.txt", &ran.out);
}

#[test]
fn the_files_are_written_and_the_page_stands_alone() {
    let scratch = Scratch::new("demo-files");
    demo(&scratch);
    assert_eq!(fs::read(scratch.file("demo-rules.v4")).unwrap(), fs::read(RULES).unwrap());
    assert_eq!(fs::read(scratch.file("demo-office.pcap")).unwrap(), fs::read(CAPTURE).unwrap());
    let page = fs::read_to_string(scratch.file("demo-report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>"), "{}", &page[..page.len().min(80)]);
    for outside in ["src=", "@import", "<link", "url(", "http://", "https://"] {
        assert!(!page.contains(outside), "the page asks for something outside: {outside}");
    }
    assert!(page.contains("phishing host, ticket 4711"));
}

#[test]
fn the_next_command_works_as_printed() {
    let scratch = Scratch::new("demo-next");
    let report = demo(&scratch).out;
    let next = report.lines().find_map(|line| line.strip_prefix("next: tamis ")).unwrap();
    let args: Vec<&str> = next.split(' ').collect();
    let ran = run(&scratch, &args);
    assert_eq!(ran.code, Some(0), "{next}: {}", ran.err);
}

#[test]
fn the_story_of_a_rejected_packet_is_the_expected_one() {
    let spec = "in=lan0 out=wan0 tcp 10.20.0.10:40000 > 198.51.100.66:443 syn";
    let scratch = Scratch::new("demo-why");
    demo(&scratch);
    let story = run(&scratch, &["why", "demo-rules.v4", "--packet", spec]);
    matches_snapshot("why-reject.txt", &story.out);
}

#[test]
fn a_directory_that_is_not_there_is_one_line() {
    let ran = tamis(&["demo", "--dir", "/nowhere/at/all"]);
    assert!(ran.refusal().starts_with("/nowhere/at/all/demo-rules.v4: "), "{}", ran.err);
}
