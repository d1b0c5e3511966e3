//! `tamis tunnel demo`, which leaves nothing behind. Needs root; without, it says so and skips.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Command;

use crate::ran::{piped, skipped, tamis};

/// What a demonstration of this process makes and is still there.
fn left(process: u32) -> Vec<String> {
    let name = format!("tamis-demo-{process}");
    let namespaces = Command::new("ip").args(["netns", "list"]).output().unwrap().stdout;
    let namespaces = String::from_utf8_lossy(&namespaces).into_owned();
    let folders = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let folders = folders.map(|folder| folder.file_name().to_string_lossy().into_owned());
    let all = namespaces.lines().map(str::to_owned).chain(folders);
    all.filter(|found| found.starts_with(&name)).collect()
}

/// Whether there is all that it takes; says so where not.
fn can_run(test: &str) -> bool {
    let is_there = |command: [&str; 2]| {
        Command::new(command[0]).arg(command[1]).output().is_ok_and(|ran| ran.status.success())
    };
    let is_root = rustix::process::geteuid().is_root();
    let can = is_root && is_there(["ip", "-V"]) && is_there(["ping", "-V"]);
    if !can {
        skipped(&format!("{test}: not root, or ip or ping is not there"));
    }
    can
}

#[test]
fn it_goes_from_the_first_namespace_to_the_last_and_leaves_none() {
    if !can_run("tunnel demo") {
        return;
    }
    let child = piped(&["tunnel", "demo"]);
    let process = child.id();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let expected = [
        "laptop is up: 10.77.0.3/24",
        "5 packets transmitted, 5 received, 0% packet loss",
        "a connection to 10.77.0.1:80: answered",
        "a connection to 10.77.0.1:22: no answer",
        "-A FORWARD -i office -p tcp",
        "DROP",
        "all of it is gone again",
    ];
    for expected in expected {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    assert_eq!(left(process), [""; 0]);
}

#[test]
fn a_ctrl_c_leaves_nothing_either() {
    if !can_run("tunnel demo, interrupted") {
        return;
    }
    let mut child = piped(&["tunnel", "demo"]);
    let process = child.id();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // With one tunnel up, and the next one on its way.
    assert!(lines.any(|line| line.unwrap().starts_with("office is up")));
    assert!(Command::new("kill").args(["-INT", &process.to_string()]).status().unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest:?}");
    assert_eq!(left(process), [""; 0]);
}

#[test]
fn who_may_not_is_told_what_to_type() {
    if rustix::process::geteuid().is_root() {
        return skipped("tunnel demo without root: it is root who asks");
    }
    let ran = tamis(&["tunnel", "demo"]);
    assert_eq!(ran.refusal(), "network namespaces need root: sudo tamis tunnel demo");
}
