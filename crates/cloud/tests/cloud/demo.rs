//! `tamis tunnel demo --cloud`, which leaves nothing behind. Needs root, `ping` and `nft`; without, it says so and skips.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Says why a test cannot run, past the capture of test output.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: tunnel demo --cloud: {why}");
}

#[test]
fn the_demonstration_goes_as_told_and_leaves_nothing() {
    let tamis = Path::new(env!("CARGO_BIN_EXE_tamis-cloud")).with_file_name("tamis");
    if !tamis.exists() {
        return skipped("tamis is not built (cargo build -p tamis)");
    }
    let mut command = Command::new(&tamis);
    command.args(["tunnel", "demo", "--cloud"]).stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let process = child.id();
    let ran = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&ran.stderr);
    if error.contains("is not there") || error.contains("need root") {
        return skipped(&error);
    }
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}\n{error}");
    for expected in [
        "== laptop: ping nas.home.internal\n5 packets transmitted, 5 received",
        "a connection to nas.home.internal:80: answered",
        "a connection to nas.home.internal:22: no answer",
        "no line of the policy lets laptop reach nas at tcp/22",
        "phone asked for nas",
        "revoked phone\n",
        "all of it is gone again",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    let left = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let mine = format!("tamis-demo-{process}");
    assert!(!String::from_utf8_lossy(&left.stdout).contains(&mine));
    assert!(!std::env::temp_dir().join(mine).exists());
}
