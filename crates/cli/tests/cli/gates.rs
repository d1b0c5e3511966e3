//! `--fail-on`: a gate that has proved nothing does not pass.

use std::fs;

use crate::ran::{CAPTURE, RULES, Scratch, tamis};

const SPECS: [&str; 2] =
    ["tcp 192.0.2.1:1025 > 192.0.2.2:80 syn", "udp 192.0.2.1:9 > 192.0.2.2:53"];

/// Rules of the FORWARD chain, whose policy accepts, and a capture of two packets.
fn scene(scratch: &Scratch, rules: &str) -> (String, String) {
    let rules = format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n");
    (scratch.write("gate.v4", rules), scratch.capture("gate.pcapng", "eth0", &SPECS))
}

/// Runs a gate; its exit code, and what it says of it.
fn gate(rules: &str, captures: &[&str], more: &[&str]) -> (Option<i32>, String) {
    let ran = tamis(&[&["replay", rules], captures, more].concat());
    (ran.code, ran.err)
}

#[test]
fn what_is_named_is_found_and_nothing_else() {
    let scratch = Scratch::new("gate-found");
    let (rules, capture) = scene(&scratch, "-A FORWARD -p udp -j DROP\n");
    let fails = |what: &'static str| ["--path", "forward", "--fail-on", what];
    assert_eq!(gate(&rules, &[&capture], &fails("drop")), (Some(3), String::new()));
    assert_eq!(
        gate(&rules, &[&capture], &fails("unknown,contradiction")),
        (Some(0), String::new())
    );
    let (rules, capture) = scene(&scratch, "");
    assert_eq!(gate(&rules, &[&capture], &fails("drop,unknown")), (Some(0), String::new()));
}

#[test]
fn a_damaged_capture_passes_no_gate() {
    let scratch = Scratch::new("gate-damaged");
    let (open, good) = scene(&scratch, "");
    let whole = fs::read(&good).unwrap();
    let cut = scratch.write("cut.pcapng", &whole[..whole.len() - 10]);
    let all = |more: &[&'static str]| [&["--path", "forward"], more].concat();
    assert_eq!(gate(&open, &[&cut], &all(&[])).0, Some(0));
    for what in ["drop", "unknown", "contradiction"] {
        for more in [&["--fail-on", what][..], &["--fail-on", what, "--allow-empty"]] {
            let (code, message) = gate(&open, &[&good, &cut], &all(more));
            assert!(code == Some(3) && message.contains("damaged"), "{what}: {code:?} {message}");
        }
    }
}

#[test]
fn an_empty_capture_passes_no_gate_unless_it_is_allowed() {
    let scratch = Scratch::new("gate-empty");
    let (open, good) = scene(&scratch, "");
    let empty = scratch.write("empty.pcap", &fs::read(CAPTURE).unwrap()[..24]);
    let path = ["--path", "forward"];
    for captures in [&[&*empty][..], &[&good, &empty]] {
        let fails = [&path[..], &["--fail-on", "drop"]].concat();
        let (code, message) = gate(&open, captures, &fails);
        assert!(code == Some(3) && message.contains("no packets"), "{code:?} {message}");
        let passes = [&fails[..], &["--allow-empty"]].concat();
        assert_eq!(gate(&open, captures, &passes), (Some(0), String::new()));
        assert_eq!(gate(&open, captures, &path), (Some(0), String::new()));
    }
}

#[test]
fn packets_of_which_nothing_is_known_pass_no_gate_unless_it_is_allowed() {
    let scratch = Scratch::new("gate-unknown");
    let (rules, good) = scene(&scratch, "-A FORWARD -m geoip --src-cc DE -j DROP\n");
    let fails = ["--path", "forward", "--fail-on", "drop"];
    let (code, message) = gate(&rules, &[&good], &fails);
    assert!(
        code == Some(3) && message.contains("no packet has a known verdict"),
        "{code:?} {message}"
    );
    let passes = [&fails[..], &["--allow-empty"]].concat();
    assert_eq!(gate(&rules, &[&good], &passes), (Some(0), String::new()));
    // A selection that leaves nothing proves nothing.
    let none = ["--fail-on", "drop", "--from", "2100-01-01T00:00:00Z"];
    assert_eq!(gate(RULES, &[CAPTURE], &none).0, Some(3));
}
