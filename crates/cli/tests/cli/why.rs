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

/// A log with a line of something else, a packet that is dropped twice, and a line that cannot be read.
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
        "2 packets in 4 lines, each judged by itself, those of a capture after those before them\n\n\
         2 x  DROP by L2 policy DROP of filter/FORWARD\n  \
         line 2     tcp 198.51.100.7:51200 > 10.20.0.5:22 syn len=60 in=wan out=lan id=1 df=yes path=forward ttl=53 win=64240\n  \
         line 3     tcp 198.51.100.7:51201 > 10.20.0.5:22 syn len=40 seq=1 options=none\n\n\
         1 lines of packets could not be read:\n  line 4:66: expected an address, found \"10.20.0\"\n\
         next: tamis why {file} --packet 'tcp 198.51.100.7:51200 > 10.20.0.5:22 syn len=60 in=wan out=lan id=1 df=yes path=forward ttl=53 win=64240'\n"
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
    // The words of their contents come after the words of a tuple.
    let tuples = said.iter().zip(&read);
    for (said, tuple) in tuples {
        assert!(said == tuple || said.starts_with(&format!("{tuple} ")), "{said}: {tuple}");
    }
    assert_eq!(said.len(), read.len());
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
fn an_unknown_verdict_names_twenty_causes_and_counts_the_others() {
    let scratch = Scratch::new("why-causes");
    let file = scratch.file("rules");
    let asks = |n| format!("-A FORWARD -m string --algo bm --string w{n}x -j DROP\n");
    let asks: String = (0..33).map(asks).collect();
    fs::write(&file, format!("*filter\n:FORWARD ACCEPT [0:0]\n{asks}COMMIT\n")).unwrap();
    let packet = "in=a out=b tcp 10.0.0.1:5 > 10.0.0.2:22 syn";
    let ran = tamis(&["why", &file, "--packet", packet]);
    let causes = ran.out.lines().filter(|line| line.starts_with("  depends on ")).count();
    assert_eq!((ran.code, causes), (Some(4), 20), "{}", ran.out);
    assert!(ran.out.contains("\n  … 13 more\n"), "{}", ran.out);
    // One of several packets is reported in a line.
    let ran = fed(&["why", &file], format!("{packet}\n{packet}\n").as_bytes());
    assert!(ran.out.contains(", … 13 more"), "{}", ran.out);
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

/// A folder of a host with two links.
fn host(scratch: &Scratch) -> String {
    scratch.write(
        "iptables.save",
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i wan0 -j ACCEPT\nCOMMIT\n",
    );
    scratch.write(
        "links.txt",
        "1: lo: <LOOPBACK,UP> mtu 65536\\    link/loopback 00:00:00:00:00:00\n\
         2: wan0: <BROADCAST,UP> mtu 1500\\    link/ether 02:00:00:00:00:01\n",
    );
    scratch.path().display().to_string()
}

#[test]
fn an_interface_that_the_host_lacks_is_refused_wherever_it_is_typed() {
    let scratch = Scratch::new("why-lacks");
    let fw = &*host(&scratch);
    let packet = "tcp 192.0.2.9:1 > 10.0.0.9:2";
    let cases = scratch.write(
        "cases.toml",
        format!("[[case]]\nname = \"x\"\npacket = \"in=wna0 {packet}\"\nexpect = \"drop\"\n"),
    );
    let defaults = scratch.write(
        "defaults.toml",
        format!("[defaults]\nin = \"wna0\"\n[[case]]\nname = \"x\"\npacket = \"{packet}\"\nexpect = \"drop\"\n"),
    );
    let (misspelt, capture) = (format!("in=wna0 {packet}"), format!("wna0={CAPTURE}"));
    let near = "expected an interface that the host has (the nearest is wan0), found \"wna0\"";
    for (args, place) in [
        (vec!["why", fw, "--packet", &misspelt], "--packet:1".to_owned()),
        (vec!["why", fw, "--packet", packet, "--in", "wna0"], "--in".to_owned()),
        (vec!["why", fw, "--packet", packet, "--out", "wna0"], "--out".to_owned()),
        (vec!["why", fw, "--packet", packet, "--net", "wna0=10.0.0.0/8"], "--net".to_owned()),
        (vec!["why", fw, "--packet", packet, "--addr", "wna0=10.0.0.1"], "--addr".to_owned()),
        (vec!["why", fw, &capture, "--packet", "1"], capture.clone()),
        (vec!["replay", fw, &capture], capture.clone()),
        (vec!["test", fw, &cases], format!("{cases}:3:10")),
        (vec!["test", fw, &defaults], format!("{defaults}: [defaults] in")),
        (vec!["test", "--record", &capture, fw], capture.clone()),
    ] {
        let ran = tamis(&args);
        assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{args:?}: {}", ran.err);
        assert!(ran.err.starts_with(&format!("tamis: {place}: {near}")), "{args:?}: {}", ran.err);
    }
    // Without links, rules that name others are worth a word.
    let rules = scratch
        .write("rules.v4", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i wan0 -j ACCEPT\nCOMMIT\n");
    let ran = tamis(&["why", &rules, "--packet", &misspelt]);
    assert_eq!(ran.err, "warning: in=wna0: no rule names this interface\n");
    let ran = tamis(&["test", &rules, &cases]);
    assert!(ran.err.ends_with("in=wna0: no rule names this interface\n"), "{}", ran.err);
}
