//! `tamis why`: packets by number and packet specs, and the exit code that scripts read.

use std::fs;
use std::process::Command;

use crate::ran::{CAPTURE, RULES, Scratch, fed, rules, skipped, tamis};

const NETS: [&str; 4] = ["--net", "lan0=10.20.0.0/24", "--net", "wan0=0.0.0.0/0"];

#[test]
fn a_packet_by_number_has_the_verdict_of_the_replay() {
    let scratch = Scratch::new("why-number");
    let file = scratch.file("verdicts.txt");
    tamis(&[&["replay", RULES, CAPTURE, "--verdicts", &file][..], &NETS].concat());
    let words = fs::read_to_string(file).unwrap();
    for (word, code) in [("accept", 0), ("drop", 1), ("reject", 1), ("unknown", 4)] {
        let index = words.lines().position(|line| line == word).unwrap();
        let number = (index + 1).to_string();
        let ran = tamis(&[&["why", RULES, CAPTURE, "--packet", &number][..], &NETS].concat());
        assert_eq!(ran.code, Some(code), "packet {number} is {word}: {}{}", ran.out, ran.err);
        let last = ran.out.trim_end().lines().any(|line| line.starts_with(&word.to_uppercase()));
        assert!(last, "{}", ran.out);
    }
}

/// A log with a line of something else, one that is dropped twice, and one that cannot be read.
const LOG: &str = "\
Nov 23 10:11:11 gate sshd[7]: Accepted publickey for root
Nov 23 10:11:12 gate kernel: [UFW BLOCK] IN=wan OUT=lan SRC=198.51.100.7 DST=10.20.0.5 LEN=60 TOS=0x00 PREC=0x00 TTL=52 ID=1 DF PROTO=TCP SPT=51200 DPT=22 WINDOW=64240 RES=0x00 SYN URGP=0
IP 198.51.100.7.51201 > 10.20.0.5.22: Flags [S], seq 1, length 0
Nov 23 10:11:13 gate kernel: IN=wan OUT=lan SRC=198.51.100.7 DST=10.20.0 LEN=60 PROTO=TCP
";

#[test]
fn lines_of_other_programs_are_judged_one_by_one() {
    let rules = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p tcp --dport 80 -j ACCEPT\nCOMMIT\n";
    let folder = Scratch::new("why-lines");
    let file = folder.write("rules.v4", rules);
    let ran = fed(&["why", &file], LOG.as_bytes());
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let expected = format!(
        "2 packets in 4 lines, each judged by itself\n\n\
         2 x  DROP by L2 policy DROP of filter/FORWARD\n  \
         line 2     tcp 198.51.100.7:51200 > 10.20.0.5:22 syn len=60 in=wan out=lan path=forward ttl=52\n  \
         line 3     tcp 198.51.100.7:51201 > 10.20.0.5:22 syn\n\n\
         1 lines of packets could not be read:\n  line 4:66: expected an address, found \"10.20.0\"\n\
         next: tamis why {file} --packet 'tcp 198.51.100.7:51200 > 10.20.0.5:22 syn len=60 in=wan out=lan path=forward ttl=52'\n"
    );
    assert_eq!(ran.out, expected);
    let told = fed(&["why", &file, "--json"], LOG.as_bytes());
    let told: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(told["schema"], "tamis.why_lines/1");
    assert_eq!(
        told["verdicts"],
        serde_json::json!({"accept": 0, "drop_or_reject": 2, "unknown": 0})
    );
    assert_eq!((&told["packets"][1]["at"], &told["refused"][0]["at"]), (&3.into(), &4.into()));
    // The command that it prints says the same of that packet.
    let one = tamis(&["why", &file, "--packet", told["packets"][0]["packet"].as_str().unwrap()]);
    assert!(one.out.contains("DROP by L2 policy DROP of filter/FORWARD"), "{}", one.out);
    let web = LOG.replace("DPT=22", "DPT=80").replace(".22:", ".80:");
    assert_eq!(fed(&["why", &file], web.as_bytes()).code, Some(0));
    let none = fed(&["why", &file], b"nothing of the kind\n");
    assert_eq!(
        none.refusal(),
        "standard input: expected a line that says what a packet was, found none (or give one by --packet)"
    );
}

/// Each packet of the demonstration, as tcpdump prints it, is the packet that the capture has.
#[test]
fn tcpdump_s_lines_are_the_packets_that_it_read() {
    let Ok(printed) = Command::new("tcpdump").args(["-n", "-r", CAPTURE]).output() else {
        return skipped("packet specs of tcpdump: it is not installed");
    };
    let told = fed(&["why", RULES, "--json"], &printed.stdout);
    let told: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(told["refused"], serde_json::json!([]));
    let folder = Scratch::new("why-tcpdump");
    let list = folder.file("packets.jsonl");
    tamis(&["replay", RULES, CAPTURE, "--packets", &list]);
    let list = fs::read_to_string(list).unwrap();
    let read = list.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let read: Vec<String> = read.map(|line| line["tuple"].as_str().unwrap().to_owned()).collect();
    let packets = told["packets"].as_array().unwrap().iter();
    let said: Vec<String> =
        packets.map(|packet| packet["packet"].as_str().unwrap().to_owned()).collect();
    assert_eq!(said, read);
}

#[test]
fn what_is_wrong_with_a_packet_spec_has_a_mark_under_it() {
    let ran = tamis(&["why", RULES, "--packet", "tcp 10.0.0.1:5 > 10.0.0.2:22 sin"]);
    assert_eq!((ran.code, &*ran.out), (Some(2), ""));
    assert_eq!(
        ran.err,
        "tamis: --packet:30: expected TCP flags (fin syn rst psh ack urg ece cwr none), found \"sin\"\n  \
         tcp 10.0.0.1:5 > 10.0.0.2:22 sin\n                               ^\n"
    );
}

#[test]
fn a_packet_spec_ends_in_its_exit_code() {
    let cases = [
        ("in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:443 syn", 0, "L22"),
        ("in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:25 syn", 1, "L24"),
        ("in=lan0 out=wan0 tcp 10.20.0.9:1025 > 198.51.100.66:80 syn", 1, "L20"),
        ("in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:5432 syn", 4, "-m set"),
        ("in=wan0 out=lan0 udp 203.0.113.1:9 > 10.20.0.9:9", 1, "policy DROP"),
    ];
    for (spec, code, reason) in cases {
        let ran = tamis(&["why", RULES, "--packet", spec]);
        assert_eq!(ran.code, Some(code), "{spec}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains(reason), "{spec}: no {reason} in {}", ran.out);
    }
}

#[test]
fn both_families_and_their_rules_meet() {
    let spec = "in=a out=b icmp [2001:db8::1] > [2001:db8::2] echo-request";
    for (file, spec, code) in [
        ("plain.v6", spec.replace(['[', ']'], ""), 0),
        ("plain.v6", "tcp [2001:db8::1]:1 > [2001:db8::2]:1023".to_owned(), 1),
        ("stateless.v4", "icmp 10.20.0.1 > 192.0.2.1 echo-request".to_owned(), 0),
        ("plain.v6", "udp 10.20.0.1:1 > 192.0.2.1:2".to_owned(), 4),
    ] {
        let ran = tamis(&["why", &rules(file), "--packet", &spec]);
        assert_eq!(ran.code, Some(code), "{spec}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn the_document_tells_the_same_story() {
    let spec = "in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:25 syn";
    let ran = tamis(&["why", RULES, "--packet", spec, "--json"]);
    assert_eq!(ran.code, Some(1));
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["schema"], "tamis.why/1");
    assert_eq!(document["verdict"], "drop");
}

#[test]
fn all_shows_the_rules_that_did_not_match() {
    let spec = "in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:25 syn";
    let few = tamis(&["why", RULES, "--packet", spec]).out;
    let all = tamis(&["why", RULES, "--packet", spec, "--all"]).out;
    assert!(all.lines().count() > few.lines().count());
    assert!(all.contains("--icmp-type 8") && !few.contains("--icmp-type 8"), "{few}");
}

#[test]
fn a_packet_spec_is_new_unless_its_state_is_given() {
    let spec = "in=a out=b tcp 198.51.100.7:51200 > 10.20.0.9:22 ack";
    let ran = tamis(&["why", &rules("stateful.v4"), "--packet", spec]);
    assert!(ran.out.contains("conntrack: NEW"), "{}", ran.out);
    for (state, line) in [("ESTABLISHED", "L6"), ("related", "L6"), ("INVALID", "L7")] {
        let spec = format!("{spec} ctstate={state}");
        let ran = tamis(&["why", &rules("stateful.v4"), "--packet", &spec]);
        let state = state.to_uppercase();
        assert!(ran.out.contains(&format!("conntrack: {state}\n")), "{}", ran.out);
        assert!(ran.out.contains(&format!(" by {line} ")), "{state}: {}", ran.out);
        let off = tamis(&["why", &rules("stateful.v4"), "--packet", &spec, "--ct", "off"]);
        assert_eq!(off.code, ran.code, "given, it needs no tracking: {}", off.out);
    }
    // A capture may begin in the middle of a connection, words do not.
    let midstream = tamis(&["why", &rules("stateful.v4"), "--packet", spec, "--ct", "midstream"]);
    assert!(midstream.out.contains("conntrack: ESTABLISHED"), "{}", midstream.out);
}

#[test]
fn of_a_connection_whose_state_is_given_nothing_else_is_known() {
    let scratch = Scratch::new("why-given");
    let file = scratch.file("mark.v4");
    let text =
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m connmark --mark 0x1 -j ACCEPT\nCOMMIT\n";
    fs::write(&file, text).unwrap();
    let spec = "in=a out=b udp 198.51.100.7:5 > 10.20.0.9:22";
    let code = |spec: &str| tamis(&["why", &file, "--packet", spec]).code;
    assert_eq!(code(spec), Some(1), "a new connection has no mark");
    assert_eq!(code(&format!("{spec} ctstate=NEW")), Some(1), "given or found, it is the same");
    assert_eq!(code(&format!("{spec} ctstate=ESTABLISHED")), Some(4));
}

#[test]
fn the_story_ends_with_what_tells_more() {
    let spec = "in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:25 syn";
    let ran = tamis(&["why", RULES, "--packet", spec]);
    let next = ran.out.lines().last().unwrap().to_owned();
    assert!(next.starts_with("next: tamis why ") && next.ends_with(" --near 3"), "{next}");
    let near = tamis(&["why", RULES, "--packet", spec, "--near", "3"]);
    let next = near.out.lines().last().unwrap().to_owned();
    assert!(next.ends_with(" --near 3 --all"), "{next}");
    let all = tamis(&["why", RULES, "--packet", spec, "--near", "3", "--all"]);
    assert!(!all.out.contains("next: "), "{}", all.out);
}

#[test]
fn what_a_match_remembers_is_told_with_its_answer() {
    let scratch = Scratch::new("why-remembers");
    let rules = scratch.write(
        "ssh.v4",
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
         -A INPUT -p tcp --dport 22 -m recent --name SSH --update --seconds 60 --hitcount 3 -j DROP\n\
         -A INPUT -p tcp --dport 22 -m recent --name SSH --set\nCOMMIT\n",
    );
    let attempts = ["4001", "4002", "4003", "4004"]
        .map(|port| format!("in=eth0 tcp 10.0.0.1:{port} > 10.0.0.2:22 syn"));
    let mut args = vec!["why", &rules, "--addr", "eth0=10.0.0.2"];
    args.extend(attempts.iter().flat_map(|spec| ["--packet", spec]));
    let ran = tamis(&args);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("SSH: seen 3 times within 60 s"), "{}", ran.out);
    let ran = tamis(&[&args[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let steps = json["steps"].as_array().unwrap();
    let drop = steps.iter().find(|step| step["line"] == 5).unwrap();
    assert_eq!(drop["remarks"][0], "SSH: seen 3 times within 60 s");
}
