//! The program `tamis-bench`: its commands, and what it says when it cannot measure.

use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    let ran = Command::new(env!("CARGO_BIN_EXE_tamis-bench")).args(args).output();
    ran.expect("tamis-bench is built beside its tests")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_command_has_its_help() {
    let all = text(&bench(&["--help"]).stdout);
    for (command, option) in [
        ("replay", "--peers"),
        ("rules", "--figure"),
        ("access", "--must-show"),
        #[cfg(target_os = "linux")]
        ("tunnel", "--forms"),
        ("workload", "--oracle"),
    ] {
        assert!(all.contains(command), "{all}");
        let help = bench(&[command, "--help"]);
        assert!(help.status.success() && text(&help.stdout).contains(option), "{help:?}");
    }
}

/// Two hosts in namespaces, each with an end that seals by one thread: it moves, it restarts, and traffic is back.
#[cfg(target_os = "linux")]
#[test]
fn ends_of_an_overlay_are_started_and_measured() {
    let args = ["tunnel", "--without-tamis", "--forms", "--quick", "--only", "back", "--json"];
    let ran = bench(&args);
    let said = text(&ran.stderr);
    if said.contains("it needs root") || said.contains("is not installed") {
        eprintln!("SKIPPED: {said}");
        return;
    }
    assert!(ran.status.success(), "{said}");
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let rows = document["results"].as_array().unwrap();
    for engine in ["conventional", "mutex"] {
        let is = |row: &&serde_json::Value| row["name"] == "tunnel.back" && row["engine"] == engine;
        let events = rows.iter().filter(is).count();
        assert_eq!(events, 3, "{engine}: {}", document["missing"]);
    }
}

#[test]
fn the_recorded_stream_comes_out() {
    let ran = bench(&["workload", "--preset", "1", "--hash"]);
    assert_eq!((ran.status.code(), text(&ran.stderr).as_str()), (Some(0), ""));
    assert!(text(&ran.stdout).starts_with("first1000="), "{ran:?}");
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    for (args, what) in [
        (&["workload", "--preset", "1"][..], "expected --hash"),
        (&["access", "--engine", "nonsense"], "found nonsense"),
    ] {
        let ran = bench(args);
        let message = text(&ran.stderr);
        assert_eq!((ran.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.starts_with("tamis-bench: ") && message.contains(what), "{message}");
    }
}

/// Pages that a layout of 100,000 rules takes: what it asks for, 80 bytes a rule, and what the allocator adds.
#[test]
fn a_layout_is_resident_with_what_the_allocator_adds() {
    let ran = bench(&["rules", "--resident", "linked:1"]);
    let Ok(bytes) = text(&ran.stdout).trim().parse::<usize>() else {
        eprintln!("SKIPPED: this machine does not tell a process's resident memory: {ran:?}");
        return;
    };
    assert!((8_000_000..16_000_000).contains(&bytes), "{bytes}");
}
