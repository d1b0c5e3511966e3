//! Standard input and output: `-`, pipes that close, colour, captures that end too early.

use std::fs;
use std::io::Write;
use std::process::Command;

use serde_json::Value;

use crate::ran::{CAPTURE, RULES, Scratch, TAMIS, fed, piped, skipped, tamis};

/// The document without what differs from run to run and from name to name.
fn comparable(mut document: Value) -> Value {
    for key in ["elapsed_s", "packets_per_s"] {
        document[key] = Value::Null;
    }
    document["rules"]["file"] = Value::Null;
    document["captures"][0]["file"] = Value::Null;
    document["warnings"] = Value::Null;
    document["parallel"]["because"] = Value::Null;
    for hit in document["hits"].as_array_mut().into_iter().flatten() {
        if let Some(because) = hit.get_mut("maybe_because") {
            because["command"] = Value::Null;
        }
    }
    document
}

#[test]
fn rules_and_captures_come_from_standard_input_as_well() {
    let from_files = comparable(tamis(&["replay", "--json", RULES, CAPTURE]).json());
    let rules = fed(&["replay", "--json", "-", CAPTURE], &fs::read(RULES).unwrap());
    assert_eq!(comparable(rules.json()), from_files);
    let capture = fed(&["replay", "--json", RULES, "-"], &fs::read(CAPTURE).unwrap());
    assert_eq!(comparable(capture.json()), from_files);
    let spec = "udp 1.2.3.4:5 > 6.7.8.9:10";
    let why = fed(&["why", "-", "--packet", spec, "--path", "input"], &fs::read(RULES).unwrap());
    assert!(why.out.contains("INPUT"), "{}{}", why.out, why.err);
}

#[test]
fn standard_input_is_read_once() {
    for args in [
        &["replay", "-", "-"][..],
        &["replay", RULES, "-", "-"],
        &["replay", "-", CAPTURE, "-"],
        &["why", "-", "-", "--packet", "1"],
        &["why", RULES, "-", "-", "--packet", "1"],
    ] {
        let ran = tamis(args);
        assert!(ran.refusal().contains("standard input"), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    for args in [&["replay", "-", CAPTURE][..], &["replay", "--json", "-", CAPTURE]] {
        assert_eq!(unread(args, RULES), (Some(0), String::new()), "{args:?}");
    }
}

/// Exit code and standard error of a run whose reader has closed its end; a file is on standard input.
fn unread(args: &[&str], input: &str) -> (Option<i32>, String) {
    let mut child = piped(args);
    // It still waits for its input, so the reader has closed its end before anything is written.
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(&fs::read(input).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// `tamis test … | head` fails a build as `tamis test …` does.
#[test]
fn a_closed_pipe_changes_no_exit_code() {
    let scratch = Scratch::new("closed");
    let ssh = "in=wan0 out=lan0 tcp 198.51.100.7:51200 > 10.20.0.9:22 syn";
    let cases = scratch.write(
        "cases.toml",
        format!("[[case]]\nname = 'x'\npacket = '{ssh}'\nexpect = 'accept'\n"),
    );
    for (args, code) in [
        (&["replay", "-", CAPTURE, "--fail-on", "unknown"][..], 3),
        (&["replay", "-", CAPTURE, "--fail-on", "unknown", "--json"], 3),
        (&["why", "-", "--packet", ssh], 1),
        (&["why", "-", "--packet", ssh, "--json"], 1),
        (&["test", "-", &cases], 1),
        (&["test", "-", &cases, "--github"], 1),
        (&["test", "-", &cases, "--json"], 1),
        (&["convert", "-", "--to", "ip6tables", "--strict"], 5),
    ] {
        let (ended, message) = unread(args, RULES);
        let quiet = message.is_empty() || args[0] == "convert";
        assert!(ended == Some(code) && quiet, "{args:?}: {ended:?} {message}");
    }
}

#[test]
fn colour_is_for_terminals() {
    assert!(!tamis(&["replay", RULES, CAPTURE]).out.contains('\x1b'));
    let on_a_terminal = |setting: &str| {
        let command = format!("{setting} {TAMIS} replay {RULES} {CAPTURE}");
        let output = Command::new("script").args(["-qec", &command, "/dev/null"]).output().ok()?;
        Some(String::from_utf8(output.stdout).unwrap())
    };
    let Some(text) = on_a_terminal("") else {
        return skipped("colour on a terminal: no script(1)");
    };
    assert!(text.contains("\x1b[3"), "{text}");
    let text = on_a_terminal("NO_COLOR=1").unwrap();
    assert!(text.contains("VERDICT") && !text.contains("\x1b["), "{text}");
}

#[test]
fn a_capture_that_is_cut_off_gives_the_packets_before_the_cut() {
    let scratch = Scratch::new("cut");
    let whole = fs::read(CAPTURE).unwrap();
    let packets = tamis(&["replay", "--json", RULES, CAPTURE]).json()["packets"].as_u64().unwrap();
    let cut = scratch.write("cut.pcap", &whole[..whole.len() - 10]);
    let document = tamis(&["replay", "--json", RULES, &cut]).json();
    assert_eq!(document["packets"].as_u64().unwrap(), packets - 1);
    let warning = document["warnings"].to_string();
    let (_, byte) = warning.split_once("byte ").expect(&warning);
    let digits: String = byte.chars().take_while(char::is_ascii_digit).collect();
    let at: usize = digits.parse().expect(&warning);
    assert!(at > whole.len() - 2000 && at < whole.len(), "{warning}");
    assert!(tamis(&["replay", RULES, &cut]).out.contains("warning   "), "and on the screen");
}

/// Bytes of rules and file names must not steer the terminal they are shown on.
#[test]
fn control_characters_do_not_reach_the_screen() {
    let scratch = Scratch::new("control");
    let text = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m comment --comment \"\x1b]0;own\x07\x1b[2J\" -j DROP\nCOMMIT\n";
    let rules = scratch.write("rules.v4", text);
    let spec = "udp 1.2.3.4:5 > 6.7.8.9:10";
    for args in [
        &["replay", &rules, CAPTURE, "--list", "drop"][..],
        &["why", &rules, "--packet", spec],
        &["why", &rules, "--packet", spec, "--all"],
    ] {
        let ran = tamis(args);
        let bad = |c: char| c.is_control() && c != '\n';
        assert!(!ran.out.contains(bad) && !ran.err.contains(bad), "{args:?}: {:?}", ran.out);
    }
    let refused = scratch.write("refused.v4", "*filter\n\x1b[2Jwhat\n");
    let refusal = tamis(&["replay", &refused, CAPTURE]);
    assert!(!refusal.refusal().contains('\x1b'), "{:?}", refusal.err);
}
