//! What people give by mistake or in another form than expected: it is read, or named with the way out.

use std::fs;
use std::io::Write;
use std::process::Command;

use pktio::pcap_file::{ClassicWriter, Precision};
use pktio::{Frame, FrameMeta, LinkType};

use crate::ran::{CAPTURE, RULES, Scratch, fed, piped, skipped, tamis};

/// The lines of a replay's report.
fn replayed(args: &[&str]) -> String {
    let ran = tamis(&[&["replay"], args].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    ran.out
}

#[test]
fn a_byte_order_mark_is_read_over_and_utf_16_is_named() {
    let scratch = Scratch::new("given-encodings");
    let text = fs::read_to_string(RULES).unwrap();
    let marked = scratch.write("bom.v4", format!("\u{feff}{text}"));
    let out = replayed(&[&marked, CAPTURE]);
    assert!(out.contains("bom.v4:1: byte order mark before the first line"), "{out}");
    let strict = tamis(&["replay", &marked, CAPTURE, "--strict-input"]);
    assert!(strict.refusal().contains(":1:1: expected no byte order mark"), "{}", strict.err);
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, head) in [("marked", &b"\xff\xfe"[..]), ("bare", b"")] {
        let wide = scratch.write(name, [head, &wide].concat());
        let ran = tamis(&["replay", &wide, CAPTURE]);
        assert!(ran.refusal().contains("found UTF-16 (convert it: iconv"), "{name}: {}", ran.err);
    }
}

#[test]
fn compressed_rules_are_read_and_a_cut_file_is_named() {
    let scratch = Scratch::new("given-compressed");
    let Ok(packed) = Command::new("gzip").args(["-c", RULES]).output() else {
        return skipped("compressed rules: no gzip");
    };
    let whole = packed.stdout;
    let rules = scratch.write("rules.v4.gz", &whole);
    assert!(replayed(&[&rules, CAPTURE]).contains(", 20 rules in 10 chains"));
    assert_eq!(fed(&["replay", "-", CAPTURE], &whole).code, Some(0));
    let cut = scratch.write("cut.v4.gz", &whole[..whole.len() / 2]);
    let ran = tamis(&["replay", &cut, CAPTURE]);
    assert!(ran.refusal().contains("cut.v4.gz: expected more of the gzip stream"), "{}", ran.err);
}

#[test]
fn files_in_each_others_place_are_named() {
    let scratch = Scratch::new("given-swapped");
    let case = "[[case]]\nname = 'x'\npacket = 'udp 1.2.3.4:5 > 6.7.8.9:10'\nexpect = 'drop'\n";
    let cases = scratch.write("cases.toml", case);
    let json = scratch.write("rules.json", tamis(&["convert", RULES, "--to", "json"]).out);
    for (args, found) in [
        (["test", &cases, RULES], "found rules (these stand first: tamis test RULES CASES.toml)"),
        (["replay", &cases, CAPTURE], "found a file of cases (tamis test RULES CASES.toml)"),
        (["replay", CAPTURE, RULES], "found a capture (captures stand after the rules)"),
        (["replay", &json, CAPTURE], "found JSON (tamis convert writes rules in JSON as text)"),
    ] {
        let ran = tamis(&args);
        assert!(ran.refusal().contains(found), "{args:?}: {}", ran.err);
    }
    let text = tamis(&["convert", &json, "--to", "iptables"]);
    assert_eq!((text.code, text.out.starts_with("*mangle\n")), (Some(0), true), "{}", text.err);
}

#[test]
fn rules_of_another_family_than_their_text_shows_are_told() {
    let scratch = Scratch::new("given-family");
    let text = "*filter\n:INPUT ACCEPT\n:OUTPUT ACCEPT\n-A INPUT -j DROP -s 10.0.0.1 --opcode 1\n";
    let rules = scratch.write("arp.save", text);
    let ran = tamis(&["replay", &rules, CAPTURE]);
    let hint = "(these do read as arptables rules: --family arp)";
    assert!(ran.refusal().contains(hint), "{}", ran.err);
    assert!(replayed(&[&rules, CAPTURE, "--family", "arp"]).contains("arptables, 1 rule"));
    // What no family's rules are, gets no hint.
    let wrong = scratch.write("wrong.save", "*filter\n:INPUT ACCEPT\n-A INPUT --none\nCOMMIT\n");
    let ran = tamis(&["replay", &wrong, CAPTURE]);
    assert!(!ran.refusal().contains("do read as"), "{}", ran.err);
}

#[test]
fn what_is_skipped_says_which_and_what_to_give() {
    let scratch = Scratch::new("given-skipped");
    let mut usb = ClassicWriter::new(Vec::new(), LinkType::USB_LINUX, Precision::Micros).unwrap();
    let meta = FrameMeta { wire_length: 20, ..FrameMeta::default() };
    usb.write(Frame { bytes: &[0; 20], meta: &meta }).unwrap();
    let usb = scratch.write("usb.pcap", usb.finish().unwrap());
    let out = replayed(&[RULES, &usb]);
    assert!(out.contains("skipped   1 packet: link type 189 (USB_LINUX) is not read"), "{out}");
    let v6 = scratch.write(
        "rules.v6",
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -s 2001:db8::/32 -j ACCEPT\nCOMMIT\n",
    );
    let out = replayed(&[&v6, CAPTURE]);
    let why = "IPv4, no rules for its packets (as RULES, those of IPv6 as --rules6)";
    assert!(out.contains(why), "{out}");
    let json = tamis(&["replay", &v6, CAPTURE, "--json"]).json();
    assert_eq!(json["skipped"]["families"]["ip"], json["skipped"]["family"]);
}

#[test]
fn captures_beyond_the_fifth_are_one_line() {
    let out = replayed(&[&[RULES][..], &[CAPTURE; 7]].concat());
    assert_eq!(out.lines().filter(|line| line.starts_with("capture ")).count(), 6, "{out}");
    assert!(out.contains("capture   and 2 more with 574 packets"), "{out}");
}

#[test]
fn packets_on_standard_output_are_alone_there_and_may_lose_their_reader() {
    let ran = tamis(&["replay", RULES, CAPTURE, "--packets", "-"]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.out.lines().all(|line| line.starts_with('{') && line.ends_with('}')),
        "{}",
        ran.out
    );
    assert!(ran.err.contains("\nVERDICT"), "{}", ran.err);
    let mut child = piped(&["replay", "-", CAPTURE, "--packets", "-", "--fail-on", "unknown"]);
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(&fs::read(RULES).unwrap()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(3), "{told}");
    assert!(!told.contains("Broken pipe"), "{told}");
}

#[test]
fn a_lost_verdict_is_told_by_the_exit_code() {
    let scratch = Scratch::new("given-lost");
    let head = "*filter\n:INPUT ACCEPT [0:0]\n";
    let drop = scratch.write("d", format!("{head}-A INPUT -s 10.0.0.0/8 -j DROP\nCOMMIT\n"));
    let ran = tamis(&["convert", &drop, "--to", "ip6tables"]);
    assert_eq!((ran.code, ran.out.contains("*filter")), (Some(5), true));
    assert!(ran.err.contains("(losses that decide: 1 of 1)"), "{}", ran.err);
    let log = scratch.write("l", format!("{head}-A INPUT -s 10.0.0.0/8 -j LOG\nCOMMIT\n"));
    let ran = tamis(&["convert", &log, "--to", "ip6tables"]);
    assert_eq!((ran.code, ran.err.contains("lost an address")), (Some(0), true), "{}", ran.err);
    let policy = scratch.write("p", "*mangle\n:FORWARD DROP [0:0]\nCOMMIT\n");
    let ran = tamis(&["convert", &policy, "--to", "ebtables"]);
    assert_eq!(ran.code, Some(5));
    assert!(ran.err.contains("lost table mangle: :FORWARD DROP"), "{}", ran.err);
}

#[test]
fn recorded_cases_name_rules_only_with_pin() {
    let recorded = |more: &[&str]| {
        let base =
            ["test", "--record", CAPTURE, "--path", "forward", "--in", "lan0", "--out", "wan0"];
        let ran = tamis(&[&base, more, &[RULES]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.out.lines().filter(|line| line.starts_with("by")).count()
    };
    assert_eq!(recorded(&[]), 0);
    assert!(recorded(&["--pin"]) > 0);
}
