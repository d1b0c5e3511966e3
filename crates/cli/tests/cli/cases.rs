//! `tamis test` as a CI job runs it: exit codes, formats, every refusal.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::ran::{Ran, Scratch, TAMIS, within};

const RULES: &str = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n\
                     -A FORWARD -p tcp -m tcp --dport 5432 -j ACCEPT\nCOMMIT\n";
const OPEN: &str = "[[case]]\nname = 'open'\npacket = 'tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn'\n\
                    expect = 'accept'\n";
const SHUT: &str = "[[case]]\nname = 'shut'\npacket = 'tcp 198.51.100.7:51200 > 10.0.0.9:5433 syn'\n\
                    expect = 'accept'\n";

/// A folder with rules and cases.
fn folder(name: &str, cases: &str) -> Scratch {
    let folder = Scratch::new(name);
    folder.write("rules.v4", RULES);
    folder.write("cases.toml", cases);
    folder
}

#[test]
fn passing_cases_end_with_0_and_failing_ones_with_1() {
    let good = folder("pass", OPEN).tamis(&["test", "rules.v4", "cases.toml"]);
    assert_eq!((good.code, good.err.as_str()), (Some(0), ""));
    assert!(good.out.starts_with("1 passed, 0 failed\nnext: tamis why rules.v4"), "{}", good.out);
    let bad = folder("fail", &format!("{OPEN}{SHUT}")).tamis(&["test", "rules.v4", "cases.toml"]);
    assert_eq!((bad.code, bad.err.as_str()), (Some(1), ""));
    let line = "FAIL cases.toml:5 shut: expected accept, got drop by filter/FORWARD/policy L3";
    assert!(bad.out.starts_with(line), "{}", bad.out);
    assert!(bad.out.contains("\n1 passed, 1 failed\n"), "{}", bad.out);
}

#[test]
fn the_command_that_is_printed_can_be_typed() {
    let folder = folder("typed", &format!("[defaults]\nin = 'eth 0'\npath = 'forward'\n{SHUT}"));
    let failed = folder.tamis(&["test", "rules.v4", "cases.toml", "--table", "filter"]);
    let next = failed.out.lines().last().unwrap().strip_prefix("next: ").unwrap();
    assert!(next.contains("--in 'eth 0'") && next.contains("--table filter"), "{next}");
    let typed = next.replacen("tamis", TAMIS, 1);
    let ended =
        Command::new("sh").arg("-c").arg(typed).current_dir(folder.path()).output().unwrap();
    let ended = Ran::from(ended);
    assert_eq!((ended.code, ended.err.as_str()), (Some(1), ""));
    let near = "would accept it, were it --dport 5432, not --dport 5433";
    assert!(ended.out.contains("DROP by") && ended.out.contains(near), "{}", ended.out);
}

#[test]
fn the_cases_file_may_name_the_rules_and_the_command_line_wins() {
    let folder = folder("names", &format!("rules = \"other.v4\"\n{OPEN}"));
    folder.write("other.v4", RULES.replace("5432", "1"));
    assert_eq!(folder.tamis(&["test", "cases.toml"]).code, Some(1));
    assert_eq!(folder.tamis(&["test", "rules.v4", "cases.toml"]).code, Some(0));
    // Found from where the cases file lies, not from where tamis runs.
    let cases = folder.path().join("cases.toml").display().to_string();
    let ended = within(Path::new("/"), &["test", &cases]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
}

/// It may come from a pull request, and what it names shows in errors.
#[test]
fn a_cases_file_names_nothing_outside_its_folder() {
    let scratch = Scratch::new("outside");
    scratch.write("rules.v4", RULES);
    fs::create_dir(scratch.file("cases")).unwrap();
    let absolute = scratch.file("rules.v4");
    std::os::unix::fs::symlink("../rules.v4", scratch.file("cases/link")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", scratch.file("cases/zero")).unwrap();
    for (key, name) in [
        ("rules", "../rules.v4"),
        ("rules", &absolute),
        ("rules", "link"),
        ("rules", "zero"),
        ("rules", "/dev/zero"),
        ("rules", "/dev/stdin"),
        ("rules6", "../rules.v4"),
    ] {
        let first = if key == "rules6" { "rules = 'rules.v4'\n" } else { "" };
        scratch.write("cases/rules.v4", RULES);
        scratch.write("cases/c.toml", format!("{first}{key} = '{name}'\n{OPEN}"));
        let ran = scratch.tamis(&["test", "cases/c.toml"]);
        let line = 1 + first.lines().count();
        let message =
            format!("cases/c.toml:{line}:{}: expected rules in the folder", key.len() + 4);
        assert!(ran.refusal().starts_with(&message), "{name}: {}", ran.err);
        if name.contains("rules.v4") && key == "rules" {
            let allowed = scratch.tamis(&["test", "cases/c.toml", "--rules-outside"]);
            assert_eq!(allowed.code, Some(0), "{name}: {}", allowed.err);
        }
        let named = ["test", "rules.v4", "cases/c.toml", "--rules6", "rules.v4"];
        let given = scratch.tamis(if key == "rules" { &named[..3] } else { &named });
        assert!(!given.err.contains("expected rules in the folder"), "{name}: {}", given.err);
    }
}

#[test]
fn options_win_over_defaults() {
    let rules = RULES.replace("-A FORWARD -p", "-A FORWARD -i eth0 -p");
    let folder = folder("win", &format!("[defaults]\nin = 'eth0'\n{OPEN}"));
    folder.write("rules.v4", &rules);
    assert_eq!(folder.tamis(&["test", "rules.v4", "cases.toml"]).code, Some(0));
    assert_eq!(folder.tamis(&["test", "rules.v4", "cases.toml", "--in", "eth1"]).code, Some(1));
}

#[test]
fn json_junit_and_annotations() {
    let folder = folder("formats", &format!("{OPEN}{SHUT}"));
    let ended = folder.tamis(&["test", "rules.v4", "cases.toml", "--json", "--junit", "out.xml"]);
    let json: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(json["schema"], "tamis.test/1");
    assert_eq!((ended.code, json["failed"].as_u64()), (Some(1), Some(1)));
    let xml = fs::read_to_string(folder.path().join("out.xml")).unwrap();
    let document = roxmltree::Document::parse(&xml).unwrap();
    let failures = document.descendants().filter(|node| node.has_tag_name("failure"));
    assert_eq!(failures.count(), 1);
    let ended = folder.tamis(&["test", "rules.v4", "cases.toml", "--github"]);
    assert!(ended.out.starts_with("::error file=cases.toml,line=5,title=shut::expected accept"));
    assert!(ended.out.contains("\n1 passed, 1 failed\n"), "{}", ended.out);
}

#[test]
fn every_refusal_is_one_line_with_exit_code_2() {
    let folder = folder("refusals", OPEN);
    folder.write("key.toml", OPEN.replace("expect", "expct"));
    folder.write("spec.toml", OPEN.replace("syn", "sin"));
    folder.write("empty.toml", "");
    folder.write("bad.v4", "*filter\n:FORWARD DROP\n-A FORWARD --nonsense\nCOMMIT\n");
    folder.write("latin.toml", "");
    fs::write(folder.path().join("latin.toml"), b"# caf\xe9\n").unwrap();
    for (args, message) in [
        (&["cases.toml"][..], "cases.toml: expected rules = \"…\", or RULES on the command line"),
        (&["rules.v4", "absent.toml"], "absent.toml: No such file"),
        (&["absent.v4", "cases.toml"], "absent.v4: No such file"),
        (&["bad.v4", "cases.toml"], "bad.v4:3:"),
        (&["rules.v4", "key.toml"], "key.toml:4:1: expected one of name"),
        (&["rules.v4", "spec.toml"], "spec.toml:3:50: expected TCP flags"),
        (&["rules.v4", "empty.toml"], "empty.toml:1:1: expected at least one [[case]]"),
        (&["rules.v4", "latin.toml"], "latin.toml:1:6: expected UTF-8"),
        (&["rules.v4", "cases.toml", "--junit", "no/such/dir"], "no/such/dir: No such file"),
        (&["rules.v4", "cases.toml", "--json", "--github"], "cannot be used with"),
        (&["rules.v4", "cases.toml", "-o", "x"], "--record"),
        (&["rules.v4", "cases.toml", "--table", "raw"], "expected a table \"raw\""),
        (&["-", "-"], "expected - (standard input) once"),
        (&[], "CASES.toml"),
        (&["--record", "absent.pcap", "rules.v4"], "absent.pcap"),
        (
            &["--record", "absent.pcap", "rules.v4", "cases.toml"],
            "expected only RULES beside --record",
        ),
        (&["--record", "absent.pcap", "rules.v4", "--json"], "cannot be used with"),
    ] {
        let ended = folder.tamis(&[&["test"], args].concat());
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{args:?}: {}", ended.err);
        assert!(ended.err.contains(message), "{args:?}: {}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{args:?}: {}", ended.err);
    }
}

#[test]
fn the_example_passes() {
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/ci"));
    let ended = within(examples, &["test", "../../crates/replay/demo/rules.v4", "cases.toml"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{}", ended.out);
    assert!(ended.out.contains("6 passed, 0 failed"), "{}", ended.out);
    // It can fail: with one rule fewer a case names the hole.
    let rules = fs::read_to_string(examples.join("../../crates/replay/demo/rules.v4")).unwrap();
    let folder = Scratch::new("example");
    let hole: String = rules
        .lines()
        .filter(|line| !line.contains("--dport 22 -j DROP"))
        .fold(String::new(), |all, line| all + line + "\n");
    folder.write("rules.v4", &hole);
    let cases = examples.join("cases.toml").display().to_string();
    let ended = folder.tamis(&["test", "rules.v4", &cases]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.out.contains("no ssh from outside"), "{}", ended.out);
}
