//! Which packets are evaluated, when a replay fails, and what Ctrl-C leaves.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::{Bench, refusal, report, stdout, tamis};
use serde_json::json;

const TCP: &str = "tcp 198.51.100.7:51200 > 10.0.0.9:22 syn";
const UDP: &str = "udp 198.51.100.7:53 > 10.0.0.9:4000";

/// Ten packets, one a second: even numbers are UDP.
fn ten(bench: &Bench) -> (String, String) {
    let rules = bench.forward("r.v4", &["-p tcp -j ACCEPT"]);
    let packets: Vec<&str> = [TCP, UDP].into_iter().cycle().take(10).collect();
    (rules, bench.capture("c.pcapng", &packets))
}

/// Numbers of the packets evaluated.
fn evaluated(bench: &Bench, flags: &[&str]) -> Vec<u64> {
    let (rules, capture) = ten(bench);
    let lines = bench.path("packets.jsonl");
    let args = ["replay", &rules, &capture, "--packets", lines.to_str().unwrap()];
    let json = report(0, &[&args[..], flags].concat());
    let lines = std::fs::read_to_string(lines).unwrap();
    let frame = |line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["frame"].as_u64().unwrap()
    };
    let frames: Vec<u64> = lines.lines().map(frame).collect();
    assert_eq!(json["packets"], frames.len() as u64);
    frames
}

#[test]
fn a_window_and_a_count_select_packets_under_their_own_numbers() {
    let bench = Bench::new();
    assert_eq!(evaluated(&bench, &["--from", "+2", "--to", "+5"]), [3, 4, 5]);
    assert_eq!(evaluated(&bench, &["--from", "2026-11-21T10:00:08Z"]), [9, 10]);
    assert_eq!(evaluated(&bench, &["--to", "2026-11-21T11:00:01.5+01:00"]), [1, 2]);
    assert_eq!(evaluated(&bench, &["--count", "3"]), [1, 2, 3]);
    assert_eq!(evaluated(&bench, &["--from", "+4.5", "--count", "2"]), [6, 7]);
    assert_eq!(evaluated(&bench, &["--count", "0"]), [0; 0]);
}

#[test]
fn a_filter_selects_packets() {
    let bench = Bench::new();
    // ether[23] = 17: the protocol of IPv4 over Ethernet.
    let bytecode = "4,48 0 0 23,21 0 1 17,6 0 0 262144,6 0 0 0";
    assert_eq!(evaluated(&bench, &["--filter", bytecode]), [2, 4, 6, 8, 10]);
    let (rules, capture) = ten(&bench);
    let wrong = |filter| refusal(&["replay", &rules, &capture, "--filter", filter]);
    assert!(wrong("4,48 0 0 23").contains("expected 4 BPF instructions, found 1"));
    if Command::new("tcpdump").arg("--version").output().is_err() {
        return eprintln!("skipped: filter expressions need tcpdump");
    }
    assert_eq!(evaluated(&bench, &["--filter", "tcp port 22", "--count", "2"]), [1, 3]);
    assert!(wrong("tcp prt 22").contains("syntax error"));
}

#[test]
fn without_tcpdump_a_filter_says_so() {
    let bench = Bench::new();
    let (rules, capture) = ten(&bench);
    let output = Command::new(env!("CARGO_BIN_EXE_tamis"))
        .args(["replay", &rules, &capture, "--filter", "udp"])
        .env("PATH", bench.dir.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("expected tcpdump on the PATH") && message.lines().count() == 1,
        "{message}"
    );
}

#[test]
fn what_is_no_time_is_a_usage_error() {
    let bench = Bench::new();
    let (rules, capture) = ten(&bench);
    for wrong in ["yesterday", "+", "2026-02-30T00:00:00Z"] {
        assert!(refusal(&["replay", &rules, &capture, "--from", wrong]).contains("RFC 3339"));
    }
}

#[test]
fn fail_on_exits_with_3_when_there_are_such_packets() {
    let bench = Bench::new();
    let (rules, capture) = ten(&bench);
    let open = bench.forward("open.v4", &["-j ACCEPT"]);
    let reject = bench.forward("reject.v4", &["-p udp -j REJECT", "-j ACCEPT"]);
    let unknown = bench.forward("unknown.v4", &["-i lan0 -j ACCEPT", "-j ACCEPT"]);
    let hangs = bench.file(
        "hangs.v4",
        "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m geoip --source-country XX -j DROP\nCOMMIT\n",
    );
    let code = |rules: &str, flags: &[&str]| {
        tamis(&[&["replay", rules, &capture][..], flags].concat()).status.code()
    };
    assert_eq!(code(&rules, &[]), Some(0));
    assert_eq!(code(&rules, &["--fail-on", "drop"]), Some(3));
    assert_eq!(code(&reject, &["--fail-on", "drop"]), Some(3));
    assert_eq!(code(&open, &["--fail-on", "drop,unknown"]), Some(0));
    assert_eq!(code(&unknown, &["--fail-on", "unknown"]), Some(0));
    assert_eq!(code(&hangs, &["--fail-on", "unknown"]), Some(3));
    assert_eq!(code(&hangs, &["--fail-on", "drop"]), Some(3), "nothing is known of any packet");
    assert_eq!(code(&hangs, &["--fail-on", "drop", "--allow-empty"]), Some(0));
    assert_eq!(code(&rules, &["--vs", &open, "--fail-on", "change"]), Some(3));
    assert_eq!(code(&open, &["--fail-on", "nothing"]), Some(2));
}

#[test]
fn one_report_for_both_families() {
    let bench = Bench::new();
    let v4 = bench.forward("r.v4", &["-p tcp -j ACCEPT"]);
    let v6 = bench.forward("r.v6", &["-p udp -j ACCEPT"]);
    let packets = [
        TCP,
        UDP,
        "udp [2001:db8::1]:53 > [2001:db8::2]:9",
        "tcp [2001:db8::1]:5 > [2001:db8::2]:9 syn",
    ];
    let capture = bench.capture("c.pcapng", &packets);
    let args = ["replay", &v4, &capture, "--rules6", &v6];
    let json = report(0, &args);
    assert_eq!(json["verdicts"]["accept"]["packets"], 2);
    assert_eq!(json["verdicts"]["drop"]["packets"], 2);
    assert_eq!((&json["rules"]["file"], &json["rules"]["family"]), (&json!(v4), &json!("ip")));
    assert_eq!(json["more_rules"][0]["file"], json!(v6));
    let hits: Vec<_> = json["hits"].as_array().unwrap().iter().map(|hit| &hit["packets"]).collect();
    assert_eq!(hits, [1, 1]);
    let alone = report(0, &["replay", &v4, &capture]);
    assert_eq!(alone["skipped"]["family"], 2);
    assert!(stdout(0, &args).contains(&format!("--rules6 {v6}")), "the next command can be typed");
    let why = stdout(0, &["why", &v4, &capture, "--rules6", &v6, "--packet", "3"]);
    assert!(why.contains("ACCEPT by L3 -A FORWARD -p udp -j ACCEPT"), "{why}");
    assert!(
        refusal(&["replay", &v6, &capture, "--family", "ip6", "--rules6", &v6]).contains("IPv4")
    );
    // The IPv6 rules stay as they are when IPv4 ones are compared.
    let new = bench.forward("new.v4", &["-j ACCEPT"]);
    let json = report(0, &["replay", &v4, &capture, "--rules6", &v6, "--vs", &new]);
    assert_eq!(
        (&json["changes"]["packets"], &json["changes"]["by"][0]["example_frame"]),
        (&json!(1), &json!(2))
    );
    let new6 = bench.forward("new.v6", &["-j ACCEPT"]);
    let both = ["replay", &v4, &capture, "--rules6", &v6, "--vs", &new, "--vs6", &new6];
    assert_eq!(report(0, &both)["changes"]["packets"], 2);
    assert!(stdout(0, &both).contains(&format!(" --vs {new} --vs6 {new6} --list change")));
    assert!(refusal(&["replay", &v4, &capture, "--vs", &new, "--vs6", &new6]).contains("--rules6"));
    let [saved, saved6] = ["saved.v4", "saved.v6"].map(|name| bench.path(name));
    let names = [saved.to_str().unwrap(), saved6.to_str().unwrap()];
    let saving = [&args[..], &["--save-counters", names[0], "--save-counters6", names[1]]];
    stdout(0, &saving.concat());
    let text = std::fs::read_to_string(saved6).unwrap();
    assert!(text.contains("[1:48] -A FORWARD -p udp -j ACCEPT"), "{text}");
}

#[test]
fn the_next_command_has_every_option_that_told_how_packets_walk() {
    let bench = Bench::new();
    let rules = bench.forward("my rules.v4", &["-p udp -j ACCEPT"]);
    let capture = bench.capture("c.pcapng", &["tcp 10.0.0.1:5 > 10.0.0.2:9 syn"]);
    let args = ["replay", &rules, &capture, "--table", "filter", "--checksums", "verify"];
    let text = stdout(0, &[&args[..], &["--addr", "eth0=10.0.0.1"]].concat());
    let next = text.lines().last().unwrap();
    assert!(next.starts_with(&format!("next: tamis replay '{rules}' {capture} ")), "{next}");
    for option in [" --table filter", " --checksums verify", " --addr eth0=10.0.0.1"] {
        assert!(next.contains(option), "{option}: {next}");
    }
}

#[test]
fn after_a_filter_the_next_command_names_no_packet_that_it_left_out() {
    let bench = Bench::new();
    let rules = bench.forward("r.v4", &["-j ACCEPT"]);
    let of = |source: &str| format!("in=a out=b udp {source}:5 > 10.0.0.2:9");
    let capture = bench.capture("c.pcapng", &[&of("10.0.0.1"), &of("10.0.0.3")]);
    // ether[29] = 3: the end of the source address.
    let bytecode = "4,48 0 0 29,21 0 1 3,6 0 0 262144,6 0 0 0";
    let args = ["replay", &rules, &capture, "--in", "a", "--out", "b", "--filter", bytecode];
    let text = stdout(0, &args);
    assert!(text.lines().last().unwrap().ends_with(" --list accept"), "{text}");
    let text = stdout(0, &[&args[..], &["--list", "accept"]].concat());
    assert!(text.lines().last().unwrap().contains("--packet 2"), "{text}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_prints_the_report_so_far() {
    let bench = Bench::new();
    let rules = bench.forward("r.v4", &["-p tcp -j ACCEPT"]);
    let packets: Vec<&str> = [TCP, UDP].into_iter().cycle().take(4000).collect();
    let bytes = std::fs::read(bench.capture("c.pcapng", &packets)).unwrap();
    for jobs in ["1", "2"] {
        // Less than the whole capture, and then silence: the reader waits.
        interrupted(&bench, &rules, &bytes[..bytes.len() - 30], jobs);
    }
}

/// Ctrl-C after the first packets were evaluated, and before the capture ends.
#[cfg(unix)]
fn interrupted(bench: &Bench, rules: &str, capture: &[u8], jobs: &str) {
    let lines = bench.path(&format!("packets{jobs}.jsonl"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_tamis"))
        .args(["replay", rules, "-", "--json", "-j", jobs, "--packets", lines.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(capture).unwrap();
    input.flush().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    // Until it ends, it writes to another file in the folder.
    let written = || {
        let files = std::fs::read_dir(bench.dir.path()).unwrap().map(Result::unwrap);
        let mut files =
            files.filter(|file| file.file_name().to_string_lossy().starts_with(".tamis-"));
        files.any(|file| file.metadata().is_ok_and(|file| file.len() > 0))
    };
    while !written() {
        assert!(Instant::now() < deadline, "no packet is evaluated");
        assert!(child.try_wait().unwrap().is_none(), "it waits for the rest");
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert_eq!(output.status.code(), Some(130));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["interrupted"], &json["warnings"]), (&json!(true), &json!([])));
    let lines = std::fs::read_to_string(lines).unwrap();
    let frames = lines.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["frame"].as_u64().unwrap()
    });
    let evaluated = json["packets"].as_u64().unwrap();
    assert!(
        (1..4000).contains(&evaluated) && frames.eq(1..=evaluated),
        "files end whole, too: {evaluated}"
    );
}
