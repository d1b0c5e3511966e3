//! `--packets`, `--split` and `--annotate`: what they write is what was captured.

use std::collections::BTreeSet;
use std::process::Command;

use crate::command::{Bench, Kept, ethernet, read, report};
use pktio::{Interface, LinkType};
use serde_json::{Value, json};

const WEB: &str = "tcp 198.51.100.7:51201 > 10.0.0.9:443 syn";
const SSH: &str = "tcp 198.51.100.7:51200 > 10.0.0.9:22 syn";
const DNS: &str = "udp 198.51.100.7:53 > 10.0.0.9:4000";
const PING: &str = "icmp 10.0.0.1 > 10.0.0.2 echo-request";

fn frame(spec: &str) -> Vec<u8> {
    replay::spec::parse(spec).unwrap().frame
}

/// Rules with every kind of end, and a capture on two interfaces of different link types.
fn scene(bench: &Bench) -> (String, String) {
    let rules = bench.forward(
        "r.v4",
        &[
            "-p tcp -m tcp --dport 443 -j ACCEPT",
            "-p tcp -m tcp --dport 22 -j DROP",
            "-p udp -j REJECT",
        ],
    );
    let raw = Interface { name: Some("tun0".into()), link_type: LinkType::RAW, snaplen: 9000 };
    let frames = [WEB, SSH, DNS, PING].map(frame);
    let dying = frame(&format!("{WEB} ttl=1"));
    let [web, ssh, dns, ping] = &frames;
    let all: [(u32, &[u8]); 7] = [
        (0, web),
        (0, ssh),
        (1, &ssh[14..]),
        (1, &dns[14..]),
        (0, ping),
        (0, &dying),
        (1, &web[14..]),
    ];
    (rules, bench.frames("c.pcapng", &[ethernet("eth0"), raw], &all))
}

fn picked(all: &[Kept], numbers: &[usize]) -> Vec<Kept> {
    numbers.iter().map(|number| all[number - 1].clone()).collect()
}

#[test]
fn packets_are_json_lines() {
    let bench = Bench::new();
    let (rules, capture) = scene(&bench);
    let file = bench.path("packets.jsonl");
    let file_name = file.to_str().unwrap();
    report(0, &["replay", &rules, &capture, "--packets", file_name, "--out", "lan0"]);
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 7);
    let ssh = &lines[1];
    let wanted = json!({
        "frame": 2, "time": "2026-11-21T10:00:01.000000000Z",
        "tuple": "tcp 198.51.100.7:51200 > 10.0.0.9:22 syn",
        "in": "eth0", "out": "lan0", "path": "forward", "verdict": "drop", "table": "filter",
        "chain": "FORWARD", "number": 2, "line": 4, "ctstate": null,
        "source": "198.51.100.7", "source_port": 51200, "destination_port": 22, "reason": "rule",
    });
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(&ssh[key], value, "{key}");
    }
    assert_eq!(lines[4]["reason"], "policy");
    assert_eq!((&lines[4]["line"], &lines[4]["number"]), (&json!(2), &json!(null)));
    assert_eq!((&lines[5]["reason"], &lines[5]["line"]), (&json!("ttl"), &json!(null)));
}

#[test]
fn packets_say_the_state_of_their_connection() {
    let bench = Bench::new();
    let rules = bench.forward("r.v4", &["-m conntrack --ctstate NEW -j ACCEPT"]);
    let answer = "udp 10.0.0.9:4000 > 198.51.100.7:53";
    let capture = bench.capture("c.pcapng", &[DNS, answer, "icmp 10.0.0.9 > 10.0.0.1 echo-reply"]);
    let file = bench.path("packets.jsonl");
    let states = |mode: &str| -> Vec<Value> {
        let file = file.to_str().unwrap();
        report(0, &["replay", &rules, &capture, "--packets", file, "--ct", mode]);
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["ctstate"].clone()).collect()
    };
    assert_eq!(states("kernel"), ["NEW", "ESTABLISHED", "INVALID"]);
    assert_eq!(states("midstream"), ["ESTABLISHED|NEW", "ESTABLISHED", "INVALID|ESTABLISHED"]);
}

#[test]
fn split_holds_every_packet_in_the_file_of_its_verdict_and_reason() {
    let bench = Bench::new();
    let (rules, capture) = scene(&bench);
    let dir = bench.path("split/here");
    report(0, &["replay", &rules, &capture, "--split", dir.to_str().unwrap()]);
    let all = read(capture.as_ref());
    let wanted: [(&str, &[usize]); 8] = [
        ("accept.pcapng", &[1, 7]),
        ("drop.pcapng", &[2, 3, 5, 6]),
        ("drop.L4.pcapng", &[2, 3]),
        ("drop.policy-filter-FORWARD.pcapng", &[5]),
        ("drop.ttl.pcapng", &[6]),
        ("reject.pcapng", &[4]),
        ("reject.L5.pcapng", &[4]),
        ("", &[]),
    ];
    for (name, numbers) in wanted.iter().filter(|(name, _)| !name.is_empty()) {
        assert_eq!(read(&dir.join(name)), picked(&all, numbers), "{name}");
    }
    let names: BTreeSet<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), wanted.len() - 1, "{names:?}");
}

#[test]
fn more_files_than_may_be_open_are_written_whole() {
    let bench = Bench::new();
    let ports = 1000..1150_u16;
    let rules: Vec<String> =
        ports.clone().map(|port| format!("-p tcp -m tcp --dport {port} -j DROP")).collect();
    let rules = bench.forward("r.v4", &rules.iter().map(String::as_str).collect::<Vec<_>>());
    let packets: Vec<String> = (0..3)
        .flat_map(|_| ports.clone())
        .map(|port| format!("tcp 10.0.0.1:9 > 10.0.0.2:{port} syn"))
        .collect();
    let capture =
        bench.capture("c.pcapng", &packets.iter().map(String::as_str).collect::<Vec<_>>());
    let dir = bench.path("split");
    report(0, &["replay", &rules, &capture, "--split", dir.to_str().unwrap()]);
    let all = read(capture.as_ref());
    assert_eq!(read(&dir.join("drop.pcapng")), all);
    for (index, _) in ports.enumerate() {
        let kept = read(&dir.join(format!("drop.L{}.pcapng", index + 3)));
        assert_eq!(kept, picked(&all, &[index + 1, index + 151, index + 301]));
    }
}

#[test]
fn annotate_keeps_every_packet_and_says_what_decided() {
    let bench = Bench::new();
    let (rules, capture) = scene(&bench);
    let open = bench.forward("open.v4", &["-j ACCEPT"]);
    let file = bench.path("annotated.pcapng");
    let file_name = file.to_str().unwrap();
    report(0, &["replay", &rules, &capture, "--annotate", file_name, "--vs", &open]);
    assert_eq!(read(&file), read(capture.as_ref()));
    let bytes = std::fs::read(&file).unwrap();
    let ssh = "tamis #2: drop by L4 -A FORWARD -p tcp -m tcp --dport 22 -j DROP; \
               new rules: accept by L3 -A FORWARD -j ACCEPT";
    assert!(bytes.windows(ssh.len()).any(|window| window == ssh.as_bytes()));

    let tshark = Command::new("tshark")
        .args(["-r", file_name, "-T", "fields", "-e", "frame.number", "-e", "frame.comment"])
        .output();
    let Ok(tshark) = tshark else {
        return eprintln!("skipped: tshark is not installed, so Wireshark was not asked");
    };
    let message = String::from_utf8(tshark.stdout).unwrap();
    assert_eq!(message.lines().count(), 7, "{message}");
    assert!(message.contains(&format!("2\t{ssh}")), "{message}");
}
