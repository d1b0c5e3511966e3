//! Files that are read and files that are written: none is lost.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::ran::{CAPTURE, RULES, Ran, Scratch, TAMIS, skipped};

/// A folder with rules and a capture that may be lost.
fn folder(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    fs::copy(RULES, scratch.file("rules.v4")).unwrap();
    fs::copy(CAPTURE, scratch.file("drop.pcapng")).unwrap();
    symlink("drop.pcapng", scratch.file("symbolic")).unwrap();
    fs::hard_link(scratch.file("drop.pcapng"), scratch.file("hard")).unwrap();
    scratch
}

/// Names of all entries.
fn names(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_output_is_no_input_by_any_name() {
    let scratch = folder("apart");
    let before = names(&scratch);
    let base = ["replay", "rules.v4", "drop.pcapng"];
    for option in ["--verdicts", "--packets", "--annotate", "--html", "--save-counters"] {
        for name in ["drop.pcapng", "symbolic", "hard", "rules.v4", "./rules.v4"] {
            let ran = scratch.tamis(&[&base[..], &[option, name]].concat());
            assert!(ran.refusal().contains("found an input, "), "{option} {name}: {}", ran.err);
        }
    }
    for more in [
        &["--vs", "rules.v4", "--html", "rules.v4"][..],
        &["--ipset", "hard", "--html", "symbolic"],
        &["--split", "."],
    ] {
        let ran = scratch.tamis(&[&base[..], more].concat());
        assert!(ran.refusal().contains("found an input, "), "{more:?}: {}", ran.err);
    }
    let named = scratch.tamis(&["replay", "rules.v4", "lan0=hard", "--packets", "symbolic"]);
    assert!(named.refusal().contains("found an input, lan0=hard"), "{}", named.err);
    assert_eq!(fs::read(scratch.file("drop.pcapng")).unwrap(), fs::read(CAPTURE).unwrap());
    assert_eq!(fs::read(scratch.file("rules.v4")).unwrap(), fs::read(RULES).unwrap());
    assert_eq!(names(&scratch), before);
}

#[test]
fn outputs_are_files_of_their_own() {
    let scratch = folder("two-outputs");
    let base = ["replay", "rules.v4", "drop.pcapng"];
    symlink("out", scratch.file("link")).unwrap();
    for more in [
        &["--packets", "out", "--verdicts", "out"][..],
        &["--packets", "out", "--html", "./out"],
        &["--packets", "link", "--html", "out"],
        &["--packets", "-", "--verdicts", "-"],
        &["--packets", "split/accept.pcapng", "--split", "split"],
    ] {
        fs::create_dir_all(scratch.file("split")).unwrap();
        let ran = scratch.tamis(&[&base[..], more].concat());
        assert!(ran.refusal().contains("found that of --"), "{more:?}: {}", ran.err);
    }
    let junit = scratch.tamis(&["test", "rules.v4", "cases.toml", "--junit", "rules.v4"]);
    assert_eq!(junit.code, Some(2));
    assert_eq!(fs::read(scratch.file("rules.v4")).unwrap(), fs::read(RULES).unwrap());
}

#[test]
fn devices_and_pipes_are_written_as_they_are() {
    let scratch = folder("devices");
    let base = ["replay", "rules.v4", "drop.pcapng"];
    let null = ["--packets", "/dev/null", "--verdicts", "/dev/null", "--annotate", "/dev/null"];
    assert_eq!(scratch.tamis(&[&base[..], &null].concat()).code, Some(0));
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    for name in ["-", "/dev/stdout"] {
        let ran = scratch.tamis(&[&base[..], &["--verdicts", name]].concat());
        // Nothing else stands there: what reads it need not tell words from a report.
        assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 287), "{name}: {}", ran.out);
        assert!(ran.err.contains("\nVERDICT"), "{name}: {}", ran.err);
        // Standard output may be a file, which is not taken from under it.
        let file = fs::File::create(scratch.file("report")).unwrap();
        let mut run = Command::new(TAMIS);
        run.args(base).args(["--verdicts", name]).current_dir(scratch.path()).stdout(file);
        assert!(run.status().unwrap().success());
        let text = fs::read_to_string(scratch.file("report")).unwrap();
        assert_eq!(text.lines().count(), 287, "{name}: {text}");
    }
    if !Command::new("mkfifo").arg(scratch.file("fifo")).status().is_ok_and(|made| made.success()) {
        return skipped("a FIFO as output: no mkfifo");
    }
    let mut reader = Command::new("cat");
    let reader = reader.arg(scratch.file("fifo")).stdout(Stdio::piped()).spawn().unwrap();
    let ran = scratch.tamis(&[&base[..], &["--verdicts", "fifo"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let words = Ran::from(reader.wait_with_output().unwrap()).out;
    assert_eq!(words.lines().count(), 287);
}

#[test]
fn a_replay_that_fails_leaves_every_file_as_it_was() {
    let scratch = folder("kept");
    scratch.write("old", "of the last replay\n");
    let before = names(&scratch);
    for option in ["--verdicts", "--packets", "--annotate", "--html", "--save-counters"] {
        let ran = scratch.tamis(&["replay", "rules.v4", "drop.pcapng", "nowhere", option, "old"]);
        assert!(ran.refusal().contains("nowhere"), "{}", ran.err);
        assert_eq!(fs::read_to_string(scratch.file("old")).unwrap(), "of the last replay\n");
    }
    let split = ["replay", "rules.v4", "drop.pcapng", "nowhere", "--split", "split"];
    scratch.tamis(&split).refusal();
    assert_eq!(fs::read_dir(scratch.file("split")).unwrap().count(), 0);
    fs::remove_dir(scratch.file("split")).unwrap();
    assert_eq!(names(&scratch), before);
}

/// A small compressed capture is a large one.
#[test]
fn what_is_written_can_be_bounded() {
    let scratch = folder("max-output");
    let before = names(&scratch);
    let base = ["replay", "rules.v4", "drop.pcapng", "--max-output"];
    for (size, more) in [
        ("20k", &["--packets", "out"][..]),
        ("1", &["--verdicts", "out"]),
        ("20000", &["--annotate", "out"]),
        ("20k", &["--split", "split"]),
        ("60k", &["--packets", "out", "--annotate", "other"]),
    ] {
        let ran = scratch.tamis(&[&base[..], &[size], more].concat());
        assert!(ran.refusal().contains("(--max-output)"), "{more:?}: {}", ran.err);
        let _ = fs::remove_dir(scratch.file("split"));
        assert_eq!(names(&scratch), before, "{more:?}");
    }
    assert_eq!(scratch.tamis(&[&base[..], &["4G", "--packets", "out"]].concat()).code, Some(0));
    for wrong in ["", "k", "4T", "-1", "99999999999999999999", "99999999999999G"] {
        let ran = scratch.tamis(&[&base[..], &[wrong]].concat());
        assert_eq!(ran.code, Some(2), "{wrong}");
    }
}

#[test]
fn a_terminated_replay_reports_what_it_has_and_says_so() {
    let scratch = folder("terminated");
    let made = Command::new("mkfifo").arg(scratch.file("live")).status();
    if !made.is_ok_and(|made| made.success()) {
        return skipped("SIGTERM: no mkfifo");
    }
    let args = ["--verdicts", "words", "--html", "page", "--save-counters", "counters", "--json"];
    let mut run = Command::new(TAMIS);
    let run = run.args(["replay", "rules.v4", "live"]).args(args).current_dir(scratch.path());
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Its writer stays, so that the capture does not end.
    let mut live = fs::OpenOptions::new().write(true).open(scratch.file("live")).unwrap();
    std::io::Write::write_all(&mut live, &fs::read(CAPTURE).unwrap()).unwrap();
    let id = run.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let mut out = String::new();
    run.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["interrupted"], true);
    let words = fs::read_to_string(scratch.file("words")).unwrap();
    assert_eq!(words.lines().count() as u64, report["packets"].as_u64().unwrap());
    let page = fs::read_to_string(scratch.file("page")).unwrap();
    assert!(page.contains("Stopped before the end of the captures"));
    let counters = fs::read_to_string(scratch.file("counters")).unwrap();
    assert!(counters.starts_with("# Of a part of the captures"), "{counters}");
    let again = scratch.tamis(&["replay", "counters", "drop.pcapng"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
}

#[test]
fn the_demonstration_overwrites_only_its_own_files() {
    let scratch = Scratch::new("demo-own");
    assert_eq!(scratch.tamis(&["demo"]).code, Some(0));
    assert_eq!(scratch.tamis(&["demo"]).code, Some(0), "its own files are no reason to stop");
    for name in ["demo-rules.v4", "demo-office.pcap", "demo-report.html"] {
        let own = fs::read(scratch.file(name)).unwrap();
        scratch.write(name, "somebody else's");
        let ran = scratch.tamis(&["demo"]);
        assert!(ran.refusal().starts_with(&format!("./{name}: exists")), "{}", ran.err);
        assert_eq!(fs::read_to_string(scratch.file(name)).unwrap(), "somebody else's");
        scratch.write(name, own);
    }
    let fresh = Scratch::new("demo-none");
    fresh.write("demo-report.html", "<p>mine</p>");
    fresh.tamis(&["demo"]).refusal();
    assert_eq!(names(&fresh), ["demo-report.html"]);
}

/// A ruleset in a folder of a host is an input, too.
#[test]
fn files_of_a_host_are_inputs() {
    let scratch = Scratch::new("host-inputs");
    fs::create_dir(scratch.file("fw")).unwrap();
    fs::copy(RULES, scratch.file("fw/iptables.save")).unwrap();
    let ran = scratch.tamis(&["replay", "fw", CAPTURE, "--save-counters", "fw/iptables.save"]);
    assert!(ran.refusal().contains("found an input, fw/iptables.save"), "{}", ran.err);
}
